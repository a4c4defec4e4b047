"""Every public async function, cancelled at its first step, then at its second, until it finishes untouched."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors import ActorsError
from actors.environments import Environment, EnvironmentManager, StatusReady
from actors.environments.testing import (
    FailingProvider,
    MemoryConnector,
    ScriptedProvider,
    open_manager_in_memory,
)
from supervision import open_root
from tests.actors.environments.waiting import found
from tests.support.cancelling import cancel_at_each_step

Call = Callable[[EnvironmentManager, Environment], Awaitable[object]]
CALLS: dict[str, Call] = {
    "wait_until_ready": lambda _, environment: environment.wait_until_ready(),
    "status": lambda _, environment: environment.status(),
    "info": lambda _, environment: environment.info(),
    "run": lambda _, environment: environment.run(["a"]),
    "manager.status": lambda manager, _: manager.status("tools"),
    "manager.status of nobody": lambda manager, _: manager.status("nobody"),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_cancelled_call_leaves_the_environment_as_it_was(name: str, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        provider = ScriptedProvider()
        environment = manager.upsert("tools", provider)

        async def nothing_is_left() -> None:
            assert manager.get("tools") is environment
            assert manager.statistics().operations == 0
            assert provider.calls <= 1
            assert len(connector.open_links) <= 1

        await cancel_at_each_step(lambda: CALLS[name](manager, environment), check=nothing_is_left)
        assert await environment.status() == StatusReady()
        assert provider.calls == 1


async def test_a_cancelled_operation_on_a_lost_link_never_opens_two(autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())

        async def lose_and_use() -> None:
            await environment.info()
            connector.links[-1].cut()
            await wait_all_tasks_blocked()
            await environment.info()

        async def at_most_one_link() -> None:
            assert len(connector.open_links) <= 1
            assert manager.statistics().operations == 0

        await cancel_at_each_step(lose_and_use, check=at_most_one_link)


async def test_a_cancelled_wait_for_a_failing_start_calls_the_provider_once(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        environment = manager.upsert("tools", provider)

        async def wait() -> None:
            with contextlib.suppress(ActorsError):
                await environment.wait_until_ready()

        await cancel_at_each_step(wait)
        assert provider.calls == 1


@pytest.mark.parametrize("how", ["remove", "aclose"])
async def test_a_cancelled_way_out_is_a_way_out_all_the_same_once_it_began(how: str, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:

        async def come_and_go() -> None:
            environment: Environment | None = manager.upsert("tools", ScriptedProvider())
            assert environment is not None
            await environment.wait_until_ready()
            if how == "remove":
                environment = None
                await manager.remove("tools")
            else:
                await environment.aclose()

        async def at_most_the_current_one_is_left() -> None:
            assert len(connector.open_links) == len(manager.environment_ids) == manager.statistics().alive

        await cancel_at_each_step(come_and_go, check=at_most_the_current_one_is_left)
        assert manager.environment_ids == ()


@pytest.mark.parametrize("how", ["drain", "aclose"])
async def test_a_cancelled_end_of_a_manager_leaves_no_wait_open(how: str, autojump_clock) -> None:
    connector = MemoryConnector()

    async def open_and_end() -> None:
        async with open_manager_in_memory(connector=connector) as manager:
            await manager.upsert("tools", ScriptedProvider()).wait_until_ready()
            manager.materialize("other", ScriptedProvider())
            await (manager.drain() if how == "drain" else manager.aclose())

    async def everything_is_closed() -> None:
        assert connector.open_links == []

    await cancel_at_each_step(open_and_end, check=everything_is_closed)


async def test_a_cancelled_opening_leaves_nothing_in_the_tree(autojump_clock) -> None:
    async with open_root() as root:

        async def open_and_leave() -> None:
            async with open_manager_in_memory(root) as manager:
                manager.upsert("tools", ScriptedProvider())

        async def the_tree_is_empty() -> None:
            assert root.children() == ()

        await cancel_at_each_step(open_and_leave, check=the_tree_is_empty)


async def test_a_cancelled_listener_loses_no_event(autojump_clock) -> None:
    async with open_manager_in_memory() as manager, manager.events() as events:
        taken: list[Any] = []
        number = iter(range(1_000))

        async def take() -> None:
            manager.materialize(f"env-{next(number)}", FailingProvider())
            taken.append(await anext(events))

        await cancel_at_each_step(take)
        with contextlib.suppress(trio.WouldBlock):
            while True:
                taken.append(events.receive_nowait())

        assert [event.position for event in taken] == [*range(1, len(manager.environment_ids) + 1)]


async def test_a_cancelled_watcher_has_seen_nothing(autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        watch = environment.subscribe_connection_state()
        assert watch is not None
        await found(manager, "tools").wait_until_ready()

        await cancel_at_each_step(watch.changed)
        assert not watch.has_changed()
