"""Physical connections by WebSocket. The one file of this package that knows trio-websocket."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ssl import SSLContext, create_default_context
from typing import cast
from urllib.parse import SplitResult, urlsplit

import attrs
import trio
import trio_websocket
from wsproto.utilities import LocalProtocolError

from actors.relay._background import open_background
from actors.relay._errors import AddressUnusable, ConnectionLost, DialFailed, DialRefused, DisconnectReason
from actors.relay._limits import RelayLimits
from actors.relay._liveness import Liveness, LivenessAction

__all__ = ["WebSocketConnection", "WebSocketDialer", "cut_url", "retry_after_s"]

_PORTS = {"ws": 80, "wss": 443}
# The library's defaults of 4 KiB and one message cost five times the CPU on large frames (benchmarks/rendezvous.py).
_RECEIVE_BUFFER_BYTES = 256 * 1024
_QUEUED_MESSAGES = 16


def cut_url(url: str) -> str:
    """Cut a URL where a secret could begin: at the first `?` or `#`, and before an `@` of the host."""
    return re.sub(r"//[^/]*@", "//", re.split(r"[?#]", url, maxsplit=1)[0])


class _ListeningStream(trio.abc.Stream):
    """A stream that notes when something last arrived: any byte is a sign of life, of whatever frame it is part."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._heard_s = trio.current_time()
        self._is_listening = False
        self._writing_since_s: float | None = None

    def heard_s(self, now_s: float) -> float:
        """While nobody listens, because what came is not consumed, silence is not the peer's fault.

        A blocked write is: the reader may be what is writing, to answer a ping of a peer that takes nothing.
        """
        if self._is_listening:
            return self._heard_s
        return now_s if self._writing_since_s is None else max(self._heard_s, self._writing_since_s)

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        self._is_listening, self._heard_s = True, trio.current_time()
        try:
            return await self._stream.receive_some(max_bytes)
        finally:
            self._is_listening, self._heard_s = False, trio.current_time()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._writing_since_s = trio.current_time()
        try:
            await self._stream.send_all(data)
        finally:
            self._writing_since_s = None

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Reader:
    """Stands where the library wants a nursery for its reader task, and hears how that task ends.

    The library raises a refused handshake inside the task, and says nothing at all when the peer hangs up during it.
    """

    def __init__(self, nursery: trio.Nursery, opening: trio.CancelScope) -> None:
        self._nursery, self._opening = nursery, opening
        self.reading = trio.CancelScope()
        self.rejected: trio_websocket.ConnectionRejected | None = None

    def start_soon(self, read: Callable[[], Awaitable[None]]) -> None:
        self._nursery.start_soon(self._run, read)

    async def _run(self, read: Callable[[], Awaitable[None]]) -> None:
        try:
            with self.reading:
                await read()
        except trio_websocket.ConnectionRejected as rejected:
            self.rejected = rejected
        except LocalProtocolError:
            # A ping that comes after our close: the library answers it, which the protocol object refuses.
            pass
        finally:
            self._opening.cancel()


class WebSocketConnection:
    """One WebSocket as a physical connection. Given by `WebSocketDialer`."""

    def __init__(
        self,
        socket: trio_websocket.WebSocketConnection,
        stream: _ListeningStream,
        reading: trio.CancelScope,
        limits: RelayLimits,
    ) -> None:
        self._socket = socket
        self._stream = stream
        # The peer's goodbye has to be read, also when all around is cancelled: `close` ends the reading.
        self._reading = reading
        reading.shield = True
        # Half a frame is out: a goodbye would land in its middle.
        self._torn = False
        self._limits = limits
        self._liveness = Liveness.begin(limits.ping_interval_s, limits.silence_s, trio.current_time())
        self._lost: tuple[DisconnectReason, str] | None = None

    async def send(self, frame: bytes) -> None:
        """Write one frame; a write that takes longer than the silence limit ends the connection."""
        with trio.move_on_after(self._limits.silence_s) as scope:
            try:
                self._torn = True
                await self._socket.send_message(frame)
                self._torn = False
            except trio_websocket.ConnectionClosed as closed:
                raise self._loss(closed, DisconnectReason.WRITE_ERROR) from None
        if scope.cancelled_caught:
            await self._cut(DisconnectReason.WRITE_ERROR, f"a write took more than {self._limits.silence_s:g} s")
            raise self._loss(None, DisconnectReason.WRITE_ERROR)

    async def receive(self) -> bytes | str:
        """Wait for the next message."""
        if self._lost is not None:
            await trio.lowlevel.checkpoint()
            raise self._loss(None, DisconnectReason.READ_ERROR)
        try:
            return await self._socket.get_message()
        except trio_websocket.ConnectionClosed as closed:
            raise self._loss(closed, DisconnectReason.READ_ERROR) from None

    async def keep_alive(self, nursery: trio.Nursery) -> None:
        """Ping a silent peer, and cut the connection when it stays silent."""
        while True:
            await trio.sleep_until(self._liveness.next_look_s(trio.current_time()))
            now_s = trio.current_time()
            self._liveness = self._liveness.heard(self._stream.heard_s(now_s))
            match self._liveness.action(now_s):
                case LivenessAction.WAIT:
                    pass
                case LivenessAction.PING:
                    self._liveness = self._liveness.pinged(now_s)
                    nursery.start_soon(self._ping)
                case LivenessAction.CUT:
                    silent_s = self._liveness.silent_for_s(now_s)
                    await self._cut(DisconnectReason.PONG_TIMEOUT, f"no frame for {silent_s:g} s")
                    return

    async def _ping(self) -> None:
        try:
            await self._socket.ping(b"")
        except trio_websocket.ConnectionClosed:
            return  # Whoever reads or writes learns of it.
        self._liveness = self._liveness.ponged(trio.current_time())

    async def close(self) -> None:
        """Close politely within the close limit, else cut. Never waits for a peer that waits for us (case P22)."""
        if self._lost is None:
            self._lost = (DisconnectReason.LOCAL_SHUTDOWN, "")
        try:
            with trio.move_on_after(self._limits.close_s / 2, shield=True):
                if not self._torn:
                    await self._socket.aclose()
            await trio.aclose_forcefully(self._stream)
        finally:
            self._reading.cancel()

    async def _cut(self, reason: DisconnectReason, detail: str) -> None:
        if self._lost is None:
            self._lost = (reason, detail)
        await trio.aclose_forcefully(self._stream)

    def _loss(self, closed: trio_websocket.ConnectionClosed | None, otherwise: DisconnectReason) -> ConnectionLost:
        if self._lost is None:
            why = closed.reason if closed is not None else None
            if why is not None and why.code != 1006:
                self._lost = (DisconnectReason.PEER_CLOSE, f"close code {why.code}")
            else:
                self._lost = (otherwise, "")
        return ConnectionLost(*self._lost)


async def _open_tcp(host: str, port: int) -> trio.abc.Stream:
    return await trio.open_tcp_stream(host, port)  # trio sets TCP_NODELAY on every stream it opens.


@attrs.frozen(kw_only=True)
class WebSocketDialer:
    """Dials `ws` and `wss` URLs. Never follows a redirect, never shows a URL beyond its path.

    Attributes:
        limits: Sizes and times of the connections.
        connect_s: How long connecting may take, WebSocket handshake included.
        headers: Headers to send with the WebSocket handshake.
        ssl_context: How to judge certificates; the system's rules when None.
        open_stream: How to reach a host and port.
    """

    limits: RelayLimits = attrs.field(factory=RelayLimits)
    connect_s: float = attrs.field(default=10.0)
    headers: Sequence[tuple[str, str]] = attrs.field(default=(), repr=False)
    ssl_context: SSLContext | None = attrs.field(default=None, repr=False)
    open_stream: Callable[[str, int], Awaitable[trio.abc.Stream]] = attrs.field(default=_open_tcp, repr=False)

    @asynccontextmanager
    async def dial(self, url: str) -> AsyncGenerator[WebSocketConnection, None]:
        """Connect for as long as the context lasts.

        Raises:
            AddressUnusable: It is none that can be dialled, now or later.
            DialRefused: The other side answered with a plain HTTP status.
            DialFailed: Nobody answered, or not in time, or not as a WebSocket.

        Cancelled:
            The connection is closed, within the close limit.
        """
        async with open_background() as nursery:
            connection = await self._connect(nursery, url)
            try:
                nursery.start_soon(connection.keep_alive, nursery)
                yield connection
            finally:
                await connection.close()

    async def _connect(self, nursery: trio.Nursery, url: str) -> WebSocketConnection:
        target = cut_url(url)
        try:
            with trio.fail_after(self.connect_s):
                return await self._shake_hands(nursery, url)
        except trio.TooSlowError:
            raise DialFailed(target, f"timed out after {self.connect_s:g} s") from None
        except (OSError, ValueError, trio.BrokenResourceError) as error:
            # An error of a URL may hold the whole URL; one of the system names host and port.
            detail = str(error) if isinstance(error, OSError) else type(error).__name__
            raise DialFailed(target, detail) from None

    async def _shake_hands(self, nursery: trio.Nursery, url: str) -> WebSocketConnection:
        parts, host, port = _checked_url(url)
        stream = await self._open(parts.scheme, host, port)
        listening = _ListeningStream(stream)
        resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            return await self._upgrade(nursery, listening, parts.netloc.rsplit("@", 1)[-1], resource, cut_url(url))
        except BaseException:
            await trio.aclose_forcefully(listening)
            raise

    async def _upgrade(
        self, nursery: trio.Nursery, stream: _ListeningStream, host: str, resource: str, target: str
    ) -> WebSocketConnection:
        opening = trio.CancelScope()
        reader = _Reader(nursery, opening)
        with opening:
            socket = await trio_websocket.wrap_client_stream(
                cast("trio.Nursery", reader),
                cast("trio.SocketStream", stream),
                host=host,
                resource=resource,
                extra_headers=[(name.encode(), value.encode()) for name, value in self.headers],
                message_queue_size=_QUEUED_MESSAGES,
                max_message_size=self.limits.max_frame_bytes,
                receive_buffer_size=_RECEIVE_BUFFER_BYTES,
            )
            return WebSocketConnection(socket, stream, reader.reading, self.limits)
        if reader.rejected is not None:
            raise DialRefused(target, reader.rejected.status_code, _retry_after_of(reader.rejected.headers or ()))
        raise DialFailed(target, "the other side hung up during the WebSocket handshake")

    async def _open(self, scheme: str, host: str, port: int) -> trio.abc.Stream:
        stream = await self.open_stream(host, port)
        if scheme == "ws":
            return stream
        context = self.ssl_context or create_default_context()
        return trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)


def _checked_url(url: str) -> tuple[SplitResult, str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        # Its text may hold the whole URL, and with it a secret.
        raise AddressUnusable(cut_url(url), "it is no URL") from None
    if parts.scheme not in _PORTS or not host:
        raise AddressUnusable(cut_url(url), "it is no ws or wss URL")
    return parts, host, port or _PORTS[parts.scheme]


def _retry_after_of(headers: Sequence[tuple[bytes, bytes]]) -> float | None:
    for name, value in headers:
        if name.lower() == b"retry-after":
            return retry_after_s(value.decode("latin-1"))
    return None


def retry_after_s(text: str) -> float | None:
    """Read a `Retry-After` given in seconds. Dates are not used by our servers, and are taken for no answer."""
    return float(text.strip()) if text.strip().isascii() and text.strip().isdigit() else None
