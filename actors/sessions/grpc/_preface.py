"""Look at a new connection before HTTP/2 does: who it is and what it speaks."""

from collections.abc import Callable
from typing import Final

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
    # Asked for by name: `SSLStream` is generic, and the type checkers differ on what `isinstance` leaves of
    # it.
    agreed: Callable[[], str | None] | None = getattr(transport, "selected_alpn_protocol", None)
    return None if agreed is None else agreed() or ""


def peer_name(transport: trio.abc.Stream) -> str:
    """Name the other end for people to read, as far as it is known."""
    inner: object = transport
    while (wrapped := getattr(inner, "transport_stream", None)) is not None:
        inner = wrapped
    if not isinstance(inner, trio.SocketStream):
        return "unknown"
    try:
        address = inner.socket.getpeername()
    except OSError:
        return "unknown"
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "unix"
