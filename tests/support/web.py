"""A web server for tests, on a real socket: says what it is told to, and remembers what it was asked."""

import gzip
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import h11
import trio

Page = Callable[["Asked"], Awaitable[None]]


class Asked:
    """One request, and the way to answer it."""

    def __init__(self, request: h11.Request, body: bytes, stream: trio.SocketStream) -> None:
        self.method = request.method.decode()
        self.target = request.target.decode()
        self.headers = [(name.decode(), value.decode("latin-1")) for name, value in request.headers.raw_items()]
        self.body = body
        self.stream = stream

    def header(self, name: str) -> str | None:
        return next((value for each, value in self.headers if each.lower() == name), None)

    async def answer(self, status: int, body: bytes = b"", *headers: str, length: int | None = None) -> None:
        """Send a whole answer; ``length`` says it is of another one than it is."""
        lines = [f"HTTP/1.1 {status} x", f"content-length: {len(body) if length is None else length}", *headers]
        await self.stream.send_all("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    async def begin_chunks(self) -> None:
        await self.stream.send_all(b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        """Send a piece; an empty one is the end."""
        await self.stream.send_all(b"%x\r\n%b\r\n" % (len(data), data))


class Web:
    """A server and what happened to it."""

    def __init__(self) -> None:
        self.url = ""
        self.pages: dict[str, Page] = {
            "/ok": ok,
            "/redir": redirect_to("/ok"),
            "/loop": redirect_to("/loop"),
            "/500": broken,
            "/gzip": zipped,
            "/badgzip": badly_zipped,
            "/cut": cut,
            "/echo": echo,
        }
        self.asked: list[Asked] = []
        self.hung_up = trio.Event()

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            try:
                while (asked := await _receive(stream)) is not None:
                    self.asked.append(asked)
                    await self.pages[asked.target.partition("?")[0]](asked)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self.hung_up.set()

    def listening_until_hung_up(self) -> Page:
        """Give a page that says nothing and waits for the client to go away."""

        async def wait(asked: Asked) -> None:
            if not await asked.stream.receive_some():
                self.hung_up.set()

        return wait

    async def wait_hung_up(self) -> None:
        """Wait until a client that was still being answered has gone away."""
        with trio.fail_after(10):
            await self.hung_up.wait()


async def _receive(stream: trio.SocketStream) -> Asked | None:
    http, body = h11.Connection(h11.SERVER), b""
    request: h11.Request | None = None
    while True:
        match http.next_event():
            case h11.NEED_DATA:
                if not (data := await stream.receive_some()):
                    return None
                http.receive_data(bytes(data))
            case h11.Request() as asked:
                request = asked
            case h11.Data(data=data):
                body += data
            case _:
                assert request is not None
                return Asked(request, body, stream)


async def ok(asked: Asked) -> None:
    await asked.answer(200, b"ok", "content-type: text/plain")


def redirect_to(target: str, status: int = 302) -> Page:
    async def redirect(asked: Asked) -> None:
        await asked.answer(status, b"", f"location: {target}")

    return redirect


async def broken(asked: Asked) -> None:
    await asked.answer(500, b"err", "X-A: 1", "X-A: 2")


async def zipped(asked: Asked) -> None:
    await asked.answer(200, gzip.compress(b"plain text"), "content-encoding: gzip")


async def badly_zipped(asked: Asked) -> None:
    await asked.answer(200, b"no gzip at all", "content-encoding: gzip")


async def cut(asked: Asked) -> None:
    await asked.answer(200, b"abc", length=10)
    await asked.stream.aclose()


async def echo(asked: Asked) -> None:
    said: dict[str, Any] = {"method": asked.method, "headers": asked.headers, "body": asked.body.decode("latin-1")}
    await asked.answer(200, json.dumps(said).encode())


@asynccontextmanager
async def open_web() -> AsyncGenerator[Web, None]:
    """Serve for the duration of a block."""
    web = Web()
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        web.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.start_soon(trio.serve_listeners, web.serve, [listener])
        yield web
        nursery.cancel_scope.cancel()
