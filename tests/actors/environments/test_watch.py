"""A watch shows the latest value, says that it changed, and keeps nothing alive."""

from trio.testing import wait_all_tasks_blocked

from actors.environments import Change, ConnectionState, Environment, Watch
from actors.environments.testing import MemoryConnector, ScriptedProvider, open_manager_in_memory
from tests.actors.environments.waiting import start

CONNECTED, DISCONNECTED = ConnectionState.CONNECTED, ConnectionState.DISCONNECTED


def watch_of(environment: Environment) -> Watch[ConnectionState]:
    watch = environment.subscribe_connection_state()
    assert watch is not None
    return watch


async def test_it_begins_disconnected_and_is_told_each_change_with_its_reason(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        watch = watch_of(environment)
        assert (watch.current, watch.has_changed()) == (DISCONNECTED, False)

        first = await watch.changed()
        assert first == Change(value=CONNECTED, reason="the executor answers", generation=1, position=1)
        connector.links[0].cut("the peer is gone")
        second = await watch.changed()
        assert second == Change(value=DISCONNECTED, reason="the peer is gone", generation=1, position=2)


async def test_quick_flaps_become_one_change_and_the_position_tells_the_gap(autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        watch = watch_of(environment)
        await environment.wait_until_ready()
        for _ in range(3):
            connector.links[0].interrupt("no frame for 30 s")
            connector.links[0].resume()

        assert watch.has_changed()
        assert (await watch.changed()).position == 7
        assert not watch.has_changed()


async def test_looking_at_the_current_value_does_not_count_as_having_seen_it(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        watch = watch_of(environment)
        await environment.wait_until_ready()

        assert watch.current is CONNECTED
        assert watch.latest.position == 1
        assert watch.has_changed()


async def test_a_watch_begun_late_sees_the_present_and_waits_for_the_next(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        late = watch_of(environment)
        assert late.current is CONNECTED
        wait = await start(nursery, late.changed)
        assert wait.is_pending

        connector.links[0].cut()
        assert (await wait.well()).value is DISCONNECTED


async def test_two_watches_of_one_environment_see_on_their_own(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        one, other = watch_of(environment), watch_of(environment)
        await one.changed()

        assert (one.has_changed(), other.has_changed()) == (False, True)
        assert "seen 0" in repr(other)


async def test_a_cancelled_wait_has_seen_nothing(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        watch = watch_of(environment)
        wait = await start(nursery, watch.changed)
        connector.links[0].cut()
        wait.scope.cancel()
        await wait_all_tasks_blocked()

        assert watch.has_changed() or wait.value is not None


async def test_an_iteration_gives_the_changes_and_ends_with_the_environment(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        watch = watch_of(environment)
        seen: list[ConnectionState] = []

        async def follow() -> None:
            seen.extend([change.value async for change in watch])

        wait = await start(nursery, follow)
        connector.links[0].cut()
        await wait_all_tasks_blocked()
        await environment.aclose()
        await wait.well()

        assert seen == [CONNECTED, DISCONNECTED]
