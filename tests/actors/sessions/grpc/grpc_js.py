"""Clients and servers made with grpc-js, in a process of node.

`.ci/interop-grpc` installs it and names its folder.
"""

import itertools
import json
import os
import shutil
import subprocess
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from actors.sessions import grpc
from tests.actors.sessions.grpc.peers import OurClient, run_ours
from tests.actors.sessions.grpc.service import LEASE, Answer, Client, Failed, Pairs, Seen

PEER = Path(__file__).parent / "interop" / "peer.js"
INSTALLED = "GRPC_JS_FOLDER" in os.environ and shutil.which("node") is not None


async def lines_of(process: trio.Process) -> AsyncGenerator[Any]:
    rest = b""
    assert process.stdout is not None
    async for chunk in process.stdout:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)


def to_json(pairs: Pairs) -> list[Any]:
    return [[key, value if isinstance(value, str) else _packed(value)] for key, value in pairs]


def _packed(value: bytes) -> dict[str, str]:
    return {"b64": b64encode(value).decode()}


def from_json(pairs: list[Any]) -> Pairs:
    return [(key, value if isinstance(value, str) else b64decode(value["b64"])) for key, value in pairs]


class GrpcJsClient:
    def __init__(self, process: trio.Process) -> None:
        self.process, self.numbers, self.writing = process, itertools.count(), trio.Lock()
        self.answers: dict[int, trio.MemorySendChannel[Any]] = {}

    async def read(self) -> None:
        async for answer in lines_of(self.process):
            await self.answers[answer["id"]].send(answer)

    async def ask(self, **question: object) -> tuple[int, trio.MemoryReceiveChannel[Any]]:
        number = next(self.numbers)
        self.answers[number], answers = trio.open_memory_channel[Any](10)
        await self.tell(id=number, **question)
        return number, answers

    async def tell(self, **question: object) -> None:
        assert self.process.stdin is not None
        async with self.writing:
            await self.process.stdin.send_all(json.dumps(question).encode() + b"\n")

    async def call(
        self,
        what: grpc.Method[bytes, bytes],
        requests: list[bytes],
        metadata: Pairs | None = None,
        timeout_s: float = 10,
    ) -> Answer:
        _, answers = await self.ask(
            path=what.path,
            requests=[b64encode(request).decode() for request in requests],
            metadata=to_json(metadata or []),
            timeout_s=timeout_s,
        )
        answer = await answers.receive()
        trailers = from_json(answer["trailers"])
        if answer["code"]:
            details = dict(trailers).get("grpc-status-details-bin", b"")
            assert isinstance(details, bytes)
            raise Failed(answer["code"], answer["message"], trailers, details)
        messages = [b64decode(message) for message in answer["messages"]]
        return Answer(messages, from_json(answer["headers"]), trailers)

    @asynccontextmanager
    async def open_lease(self) -> AsyncGenerator[None]:
        number, answers = await self.ask(path=LEASE.path, requests=[""], metadata=[], timeout_s=10)
        first = await answers.receive()
        assert b64decode(first["first"]) == b"open"
        assert dict(from_json(first["headers"]))["x-lease"] == "open"
        yield
        await self.tell(id=number, cancel=True)


@asynccontextmanager
async def node(*arguments: str) -> AsyncGenerator[trio.Process]:
    command = ["node", str(PEER), *arguments]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                await trio.aclose_forcefully(stream)


@asynccontextmanager
async def grpc_js_to_ours(folder: Path) -> AsyncGenerator[tuple[Client, Seen]]:
    listeners, seen = await grpc.listen_tcp("127.0.0.1", 0), Seen()
    target = grpc.addresses_of(listeners)[0]
    async with run_ours(seen, listeners), node("call", target) as process, trio.open_nursery() as nursery:
        client = GrpcJsClient(process)
        nursery.start_soon(client.read)
        yield client, seen
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def ours_to_grpc_js(folder: Path) -> AsyncGenerator[tuple[Client, Seen]]:
    seen = Seen()
    async with node("serve") as process, trio.open_nursery() as nursery:
        lines = lines_of(process)
        port = (await anext(lines))["port"]

        async def note_losses() -> None:
            async for _ in lines:
                seen.lost_leases += 1

        nursery.start_soon(note_losses)
        async with grpc.open_channel(f"http://127.0.0.1:{port}") as channel:
            yield OurClient(channel), seen
        nursery.cancel_scope.cancel()
    await lines.aclose()


PAIRS = [grpc_js_to_ours, ours_to_grpc_js]
