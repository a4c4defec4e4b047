"""Make physical connections: dial a `ws` or `wss` URL and shake hands. Follows no redirect, shows no secret."""

import base64
import hashlib
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ssl import SSLContext, create_default_context
from urllib.parse import SplitResult, urlsplit

import attrs
import h11
import trio

from actors.blocks import open_helpers
from actors.relay._errors import AddressUnusable, DialFailed, DialRefused
from actors.relay._limits import RelayLimits
from actors.relay._unreachable import silence_hint, why_unreachable
from actors.relay._websocket import ListeningStream, WebSocketConnection

__all__ = ["WebSocketDialer", "cut_url", "new_request_id", "retry_after_s"]

_PORTS = {"ws": 80, "wss": 443}
_ACCEPT_WITH = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3.
_HANDSHAKE_BYTES = 16 * 1024


def cut_url(url: str) -> str:
    """Cut a URL where a secret could begin: at the first `?` or `#`, and before an `@` of the host."""
    return re.sub(r"//[^/]*@", "//", re.split(r"[?#]", url, maxsplit=1)[0])


def new_request_id() -> str:
    """Make an id for one request, as executors in the field do."""
    return f"req_{os.urandom(16).hex()}"


async def _open_tcp(host: str, port: int) -> trio.abc.Stream:
    return await trio.open_tcp_stream(host, port)  # trio sets TCP_NODELAY on every stream it opens.


@attrs.frozen(kw_only=True)
class WebSocketDialer:
    """Dials `ws` and `wss` URLs. Never follows a redirect, never shows a URL beyond its path.

    Attributes:
        limits: Sizes and times of the connections.
        connect_s: How long connecting may take, WebSocket handshake included.
        headers: Headers to send with the WebSocket handshake.
        request_id: Makes the `x-request-id` of each handshake, by which both sides find it in their logs; none is sent
            when None.
        ssl_context: How to judge certificates; the system's rules when None.
        open_stream: How to reach a host and port.
    """

    limits: RelayLimits = attrs.field(factory=RelayLimits)
    connect_s: float = attrs.field(default=10.0)
    headers: Sequence[tuple[str, str]] = attrs.field(default=(), repr=False)
    request_id: Callable[[], str] | None = attrs.field(default=None, repr=False)
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
        connection = await self._connect(url)
        try:
            async with open_helpers() as nursery:
                nursery.start_soon(connection.keep_alive, nursery)
                connection.answer_from(nursery)
                yield connection
        finally:
            await connection.close()

    async def _connect(self, url: str) -> WebSocketConnection:
        request_id = None if self.request_id is None else self.request_id()
        try:
            return await self._connect_as(url, request_id)
        except DialFailed as failed:
            failed.request_id = request_id
            raise

    async def _connect_as(self, url: str, request_id: str | None) -> WebSocketConnection:
        parts, host, port = _checked_url(url)
        target, stream = cut_url(url), None
        try:
            with trio.fail_after(self.connect_s):
                stream = await self.open_stream(host, port)
                return await self._shake_hands(stream, parts, target, request_id)
        except trio.TooSlowError:
            hint = "" if stream is None else silence_hint(parts.scheme)
            raise DialFailed(target, f"timed out after {self.connect_s:g} s{hint}") from None
        except h11.ProtocolError:
            said = f"the other side answered with something else than HTTP{silence_hint(parts.scheme)}"
            raise DialFailed(target, said) from None
        except (OSError, ValueError, trio.BrokenResourceError) as error:
            # An error's own text may hold the whole URL.
            raise DialFailed(target, why_unreachable(error, parts.scheme) or type(error).__name__) from None

    async def _shake_hands(
        self, stream: trio.abc.Stream, parts: SplitResult, target: str, request_id: str | None
    ) -> WebSocketConnection:
        if parts.scheme == "wss":
            context = self.ssl_context or create_default_context()
            stream = trio.SSLStream(stream, context, server_hostname=parts.hostname, https_compatible=True)
        resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            early = await self._upgrade(stream, parts.netloc.rsplit("@", 1)[-1], resource, target, request_id)
            return WebSocketConnection(ListeningStream(stream), early, self.limits)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise

    async def _upgrade(
        self, stream: trio.abc.Stream, host: str, resource: str, target: str, request_id: str | None
    ) -> bytes:
        """Ask for a WebSocket; give what came behind the answer."""
        http, key = h11.Connection(h11.CLIENT), base64.b64encode(os.urandom(16))
        headers = [
            ("Host", host),
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Key", key.decode()),
            ("Sec-WebSocket-Version", "13"),
            *self.headers,
            *([] if request_id is None else [("x-request-id", request_id)]),
        ]
        request = h11.Request(method="GET", target=resource, headers=headers)
        await stream.send_all((http.send(request) or b"") + (http.send(h11.EndOfMessage()) or b""))
        while (event := http.next_event()) is h11.NEED_DATA:
            data = await stream.receive_some(_HANDSHAKE_BYTES)
            if not data:
                hint = silence_hint(urlsplit(target).scheme)
                raise DialFailed(target, f"the other side hung up during the WebSocket handshake{hint}")
            http.receive_data(bytes(data))
        match event:
            case h11.InformationalResponse(status_code=101):
                found = dict(event.headers).get(b"sec-websocket-accept", b"")
                wanted = base64.b64encode(hashlib.sha1(key + _ACCEPT_WITH, usedforsecurity=False).digest())
                if found != wanted:
                    raise DialFailed(target, "the other side did not accept the WebSocket handshake")
                return http.trailing_data[0]
            case h11.Response():
                raise DialRefused(target, event.status_code, _retry_after_of(list(event.headers)))
            case _:
                raise DialFailed(target, "the other side answered with something else than HTTP")


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
