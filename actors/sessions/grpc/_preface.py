"""Look at a new connection before HTTP/2 does: who it is and what it speaks."""

from typing import Any, Final

import trio

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ALPN: Final = "h2"


async def first_bytes(transport: trio.abc.Stream) -> bytes:
    """Read until it is clear whether the peer speaks HTTP/2; empty when it left before that.

    Raises:
        trio.BrokenResourceError: It broke, or the TLS handshake failed.
    """
    seen = b""
    while len(seen) < len(PREFACE) and PREFACE.startswith(seen):
        more = bytes(await transport.receive_some(64 * 1024))
        if not more:
            return b""
        seen += more
    return seen


def speaks_http2(transport: trio.abc.Stream, first: bytes) -> bool:
    """Say whether the first bytes are HTTP/2's, and TLS, if there is any, agreed on it."""
    return first.startswith(PREFACE) and alpn_of(transport) in {None, ALPN}


def alpn_of(transport: trio.abc.Stream) -> str | None:
    """Return what both ends of TLS agreed to speak: empty for nothing, None without TLS."""
    if not isinstance(transport, trio.SSLStream):
        return None
    secured: trio.SSLStream[Any] = transport
    return str(secured.selected_alpn_protocol() or "")


def peer_name(transport: trio.abc.Stream) -> str:
    """Name the other end for people to read, as far as it is known."""
    inner: object = transport
    while isinstance(inner, trio.SSLStream):
        secured: trio.SSLStream[Any] = inner
        inner = secured.transport_stream
    if not isinstance(inner, trio.SocketStream):
        return "unknown"
    try:
        address = inner.socket.getpeername()
    except OSError:
        return "unknown"
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "unix"
