"""The same on real sockets, with real processes: what every party asked the registry, and every frame that passed."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import attrs
import httpx2
import trio

from actors.environments import (
    Connectors,
    EnvironmentManager,
    HarnessConnector,
    NoiseConnector,
    RegistryConnectProvider,
    open_manager,
)
from actors.executor import RemoteExecutor, serve_remote_executor
from actors.noise import Identity, PublicKey
from actors.relay import PhysicalConnection, Redial, UpkeepEvent, WebSocketDialer
from actors.rendezvous import (
    Grant,
    HarnessConnection,
    RegistryClient,
    Rendezvous,
    bearer,
    open_registry_client,
    open_rendezvous,
)
from supervision import Supervisor

EXECUTOR_TOKEN, HARNESS_TOKEN = "executor-token-0123456789", "harness-token-0123456789"
GRANTS = [
    Grant(token=EXECUTOR_TOKEN, name="executor", may_connect=False),
    Grant(token=HARNESS_TOKEN, name="harness", may_register=False),
]
EXECUTOR = Identity.generate()


class RecordingTransport(httpx2.AsyncBaseTransport):
    """Real HTTP that remembers what was asked, by whom, and how it was answered."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []
        # Nothing here is TLS, and reading the system's authorities takes longer than most tests.
        self._real = httpx2.AsyncHTTPTransport(verify=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._real.handle_async_request(request)
        action = request.url.path.rsplit("/", 1)[-1]
        self.asked.append((action, request.headers.get("authorization", ""), answer.status_code))
        return answer

    async def aclose(self) -> None:
        await self._real.aclose()

    def count(self, action: str, status: int = 200) -> int:
        return sum(1 for asked, _, answered in self.asked if (asked, answered) == (action, status))


class Tap:
    """One physical connection whose every frame is written down."""

    def __init__(self, connection: PhysicalConnection, frames: list[bytes]) -> None:
        self._connection, self._frames = connection, frames

    async def send(self, frame: bytes) -> None:
        self._frames.append(frame)
        await self._connection.send(frame)

    async def receive(self) -> bytes | str:
        message = await self._connection.receive()
        assert isinstance(message, bytes)
        self._frames.append(message)
        return message


class TappedDialer:
    """Real WebSockets whose frames are seen as the rendezvous sees them, and that can all be cut."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.streams: list[trio.abc.Stream] = []
        self._dialer = WebSocketDialer(open_stream=self._open)

    async def _open(self, host: str, port: int) -> trio.abc.Stream:
        self.streams.append(await trio.open_tcp_stream(host, port))
        return self.streams[-1]

    @asynccontextmanager
    async def dial(self, url: str) -> AsyncGenerator[PhysicalConnection, None]:
        async with self._dialer.dial(url) as connection:
            yield Tap(connection, self.frames)

    async def cut(self) -> None:
        for stream in self.streams:
            await trio.aclose_forcefully(stream)
        self.streams.clear()


class CountingProvider:
    """Asks the real registry, and remembers every bundle and every question."""

    def __init__(self, registry: RegistryClient) -> None:
        self._real = RegistryConnectProvider(registry, "env")
        self.keys: list[PublicKey] = []
        self.bundles: list[Any] = []

    async def connect_bundle(self, harness_public_key: Any, /) -> Any:
        self.keys.append(harness_public_key)
        self.bundles.append(await self._real.connect_bundle(harness_public_key))
        return self.bundles[-1]


@attrs.define
class Loopback:
    rendezvous: Rendezvous
    transport: RecordingTransport
    registry: RegistryClient
    dialer: TappedDialer
    remote: RemoteExecutor
    events: list[UpkeepEvent]

    def provider(self) -> CountingProvider:
        return CountingProvider(self.registry)

    async def connect(self, identity: Identity) -> HarnessConnection:
        return await self.registry.connect("env", identity.public_key)

    @asynccontextmanager
    async def open_manager(self, root: Supervisor) -> AsyncGenerator[EnvironmentManager, None]:
        noise = NoiseConnector(dialer=self.dialer)
        connectors = Connectors(plain=HarnessConnector(), noise=noise, identity=Identity.generate)
        async with open_manager(root, connectors=connectors) as manager:
            yield manager


@asynccontextmanager
async def open_loopback() -> AsyncGenerator[Loopback, None]:
    transport, dialer, events = RecordingTransport(), TappedDialer(), list[UpkeepEvent]()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        rendezvous = await enter(open_rendezvous(GRANTS))
        executor_side, harness_side = [
            await enter(open_registry_client(rendezvous.url, bearer(token), transport=transport))
            for token in (EXECUTOR_TOKEN, HARNESS_TOKEN)
        ]
        nursery = await enter(trio.open_nursery())
        serve = partial(
            serve_remote_executor, dialer=dialer, redial=Redial(first_s=0.02, cap_s=0.1), report=events.append
        )
        remote = await nursery.start(serve, executor_side, "env", EXECUTOR)
        yield Loopback(rendezvous, transport, harness_side, dialer, remote, events)
        nursery.cancel_scope.cancel()
