"""A registry and rendezvous in memory, a whole executor on it, and what passes between: all on a virtual clock."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import attrs
import trio

from actors.executor import RemoteExecutor, serve_remote_executor
from actors.executor.testing import MemoryProcess, open_memory_launcher
from actors.harness import Client, RelayChannel, RelayDialer, open_client
from actors.noise import Identity
from actors.relay import Redial, UpkeepEvent, WebSocketDialer
from actors.rendezvous import (
    Grant,
    HarnessConnection,
    RegistryClient,
    Rendezvous,
    bearer,
    open_registry_client,
    open_rendezvous,
)
from actors.rendezvous.testing import MemoryNetwork

TOKEN = "a-token-of-everybody-here"
GRANTS = [Grant(token=TOKEN, name="all")]
# Made once: keys cost more than most tests.
EXECUTOR, HARNESS = Identity.generate(), Identity.generate()


async def hello(process: MemoryProcess) -> int:
    await process.write(b"hello\n")
    return 0


async def ticking(process: MemoryProcess) -> int:
    for number in range(40):
        await process.write(b"%d\n" % number)
        await trio.sleep(0.25)
    return 0


PROGRAMS = {"hello": hello, "ticking": ticking}


class CuttableNetwork(MemoryNetwork):
    """A network whose WebSocket connections can all be cut."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: list[trio.abc.Stream] = []

    async def open_stream(self, host: str, port: int) -> trio.abc.Stream:
        stream = await super().open_stream(host, port)
        self.streams.append(stream)
        return stream

    async def cut(self) -> None:
        for stream in self.streams:
            await trio.aclose_forcefully(stream)
        self.streams.clear()


@attrs.define
class World:
    network: CuttableNetwork
    rendezvous: Rendezvous
    registry: RegistryClient
    dialer: WebSocketDialer
    remote: RemoteExecutor
    events: list[UpkeepEvent]
    bundles: list[HarnessConnection] = attrs.field(factory=list)

    async def next_bundle(self) -> HarnessConnection:
        self.bundles.append(await self.registry.connect("env", HARNESS.public_key))
        return self.bundles[-1]

    @asynccontextmanager
    async def dial(self) -> AsyncGenerator[RelayChannel, None]:
        async with RelayDialer(self.next_bundle, HARNESS, dialer=self.dialer).dial("env") as channel:
            yield channel

    @asynccontextmanager
    async def open_client(self, **options) -> AsyncGenerator[Client, None]:
        dialer = RelayDialer(self.next_bundle, HARNESS, dialer=self.dialer)
        async with open_client("env", dialer=dialer, **options) as client:
            yield client


@asynccontextmanager
async def open_world() -> AsyncGenerator[World, None]:
    network, events = CuttableNetwork(), list[UpkeepEvent]()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        rendezvous = await enter(open_rendezvous(GRANTS, listeners=network.listeners(), public_url=network.url))
        transport = network.transport()
        registry = await enter(open_registry_client(network.url, bearer(TOKEN), transport=transport))
        launcher = await enter(open_memory_launcher(PROGRAMS))
        dialer = WebSocketDialer(open_stream=network.open_stream)
        nursery = await enter(trio.open_nursery())
        serve = partial(
            serve_remote_executor,
            dialer=dialer,
            launcher=launcher,
            redial=Redial(first_s=0.1, cap_s=0.5),
            report=events.append,
        )
        remote = await nursery.start(serve, registry, "env", EXECUTOR)
        yield World(network, rendezvous, registry, dialer, remote, events)
        nursery.cancel_scope.cancel()
