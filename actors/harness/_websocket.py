"""The real dialer: one WebSocket over TCP, TLS for `wss:`.

Settings as measured: a receive buffer of 64 KiB and a queue of 16 messages cost a fifth of the defaults on large
frames. Small writes go out at once: trio's TCP streams have Nagle's algorithm off.
"""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import SplitResult, urlsplit

import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, wrap_client_stream

from actors.harness._arguments import check_count, check_kind, check_seconds
from actors.harness._channel import ChannelClosed
from actors.harness._errors import InvalidArgument, WebSocketConnectFailed, WebSocketConnectTimedOut
from actors.harness._groups import plainly
from actors.protocol import MESSAGE_BYTES_MAX
from actors.relay import silence_hint, why_unreachable

_RECEIVE_BYTES: Final = 64 * 1024
_QUEUED_MESSAGES: Final = 16
_PORTS: Final = {"ws": 80, "wss": 443}
_ABNORMAL_CODE: Final = 1006


class WebSocketDialer:
    """Opens channels over WebSocket."""

    def __init__(
        self,
        *,
        connect_timeout_s: float = 10.0,
        close_timeout_s: float = 2.0,
        bearer_token: str | None = None,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        check_seconds("connect_timeout_s", connect_timeout_s)
        check_seconds("close_timeout_s", close_timeout_s)
        check_count("message_bytes_max", message_bytes_max)
        _check_token(bearer_token)
        if ssl_context is not None:
            check_kind("ssl_context", ssl_context, ssl.SSLContext)
        self._connect_timeout_s = connect_timeout_s
        self._close_timeout_s = close_timeout_s
        self._bearer_token = bearer_token
        self._message_bytes_max = message_bytes_max
        self._ssl_context = ssl_context

    def __repr__(self) -> str:
        return f"<WebSocketDialer connect_timeout_s={self._connect_timeout_s:g}>"

    @asynccontextmanager
    async def dial(self, url: str) -> AsyncGenerator["WebSocketChannel", None]:
        """Open a channel; leaving the context closes it within ``close_timeout_s``, whatever the other end does.

        Raises:
            WebSocketConnectFailed: It could not be opened.
            WebSocketConnectTimedOut: It was not open in time.
            InvalidArgument: The address is no `ws:` or `wss:` URL with a host.

        Cancelled:
            The connection is closed, with a goodbye within ``close_timeout_s`` if it was open.
        """
        address = _parse(url)
        with plainly():
            async with trio.open_nursery() as nursery:
                channel = await self._open(nursery, url, address)
                try:
                    yield channel
                finally:
                    await channel.close(self._close_timeout_s)
                    nursery.cancel_scope.cancel()

    async def _open(self, nursery: trio.Nursery, url: str, address: SplitResult) -> "WebSocketChannel":
        hint = ""
        with trio.move_on_after(self._connect_timeout_s):
            try:
                stream: trio.abc.Stream = await trio.open_tcp_stream(*_host_and_port(address))
                hint = silence_hint(address.scheme)
                stream = await self._secured(stream, address)
            except (OSError, trio.BrokenResourceError) as error:
                reason = why_unreachable(error, address.scheme) or _one_line(error)
                raise WebSocketConnectFailed(url, reason) from error
            try:
                channel: WebSocketChannel = await nursery.start(self._upgrade, _Watched(stream), url, address)
                return channel
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
        raise WebSocketConnectTimedOut(url, self._connect_timeout_s, hint=hint)

    async def _secured(self, stream: trio.abc.Stream, address: SplitResult) -> trio.abc.Stream:
        if address.scheme == "ws":
            return stream
        context = self._ssl_context or ssl.create_default_context()
        secured = trio.SSLStream(stream, context, server_hostname=address.hostname, https_compatible=True)
        try:
            await secured.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(secured)
            raise
        return secured

    async def _upgrade(
        self, stream: "_Watched", url: str, address: SplitResult, *, task_status: trio.TaskStatus["WebSocketChannel"]
    ) -> None:
        """Make a WebSocket of a stream and run the library's reader, whose errors end here."""
        token = self._bearer_token
        headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
        channel: WebSocketChannel | None = None
        hint = silence_hint(address.scheme)
        failure = WebSocketConnectFailed(url, f"connection closed during the handshake{hint}")
        reader = trio.CancelScope()
        try:
            with reader:
                async with trio.open_nursery() as nursery:
                    watch = trio.CancelScope()
                    nursery.start_soon(_cancel_when, stream.ended, nursery.cancel_scope, watch)
                    websocket = await wrap_client_stream(
                        nursery,
                        stream,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # It asks for a socket, and uses the stream interface alone.
                        address.netloc.rpartition("@")[2],
                        address._replace(scheme="", netloc="", fragment="").geturl() or "/",
                        extra_headers=headers,
                        message_queue_size=_QUEUED_MESSAGES,
                        max_message_size=self._message_bytes_max,
                        receive_buffer_size=_RECEIVE_BYTES,
                    )
                    channel = WebSocketChannel(websocket, stream, reader)
                    # The goodbye needs the reader, also when all around is cancelled; `close` ends it.
                    reader.shield = True
                    watch.cancel()
                    task_status.started(channel)
        except* ConnectionRejected as rejected:
            refusal = rejected.exceptions[0]
            assert isinstance(refusal, ConnectionRejected), "a group of one kind"
            failure = WebSocketConnectFailed(
                url, f"server rejected the handshake with status {refusal.status_code}", status=refusal.status_code
            )
        except* Exception as broken:
            # Another library's error: translated, and kept as the cause.
            if channel is not None:
                channel.break_off(_one_line(broken.exceptions[0]))
            failure = WebSocketConnectFailed(url, _one_line(broken.exceptions[0]))
        if channel is None:
            raise failure


class WebSocketChannel:
    """Whole messages over one WebSocket.

    `send`, `receive` and `ping` raise `ChannelClosed` once the channel has ended, as `MessageChannel` says.
    """

    def __init__(self, websocket: WebSocketConnection, stream: trio.abc.Stream, reader: trio.CancelScope) -> None:
        self._websocket = websocket
        self._stream = stream
        self._reader = reader
        self._broken: str | None = None
        # Half a message is out: a close frame would land in its middle.
        self._torn = False

    async def send(self, message: bytes) -> None:
        """Send one message as text; see `MessageChannel.send`.

        Cancelled:
            Part of the message may be out: nothing can be sent after it.
        """
        if self._torn or self._broken is not None or self._websocket.closed is not None:
            raise ChannelClosed(self._reason(), written=False)
        self._torn = True
        try:
            await self._websocket.send_message(message.decode("utf-8"))
        except ConnectionClosed:
            raise ChannelClosed(self._reason()) from None
        self._torn = False

    async def receive(self) -> bytes | str:
        """Give the next message; see `MessageChannel.receive`.

        Cancelled:
            No message is lost.
        """
        try:
            return await self._websocket.get_message()
        except ConnectionClosed:
            raise ChannelClosed(self._reason()) from None

    async def ping(self) -> None:
        """Wait for a pong; see `MessageChannel.ping`.

        Cancelled:
            Only the wait ends.
        """
        try:
            await self._websocket.ping()
        except ConnectionClosed:
            raise ChannelClosed(self._reason()) from None

    async def close(self, timeout_s: float) -> None:
        """Say goodbye if that is still possible, and close within the time limit.

        Cancelled:
            It is closed all the same, within the same limit.
        """
        try:
            with trio.move_on_after(timeout_s) as scope:
                scope.shield = True
                if not self._torn and self._websocket.closed is None:
                    await self._websocket.aclose()
            await trio.aclose_forcefully(self._stream)
        finally:
            self._reader.cancel()

    def break_off(self, reason: str) -> None:
        """Say why the library gave up."""
        self._broken = reason

    def _reason(self) -> str | None:
        closed = self._websocket.closed
        if self._broken is not None or closed is None or closed.code == _ABNORMAL_CODE:
            return self._broken
        return f"closed by the peer with code {closed.code}" + (f": {closed.reason}" if closed.reason else "")


class _Watched(trio.abc.Stream):
    """A stream that says when the other end is gone: the library waits for its handshake without asking."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self.ended = trio.Event()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data: bytes | bytearray = b""
        try:
            data = await self._stream.receive_some(max_bytes)
        finally:
            if not data:
                self.ended.set()
        return data

    async def aclose(self) -> None:
        self.ended.set()
        await self._stream.aclose()


async def _cancel_when(event: trio.Event, scope: trio.CancelScope, watch: trio.CancelScope) -> None:
    with watch:
        await event.wait()
        scope.cancel()


def _check_token(token: str | None) -> None:
    if token is None:
        return
    check_kind("bearer_token", token, str)
    if not token or not (token.isascii() and token.isprintable()) or " " in token:
        raise InvalidArgument("bearer_token", "must be one word of printable ASCII: no header can carry another")


def _parse(url: str) -> SplitResult:
    check_kind("url", url, str)
    # The library's own words would quote a piece of the address, which may be a piece of a password.
    refusal = InvalidArgument("url", "must be ws://host:port or wss://host:port")
    try:
        address = urlsplit(url)
        port = address.port
    except ValueError:
        raise refusal from None
    if address.scheme not in _PORTS or not address.hostname or port == 0:
        raise refusal
    return address


def _host_and_port(address: SplitResult) -> tuple[str, int]:
    assert address.hostname is not None, "a parsed address has a host"
    return address.hostname, address.port or _PORTS[address.scheme]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
