"""What the tests of both stream ends share: keys, a bundle, an executor on a router in memory, and raw harnesses."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial

import attrs
import trio

from actors.noise import Identity, Initiator, PublicKey, SecureChannel, stream_prologue
from actors.relay import (
    Ack,
    Data,
    DisconnectReason,
    ExecutorEnd,
    ExecutorStream,
    Frame,
    Handshake,
    RelayLimits,
    RelayStream,
    Reset,
    Resume,
    Verdict,
    decode,
    encode,
    open_harness_stream,
    serve_executor,
)
from actors.relay.testing import MemoryConnection, MemoryDialer, MemoryRouter, memory_connection_pair

# Made once: keys cost more than most tests.
HARNESS = Identity.generate()
EXECUTOR = Identity.generate()
URL = "ws://relay/harness?ticket=a-secret-ticket"
AUTHORIZATION = "a-secret-authorization"


@attrs.frozen
class Bundle:
    """What a registry would give."""

    websocket_url: str = URL
    environment_id: str = "env-1"
    executor_registration_id: str = "registration-1"
    executor_public_key: PublicKey = EXECUTOR.public_key
    harness_key_authorization: str = AUTHORIZATION


async def approve(key: PublicKey, authorization: str) -> Verdict:
    await trio.lowlevel.checkpoint()
    good = key == HARNESS.public_key and authorization == AUTHORIZATION
    return Verdict.VALID if good else Verdict.REJECTED


async def echo(stream: ExecutorStream) -> None:
    while True:
        await stream.send(await stream.receive())


Handler = Callable[[ExecutorStream], Awaitable[None]]
Validate = Callable[[PublicKey, str], Awaitable[Verdict]]


@attrs.define
class World:
    """An executor, a router and a place to dial."""

    nursery: trio.Nursery
    router: MemoryRouter
    dialer: MemoryDialer
    end: ExecutorEnd
    limits: RelayLimits
    harness: MemoryConnection | None = None

    def open(self, *, limits: RelayLimits | None = None, bundle: Bundle | None = None, stream_id: str | None = None):
        """Open a real harness end."""
        return open_harness_stream(
            bundle or Bundle(), HARNESS, dialer=self.dialer, limits=limits or self.limits, stream_id=stream_id
        )


@asynccontextmanager
async def world(
    handler: Handler = echo, validate: Validate = approve, *, limits: RelayLimits | None = None
) -> AsyncGenerator[World, None]:
    """Run an executor behind a router in memory."""
    async with trio.open_nursery() as nursery:
        router, dialer = MemoryRouter(nursery), MemoryDialer()
        end = await nursery.start(start_executor, router.executor, handler, validate, limits)
        made = World(nursery, router, dialer, end, limits or RelayLimits())

        def answer(connection: MemoryConnection) -> None:
            made.harness = connection
            router.connect_harness(connection)

        dialer.listen(URL, answer)
        yield made
        nursery.cancel_scope.cancel()


async def start_executor(
    connection, handler: Handler, validate, limits: RelayLimits | None, *, task_status
) -> DisconnectReason:
    return await serve_executor(
        connection,
        EXECUTOR,
        environment_id="env-1",
        registration_id="registration-1",
        validate=validate,
        handler=handler,
        limits=limits,
        task_status=task_status,
    )


class RawHarness:
    """A harness made of frames, to do what a good one never does."""

    def __init__(self, connection: MemoryConnection) -> None:
        self.connection = connection

    def request(self, stream_id: str, authorization: bytes = AUTHORIZATION.encode()) -> tuple[Initiator, bytes]:
        prologue = stream_prologue("env-1", "registration-1", stream_id)
        initiator = Initiator(HARNESS, EXECUTOR.public_key, prologue=prologue)
        return initiator, initiator.write_request(authorization)

    async def send(self, stream_id: str, body, ack: int = 0) -> None:
        await self.connection.send(encode(Frame(stream_id, body, ack)))

    async def shake(self, stream_id: str, authorization: bytes = AUTHORIZATION.encode()) -> Initiator:
        initiator, request = self.request(stream_id, authorization)
        await self.send(stream_id, Resume())
        await self.send(stream_id, Handshake(request))
        return initiator

    async def receive(self) -> Frame:
        """The next frame that is no acknowledgement."""
        while True:
            message = await self.connection.receive()
            assert isinstance(message, bytes)
            if not isinstance((frame := decode(message)).body, Ack):
                return frame

    async def open(self, stream_id: str) -> SecureChannel:
        initiator = await self.shake(stream_id)
        frame = await self.receive()
        assert isinstance(frame.body, Handshake), frame
        assert frame.stream_id == stream_id
        return initiator.read_response(frame.body.payload)

    async def expect_reset(self, stream_id: str) -> None:
        frame = await self.receive()
        assert frame == Frame(stream_id, Reset("noise_relay_protocol_error"))


def message_record(channel: SecureChannel, *messages: bytes) -> bytes:
    return channel.encrypt(b"".join(len(message).to_bytes(4, "big") + message for message in messages))


@asynccontextmanager
async def raw(
    handler: Handler = echo, validate: Validate = approve, *, limits: RelayLimits | None = None
) -> AsyncGenerator[tuple[RawHarness, ExecutorEnd], None]:
    """A raw harness at the other end of an executor's own connection."""
    near, far = memory_connection_pair(buffered_frames=4096)
    async with trio.open_nursery() as nursery:
        end = await nursery.start(partial(start_executor, far, handler, validate, limits))
        yield RawHarness(near), end
        nursery.cancel_scope.cancel()


async def settled(stream: RelayStream) -> None:
    """Let everything that can run, run."""
    assert stream is not None
    await trio.testing.wait_all_tasks_blocked()


def datas(frames: Iterable[bytes]) -> list[Data]:
    return [frame.body for frame in map(decode, frames) if isinstance(frame.body, Data)]
