"""The existing executor behind our registry and rendezvous, reached by our manager. Run by `.ci/interop-codex`."""

import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio

from actors.environments import ConnectionState, Connectors, HarnessConnector, NoiseConnector, open_manager
from actors.noise import Identity
from actors.relay import Data, decode
from actors.rendezvous import Grant, RegistryClient, Rendezvous, bearer, open_registry_client, open_rendezvous
from supervision import open_root
from tests.actors.environments.waiting import found, info, start_wait
from tests.actors.through_relay.loopback import CountingProvider, RecordingTransport, TappedDialer

CODEX = os.environ.get("GREENROOM_INTEROP_CODEX", "")
TOKEN = "token-of-executor-and-harness"
# What only the two ends may read.
PLAINTEXT = (b"initialize", b"process/", b"environment/", b"clientName", b"sessionId", b"params", b"the-secret-word")

pytestmark = pytest.mark.skipif(not CODEX, reason="needs the existing executor, which .ci/interop-codex installs")


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
    road: Road
    rendezvous: Rendezvous
    transport: RecordingTransport
    registry: RegistryClient
    dialer: TappedDialer


@asynccontextmanager
async def open_world(home: Path) -> AsyncGenerator[World, None]:
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
        command = [CODEX, "exec-server", "--remote", public_url, "--environment-id", "env"]
        variables = {**os.environ, "CODEX_API_KEY": TOKEN, "OPENAI_API_KEY": TOKEN, "CODEX_HOME": str(home)}
        run = partial(trio.run_process, command, env=variables, stdin=subprocess.DEVNULL, check=False)
        await nursery.start(run)
        with trio.fail_after(30):
            while not rendezvous.statistics().executors:  # noqa: ASYNC110  # Another program comes when it comes.
                await trio.sleep(0.02)
        yield World(road, rendezvous, transport, registry, TappedDialer())
        nursery.cancel_scope.cancel()


async def test_45_46_the_existing_executor_serves_our_manager_through_our_rendezvous(tmp_path: Path) -> None:
    content = b"the-secret-word" + os.urandom(2 * 1024 * 1024)
    file = tmp_path / "file"
    file.write_bytes(content)
    home = tmp_path / "home"
    home.mkdir()
    with trio.fail_after(90):
        async with open_world(home) as world, open_root() as root:
            noise = NoiseConnector(dialer=world.dialer)
            connectors = Connectors(plain=HarnessConnector(), noise=noise, identity=Identity.generate)
            async with open_manager(root, connectors=connectors) as manager, trio.open_nursery() as nursery:
                provider = CountingProvider(world.registry)
                registration = manager.register_deferred("env", provider)
                environment = found(manager, "env")
                wait = await start_wait(nursery, environment)
                assert wait.is_pending
                assert provider.keys == []
                registration.complete(info("tools-root", "env"))
                await wait.well()
                watch = environment.subscribe_connection_state()
                assert watch is not None
                first_info = await environment.info()
                read = await environment.run(["/bin/cat", str(file)])
                assert read.stdout == content
                ended = await environment.run(["/bin/sh", "-c", "echo the-secret-word; exit 3"])
                assert (ended.exit_code, ended.stdout) == (3, b"the-secret-word\n")

                await world.road.cut()
                while watch.current is not ConnectionState.DISCONNECTED:
                    await watch.changed()
                while watch.current is not ConnectionState.CONNECTED:
                    await watch.changed()

                assert await environment.info() == first_info
                assert [root.id for root in environment.selected_capability_roots] == ["tools-root"]
                again = await environment.run(["/bin/echo", "again"])
                assert again.stdout == b"again\n"
                one, two = provider.bundles
                assert one.harness_key_authorization != two.harness_key_authorization
                assert one.executor_registration_id == two.executor_registration_id
                assert len(set(provider.keys)) == 1
                assert world.rendezvous.statistics().counters.validations_passed == 2
    bodies = [decode(frame).body for frame in world.dialer.frames]
    seen = [body.payload for body in bodies if isinstance(body, Data)]
    assert seen
    assert not [word for word in PLAINTEXT for payload in seen if word in payload]
