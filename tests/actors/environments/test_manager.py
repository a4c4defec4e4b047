"""The manager: what it takes in, how it lets go, how it closes, and that nothing of it stays behind."""

import contextlib
import gc
import weakref

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import supervision
from actors import InvalidOption
from actors.environments import (
    ConnectFailed,
    ConnectionMoved,
    EnvironmentClosed,
    EnvironmentEnded,
    EnvironmentRegistered,
    EnvironmentSuperseded,
    EventsMissed,
    Gate,
    GateMoved,
    InvalidEnvironmentId,
    ManagerClosed,
    NotInThisRun,
    Phase,
    ReadyInfo,
    ReadyInfoReplaced,
    StaleGeneration,
    TooManyEnvironments,
    open_manager,
)
from actors.environments.testing import FailingProvider, MemoryConnector, ScriptedProvider, open_manager_in_memory
from tests.actors.environments.waiting import found, info, start, start_wait


@pytest.mark.parametrize("environment_id", ["", "a\nb", "a "])
async def test_no_way_in_takes_a_bad_id(environment_id: str, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        for insert in (
            lambda: manager.register_deferred(environment_id, FailingProvider()),
            lambda: manager.upsert(environment_id, FailingProvider()),
            lambda: manager.upsert_url(environment_id, "ws://x"),
            lambda: manager.materialize(environment_id, FailingProvider()),
            lambda: manager.report_provisioning(environment_id, "failed", FailingProvider()),
        ):
            with pytest.raises(InvalidEnvironmentId):
                insert()

        assert manager.environment_ids == ()


async def test_no_way_in_takes_something_that_is_no_provider(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        for insert in (manager.register_deferred, manager.upsert, manager.materialize):
            with pytest.raises(InvalidOption, match="provider"):
                insert("tools", object())  # type: ignore[arg-type]  # That is the point.

        assert manager.get("tools") is None


async def test_ids_come_back_as_given_and_stopping_one_never_touches_another(autojump_clock) -> None:
    ids = ["env-a", "ENV-A", "a/b", "a_b", "a%2Fb", "caf\u00e9"]
    async with open_manager_in_memory() as manager:
        for key in ids:
            manager.register_deferred(key, FailingProvider()).complete(info(f"root of {key}", key))
        assert list(manager.environment_ids) == ids

        await found(manager, "env-a").aclose()
        assert list(manager.environment_ids) == ids[1:]
        for key in ids[1:]:
            (root,) = found(manager, key).selected_capability_roots
            assert (root.id, root.environment_id) == (f"root of {key}", key)


async def test_a_full_manager_refuses_a_new_id_and_still_replaces(autojump_clock) -> None:
    async with open_manager_in_memory(max_environments=1) as manager:
        manager.upsert("a", FailingProvider())
        manager.upsert("a", FailingProvider())

        with pytest.raises(TooManyEnvironments):
            manager.upsert("b", FailingProvider())
        assert manager.environment_ids == ("a",)


async def test_a_replacement_counts_up_and_leaves_the_old_one_to_its_holders(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        old = manager.upsert("tools", ScriptedProvider())
        await old.wait_until_ready()
        new = manager.upsert("tools", ScriptedProvider())

        assert (old.generation, new.generation) == (1, 2)
        assert (old.superseded, new.superseded) == (True, False)
        assert manager.get("tools") is new
        assert (await old.run(["still", "here"])).stdout == b"still here"


async def test_publishing_may_name_the_generation_it_means(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        manager.upsert("tools", FailingProvider())
        manager.upsert("tools", FailingProvider())

        with pytest.raises(StaleGeneration, match="`tools` is at generation 2, not 1"):
            manager.publish_ready_info("tools", ReadyInfo(), generation=1)
        manager.publish_ready_info("tools", ReadyInfo(), generation=2)


async def test_removing_frees_the_id_and_leaves_the_environment_to_its_holders(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        assert await manager.remove("tools")

        assert manager.get("tools") is None
        assert not await manager.remove("tools")
        assert not environment.superseded
        await environment.wait_until_ready()
        assert manager.upsert("tools", ScriptedProvider()).generation == 2


async def test_removing_what_nobody_holds_waits_for_its_end(autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        await manager.upsert("tools", ScriptedProvider()).wait_until_ready()
        assert len(connector.open_links) == 1

        await manager.remove("tools")
        assert connector.open_links == []
        assert manager.statistics().alive == 0


async def test_42_replacing_what_nobody_holds_stops_its_start(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider()
        provider.hold_back()
        manager.upsert("tools", provider)
        await wait_all_tasks_blocked()
        assert provider.calls == 1

        manager.upsert("tools", ScriptedProvider())
        with trio.fail_after(1):
            await wait_all_tasks_blocked()
        statistics = manager.statistics()
        assert (statistics.alive, statistics.ended) == (1, 1)


async def test_a_watch_does_not_keep_an_environment_and_ends_with_it(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        watch = manager.upsert("tools", ScriptedProvider()).subscribe_connection_state()
        assert watch is not None
        await watch.changed()
        await manager.remove("tools")

        changes = [change async for change in watch]
        assert [change.value.value for change in changes] == ["disconnected"]
        with pytest.raises(EnvironmentClosed):
            await watch.changed()


async def test_closing_an_environment_ends_every_wait_and_is_quiet_twice(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()):
            environment = found(manager, "tools")
            waits = [await start_wait(nursery, environment), await start(nursery, environment.info)]
            await environment.aclose()
            await environment.aclose()

            for wait in waits:
                error = await wait.error()
                assert isinstance(error, EnvironmentClosed)
                assert str(error) == "environment `tools` generation 1 is closed: aclose() was called"
        for call in (environment.wait_until_ready, environment.info):
            with pytest.raises(EnvironmentClosed):
                await call()
        assert environment.startup_finished
        assert manager.get("tools") is None


async def test_closing_a_superseded_environment_leaves_its_successor_alone(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        old = manager.upsert("tools", ScriptedProvider())
        new = manager.upsert("tools", ScriptedProvider())
        await old.aclose()

        assert manager.get("tools") is new
        await new.wait_until_ready()


async def test_leaving_the_manager_ends_every_wait_also_of_those_without_an_id(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        old = manager.materialize("a", FailingProvider())
        await manager.remove("a")
        registration = manager.register_deferred("b", FailingProvider())
        new = found(manager, "b")
        manager.upsert("b", FailingProvider())
        waits = [await start_wait(nursery, new)]

    assert isinstance(await waits[0].error(), EnvironmentClosed)
    assert old.gate is Gate.ABANDONED
    assert not registration.is_pending
    with pytest.raises(ManagerClosed, match="is closed and takes no new environments"):
        manager.upsert("c", FailingProvider())
    assert manager.get("b") is None


async def test_a_manager_leaves_nothing_in_the_tree_of_its_supervisor(autojump_clock) -> None:
    async with supervision.open_root() as root:
        for _ in range(2):
            async with open_manager_in_memory(root) as manager:
                manager.upsert("tools", ScriptedProvider())
                await wait_all_tasks_blocked()
                assert "environments" in root.tree().render_text()

        assert root.children() == ()


async def test_two_managers_live_side_by_side_under_two_names(autojump_clock) -> None:
    async with (
        supervision.open_root() as root,
        open_manager(root, name="one") as one,
        open_manager(root, name="two") as two,
    ):
        one.materialize("tools", FailingProvider())

        assert two.get("tools") is None


async def test_the_tree_shows_environments_by_id_and_generation(autojump_clock) -> None:
    async with supervision.open_root() as root, open_manager_in_memory(root) as manager:
        await manager.upsert("a/b", ScriptedProvider()).wait_until_ready()

        text = root.tree().render_text()
        assert "a%2Fb#1: running" in text


async def test_stopping_the_managers_tree_by_hand_closes_its_environments(nursery, autojump_clock) -> None:
    async with supervision.open_root() as root, open_manager_in_memory(root) as manager:
        with manager.register_deferred("tools", FailingProvider()):
            wait = await start_wait(nursery, found(manager, "tools"))
            await root.stop_child("environments")

            error = await wait.error()
            assert isinstance(error, EnvironmentClosed)
            assert "its supervisor stopped the manager" in str(error)
            with pytest.raises(ManagerClosed):
                manager.upsert("a", FailingProvider())


async def test_an_error_in_the_block_comes_out_as_it_is(autojump_clock) -> None:
    async def block_that_fails() -> None:
        async with supervision.open_root() as root, open_manager_in_memory(root) as manager:
            manager.upsert("tools", ScriptedProvider())
            await wait_all_tasks_blocked()
            raise KeyError("mine")

    with pytest.raises(KeyError) as raised:
        await block_that_fails()

    assert raised.value.args == ("mine",)


async def test_draining_takes_nobody_in_lets_operations_finish_and_then_closes(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        connector.links[0].client.proceed = trio.Event()
        running = await start(nursery, lambda: environment.run(["long"]))
        draining = await start(nursery, manager.drain)
        with pytest.raises(ManagerClosed, match="is draining"):
            manager.upsert("other", FailingProvider())
        assert draining.is_pending
        assert manager.statistics().operations == 1

        connector.links[0].client.proceed.set()
        assert (await running.well()).stdout == b"long"
        await draining.well()
        assert isinstance(await (await start_wait(nursery, environment)).error(), EnvironmentClosed)
        assert connector.open_links == []


async def test_draining_ends_after_its_grace_whatever_operations_do(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        connector.links[0].interrupt()
        running = await start(nursery, environment.info)
        began_s = trio.current_time()
        await manager.drain(grace_s=20)

        assert trio.current_time() - began_s == 20
        assert isinstance(await running.error(), EnvironmentClosed)


async def test_the_manager_belongs_to_its_run(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        for call in (
            lambda: manager.upsert("a", FailingProvider()),
            lambda: manager.publish_ready_info("a", ReadyInfo()),
        ):
            with pytest.raises(NotInThisRun):
                await trio.to_thread.run_sync(call)

        assert manager.environment_ids == ()


async def test_events_tell_the_whole_life_in_order(autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager, manager.events() as events:
        with manager.register_deferred("tools", ScriptedProvider()) as registration:
            environment = found(manager, "tools")
            manager.publish_ready_info("tools", ReadyInfo())
            registration.complete(ReadyInfo())
        await environment.wait_until_ready()
        manager.upsert("tools", FailingProvider())
        await environment.aclose()

        told = []
        while not isinstance(told[-1] if told else None, EnvironmentEnded):
            told.append(events.receive_nowait())
        assert [event.position for event in told] == [*range(1, len(told) + 1)]
        first = [event for event in told if event.generation == 1]
        assert [type(event) for event in first] == [
            EnvironmentRegistered, ReadyInfoReplaced, GateMoved, ConnectionMoved,
            EnvironmentSuperseded, EnvironmentEnded,
        ]  # fmt: skip
        assert [event.phase for event in first if isinstance(event, ConnectionMoved)] == [Phase.CONNECTED]


async def test_a_slow_listener_is_told_how_much_it_missed_and_the_stream_ends_with_the_manager(
    autojump_clock,
) -> None:
    async with open_manager_in_memory() as manager, manager.events(capacity=2) as events:
        for number in range(5):
            manager.materialize(f"env-{number}", FailingProvider())
        told = [await anext(events) for _ in range(3)]
        assert told[0] == EventsMissed(missed=3, position=4)
        assert [event.environment_id for event in told[1:]] == ["env-3", "env-4"]  # type: ignore[union-attr]
        assert events.missed == 3
        await manager.aclose()

        assert len([event async for event in events]) > 0
        with pytest.raises(trio.WouldBlock):
            events.receive_nowait()


async def test_a_listener_without_room_is_refused(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(InvalidOption, match="capacity"):
            manager.events(capacity=0)


async def test_statistics_count_what_happened(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        first = manager.register_deferred("a", FailingProvider())
        held = found(manager, "a")
        manager.register_deferred("a", FailingProvider()).abandon()
        first.complete(ReadyInfo())
        await wait_all_tasks_blocked()
        statistics = manager.statistics()

        assert held.superseded
        assert (statistics.registered, statistics.superseded, statistics.late_completions) == (2, 1, 1)
        assert (statistics.ready, statistics.abandoned, statistics.attempts) == (1, 1, 1)
        assert (statistics.current, statistics.alive) == (1, 2)


async def test_what_was_replaced_and_let_go_is_freed(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        gone = [weakref.ref(manager.upsert("tools", ScriptedProvider())) for _ in range(50)]
        await wait_all_tasks_blocked()
        gc.collect()

        assert [reference() for reference in gone[:-1]] == [None] * 49
        assert gone[-1]() is manager.get("tools")
        assert manager.statistics().alive == 1


async def test_a_failed_environment_that_was_let_go_is_freed_without_the_cycle_collector(autojump_clock) -> None:
    gc.disable()
    try:
        async with open_manager_in_memory() as manager:
            provider = FailingProvider()
            with contextlib.suppress(ConnectFailed):
                await manager.upsert("tools", provider).wait_until_ready()
            await manager.remove("tools")
            await wait_all_tasks_blocked()

            assert manager.statistics().alive == 0
    finally:
        gc.enable()


@pytest.mark.slow
async def test_ten_thousand_replacements_leave_no_growth() -> None:
    async with open_manager_in_memory() as manager:
        for round_ in range(3):
            for _ in range(5_000):
                manager.materialize("tools", FailingProvider())
                await manager.remove("tools")
            objects = kept_objects()
            if round_ == 1:
                settled = objects

        assert manager.statistics().alive == 0
        assert objects - settled < 500


def kept_objects() -> int:
    """Count what is alive, but for trio's deadlines.

    Of those that have passed trio keeps up to a thousand, each a scope in a tuple; how many depends on the time of day.
    """
    gc.collect()
    return sum(type(thing) is not tuple and type(thing) is not trio.CancelScope for thing in gc.get_objects())
