"""Carry messages over WebSocket connections that peers open to us, by trio-websocket.

Knows handshakes, tokens, signs of life and how to close without waiting for a peer that waits for us. Does not know
what the messages say.
"""

import hmac
import math
from collections.abc import Callable

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, wrap_server_stream
from wsproto.utilities import ProtocolError

from actors.executor._channel import CloseReason
from actors.executor._executor import Executor
from actors.executor._limits import Limits

__all__ = ["WatchedStream", "WebSocketChannel", "serve_websocket_stream"]

_RECEIVE_BYTES = 256 * 1024
_MESSAGE_QUEUE = 16
# A close frame carries at most 125 bytes, two of them the code.
_REASON_BYTES_MAX = 120


class WatchedStream(trio.abc.HalfCloseableStream):
    """A stream that knows since when it has been waiting for the peer."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.socket = stream.socket
        """For trio-websocket, which asks it for addresses."""
        self.waiting_since_s = math.inf
        """Since when nothing has come although we were ready to take it; infinity while we are not."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive, and note since when we are waiting."""
        self.waiting_since_s = trio.current_time()
        try:
            return await self._stream.receive_some(max_bytes)
        finally:
            self.waiting_since_s = math.inf

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send everything."""
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until there may be room to send."""
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """Send nothing more."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()


class WebSocketChannel:
    """One accepted WebSocket connection."""

    answers_malformed = True

    def __init__(self, connection: WebSocketConnection, stream: WatchedStream, *, peer: str, close_s: float) -> None:
        self._connection, self._stream, self._close_s = connection, stream, close_s
        self._half_sent = False
        self.peer = peer

    async def receive(self) -> bytes | str:
        """Wait for the next message."""
        try:
            return await self._connection.get_message()
        except ConnectionClosed:
            raise trio.EndOfChannel from None

    async def send(self, data: bytes) -> None:
        """Send one message, as text."""
        self._half_sent = True
        try:
            await self._connection.send_message(data.decode())
        except ConnectionClosed as closed:
            raise trio.BrokenResourceError from closed
        self._half_sent = False

    async def close(self, reason: CloseReason) -> None:
        """Say why and hang up; within the limit, whatever the peer does: case P22."""
        code, text = reason
        if not self._half_sent:  # After half a message a close frame would be taken for its other half.
            with trio.move_on_after(self._close_s, shield=True):
                await self._connection.aclose(code, text.encode()[:_REASON_BYTES_MAX].decode(errors="ignore"))
        await trio.aclose_forcefully(self._stream)

    async def keep_alive(self, limits: Limits) -> None:
        """Ask a silent peer for a sign of life; return when it gives none. Any byte is one.

        Cancelled:
            A ping may be half sent: only together with the connection.
        """
        async with trio.open_nursery() as nursery:
            while True:
                silent_s = trio.current_time() - self._stream.waiting_since_s
                if silent_s >= limits.keepalive_s + limits.pong_s:
                    nursery.cancel_scope.cancel()
                    return
                if silent_s >= limits.keepalive_s:
                    nursery.start_soon(self._ping)
                    await trio.sleep(limits.keepalive_s + limits.pong_s - silent_s)
                else:
                    await trio.sleep(limits.keepalive_s - max(silent_s, 0.0))

    async def _ping(self) -> None:
        try:
            await self._connection.ping()
        except ConnectionClosed:
            return


async def serve_websocket_stream(
    executor: Executor, stream: trio.SocketStream, admits: Callable[[WebSocketRequest], int | None]
) -> None:
    """Serve one TCP connection: handshake, then messages until the end. Its troubles end with it.

    Args:
        executor: Who answers.
        stream: The connection; closed in the end.
        admits: Judges the handshake: ``None``, or the HTTP status to refuse it with.
    """
    peer = _address_of(stream)
    watched = WatchedStream(stream)
    try:
        async with trio.open_nursery() as nursery:
            channel = await _accept(executor, watched, nursery, peer, admits)
            if channel is not None:
                nursery.start_soon(_give_up_when_silent, executor, channel, nursery.cancel_scope)
                await executor.serve_channel(channel)
            nursery.cancel_scope.cancel()
    except* ProtocolError as broken:  # The peer broke the rules of WebSocket in a way the library lets through.
        executor.note_refused(peer, f"broke WebSocket: {broken.exceptions[0]}")
    finally:
        await trio.aclose_forcefully(watched)


async def _give_up_when_silent(executor: Executor, channel: WebSocketChannel, connection: trio.CancelScope) -> None:
    await channel.keep_alive(executor.limits)
    executor.note_silent()
    connection.cancel()


async def _accept(
    executor: Executor,
    stream: WatchedStream,
    nursery: trio.Nursery,
    peer: str,
    admits: Callable[[WebSocketRequest], int | None],
) -> WebSocketChannel | None:
    limits = executor.limits
    with trio.move_on_after(limits.handshake_s):
        request = await wrap_server_stream(
            nursery,
            stream,
            message_queue_size=_MESSAGE_QUEUE,
            max_message_size=limits.message_bytes_max,
            receive_buffer_size=_RECEIVE_BYTES,
        )
        status = admits(request) if executor.has_place() else 503
        try:
            if status is None:
                connection = await request.accept()
                return WebSocketChannel(connection, stream, peer=peer, close_s=limits.close_s)
            await request.reject(status)
        except ConnectionClosed:
            status = 499
        executor.note_refused(peer, f"HTTP {status}")
        return None
    executor.note_refused(peer, "no handshake in time")
    return None


def admission(token: str | None) -> Callable[[WebSocketRequest], int | None]:
    """Make the judge of handshakes.

    With a token, who knows it comes in. Without one, everybody does who is not a web page: a browser lets any page
    connect to loopback, but it cannot keep the page from saying where it came from (``Origin``).
    """
    wanted = token.encode() if token is not None else None

    def admits(request: WebSocketRequest) -> int | None:
        headers = {name.lower(): value for name, value in request.headers}
        if wanted is None:
            return 403 if b"origin" in headers else None
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        # Both compared before either is judged: the time taken says nothing about the token.
        right = hmac.compare_digest(given.strip(), wanted)
        return None if right and scheme.lower() == b"bearer" else 401

    return admits


def _address_of(stream: trio.SocketStream) -> str:
    try:
        host, port, *_ = stream.socket.getpeername()
    except (OSError, ValueError):  # It is gone already, or no internet address.
        return "unknown"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
