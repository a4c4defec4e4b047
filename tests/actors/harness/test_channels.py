"""One contract for channels, two bodies: in memory, and over a real WebSocket."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Protocol

import pytest
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, serve_websocket

from actors.harness import ChannelClosed, MessageChannel, WebSocketDialer
from actors.harness.testing import Cut, MemoryChannel, MemoryNetwork
from tests.support.cancelling import cancel_at_each_step


class FarEnd(Protocol):
    async def send(self, message: bytes) -> None: ...
    async def receive(self) -> bytes | str: ...


Serve = Callable[[FarEnd], Awaitable[None]]


@asynccontextmanager
async def in_memory(serve: Serve) -> AsyncIterator[MessageChannel]:
    async def served(channel: MemoryChannel) -> None:
        with suppress(ChannelClosed):
            await serve(channel)
            network.line.cut(Cut.CLEAN)

    network = MemoryNetwork(served)
    async with network.dial("ws://memory") as channel:
        yield channel


class OverWebSocket:
    def __init__(self, websocket: WebSocketConnection) -> None:
        self.websocket = websocket

    async def send(self, message: bytes) -> None:
        await self.websocket.send_message(message.decode())

    async def receive(self) -> bytes | str:
        return await self.websocket.get_message()


@asynccontextmanager
async def over_websocket(serve: Serve) -> AsyncIterator[MessageChannel]:
    async def accept(request: WebSocketRequest) -> None:
        websocket = await request.accept()
        with suppress(ConnectionClosed):
            await serve(OverWebSocket(websocket))

    async with trio.open_nursery() as nursery:
        server = await nursery.start(partial(serve_websocket, accept, "127.0.0.1", 0, None))
        async with WebSocketDialer(close_timeout_s=0.5).dial(f"ws://127.0.0.1:{server.port}") as channel:
            yield channel
        nursery.cancel_scope.cancel()


bodies = pytest.mark.parametrize("body", [in_memory, over_websocket])
Body = Callable[[Serve], "AsyncContext"]


class AsyncContext(Protocol):
    async def __aenter__(self) -> MessageChannel: ...
    async def __aexit__(self, *exc: object) -> bool | None: ...


async def echo(far: FarEnd) -> None:
    while True:
        message = await far.receive()
        await far.send(message if isinstance(message, bytes) else message.encode())


def as_bytes(message: bytes | str) -> bytes:
    return message if isinstance(message, bytes) else message.encode()


@bodies
async def test_messages_come_whole_and_in_order(body: Body) -> None:
    async with body(echo) as channel, trio.open_nursery() as nursery:

        async def send_all() -> None:
            for number in range(100):
                await channel.send(b"%d" % number * number)

        nursery.start_soon(send_all)
        got = [as_bytes(await channel.receive()) for _ in range(100)]

    assert got == [b"%d" % number * number for number in range(100)]


@bodies
async def test_what_was_sent_before_the_goodbye_still_comes(body: Body) -> None:
    async def speak_and_leave(far: FarEnd) -> None:
        for number in range(5):
            await far.send(b"%d" % number)

    async with body(speak_and_leave) as channel:
        got = [as_bytes(await channel.receive()) for _ in range(5)]
        for _ in range(2):
            with pytest.raises(ChannelClosed):
                await channel.receive()
        with pytest.raises(ChannelClosed) as caught:
            await channel.send(b"x")

    assert got == [b"%d" % number for number in range(5)]
    assert not caught.value.written


@bodies
async def test_a_cancelled_receive_loses_no_message(body: Body) -> None:
    async with body(echo) as channel:
        got: list[bytes] = []

        async def receive_one() -> None:
            got.append(as_bytes(await channel.receive()))

        for number in range(12):
            await channel.send(b"%d" % number)
        with trio.fail_after(10):
            await cancel_at_each_step(receive_one)
            while len(got) < 12:
                await receive_one()

    assert got == [b"%d" % number for number in range(12)]


@bodies
async def test_a_peer_that_lives_answers_a_ping(body: Body) -> None:
    async with body(echo) as channel:
        with trio.fail_after(5):
            await channel.ping()


@bodies
async def test_a_peer_that_does_not_read_makes_the_sender_wait(body: Body) -> None:
    async def never_read(far: FarEnd) -> None:
        await trio.sleep_forever()

    async with body(never_read) as channel:
        sent = 0
        while sent < 200:
            with trio.move_on_after(1) as patience:
                await channel.send(b"x" * 500_000)
                sent += 1
            if patience.cancelled_caught:
                break

    assert 0 < sent < 200
