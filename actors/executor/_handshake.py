"""Let peers in: the opening handshake of WebSocket, by wsproto, and who may pass it."""

import hmac
from collections.abc import Callable, Mapping

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, RejectConnection, Request
from wsproto.utilities import ProtocolError

from actors.executor._executor import Executor
from actors.executor._websocket import WebSocketChannel

__all__ = ["Admission", "admission", "serve_websocket_stream"]

_REQUEST_BYTES_MAX = 64 * 1024

Admission = Callable[[Mapping[bytes, bytes]], int | None]
"""Judges the headers of a handshake: ``None``, or the HTTP status to refuse it with."""


def admission(token: str | None) -> Admission:
    """Make the judge of handshakes.

    With a token, who knows it comes in. Without one, everybody does who is not a web page: a browser lets any page
    connect to loopback, but it cannot keep the page from saying where it came from (``Origin``).
    """
    wanted = token.encode() if token is not None else None

    def admits(headers: Mapping[bytes, bytes]) -> int | None:
        if wanted is None:
            return 403 if b"origin" in headers else None
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        # Both compared before either is judged: the time taken says nothing about the token.
        right = hmac.compare_digest(given.strip(), wanted)
        return None if right and scheme.lower() == b"bearer" else 401

    return admits


async def serve_websocket_stream(executor: Executor, stream: trio.SocketStream, admits: Admission) -> None:
    """Serve one TCP connection: handshake, then messages until the end. Its troubles end with it.

    Args:
        executor: Who answers.
        stream: The connection; closed in the end.
        admits: Judges the handshake.
    """
    try:
        channel = await _let_in(executor, stream, admits)
        if channel is None:
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_give_up_when_silent, channel, nursery.cancel_scope)
            await executor.serve_channel(channel)
            nursery.cancel_scope.cancel()
        if channel.silence is not None:
            executor.note_silent(channel.peer, channel.silence)
    finally:
        await trio.aclose_forcefully(stream)


async def _give_up_when_silent(channel: WebSocketChannel, connection: trio.CancelScope) -> None:
    await channel.keep_alive()
    connection.cancel()


async def _let_in(executor: Executor, stream: trio.SocketStream, admits: Admission) -> WebSocketChannel | None:
    peer = _address_of(stream)
    refusal = "no handshake in time"
    with executor.knocking() as may_knock:
        if not may_knock:
            executor.note_refused(peer, "too many handshakes at once")
            return None
        with trio.move_on_after(executor.limits.handshake_s):
            try:
                return await _shake_hands(executor, stream, admits, peer)
            except _Refused as refused:
                refusal = str(refused)
            except trio.BrokenResourceError:
                refusal = "it hung up"
    executor.note_refused(peer, refusal)
    return None


class _Refused(Exception):
    """A peer is turned away, and was told."""


async def _shake_hands(executor: Executor, stream: trio.SocketStream, admits: Admission, peer: str) -> WebSocketChannel:
    connection = WSConnection(ConnectionType.SERVER)
    head, rest = await _receive_head(stream)
    try:
        connection.receive_data(head)
        (request,) = connection.events()
    except ProtocolError as broken:
        hint = getattr(broken, "event_hint", None)
        await _turn_away(connection, stream, hint if isinstance(hint, RejectConnection) else RejectConnection())
        raise _Refused(f"broken handshake: {broken}") from None
    except ValueError:  # wsproto decodes some headers without looking first.
        raise _Refused("broken handshake: a header that is no text") from None
    assert isinstance(request, Request), "a head without fault is a request"
    headers = {name.lower(): value for name, value in request.extra_headers}
    status = admits(headers) if executor.has_place() else 503
    if status is not None:
        await _turn_away(connection, stream, RejectConnection(status_code=status))
        raise _Refused(f"HTTP {status}")
    await stream.send_all(connection.send(AcceptConnection()))
    return WebSocketChannel(stream, peer=peer, first=rest, limits=executor.limits)


async def _receive_head(stream: trio.SocketStream) -> tuple[bytes, bytes]:
    """Receive up to the end of the headers; what came after it belongs to the frames."""
    received = bytearray()
    while len(received) < _REQUEST_BYTES_MAX:
        data = await stream.receive_some()
        if not data:
            raise _Refused("it hung up")
        received += data
        head, end, rest = received.partition(b"\r\n\r\n")
        if end:
            return bytes(head + end), bytes(rest)
    raise _Refused("handshake too long")


async def _turn_away(connection: WSConnection, stream: trio.SocketStream, answer: RejectConnection) -> None:
    await stream.send_all(connection.send(answer))
    await stream.send_eof()


def _address_of(stream: trio.SocketStream) -> str:
    try:
        host, port, *_ = stream.socket.getpeername()
    except (OSError, ValueError):  # It is gone already, or no internet address.
        return "unknown"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
