"""One contract for every way to hold a link: in memory, a harness in memory, a harness over a socket, this machine."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio

from actors.environments import (
    ConnectBundle,
    ConnectFailed,
    Connector,
    Connectors,
    Environment,
    EnvironmentManager,
    FixedEndpoint,
    HarnessConnector,
    LinkRequest,
    LocalConnector,
    NotSupported,
    Phase,
    PlainEndpoint,
    ProtocolError,
    Snapshot,
    StatusReady,
    open_manager,
)
from actors.environments.testing import MemoryConnector, ScriptedProvider, open_manager_in_memory
from actors.executor import serve_executor
from actors.harness import Client, DidNotRun, MayHaveRun
from actors.harness.testing import Cut, FakeExecutor, FakeProcess, MemoryNetwork
from supervision import ChildSpec, Supervisor, open_root
from tests.actors.environments.waiting import found, start, start_wait

MEMORY = FixedEndpoint(PlainEndpoint(websocket_url="ws://memory.invalid/"))


class Stage:
    """A connector with something behind it."""

    def __init__(self, connector: Connector, url: str, lose: Callable[[], object] | None = None) -> None:
        self.connector, self.url, self.lose = connector, url, lose

    def request(self) -> LinkRequest:
        answer = PlainEndpoint(websocket_url=self.url)
        return LinkRequest(environment_id="tools", generation=1, attempt=1, answer=answer, identity=None)


async def echo(process: FakeProcess) -> int:
    process.write(b"hello")
    return 0


@asynccontextmanager
async def memory_stage() -> AsyncGenerator[Stage, None]:
    connector = MemoryConnector()
    yield Stage(connector, "ws://memory.invalid/", lambda: connector.links[-1].cut())


@asynccontextmanager
async def harness_stage() -> AsyncGenerator[Stage, None]:
    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, {"echo": echo})
        network = MemoryNetwork(executor.serve)

        def lose() -> None:
            network.refusing = "connection refused"
            network.line.cut(Cut.RESET)

        yield Stage(HarnessConnector(dialer=network, recovery=None), "ws://memory.invalid/", lose)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def socket_stage() -> AsyncGenerator[Stage, None]:
    async with trio.open_nursery() as nursery:
        endpoint = await nursery.start(serve_executor)
        yield Stage(HarnessConnector(recovery=None), endpoint.url, nursery.cancel_scope.cancel)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def local_stage() -> AsyncGenerator[Stage, None]:
    yield Stage(LocalConnector(), "ws://unused.invalid/")


StageOf = Callable[[], AbstractAsyncContextManager[Stage]]


@pytest.fixture(params=[memory_stage, harness_stage, socket_stage, local_stage], ids=lambda stage: stage.__name__)
def stage_of(request: pytest.FixtureRequest) -> StageOf:
    made: StageOf = request.param
    return made


class Told:
    """A link report that remembers."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.words: list[str] = []
        self.is_open = trio.Event()

    def opened(self, client: Any, /) -> None:
        self.client = client
        self.words.append("opened")
        self.is_open.set()

    def interrupted(self, reason: str, /) -> None:
        self.words.append("interrupted")

    def resumed(self) -> None:
        self.words.append("resumed")


async def test_a_link_is_told_open_once_its_client_can_be_used(stage_of: StageOf) -> None:
    async with stage_of() as stage, trio.open_nursery() as nursery:
        told = Told()
        nursery.start_soon(stage.connector.hold, stage.request(), told)
        with trio.fail_after(10):
            await told.is_open.wait()
            assert told.client is not None
            await told.client.status()
            info = await told.client.info()

        assert info.cwd is not None
        assert told.words == ["opened"]
        nursery.cancel_scope.cancel()


async def test_cancelling_the_holder_closes_the_link_and_raises_nothing_else(stage_of: StageOf) -> None:
    async with stage_of() as stage:
        told = Told()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.connector.hold, stage.request(), told)
            with trio.fail_after(10):
                await told.is_open.wait()
            nursery.cancel_scope.cancel()

        assert told.words == ["opened"]


# What runs in this process is not lost.
@pytest.mark.parametrize("stage_of", [memory_stage, harness_stage, socket_stage], ids=lambda stage: stage.__name__)
async def test_a_lost_link_ends_the_holder_with_the_reason(stage_of: StageOf, nursery) -> None:
    async with stage_of() as stage:
        assert stage.lose is not None
        told = Told()
        with trio.fail_after(40):
            wait = await start(nursery, lambda: stage.connector.hold(stage.request(), told))
            await told.is_open.wait()
            stage.lose()
            error = await wait.error()

        assert str(error)
        assert told.words[0] == "opened"
        assert told.words[1:] in ([], ["interrupted"])


async def test_a_harness_that_cannot_get_there_fails_in_a_way_that_may_pass(nursery, autojump_clock) -> None:
    network = MemoryNetwork(FakeExecutor(nursery, {}).serve)
    network.refusing = "connection refused"
    async with open_root() as root:
        connectors = Connectors(plain=HarnessConnector(dialer=network))
        async with open_manager(root, connectors=connectors) as manager:
            error = await (await start_wait(nursery, manager.upsert("tools", MEMORY))).error()

            assert isinstance(error, ConnectFailed)
            assert "connection refused" in str(error)
            assert error.retryable


@asynccontextmanager
async def open_on_network(
    root: Supervisor, nursery: trio.Nursery
) -> AsyncGenerator[tuple[EnvironmentManager, MemoryNetwork], None]:
    network = MemoryNetwork(FakeExecutor(nursery, {"echo": echo}).serve)
    async with open_manager(root, connectors=Connectors(plain=HarnessConnector(dialer=network))) as manager:
        yield manager, network


async def test_a_resumed_session_is_shown_to_watchers_and_commands_go_on(nursery, autojump_clock) -> None:
    async with open_root() as root, open_on_network(root, nursery) as (manager, network):
        environment = manager.upsert("tools", MEMORY)
        watch = environment.subscribe_connection_state()
        assert watch is not None
        assert (await environment.run(["echo"])).stdout == b"hello"
        network.line.cut(Cut.RESET)

        seen = [await watch.changed()]
        while len(seen) < 2 or seen[-1].value.value != "connected":
            seen.append(await watch.changed())
        assert (await environment.run(["echo"])).stdout == b"hello"
        assert seen[-1].position in {1, 3}
        assert len(network.lines) == 2
        await manager.aclose()
        nursery.cancel_scope.cancel()


async def test_a_session_that_does_not_come_back_is_replaced_by_the_next_operation(nursery, autojump_clock) -> None:
    async with open_root() as root, open_on_network(root, nursery) as (manager, network):
        environment = manager.upsert("tools", MEMORY)
        await environment.wait_until_ready()
        network.refusing = "connection refused"
        network.line.cut(Cut.RESET)
        await trio.sleep(60)
        reason = environment.why().reasons
        assert reason[0].code == Phase.LOST.value
        assert "failed to resume exec-server session" in str(environment.why())

        network.refusing = None
        assert (await environment.run(["echo"])).stdout == b"hello"
        assert await environment.status() == StatusReady()
        await manager.aclose()
        nursery.cancel_scope.cancel()


async def test_a_process_lives_as_long_as_its_block_and_counts_as_an_operation(nursery, autojump_clock) -> None:
    async with open_root() as root, open_on_network(root, nursery) as (manager, _):
        environment = manager.upsert("tools", MEMORY)
        async with environment.processes.start(["echo"]) as process:
            assert manager.statistics().operations == 1
            assert await process.wait() == 0

        assert manager.statistics().operations == 0
        await manager.aclose()
        nursery.cancel_scope.cancel()


async def test_a_connector_without_encryption_refuses_a_bundle() -> None:
    bundle = ConnectBundle(
        websocket_url="ws://x",
        environment_id="tools",
        executor_registration_id="r",
        executor_public_key=b"k",
        harness_key_authorization="a",
    )
    request = LinkRequest(environment_id="tools", generation=1, attempt=1, answer=bundle, identity=None)

    with pytest.raises(NotSupported, match="connecting to a ConnectBundle"):
        await HarnessConnector().hold(request, Told())


async def test_a_link_in_memory_has_no_files(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        with pytest.raises(NotSupported, match="files"):
            await environment.files.exists("/x")


async def test_39_upserting_a_url_starts_a_tcp_connection_without_further_calls() -> None:
    async with open_root() as root, open_manager(root) as manager:
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
        port = listener.socket.getsockname()[1]
        manager.upsert_url("tools", f"ws://127.0.0.1:{port}")
        with trio.fail_after(5):
            stream = await listener.accept()

        await stream.aclose()
        await listener.aclose()


async def test_44_this_machine_can_start_a_process_with_exactly_the_variables_it_is_given() -> None:
    async with open_root() as root:
        async with open_manager(root, snapshot=Snapshot(include_local=True, default="local")) as manager:
            local = found(manager, "local")
            ran = await local.run(["/bin/sh", "-c", "echo $WORD; exit 3"], env={"WORD": "here"}, timeout_s=20)
            info = await local.info()

        assert (ran.stdout, ran.exit_code) == (b"here\n", 3)
        assert info.cwd is not None
        assert info.cwd.startswith("file:///")


async def test_a_real_executor_that_comes_back_is_reconnected_to_by_the_next_operation() -> None:
    async with open_root() as root, open_manager(root) as manager:
        spec = ChildSpec("executor", serve_executor, "ws://127.0.0.1:0")
        first = await root.start_child(spec)

        class Provider:
            async def connect_bundle(self, _key: Any, /) -> PlainEndpoint:
                child = root.child("executor")
                assert child is not None
                return PlainEndpoint(websocket_url=child.value.url)

        environment = manager.upsert("tools", Provider())
        assert (await environment.run(["/bin/echo", "one"])).stdout == b"one\n"
        await root.stop_child("executor")
        second = await root.restart_child("executor")

        assert first is second
        with trio.fail_after(10):
            await run_again(environment)


async def run_again(environment: Environment) -> None:
    """Run a command until it certainly ran: one that meets the loss itself may not."""
    for _ in range(3):
        try:
            ran = await environment.run(["/bin/echo", "two"])
        except (DidNotRun, MayHaveRun, ConnectFailed):
            continue
        assert ran.stdout == b"two\n"
        return
    raise AssertionError("it never ran again")


async def test_each_physical_connection_gets_a_fresh_answer_also_in_a_recovery(nursery, autojump_clock) -> None:
    provider = ScriptedProvider(PlainEndpoint(websocket_url="ws://memory.invalid/"))
    async with open_root() as root, open_on_network(root, nursery) as (manager, network):
        environment = manager.upsert("tools", provider)
        await environment.wait_until_ready()
        network.line.cut(Cut.RESET)
        await trio.sleep(5)

        assert await environment.status() == StatusReady()
        assert provider.calls == 2
        assert len(network.lines) == 2
        await manager.aclose()
        nursery.cancel_scope.cancel()


async def test_a_recovery_ends_at_once_when_the_provider_says_no(nursery, autojump_clock) -> None:
    provider = ScriptedProvider(
        PlainEndpoint(websocket_url="ws://memory.invalid/"), ProtocolError("not yours any more")
    )
    async with open_root() as root, open_on_network(root, nursery) as (manager, network):
        environment = manager.upsert("tools", provider)
        await environment.wait_until_ready()
        network.line.cut(Cut.RESET)
        await trio.sleep(1)

        assert "not yours any more" in str(environment.why())
        assert environment.why().reasons[0].code == "lost"
        await manager.aclose()
        nursery.cancel_scope.cancel()
