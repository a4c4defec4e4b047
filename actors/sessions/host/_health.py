"""Answer HTTP/1.1: `GET /healthz` is 200, everything else 505."""

from typing import Final

import trio

_HEAD_BYTES_MAX: Final = 8 * 1024
_TIMEOUT_S: Final = 5.0
_HEALTHY: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_REFUSED: Final = b"HTTP/1.1 505 HTTP Version Not Supported\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


async def answer_http1(stream: trio.abc.Stream, first: bytes) -> None:
    """Answer one request of a connection that does not speak HTTP/2.

    Cancelled:
        The connection is closed by whoever cancels.
    """
    head = first
    with trio.move_on_after(_TIMEOUT_S):
        while b"\r\n\r\n" not in head and len(head) < _HEAD_BYTES_MAX:
            more = bytes(await stream.receive_some(_HEAD_BYTES_MAX))
            if not more:
                break
            head += more
        healthy = head.split(b"\r\n", 1)[0] in {b"GET /healthz HTTP/1.1", b"GET /healthz HTTP/1.0"}
        await stream.send_all(_HEALTHY if healthy else _REFUSED)
