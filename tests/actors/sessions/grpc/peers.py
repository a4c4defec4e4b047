"""Clients and servers of both makes behind one shape: ours, and grpcio's in threads."""

import functools
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from actors.sessions import grpc
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.grpc.service import (
    DETAILS,
    HARD_TEXT,
    SERVICE,
    Answer,
    Client,
    Failed,
    Pairs,
    Seen,
    our_routes,
)

try:
    import grpc as grpcio
except ImportError:
    grpcio = None

LARGE = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class OurClient:
    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    async def call(
        self,
        what: grpc.Method[bytes, bytes],
        requests: list[bytes],
        metadata: Pairs | None = None,
        timeout_s: float = 10,
    ) -> Answer:
        messages: list[bytes] = []
        try:
            async with self.channel.open_call(what, metadata=metadata or [], timeout_s=timeout_s) as call:
                for request in requests:
                    await call.send(request)
                call.finish_sending()
                messages = [message async for message in call]
                return Answer(messages, [*await call.headers()], [*call.trailers])
        except grpc.CallFailed as failed:
            status = failed.status
            raise Failed(status.code, status.message, [*failed.trailers], status.details) from failed

    @asynccontextmanager
    async def open_lease(self) -> AsyncGenerator[None]:
        from tests.actors.sessions.grpc.service import LEASE

        async with self.channel.stream(LEASE, b"", timeout_s=10) as lease:
            assert (await lease.headers()).text("x-lease") == "open"
            assert await lease.receive() == b"open"
            yield


class GrpcioClient:
    """grpcio's synchronous client, each call in a thread of its own."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel

    async def call(
        self,
        what: grpc.Method[bytes, bytes],
        requests: list[bytes],
        metadata: Pairs | None = None,
        timeout_s: float = 10,
    ) -> Answer:
        return await trio.to_thread.run_sync(functools.partial(self._call, what, requests, metadata or [], timeout_s))

    def _call(
        self, what: grpc.Method[bytes, bytes], requests: list[bytes], metadata: Pairs, timeout_s: float
    ) -> Answer:
        # The stream form of every shape: the wire does not tell them apart.
        stub = self.channel.stream_stream(what.path)
        call = stub(iter(requests), metadata=metadata, timeout=timeout_s)
        try:
            messages = list(call)
            return Answer(messages, _pairs(call.initial_metadata()), _pairs(call.trailing_metadata()))
        except grpcio.RpcError as failed:
            trailers = _pairs(failed.trailing_metadata())
            details = dict(trailers).get("grpc-status-details-bin", b"")
            assert isinstance(details, bytes)
            kept = [pair for pair in trailers if pair[0] != "grpc-status-details-bin"]
            raise Failed(failed.code().value[0], failed.details(), kept, details) from failed

    @asynccontextmanager
    async def open_lease(self) -> AsyncGenerator[None]:
        call = self.channel.unary_stream(f"/{SERVICE}/Lease")(b"", timeout=10)
        assert await trio.to_thread.run_sync(next, call) == b"open"
        assert dict(_pairs(call.initial_metadata()))["x-lease"] == "open"
        try:
            yield
        finally:
            call.cancel()


def _pairs(metadata: Any) -> Pairs:
    return [(key, value) for key, value in metadata or ()]


def grpcio_server(seen: Seen) -> Any:
    def echo(request: bytes, context: Any) -> bytes:
        found = [pair for pair in _pairs(context.invocation_metadata()) if pair[0].startswith("x-")]
        context.send_initial_metadata(found)
        context.set_trailing_metadata([("x-trailing", "yes"), *found])
        return request

    def fail(request: bytes, context: Any) -> bytes:
        context.set_trailing_metadata([("x-why-bin", b"\x00\xff"), ("grpc-status-details-bin", DETAILS)])
        context.abort(grpcio.StatusCode.FAILED_PRECONDITION, HARD_TEXT)

    def crash(request: bytes, context: Any) -> bytes:
        raise LookupError("a secret of the server")

    def sleep(request: bytes, context: Any) -> bytes:
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait(10)
        return b""

    def time_left(request: bytes, context: Any) -> bytes:
        return str(context.time_remaining()).encode()

    def count(request: bytes, context: Any) -> Iterator[bytes]:
        number, size = (int(part) for part in request.split())
        for index in range(number):
            yield b"%d" % index if size == 0 else bytes(size)

    def lease(request: bytes, context: Any) -> Iterator[bytes]:
        gone = threading.Event()
        context.add_callback(gone.set)
        context.send_initial_metadata([("x-lease", "open")])
        yield b"open"
        assert gone.wait(10)
        seen.lost_leases += 1

    def total(requests: Iterator[bytes], context: Any) -> bytes:
        return b"%d" % sum(int(request) for request in requests)

    def chat(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        for request in requests:
            yield b"re: " + request

    handlers = {
        "Echo": grpcio.unary_unary_rpc_method_handler(echo),
        "Fail": grpcio.unary_unary_rpc_method_handler(fail),
        "Crash": grpcio.unary_unary_rpc_method_handler(crash),
        "Sleep": grpcio.unary_unary_rpc_method_handler(sleep),
        "TimeLeft": grpcio.unary_unary_rpc_method_handler(time_left),
        "Count": grpcio.unary_stream_rpc_method_handler(count),
        "Lease": grpcio.unary_stream_rpc_method_handler(lease),
        "Sum": grpcio.stream_unary_rpc_method_handler(total),
        "Chat": grpcio.stream_stream_rpc_method_handler(chat),
    }
    server = grpcio.server(ThreadPoolExecutor(32), options=LARGE)
    server.add_generic_rpc_handlers((grpcio.method_handlers_generic_handler(SERVICE, handlers),))
    return server


@asynccontextmanager
async def run_ours(
    seen: Seen, listeners: Any, options: grpc.ServerOptions | None = None
) -> AsyncGenerator[grpc.Server]:
    server = grpc.Server(our_routes(seen), options)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, listeners)
        yield server
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def ours_to_ours_in_memory(folder: Path) -> AsyncGenerator[tuple[Client, Seen]]:
    network, seen = MemoryNetwork(), Seen()
    async with (
        run_ours(seen, [network.listener]),
        grpc.open_channel("http://memory", dial=network.dial) as channel,
    ):
        yield OurClient(channel), seen


@asynccontextmanager
async def ours_to_ours_over_tcp(folder: Path) -> AsyncGenerator[tuple[Client, Seen]]:
    listeners, seen = await grpc.listen_tcp("127.0.0.1", 0), Seen()
    async with (
        run_ours(seen, listeners),
        grpc.open_channel(f"http://{grpc.addresses_of(listeners)[0]}") as channel,
    ):
        yield OurClient(channel), seen


@asynccontextmanager
async def ours_to_ours_over_a_unix_socket(folder: Path) -> AsyncGenerator[tuple[Client, Seen]]:
    path, seen = str(folder / "s"), Seen()
    async with run_ours(seen, grpc.listen_unix(path)), grpc.open_channel(f"unix:{path}") as channel:
        yield OurClient(channel), seen


@asynccontextmanager
async def grpcio_to_ours(folder: Path) -> AsyncGenerator[tuple[Client, Seen]]:
    path, seen = str(folder / "s"), Seen()
    async with run_ours(seen, grpc.listen_unix(path)):
        channel = grpcio.insecure_channel(f"unix:{path}", options=LARGE)
        try:
            yield GrpcioClient(channel), seen
        finally:
            await trio.to_thread.run_sync(channel.close)


@asynccontextmanager
async def ours_to_grpcio(folder: Path) -> AsyncGenerator[tuple[Client, Seen]]:
    seen = Seen()
    server = grpcio_server(seen)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        async with grpc.open_channel(f"http://127.0.0.1:{port}") as channel:
            yield OurClient(channel), seen
    finally:
        await trio.to_thread.run_sync(server.stop(0).wait)


Opener = Callable[[Path], Any]
OURS: list[Opener] = [ours_to_ours_in_memory, ours_to_ours_over_tcp, ours_to_ours_over_a_unix_socket]
WITH_GRPCIO: list[Opener] = [grpcio_to_ours, ours_to_grpcio]
