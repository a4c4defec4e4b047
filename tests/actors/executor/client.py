"""A plain client for tests: requests by name, answers by id, news in the order they came."""

import base64
import itertools
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream

from actors.executor import Executor
from actors.executor.testing import memory_channel_pair


class Wire(Protocol):
    async def receive(self) -> bytes | str: ...
    async def send(self, messages: Sequence[bytes]) -> None: ...


class Refused(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")


class Client:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.news: list[dict[str, Any]] = []
        self.stray: list[dict[str, Any]] = []
        self.ended = trio.Event()
        self._ids = itertools.count(1)
        self._answers: dict[Any, dict[str, Any]] = {}
        self.arrived: list[Any] = []
        """Ids of requests in the order in which their answers came."""
        self._changed = trio.lowlevel.ParkingLot()
        self.session_id = ""
        self.hold = trio.Event()
        self.hold.set()

    async def read(self) -> None:
        try:
            while True:
                await self.hold.wait()
                message = json.loads(await self.wire.receive())
                if "method" in message:
                    self.news.append(message)
                elif message["id"] == -1:
                    self.stray.append(message)
                else:
                    self._answers[message["id"]] = message
                    self.arrived.append(message["id"])
                self._changed.unpark_all()
        except trio.EndOfChannel:
            self.ended.set()
            self._changed.unpark_all()

    async def raw(self, text: str) -> None:
        await self.wire.send([text.encode()])

    async def notify(self, method: str) -> None:
        await self.raw(json.dumps({"method": method, "params": {}}))

    async def ask(self, method: str, params: Any = None) -> Any:
        """Send a request; gives its id."""
        request_id = next(self._ids)
        await self.raw(json.dumps({"id": request_id, "method": method, "params": params}))
        return request_id

    async def answer(self, request_id: Any) -> dict[str, Any]:
        while request_id not in self._answers:
            if self.ended.is_set():
                raise trio.EndOfChannel
            await self._changed.park()
        return self._answers.pop(request_id)

    async def wait_stray(self, request_id: Any) -> bool:
        """Wait for an answer to a message whose id could not be read: True; or to this request: False."""
        while not self.stray and request_id not in self._answers:
            if self.ended.is_set():
                raise trio.EndOfChannel
            await self._changed.park()
        return bool(self.stray)

    async def call(self, method: str, /, **params: Any) -> Any:
        message = await self.answer(await self.ask(method, params))
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    async def greet(self, resume: str | None = None) -> str:
        result = await self.call("initialize", clientName="test", resumeSessionId=resume)
        await self.notify("initialized")
        return result["sessionId"]

    async def start(self, process_id: str, *argv: str, **more: Any) -> Any:
        params = {"cwd": "file:///tmp", "env": {}, "tty": False} | more
        return await self.call("process/start", processId=process_id, argv=list(argv), **params)

    async def wait_news(self, method: str, process_id: str) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            return next(
                (n["params"] for n in self.news if n["method"] == method and n["params"]["processId"] == process_id),
                None,
            )

        while (params := found()) is None:
            if self.ended.is_set():
                raise trio.EndOfChannel
            await self._changed.park()
        return params

    def output(self, process_id: str, stream: str | None = None) -> bytes:
        return b"".join(
            base64.b64decode(n["params"]["chunk"])
            for n in self.news
            if n["method"] == "process/output"
            and n["params"]["processId"] == process_id
            and stream in {None, n["params"]["stream"]}
        )

    def story(self, process_id: str) -> list[str]:
        return [n["method"] for n in self.news if n["params"].get("processId") == process_id]

    async def finish(self, process_id: str) -> dict[str, Any]:
        return await self.wait_news("process/closed", process_id)


@asynccontextmanager
async def memory_client(executor: Executor, *, buffered: int = 16, greet: bool = True) -> AsyncGenerator[Client, None]:
    ours, theirs = memory_channel_pair(buffered=buffered)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(executor.serve_channel, theirs)
        client = Client(ours)
        nursery.start_soon(client.read)
        if greet:
            client.session_id = await client.greet()
        yield client
        ours.cut()
        with trio.move_on_after(5, shield=True):
            await client.ended.wait()
        nursery.cancel_scope.cancel()


class SocketWire:
    def __init__(self, connection: WebSocketConnection) -> None:
        self.connection = connection

    async def receive(self) -> bytes | str:
        try:
            return await self.connection.get_message()
        except ConnectionClosed:
            raise trio.EndOfChannel from None

    async def send(self, messages: Sequence[bytes]) -> None:
        for data in messages:
            await self.connection.send_message(data.decode())


@asynccontextmanager
async def socket_client(url: str, *, greet: bool = True, token: str | None = None) -> AsyncGenerator[Client, None]:
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    where = urlsplit(url)
    # trio-websocket leaves the socket open when the server is the one that closes, so it is ours.
    stream = await trio.open_tcp_stream(str(where.hostname), int(where.port or 0))
    async with stream, trio.open_nursery() as nursery:
        connection = await wrap_client_stream(
            nursery,
            stream,
            where.netloc,
            "/",
            extra_headers=headers,
            max_message_size=1 << 26,
            receive_buffer_size=1 << 18,
        )
        client = Client(SocketWire(connection))
        nursery.start_soon(client.read)
        if greet:
            client.session_id = await client.greet()
        yield client
        nursery.cancel_scope.cancel()
