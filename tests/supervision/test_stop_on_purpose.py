"""Case P05: what was stopped on purpose is never brought back, in no order of the steps."""

from itertools import permutations

import pytest
import trio
import trio.testing

import supervision as sv
from tests.supervision.players import Boom, Stage, quiet, states


@pytest.mark.parametrize("strategy", list(sv.Strategy))
@pytest.mark.parametrize("error", [None, Boom()])
@pytest.mark.parametrize("order", list(permutations(["stop", "exit", "look", "sibling"])))
async def test_p05_no_order_of_stop_exit_look_and_a_siblings_crash_brings_it_back(
    order: tuple[str, ...], error: Exception | None, strategy: sv.Strategy
) -> None:
    stage = Stage()
    async with sv.open_root(strategy=strategy, intensity=sv.RestartIntensity(100, 3600.0)) as root:
        child = await root.start_child(stage.spec("environment"))
        # Before it in no group but ONE_FOR_ALL's; there, and only there, it may rise again with its group.
        await root.start_child(stage.spec("sibling"))
        stopped = trio.Event()

        async def stop() -> None:
            await root.stop_child("environment")
            stopped.set()

        starts_at_stop: int | None = None
        async with trio.open_nursery() as nursery:
            for step in order:
                match step:
                    case "stop":
                        starts_at_stop = stage.starts["environment"]
                        child.request_stop()
                        nursery.start_soon(stop)
                    case "exit":
                        stage.end("environment", error)
                    case "look":
                        root.tree()
                    case "sibling":
                        if strategy is not sv.Strategy.ONE_FOR_ALL:
                            stage.crash("sibling")
            await stopped.wait()
        await quiet()

        assert starts_at_stop == 1
        assert stage.starts["environment"] == 1, "no new generation after the stop was requested"
        assert child.state is sv.ChildState.STOPPED
        # Automatic restart works again after an explicit start.
        await root.restart_child("environment")
        stage.crash("environment")
        await quiet()
        assert child.state is sv.ChildState.RUNNING
        assert stage.starts["environment"] == 3


@pytest.mark.parametrize("turns", range(2, 9))
async def test_p05_a_stop_at_any_turn_of_a_group_restart_is_final(turns: int) -> None:
    stage = Stage()
    async with sv.open_root(strategy=sv.Strategy.REST_FOR_ONE) as root:
        for name in "abc":
            await root.start_child(stage.spec(name))
        stage.crash("a")
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        begun = stage.starts["b"]
        child = root.child("b")
        assert child is not None
        child.request_stop()
        await quiet()

        assert stage.starts["b"] == begun
        assert states(root) == {"a": "running", "b": "stopped", "c": "running"}


@pytest.mark.parametrize("strategy", [sv.Strategy.ONE_FOR_ALL, sv.Strategy.REST_FOR_ONE])
async def test_a_stopped_child_comes_back_with_its_group_when_another_crashes_later(strategy: sv.Strategy) -> None:
    """OTP's rule, and the one exception to P05: the group is started as it was made. Delete a child to keep it out."""
    stage = Stage()
    async with sv.open_root(strategy=strategy) as root:
        for name in "ab":
            await root.start_child(stage.spec(name))
        await root.stop_child("b")
        stage.crash("a")
        await quiet()

        assert states(root) == {"a": "running", "b": "running"}


async def test_p05_a_stop_requested_before_the_first_step_means_the_function_is_never_entered() -> None:
    entered: list[bool] = []

    async def run(*, task_status: sv.ChildStatus[None]) -> None:
        entered.append(True)

    async with sv.open_root() as root:
        child = root.start_child_nowait(sv.ChildSpec("a", run))
        child.request_stop()
        await child.wait_stopped()

        assert entered == []
        assert child.state is sv.ChildState.GONE


async def test_p05_a_stop_during_a_backoff_ends_the_loop(autojump_clock: trio.testing.MockClock) -> None:
    stage = Stage()
    intensity = sv.RestartIntensity(5, 60.0)
    async with sv.open_root(intensity=intensity) as root:
        child = await root.start_child(stage.spec("a", backoff=sv.Backoff(first_s=1.0)))
        stage.crash("a")
        await trio.sleep(0.5)
        await root.stop_child("a")
        await trio.sleep(60)

        assert child.state is sv.ChildState.STOPPED
        assert stage.starts["a"] == 1


async def test_p05_the_stop_of_a_supervisor_restarts_none_on_the_way(autojump_clock: trio.testing.MockClock) -> None:
    stage = Stage()
    async with sv.open_root() as root:
        sub = await root.start_supervisor("sub")
        await sub.start_child(stage.spec("a"))
        await sub.start_child(stage.spec("b", clean_up_s=3.0))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(root.stop_child, "sub")
            await trio.sleep(1.0)
            stage.crash("a")

    assert stage.log == ["a starts", "b starts", "b is cancelled", "a ends", "b ends"]
