"""One service for every pair of client and server, and what a client can be asked for.

Bytes are the messages.
"""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

import attrs
import trio

from actors.sessions import grpc

SERVICE = "contract.Service"


def method(name: str, *, sends: bool = False, receives: bool = False) -> grpc.Method[bytes, bytes]:
    return grpc.Method(f"/{SERVICE}/{name}", grpc.RAW, grpc.RAW, client_streaming=sends, server_streaming=receives)


ECHO = method("Echo")
FAIL = method("Fail")
CRASH = method("Crash")
SLEEP = method("Sleep")
TIME_LEFT = method("TimeLeft")
COUNT = method("Count", receives=True)
LEASE = method("Lease", receives=True)
SUM = method("Sum", sends=True)
CHAT = method("Chat", sends=True, receives=True)
UNKNOWN = method("Unknown")

# What FAIL answers with: a text with everything that is hard to send, and details that only need to survive.
HARD_TEXT = "100 % 'grün'\n\N{SNOWMAN} "
DETAILS = b"\x08\x05\x12\x04text"


@attrs.define
class Seen:
    """What the handlers of a server saw."""

    lost_leases: int = 0


def our_routes(seen: Seen) -> list[grpc.Route]:
    async def echo(call: grpc.ServerCall, request: bytes) -> bytes:
        found = [pair for pair in call.metadata if pair[0].startswith("x-")]
        call.set_headers(found)
        call.set_trailers([("x-trailing", "yes"), *found])
        return request

    async def fail(call: grpc.ServerCall, request: bytes) -> bytes:
        raise grpc.Abort(
            grpc.StatusCode.FAILED_PRECONDITION,
            HARD_TEXT,
            details=DETAILS,
            trailers=[("x-why-bin", b"\x00\xff")],
        )

    async def crash(call: grpc.ServerCall, request: bytes) -> bytes:
        raise LookupError("a secret of the server")

    async def sleep(call: grpc.ServerCall, request: bytes) -> bytes:
        await trio.sleep_forever()
        raise AssertionError

    async def time_left(call: grpc.ServerCall, request: bytes) -> bytes:
        return str(call.time_left_s).encode()

    async def count(call: grpc.ServerCall, request: bytes, send: grpc.Send[bytes]) -> None:
        number, size = (int(part) for part in request.split())
        for index in range(number):
            await send(b"%d" % index if size == 0 else bytes(size))

    async def lease(call: grpc.ServerCall, request: bytes, send: grpc.Send[bytes]) -> None:
        call.set_headers([("x-lease", "open")])
        call.send_headers()
        await send(b"open")
        try:
            await trio.sleep_forever()
        finally:
            seen.lost_leases += 1

    async def total(call: grpc.ServerCall, requests: grpc.Requests[bytes]) -> bytes:
        return b"%d" % sum([int(request) async for request in requests])

    async def chat(call: grpc.ServerCall, requests: grpc.Requests[bytes], send: grpc.Send[bytes]) -> None:
        async for request in requests:
            await send(b"re: " + request)

    return [
        grpc.unary(ECHO, echo), grpc.unary(FAIL, fail), grpc.unary(CRASH, crash), grpc.unary(SLEEP, sleep),
        grpc.unary(TIME_LEFT, time_left), grpc.server_stream(COUNT, count), grpc.server_stream(LEASE, lease),
        grpc.client_stream(SUM, total), grpc.bidirectional(CHAT, chat),
    ]  # fmt: skip


Pairs = list[tuple[str, str | bytes]]


@attrs.frozen
class Answer:
    """How a call went, whoever made it."""

    messages: list[bytes]
    headers: Pairs
    trailers: Pairs


@attrs.frozen
class Failed(Exception):
    """How a call failed, whoever made it."""

    code: int
    message: str
    trailers: Pairs
    details: bytes


class Client(Protocol):
    """A client of either make."""

    async def call(
        self,
        what: grpc.Method[bytes, bytes],
        requests: list[bytes],
        metadata: Pairs = ...,
        timeout_s: float = ...,
    ) -> Answer:
        """Make a call of any shape from start to end."""
        ...

    def open_lease(self) -> AbstractAsyncContextManager[None]:
        """Hold a lease for a block: its first message has come at the start, it is cancelled at the end."""
        ...
