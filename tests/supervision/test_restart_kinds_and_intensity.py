"""OTP cases 18 to 26 and case P06: who comes back, how often, and what happens when it is too often."""

# ruff: noqa: PT012
# Here what raises is the whole block: leaving it is the act under test.

import gc
import traceback
import weakref

import pytest
import trio
import trio.testing

import supervision as sv
from tests.supervision.players import Boom, Stage, quiet, running, states


@pytest.mark.parametrize("error", [None, sv.Shutdown(), Boom()])
async def test_otp_18_a_permanent_child_comes_back_whatever_ended_it(error: Exception | None) -> None:
    stage = Stage()
    async with sv.open_root() as root:
        child = await root.start_child(stage.spec("a"))
        stage.end("a", error)
        await quiet()

        assert (child.state, child.generation) == (sv.ChildState.RUNNING, 2)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (None, "stopped"),
        (sv.Shutdown(), "stopped"),
        (sv.Shutdown("moving house"), "stopped"),
        (ExceptionGroup("", [sv.Shutdown(), sv.Shutdown()]), "stopped"),
        (ExceptionGroup("", [sv.Shutdown(), Boom()]), "running"),
        (Boom(), "running"),
    ],
)
async def test_otp_19_a_transient_child_comes_back_only_after_a_crash(error: Exception | None, state: str) -> None:
    stage = Stage()
    async with sv.open_root() as root:
        await root.start_child(stage.spec("a", restart=sv.Restart.TRANSIENT))
        stage.end("a", error)
        await quiet()

        assert states(root) == {"a": state}


@pytest.mark.parametrize("error", [None, sv.Shutdown(), Boom()])
async def test_otp_20_a_temporary_child_never_comes_back_and_is_forgotten(error: Exception | None) -> None:
    stage = Stage()
    async with sv.open_root() as root:
        child = await root.start_child(stage.spec("a", restart=sv.Restart.TEMPORARY))
        stage.end("a", error)
        await quiet()

        assert root.children() == ()
        assert child.state is sv.ChildState.GONE
        assert stage.starts["a"] == 1


@pytest.mark.parametrize("strategy", [sv.Strategy.ONE_FOR_ALL, sv.Strategy.REST_FOR_ONE])
async def test_otp_21_a_temporary_bystander_is_gone_and_counts_for_nothing(strategy: sv.Strategy) -> None:
    stage = Stage()
    async with sv.open_root(strategy=strategy, intensity=sv.RestartIntensity(1, 60.0)) as root:
        await root.start_child(stage.spec("a"))
        await root.start_child(stage.spec("b", restart=sv.Restart.TEMPORARY))
        stage.crash("a")
        await quiet()

        assert running(root) == ["a"]
        assert root.statistics().restarts == 1


async def test_otp_22_what_a_temporary_child_was_started_with_is_not_kept() -> None:
    class Big:
        pass

    async def takes(big: Big, *, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()

    async with sv.open_root() as root:
        big = Big()
        trace = weakref.ref(big)
        await root.start_child(sv.ChildSpec("a", takes, big, restart=sv.Restart.TEMPORARY))
        pool = await root.start_pool("pool")
        await pool.start_child(sv.ChildSpec("b", takes, big, restart=sv.Restart.TRANSIENT))
        await quiet()
        del big
        gc.collect()

        assert trace() is None


async def test_a_finished_child_of_a_pool_is_freed_without_the_garbage_collector() -> None:
    class Big:
        pass

    async def takes(big: Big, *, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()

    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        big = Big()
        trace = weakref.ref(big)
        gc.collect()
        gc.disable()
        try:
            await pool.start_child(sv.ChildSpec("b", takes, big, restart=sv.Restart.TEMPORARY))
            del big
            await quiet()
            alive = trace()
        finally:
            gc.enable()

        assert alive is None


async def test_otp_23_the_window_slides_so_a_slow_crasher_is_restarted_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stage = Stage()
    async with sv.open_root(intensity=sv.RestartIntensity(1, 1.0)) as root:
        await root.start_child(stage.spec("a"))
        for _ in range(20):
            await trio.sleep(2.1)
            stage.crash("a")

        await quiet()
        assert stage.starts["a"] == 21


async def test_a_restart_exactly_one_period_old_still_counts(autojump_clock: trio.testing.MockClock) -> None:
    stage = Stage()
    with pytest.raises(sv.RestartIntensityExceeded):
        async with sv.open_root(intensity=sv.RestartIntensity(1, 1.0)) as root:
            await root.start_child(stage.spec("a"))
            stage.crash("a")
            await trio.sleep(1.0)
            stage.crash("a")
            await trio.sleep_forever()

    assert stage.starts["a"] == 2


@pytest.mark.parametrize("strategy", list(sv.Strategy))
async def test_otp_24_the_third_crash_of_any_children_ends_the_supervisor_in_reverse_order(
    strategy: sv.Strategy,
) -> None:
    stage = Stage()
    with pytest.raises(sv.RestartIntensityExceeded) as caught:
        async with sv.open_root(strategy=strategy, intensity=sv.RestartIntensity(2, 3600.0)) as root:
            for name in "abc":
                await root.start_child(stage.spec(name))
            booms: list[BaseException] = []
            for name in "abc":
                stage.since()
                booms.append(stage.crash(name))
                await quiet()
            await trio.sleep_forever()

    assert list(caught.value.causes) == booms
    assert [death.child for death in caught.value.deaths] == ["a", "b", "c"]
    assert stage.log == ["c ends", "b is cancelled", "b ends", "a is cancelled", "a ends"]


async def test_no_restart_at_all_is_a_budget_too() -> None:
    stage = Stage()
    with pytest.raises(sv.RestartIntensityExceeded):
        async with sv.open_root(intensity=sv.RestartIntensity(0, 1.0)) as root:
            await root.start_child(stage.spec("a"))
            stage.crash("a")
            await trio.sleep_forever()

    assert stage.starts["a"] == 1


async def test_otp_25_each_failed_attempt_counts_and_siblings_are_stopped_at_the_end() -> None:
    stage = Stage()
    with pytest.raises(sv.RestartIntensityExceeded) as caught:
        async with sv.open_root(intensity=sv.RestartIntensity(3, 3600.0)) as root:
            await root.start_child(stage.spec("a"))
            await root.start_child(stage.spec("b"))
            stage.failing["a"] = 100
            stage.crash("a")
            await trio.sleep_forever()

    assert stage.log.count("a fails to start") == 3
    assert stage.log[-2:] == ["b is cancelled", "b ends"]
    assert len(caught.value.deaths) == 4


@pytest.mark.parametrize("strategy", list(sv.Strategy))
async def test_otp_26_between_attempts_a_supervisor_answers_and_obeys_a_stop(strategy: sv.Strategy) -> None:
    stage = Stage()
    answered: list[str] = []
    async with sv.open_root(strategy=strategy, intensity=sv.RestartIntensity(100_000, 3600.0)) as root:
        await root.start_child(stage.spec("a"))
        stage.failing["a"] = 1_000_000
        stage.crash("a")
        for _ in range(50):
            await trio.lowlevel.checkpoint()
        await root.start_child(stage.spec("b"))
        answered.append("start b")
        await root.stop_child("a")
        stage.failing.clear()

        assert answered == ["start b"]
        assert states(root) == {"a": "stopped", "b": "running"}
        assert root.statistics().restarts > 2


async def test_otp_26_the_same_in_a_pool_under_steady_traffic() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        pool = await root.start_pool("pool", intensity=sv.RestartIntensity(100_000, 3600.0))
        child = await pool.start_child(stage.spec("a"))
        stage.failing["a"] = 10
        stage.crash("a")
        for _ in range(2_000):
            await pool.stop_child(await pool.start_child(stage.spec("b")))

        assert child.state is sv.ChildState.RUNNING, "commands must not starve a restart for ever"


# --- Backoff and case P06 ---


async def test_p06_a_crash_loop_keeps_its_count_and_ends_with_the_budget(
    autojump_clock: trio.testing.MockClock,
) -> None:
    deaths: list[float] = []
    told: list[sv.Event] = []
    backoff = sv.Backoff(first_s=0.1, factor=2.0, max_s=30.0, jitter=0.1, healthy_s=60.0)

    async def killed_for_memory(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        await trio.sleep(4.0)
        deaths.append(trio.current_time())
        raise MemoryError

    async with sv.open_root() as root, root.events() as events, trio.open_nursery() as nursery:
        sub = await root.start_supervisor("sub", intensity=sv.RestartIntensity(5, 60.0), restart=sv.Restart.TEMPORARY)

        async def listen() -> None:
            async for event in events:
                told.append(event)  # noqa: PERF401  # One by one: the reader is cancelled in the end.

        nursery.start_soon(listen)
        await sub.start_child(sv.ChildSpec("env", killed_for_memory, backoff=backoff))
        await trio.sleep(600)
        nursery.cancel_scope.cancel()

    delays = [event.delay_s for event in told if isinstance(event, sv.ChildRestarting)]
    assert len(deaths) == 6
    assert len(delays) == 5
    assert all(0.9 * 0.1 * 2**i <= delay <= 1.1 * 0.1 * 2**i for i, delay in enumerate(delays))
    assert len({delay / 2**i for i, delay in enumerate(delays)}) > 1, "there is jitter"
    [end] = [event for event in told if isinstance(event, sv.ChildExited) and event.path == "root/sub"]
    assert isinstance(end.cause, sv.RestartIntensityExceeded)
    assert [death.at_s for death in end.cause.deaths] == deaths
    assert all(isinstance(cause, MemoryError) for cause in end.cause.causes)


async def test_p06_a_healthy_time_clears_the_history_and_less_does_not(autojump_clock: trio.testing.MockClock) -> None:
    stage = Stage()
    backoff = sv.Backoff(first_s=1.0, factor=2.0, max_s=64.0, jitter=0.0, healthy_s=10.0)
    delays: list[float] = []
    async with sv.open_root(intensity=sv.RestartIntensity(5, 500.0)) as root, root.events() as events:
        await root.start_child(stage.spec("a", backoff=backoff))
        for uptime_s in (1.0, 9.0, 10.0, 1.0):
            await trio.sleep(uptime_s)
            stage.crash("a")
            await quiet()
            while True:
                try:
                    event = events.receive_nowait()
                except trio.WouldBlock:
                    break
                if isinstance(event, sv.ChildRestarting):
                    delays.append(event.delay_s)
            await trio.sleep(delays[-1])

    assert delays == [1.0, 2.0, 1.0, 2.0]


def test_p06_a_backoff_that_could_never_use_up_the_budget_is_refused_when_made() -> None:
    slow = sv.Backoff(first_s=1.0, factor=2.0, max_s=30.0, jitter=0.0)
    spec = Stage().spec("a", backoff=slow)

    # Five restarts take at least 1 + 2 + 4 + 8 + 16 = 31 s.
    sv.SupervisorSpec(name="s", children=(spec,), intensity=sv.RestartIntensity(5, 31.0))
    with pytest.raises(sv.InvalidSpec, match="could never be reached"):
        sv.SupervisorSpec(name="s", children=(spec,), intensity=sv.RestartIntensity(5, 30.9))


async def test_p06_the_same_is_refused_when_the_child_is_added() -> None:
    async with sv.open_root(intensity=sv.RestartIntensity(5, 5.0)) as root:
        with pytest.raises(sv.InvalidSpec, match="lengthen period_s"):
            root.start_child_nowait(Stage().spec("a", backoff=sv.Backoff(first_s=2.0)))

        assert root.children() == ()


async def test_waiting_in_a_backoff_costs_nothing_of_the_budget(autojump_clock: trio.testing.MockClock) -> None:
    stage = Stage()
    backoff = sv.Backoff(first_s=1.0, factor=1.0, max_s=1.0, jitter=0.0)
    async with sv.open_root(intensity=sv.RestartIntensity(3, 60.0)) as root:
        await root.start_child(stage.spec("a", backoff=backoff))
        stage.failing["a"] = 2
        stage.crash("a")
        await trio.sleep(10)

        assert states(root) == {"a": "running"}
        assert root.statistics().restarts_in_window == 3


@pytest.mark.parametrize("strategy", [sv.Strategy.ONE_FOR_ALL, sv.Strategy.REST_FOR_ONE])
async def test_a_backoff_in_a_group_delays_the_whole_group(
    strategy: sv.Strategy, autojump_clock: trio.testing.MockClock
) -> None:
    stage = Stage()
    backoff = sv.Backoff(first_s=1.0, factor=1.0, max_s=1.0, jitter=0.0)
    async with sv.open_root(strategy=strategy, intensity=sv.RestartIntensity(3, 60.0)) as root:
        await root.start_child(stage.spec("a", backoff=backoff))
        await root.start_child(stage.spec("b"))
        stage.since()
        stage.crash("a")
        await quiet()
        meanwhile = (states(root), stage.since())
        await trio.sleep(1.5)

        assert meanwhile == ({"a": "restarting", "b": "stopped"}, ["a ends", "b is cancelled", "b ends"])
        assert stage.log == ["a starts", "b starts"]


async def test_a_sibling_waiting_for_its_group_is_down_for_good_only_when_no_attempt_is_due(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stage = Stage()
    gone: list[str] = []
    backoff = sv.Backoff(first_s=1.0, factor=1.0, max_s=1.0, jitter=0.0)
    async with sv.open_root(strategy=sv.Strategy.ONE_FOR_ALL, intensity=sv.RestartIntensity(3, 60.0)) as root:
        await root.start_child(stage.spec("a", backoff=backoff))
        await root.start_child(stage.spec("b", on_gone=lambda _: gone.append("b")))
        stage.crash("a")
        await quiet()
        before = gone[:]
        await root.stop_child("a")
        await trio.sleep(5)

        assert before == []
        assert gone == ["b"]
        assert states(root) == {"a": "stopped", "b": "stopped"}


async def test_giving_up_is_caused_by_the_last_death_with_its_traceback(autojump_clock: trio.testing.MockClock) -> None:
    async def breaks(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        await trio.sleep(1)
        raise KeyError("the user's own")

    with pytest.raises(sv.RestartIntensityExceeded) as caught:
        async with sv.open_root(intensity=sv.RestartIntensity(restarts=1, period_s=60)) as root:
            await root.start_child(sv.ChildSpec("worker", breaks))
            await trio.sleep_forever()

    cause = caught.value.__cause__
    assert isinstance(cause, KeyError)
    assert cause is caught.value.deaths[-1].cause
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)][-1] == "breaks"
    assert "worker (generation 1) 1 s before the end: KeyError" in str(caught.value)
    assert "worker (generation 2) 0 s before the end: KeyError" in str(caught.value)
