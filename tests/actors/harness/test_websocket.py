"""The real dialer: connecting, carrying, and closing without waiting for anyone (case P22)."""

import base64
import hashlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, serve_websocket

from actors.harness import (
    ChannelClosed,
    InvalidArgument,
    WebSocketChannel,
    WebSocketConnectFailed,
    WebSocketConnectTimedOut,
    WebSocketDialer,
    open_client,
)

CLOSE_S = 0.3
BOUND_S = 1.5

Serve = Callable[[WebSocketConnection], Awaitable[object]]


@asynccontextmanager
async def raw_server(serve: Callable[[trio.SocketStream], Awaitable[object]]) -> AsyncIterator[str]:
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        yield f"ws://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def websocket_server(serve: Serve, seen: list[WebSocketRequest] | None = None) -> AsyncIterator[str]:
    async def accept(request: WebSocketRequest) -> None:
        if seen is not None:
            seen.append(request)
        websocket = await request.accept()
        with suppress(ConnectionClosed):
            await serve(websocket)

    async with trio.open_nursery() as nursery:
        server = await nursery.start(
            lambda task_status: serve_websocket(
                accept, "127.0.0.1", 0, None, max_message_size=2**27, disconnect_timeout=0.1, task_status=task_status
            )
        )
        yield f"ws://127.0.0.1:{server.port}"
        nursery.cancel_scope.cancel()


async def echo(websocket: WebSocketConnection) -> None:
    while True:
        await websocket.send_message(await websocket.get_message())


async def silent(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


def dialer(**options: Any) -> WebSocketDialer:
    return WebSocketDialer(close_timeout_s=CLOSE_S, **options)


@asynccontextmanager
async def bounded() -> AsyncIterator[None]:
    """Fail when the inside takes longer than closing may."""
    started_s = trio.current_time()
    with trio.fail_after(10):
        yield
    assert trio.current_time() - started_s < BOUND_S


async def test_nobody_listening_is_told_without_the_token() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{unused.getsockname()[1]}/path?token=secret"
        with pytest.raises(
            WebSocketConnectFailed, match="failed to connect to exec-server websocket `ws://127"
        ) as caught:
            async with dialer().dial(url):
                pass

    assert "secret" not in str(caught.value)
    assert "secret" not in repr(caught.value.__cause__)


async def test_a_listener_that_never_answers_is_given_up_in_time() -> None:
    async with raw_server(silent) as url:
        with pytest.raises(WebSocketConnectTimedOut, match="after 100ms"):
            async with dialer(connect_timeout_s=0.1).dial(url):
                pass


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"])
async def test_a_listener_that_is_no_websocket_is_told_at_once(answer: bytes) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)
        await stream.aclose()

    async with raw_server(serve) as url, bounded():
        with pytest.raises(WebSocketConnectFailed):
            async with dialer().dial(url):
                pass


async def test_a_refused_handshake_tells_its_status() -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno")

    async with raw_server(serve) as url:
        with pytest.raises(WebSocketConnectFailed, match="status 401") as caught:
            async with dialer().dial(url):
                pass

    assert caught.value.status == 401


@pytest.mark.parametrize("url", ["http://h", "ws://", "ws:", "h:1", "ws://h:99999", "ws://h:0", ""])
async def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="url"):
        async with open_client(url):
            pass


async def test_the_token_goes_into_a_header_and_the_query_into_the_path() -> None:
    seen: list[WebSocketRequest] = []
    how = dialer(bearer_token="secret")
    async with websocket_server(echo, seen) as url, how.dial(f"{url}/a/b?c=d#e"):
        pass

    assert seen[0].path == "/a/b?c=d"
    assert dict(seen[0].headers)[b"authorization"] == b"Bearer secret"
    assert "secret" not in repr(how)


async def test_tls_that_fails_is_a_connection_that_failed() -> None:
    async with websocket_server(echo) as url:
        with pytest.raises(WebSocketConnectFailed):
            async with dialer(ssl_context=ssl.create_default_context()).dial(url.replace("ws://", "wss://")):
                pass


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 262_144, 1024 * 1024])
async def test_messages_of_every_size_come_back(size: int) -> None:
    message = b"x" * size
    async with websocket_server(echo) as url, dialer().dial(url) as channel:
        await channel.send(message)
        assert await channel.receive() == message.decode()


async def test_a_message_over_the_limit_ends_the_channel_with_a_reason() -> None:
    async with websocket_server(echo) as url, dialer(message_bytes_max=1000).dial(url) as channel:
        await channel.send(b"x" * 1001)
        with pytest.raises(ChannelClosed, match="1009"):
            await channel.receive()


async def test_a_goodbye_of_the_peer_is_told_with_its_reason() -> None:
    async def leave(websocket: WebSocketConnection) -> None:
        await websocket.send_message("last")
        await websocket.aclose(1001, "going away")

    async with websocket_server(leave) as url, dialer().dial(url) as channel:
        last = await channel.receive()
        with pytest.raises(ChannelClosed, match="code 1001: going away"):
            await channel.receive()
        with pytest.raises(ChannelClosed) as caught:
            await channel.send(b"x")

    assert last == "last"
    assert not caught.value.written


async def test_a_reset_ends_the_reader_and_the_sender() -> None:
    async def reset(websocket: WebSocketConnection) -> None:
        stream = websocket._stream
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await trio.aclose_forcefully(stream)

    async with websocket_server(reset) as url, bounded(), dialer().dial(url) as channel:
        with pytest.raises(ChannelClosed):
            await channel.receive()
        with pytest.raises(ChannelClosed):
            await channel.send(b"x")


async def test_a_ping_comes_back() -> None:
    async with websocket_server(echo) as url, dialer().dial(url) as channel:
        with trio.fail_after(5):
            await channel.ping()


async def test_leaving_does_not_wait_for_unread_messages() -> None:
    async def flood(websocket: WebSocketConnection) -> None:
        for _ in range(100):
            await websocket.send_message("x" * 100_000)
        await trio.sleep_forever()

    async with websocket_server(flood) as url, bounded(), dialer().dial(url) as channel:
        await channel.receive()


async def test_leaving_does_not_wait_for_a_goodbye_that_cannot_be_answered() -> None:
    async def rude(websocket: WebSocketConnection) -> None:
        with trio.move_on_after(0.01):
            await websocket.aclose()
        await trio.aclose_forcefully(websocket._stream)

    async with websocket_server(rude) as url, bounded(), dialer().dial(url) as channel:
        with pytest.raises(ChannelClosed):
            await channel.receive()


async def handshake_then_nothing(stream: trio.SocketStream) -> None:
    """Answer the opening handshake by hand and read no more."""
    request = bytes(await stream.receive_some())
    key = next(line.split(b": ")[1] for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
    digest = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    await stream.send_all(
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-accept: " + base64.b64encode(digest) + b"\r\n\r\n"
    )
    await trio.sleep_forever()


async def test_leaving_does_not_wait_for_a_peer_that_never_answers() -> None:
    async with raw_server(handshake_then_nothing) as url, bounded(), dialer().dial(url):
        pass


@pytest.mark.parametrize("by", ["cancellation", "exception"])
async def test_leaving_with_a_blocked_send_ends_with_what_made_us_leave(by: str) -> None:
    async with raw_server(handshake_then_nothing) as url, bounded():
        outcome = await leave_with_blocked_send(url, by)

    assert outcome == by


async def leave_with_blocked_send(url: str, by: str) -> str:
    async def send_for_ever(channel: WebSocketChannel) -> None:
        while True:
            await channel.send(b"x" * 1024 * 1024)

    with trio.CancelScope() as scope:
        try:
            async with dialer().dial(url) as channel:
                if by == "cancellation":
                    trio.lowlevel.current_trio_token().run_sync_soon(scope.cancel)
                    await send_for_ever(channel)
                with trio.move_on_after(0.1):
                    await send_for_ever(channel)
                raise KeyError("mine")
        except KeyError:
            return "exception"
    return "cancellation" if scope.cancelled_caught else "nothing"


async def test_a_cancelled_goodbye_is_still_answered_by_a_peer_that_answers() -> None:
    how = WebSocketDialer(close_timeout_s=5.0)
    async with websocket_server(echo) as url, bounded():
        with trio.CancelScope() as scope:
            async with how.dial(url):
                scope.cancel()
                await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught
