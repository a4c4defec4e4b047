"""Two executors, ours and the existing one, each reached by plain WebSocket and through our rendezvous."""

import os
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import trio

from actors.executor import RemoteExecutor, serve_executor, serve_remote_executor
from actors.harness import ChannelClosed, Dialer, MessageChannel, RelayDialer, WebSocketDialer
from actors.harness import Client as HarnessClient
from actors.harness import open_client as open_harness
from actors.noise import Identity
from actors.relay import Redial
from actors.rendezvous import Grant, RegistryClient, Rendezvous, bearer, open_registry_client, open_rendezvous
from tests.actors.executor.client import Client
from tests.actors.through_relay.loopback import CountingProvider, RecordingTransport, TappedDialer
from tests.support.settling import until
from tests.support.skips import needs

CODEX: Final = os.environ.get("GREENROOM_INTEROP_CODEX", "")
TOKEN: Final = "token-of-executor-and-harness"
# Made once: keys cost more than most tests.
EXECUTOR, HARNESS = Identity.generate(), Identity.generate()

needs_existing = needs(CODEX, "the existing executor", "run .ci/interop-codex, which installs it")
OURS, EXISTING = "ours", "existing"
BODIES: Final = [OURS, pytest.param(EXISTING, marks=needs_existing)]
PLACES: Final = [
    pytest.param((body, road), id=f"{body}-{road}", marks=needs_existing if body == EXISTING else ())
    for body in (OURS, EXISTING)
    for road in ("plain", "relay")
]


class ChannelWire:
    """A channel of our harness, for a client that says exactly what it is told to."""

    def __init__(self, channel: MessageChannel) -> None:
        self._channel = channel

    async def receive(self) -> bytes | str:
        try:
            return await self._channel.receive()
        except ChannelClosed:
            raise trio.EndOfChannel from None

    async def send(self, messages: Sequence[bytes]) -> None:
        for message in messages:
            await self._channel.send(message)


@attrs.frozen
class Place:
    """An executor that can be reached, by either body, over either road."""

    body: str
    road: str
    url: str
    dialer: Dialer
    root: Path
    """A folder that the executor sees as well."""

    @property
    def is_ours(self) -> bool:
        return self.body == OURS

    @asynccontextmanager
    async def harness(self, **options: Any) -> AsyncGenerator[HarnessClient, None]:
        """Our own client."""
        async with open_harness(self.url, dialer=self.dialer, **options) as client:
            yield client

    @asynccontextmanager
    async def talk(self, *, greet: bool = True, resume: str | None = None) -> AsyncGenerator[Client, None]:
        """A client that sends what it is told, and shows every answer."""
        async with self.dialer.dial(self.url) as channel, trio.open_nursery() as nursery:
            client = Client(ChannelWire(channel))
            nursery.start_soon(client.read)
            if greet:
                client.session_id = await client.greet(resume)
            yield client
            nursery.cancel_scope.cancel()

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()


@asynccontextmanager
async def open_place(body: str, road: str, tmp_path: Path) -> AsyncGenerator[Place, None]:
    home, root = tmp_path / "home", tmp_path / "root"
    home.mkdir()
    root.mkdir()
    async with AsyncExitStack() as stack:
        if road == "plain":
            url = await stack.enter_async_context(_plain(body, home))
            yield Place(body, road, url, WebSocketDialer(), root)
        else:
            world = await stack.enter_async_context(open_world(body, home))
            yield Place(body, road, "env", world.relay_dialer(), root)


@asynccontextmanager
async def _plain(body: str, home: Path) -> AsyncGenerator[str, None]:
    async with trio.open_nursery() as nursery:
        if body == OURS:
            yield (await nursery.start(partial(serve_executor, http=True))).url
        else:
            command = [CODEX, "exec-server", "--listen", "ws://127.0.0.1:0"]
            run = partial(trio.run_process, command, env=_variables(home), stdin=subprocess.DEVNULL, check=False)
            process = await nursery.start(partial(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
            yield await _first_line(process.stdout)
        nursery.cancel_scope.cancel()


async def _first_line(stream: AsyncIterator[bytes]) -> str:
    said = b""
    with trio.fail_after(30):
        async for piece in stream:
            said += piece
            if b"\n" in said:
                return said.split(b"\n")[0].decode()
    raise AssertionError("the existing executor ended before it said where it listens")


def _variables(home: Path) -> dict[str, str]:
    return {**os.environ, "CODEX_API_KEY": TOKEN, "OPENAI_API_KEY": TOKEN, "CODEX_HOME": str(home)}


class Road:
    """A TCP forwarder in front of the rendezvous: cutting it is what a failing relay looks like to both sides."""

    def __init__(self) -> None:
        self._streams: list[trio.SocketStream] = []
        self.target = 0

    async def serve(self, near: trio.SocketStream) -> None:
        far = await trio.open_tcp_stream("127.0.0.1", self.target)
        self._streams += [near, far]
        async with far, trio.open_nursery() as nursery:
            nursery.start_soon(self._copy, near, far)
            nursery.start_soon(self._copy, far, near)

    async def _copy(self, source: trio.SocketStream, target: trio.SocketStream) -> None:
        try:
            while data := await source.receive_some():
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        for stream in (source, target):
            await trio.aclose_forcefully(stream)

    async def cut(self) -> None:
        for stream in self._streams:
            await trio.aclose_forcefully(stream)
        self._streams.clear()


@attrs.define
class World:
    """Our registry and rendezvous with one executor of either body, and all that passes written down."""

    road: Road
    rendezvous: Rendezvous
    transport: RecordingTransport
    registry: RegistryClient
    dialer: TappedDialer

    def provider(self) -> CountingProvider:
        return CountingProvider(self.registry)

    def relay_dialer(self) -> RelayDialer:
        next_bundle = partial(self.registry.connect, "env", HARNESS.public_key)
        return RelayDialer(next_bundle, HARNESS, dialer=self.dialer)


@asynccontextmanager
async def open_world(body: str, home: Path) -> AsyncGenerator[World, None]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        nursery = await enter(trio.open_nursery())
        road = Road()
        listeners = await nursery.start(partial(trio.serve_tcp, road.serve, 0, host="127.0.0.1"))
        public_url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        inner = await trio.open_tcp_listeners(0, host="127.0.0.1")
        road.target = inner[0].socket.getsockname()[1]
        grants = [Grant(token=TOKEN, name="both")]
        rendezvous = await enter(open_rendezvous(grants, listeners=inner, public_url=public_url))
        transport = RecordingTransport()
        registry = await enter(open_registry_client(public_url, bearer(TOKEN), transport=transport))
        if body == OURS:
            # Over the same road as the other, but in this process; `greenroom executor` has tests of its own.
            serve = partial(serve_remote_executor, http=True, redial=Redial(first_s=0.02, cap_s=0.1))
            remote: RemoteExecutor = await nursery.start(serve, registry, "env", EXECUTOR)
            assert remote.environment_id == "env"
        else:
            command = [CODEX, "exec-server", "--remote", public_url, "--environment-id", "env"]
            run = partial(trio.run_process, command, env=_variables(home), stdin=subprocess.DEVNULL, check=False)
            await nursery.start(partial(run, stderr=subprocess.DEVNULL))
        await until(lambda: rendezvous.statistics().executors == 1, within_s=30)
        yield World(road, rendezvous, transport, registry, TappedDialer())
        nursery.cancel_scope.cancel()
