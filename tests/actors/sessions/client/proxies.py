"""A gRPC server between a client and a real host: counts, refuses, rewrites and forwards, knowing no message.

It is a real server on a real socket, so what it injects arrives as a host would send it.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from actors.sessions.grpc import (
    RAW,
    Abort,
    CallFailed,
    Channel,
    Method,
    Route,
    Send,
    Server,
    ServerCall,
    StatusCode,
    addresses_of,
    listen_tcp,
    open_channel,
    server_stream,
    unary,
)
from tests.actors.sessions.client.hosts import SERVICE, CountingListener

Answer = TypeVar("Answer")


class Proxy:
    """Forwards every method of the service; its knobs are plain attributes."""

    def __init__(self) -> None:
        self.channel: Channel
        self.url = ""
        self.server: Server
        self.listener: CountingListener
        self.counts: Counter[str] = Counter()
        self.next_refusal: Abort | None = None
        self.opens_with_empty_messages = False

    def refuse_next(self, code: StatusCode, message: str, trailers: tuple[tuple[str, str], ...] = ()) -> None:
        """Answer the next call, of whatever method, by itself."""
        self.next_refusal = Abort(code, message, trailers=trailers)

    def routes(self) -> list[Route]:
        return [
            self._route(f"/{SERVICE.full_name}/{method.name}", method.server_streaming) for method in SERVICE.methods
        ]

    def _route(self, path: str, streaming: bool) -> Route:
        method = Method(path, RAW, RAW, server_streaming=streaming)

        async def forward(call: ServerCall, request: bytes) -> bytes:
            self._arrived(path)
            return await _translated(lambda: self.channel.unary(method, request))

        async def forward_stream(call: ServerCall, request: bytes, send: Send[bytes]) -> None:
            self._arrived(path)
            body = b"" if self.opens_with_empty_messages and path.endswith("/OpenSession") else request

            async def relay() -> None:
                async with self.channel.stream(method, body) as upstream:
                    await upstream.headers()
                    call.send_headers()
                    async for message in upstream:
                        await send(message)

            await _translated(relay)

        return server_stream(method, forward_stream) if streaming else unary(method, forward)

    def _arrived(self, path: str) -> None:
        self.counts[path.rpartition("/")[2]] += 1
        refusal, self.next_refusal = self.next_refusal, None
        if refusal is not None:
            raise refusal


async def _translated(work: Callable[[], Awaitable[Answer]]) -> Answer:
    try:
        return await work()
    except CallFailed as failed:
        raise Abort(failed.code, failed.status.message, trailers=[*failed.trailers]) from failed


@asynccontextmanager
async def open_proxy(upstream: str) -> AsyncIterator[Proxy]:
    proxy = Proxy()
    [listener] = await listen_tcp("127.0.0.1", 0)
    proxy.listener, proxy.url = CountingListener(listener), f"http://{addresses_of([listener])[0]}"
    proxy.server = Server(proxy.routes())
    async with open_channel(upstream) as proxy.channel, trio.open_nursery() as nursery:
        await nursery.start(proxy.server.serve, [proxy.listener])
        yield proxy
        nursery.cancel_scope.cancel()
