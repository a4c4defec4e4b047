"""OTP cases 10 to 17: adding, stopping, restarting and deleting by hand."""

import gc
import time

import pytest
import trio
import trio.testing

import supervision as sv
from tests.supervision.players import Stage, quiet, running, states


async def test_otp_10_a_name_that_runs_is_already_started_and_one_that_is_stopped_already_present() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        await root.start_child(stage.spec("a"))
        with pytest.raises(sv.AlreadyStarted) as started:
            await root.start_child(stage.spec("a"))
        await root.stop_child("a")
        with pytest.raises(sv.AlreadyPresent, match="restart_child"):
            await root.start_child(stage.spec("a"))

        assert started.value.path == "root/a"
        assert stage.starts["a"] == 1


async def test_otp_11_stopping_twice_is_fine_and_an_unknown_name_is_not_found() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        await root.start_child(stage.spec("a"))
        before = root.statistics()
        await root.stop_child("a")
        await root.stop_child("a")
        after = root.statistics()
        with pytest.raises(sv.ChildNotFound):
            await root.stop_child("b")

        assert (before.children, before.active) == (1, 1)
        assert (after.children, after.active) == (1, 0)


async def test_otp_12_only_a_stopped_child_can_be_deleted_or_restarted() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        child = await root.start_child(stage.spec("a"))
        with pytest.raises(sv.ChildIsRunning):
            root.delete_child("a")
        with pytest.raises(sv.ChildIsRunning):
            await root.restart_child("a")
        await root.stop_child("a")
        root.delete_child("a")
        with pytest.raises(sv.ChildNotFound):
            await root.restart_child("a")
        with pytest.raises(sv.ChildNotFound):
            root.delete_child("a")

        assert child.state is sv.ChildState.GONE
        await root.start_child(stage.spec("a"))
        assert running(root) == ["a"]


async def test_otp_13_a_pool_stops_by_handle_and_a_handle_of_another_supervisor_harms_nobody() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        pool, other = await root.start_pool("pool"), await root.start_pool("other")
        mine, theirs = await pool.start_child(stage.spec("a")), await other.start_child(stage.spec("b"))
        await pool.stop_child(theirs)
        after_strange = (running(pool), running(other))
        await pool.stop_child(mine)
        await pool.stop_child(mine)

        assert after_strange == (["a"], ["b"])
        assert len(pool) == 0
        assert not hasattr(pool, "restart_child")
        assert not hasattr(pool, "delete_child")


async def test_otp_15_in_a_restart_loop_a_child_shows_as_restarting_and_stop_ends_the_loop(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stage = Stage()
    backoff = sv.Backoff(first_s=1.0, max_s=1.0, jitter=0.0)
    async with sv.open_root(intensity=sv.RestartIntensity(5, 60.0)) as root:
        await root.start_child(stage.spec("a", backoff=backoff))
        stage.failing["a"] = 100
        stage.crash("a")
        await quiet()
        shown, active = states(root), root.statistics().active
        with pytest.raises(sv.ChildIsRestarting):
            root.delete_child("a")
        with pytest.raises(sv.ChildIsRestarting):
            await root.restart_child("a")
        await root.stop_child("a")
        stopped_at = trio.current_time()
        await trio.sleep(10)

        assert (shown, active) == ({"a": "restarting"}, 0)
        assert stopped_at == 0.0
        assert states(root) == {"a": "stopped"}
        assert stage.log.count("a fails to start") == 0


async def test_otp_16_the_counts_of_many_dynamic_children_are_exact_and_all_is_forgotten() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        children = [pool.start_child_nowait(stage.spec(f"{i}", restart=sv.Restart.TEMPORARY)) for i in range(1000)]
        await quiet()
        first = pool.statistics()
        children += [
            pool.start_child_nowait(stage.spec(f"{i + 1000}", restart=sv.Restart.TEMPORARY)) for i in range(1000)
        ]
        await quiet()
        listed = [child.name for child in pool.children()]
        for child in children:
            stage.crash(child.name)
        await quiet()

        assert (first.children, first.active) == (1000, 1000)
        assert listed == [f"{i}" for i in range(2000)]
        assert len(pool) == 0
        assert pool.statistics().active_peak == 2000


@pytest.mark.slow
async def test_otp_17_a_hundred_times_the_children_take_about_a_hundred_times_the_time() -> None:
    async def cost(count: int) -> float:
        stage = Stage()
        async with sv.open_root() as root:
            pool = await root.start_pool("pool")
            gc.collect()
            begin = time.process_time()
            for i in range(count):
                pool.start_child_nowait(stage.spec(f"{i}", restart=sv.Restart.TEMPORARY))
            await quiet()
        return (time.process_time() - begin) / count

    few, many = min([await cost(50) for _ in range(9)]), min([await cost(5_000) for _ in range(2)])

    assert many < 5 * few


async def test_a_child_stopped_while_it_starts_never_comes_up_and_its_starter_is_told() -> None:
    async def slow(*, task_status: sv.ChildStatus[None]) -> None:
        await trio.sleep_forever()

    async with sv.open_root() as root, trio.open_nursery() as nursery:
        child = root.start_child_nowait(sv.ChildSpec("a", slow))

        async def waits() -> None:
            with pytest.raises(sv.StartAborted):
                await child.wait_started()

        nursery.start_soon(waits)
        await quiet()
        await root.stop_child(child)

        assert root.children() == ()


async def test_a_restart_asked_while_the_child_stops_waits_and_then_starts_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stage = Stage()
    async with sv.open_root() as root, trio.open_nursery() as nursery:
        await root.start_child(stage.spec("a", clean_up_s=2.0))
        nursery.start_soon(root.stop_child, "a")
        await quiet()
        child = await root.restart_child("a")

        assert trio.current_time() == 2.0
        assert child.generation == 2
        assert stage.log == ["a starts", "a is cancelled", "a ends", "a starts"]


async def test_a_handle_can_ask_for_its_own_stop_without_waiting() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        child = await root.start_child(stage.spec("a"))
        child.request_stop()
        child.request_stop()
        state = child.state
        await child.wait_stopped()
        child.request_stop()

        assert state is sv.ChildState.STOPPING
        assert child.state is sv.ChildState.STOPPED


async def test_a_closed_supervisor_refuses_commands_with_its_path() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        sub = await root.start_supervisor("sub")
        await root.stop_child("sub")

        with pytest.raises(sv.SupervisorClosed, match="root/sub"):
            sub.start_child_nowait(stage.spec("a"))
    with pytest.raises(sv.SupervisorClosed, match="root "):
        await root.start_child(stage.spec("a"))
    with pytest.raises(sv.SupervisorClosed):
        await root.stop_child("a")
    with pytest.raises(sv.SupervisorClosed):
        root.delete_child("a")

    assert stage.log == []


async def test_a_child_spawned_while_its_parent_closes_is_refused_not_orphaned() -> None:
    refused: list[Exception] = []

    async with sv.open_root() as root:

        async def spawner(*, task_status: sv.ChildStatus[None]) -> None:
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                try:
                    root.start_child_nowait(Stage().spec("late"))
                except sv.SupervisorClosed as error:
                    refused.append(error)

        await root.start_child(sv.ChildSpec("a", spawner))

    assert len(refused) == 1


async def test_a_stop_callback_may_command_its_own_supervisor() -> None:
    stage = Stage()
    done = trio.Event()

    async with sv.open_root() as root:

        async def handing_over(*, task_status: sv.ChildStatus[None]) -> None:
            def hand_over() -> None:
                root.start_child_nowait(stage.spec("heir"))
                done.set()

            task_status.on_stop(hand_over)
            task_status.started()
            await done.wait()

        await root.start_child(sv.ChildSpec("a", handing_over))
        await root.stop_child("a")
        await quiet()

        assert states(root) == {"a": "stopped", "heir": "running"}
