"""Case P20: what the user catches depends on what the user's code raised, never on our nurseries."""

# ruff: noqa: PT012
# Here what raises is the whole block: leaving it is the act under test.

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio

import supervision as sv
from tests.supervision.players import Boom, NotYet, Stage, quiet


class E(Exception):
    pass


class F(Exception):
    pass


@asynccontextmanager
async def below(levels: int) -> AsyncIterator[tuple[sv.Supervisor, str]]:
    """Open a root and a chain of supervisors below it; give the lowest."""
    async with sv.open_root() as root:
        lowest = root
        for level in range(1, levels):
            lowest = await lowest.start_supervisor(f"level{level}")
        yield lowest, lowest.path


async def raises_before(error: BaseException, *, task_status: sv.ChildStatus[None]) -> None:
    raise error


async def raises_after(error: BaseException, *, task_status: sv.ChildStatus[None]) -> None:
    task_status.started()
    raise error


both_ways = pytest.mark.parametrize("strict", [True, False])


def run(main: Any, strict: bool) -> None:
    if strict:
        trio.run(main)
    else:
        with pytest.warns(trio.TrioDeprecationWarning):
            trio.run(main, strict_exception_groups=False)


@both_ways
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_an_error_before_started_is_one_typed_error_whose_cause_is_that_error(levels: int, strict: bool) -> None:
    async def main() -> None:
        error = E("early")
        async with below(levels) as (supervisor, path):
            with pytest.raises(sv.StartFailed) as caught:
                await supervisor.start_child(sv.ChildSpec("a", raises_before, error))

            assert caught.value.__cause__ is error
            assert caught.value.path == f"{path}/a"

    run(main, strict)


@both_ways
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_an_error_just_after_started_is_a_crash_and_never_the_starters(levels: int, strict: bool) -> None:
    async def main() -> None:
        error = E("late")
        async with below(levels) as (supervisor, path):
            child = await supervisor.start_child(sv.ChildSpec("a", raises_after, error, restart=sv.Restart.TEMPORARY))
            await quiet()

            assert child.path == f"{path}/a"
            assert child.state is sv.ChildState.GONE

    run(main, strict)


@both_ways
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_group_before_started_is_the_cause_whole(levels: int, strict: bool) -> None:
    async def main() -> None:
        group = ExceptionGroup("mine", [E(), ExceptionGroup("inner", [F()])])
        async with below(levels) as (supervisor, _):
            with pytest.raises(sv.StartFailed) as caught:
                await supervisor.start_child(sv.ChildSpec("a", raises_before, group))

            assert caught.value.__cause__ is group

    run(main, strict)


@pytest.mark.parametrize("levels", [1, 2, 3])
async def test_a_failing_static_list_names_the_innermost_child_with_its_own_cause(levels: int) -> None:
    error = E("deep")
    spec: sv.ChildSpec | sv.SupervisorSpec = sv.ChildSpec("a", raises_before, error)
    for level in range(levels, 1, -1):
        spec = sv.SupervisorSpec(name=f"level{level}", children=(spec,))

    with pytest.raises(sv.StartFailed) as caught:
        async with sv.open_root(children=(spec,)):
            raise AssertionError("the block must not be entered")

    assert caught.value.__cause__ is error
    assert caught.value.path == "/".join(["root", *(f"level{level}" for level in range(2, levels + 1)), "a"])


async def test_a_start_cancelled_from_outside_is_a_cancel_and_leaves_nothing() -> None:
    async def slow(*, task_status: sv.ChildStatus[None]) -> None:
        await trio.sleep_forever()

    async with sv.open_root() as root:
        with trio.CancelScope() as scope:
            scope.cancel()
            await root.start_child(sv.ChildSpec("a", slow))
        await quiet()

        assert scope.cancelled_caught
        assert root.children() == ()


async def test_two_of_three_siblings_that_fail_to_start_in_one_step_each_tell_their_own_starter() -> None:
    causes: list[BaseException | None] = []
    errors = [E("one"), F("two")]
    stage = Stage()

    async with sv.open_root() as root:

        async def start(spec: sv.ChildSpec) -> None:
            try:
                await root.start_child(spec)
            except sv.StartFailed as failed:
                causes.append(failed.__cause__)

        async with trio.open_nursery() as nursery:
            for i, error in enumerate(errors):
                nursery.start_soon(start, sv.ChildSpec(f"{i}", raises_before, error))
            nursery.start_soon(start, stage.spec("third"))

        assert sorted(map(repr, causes)) == sorted(map(repr, errors))
        assert [child.name for child in root.children()] == ["third"]


@both_ways
@pytest.mark.parametrize("error", [E("plain"), ExceptionGroup("mine", [E(), F()]), KeyboardInterrupt()])
def test_what_the_block_raises_comes_out_as_it_is(error: BaseException, strict: bool) -> None:
    async def main() -> None:
        stage = Stage()
        with pytest.raises(type(error)) as caught:
            async with sv.open_root() as root:
                await root.start_child(stage.spec("a"))
                raise error

        assert caught.value is error
        assert stage.log[-1] == "a ends"

    run(main, strict)


@both_ways
def test_giving_up_comes_out_plain_with_the_last_causes(strict: bool) -> None:
    async def main() -> None:
        error = E("again")
        with pytest.raises(sv.RestartIntensityExceeded) as caught:
            async with sv.open_root() as root:
                await root.start_child(sv.ChildSpec("a", raises_after, error))
                await trio.sleep_forever()

        assert caught.value.causes == (error,) * 4
        assert (caught.value.path, caught.value.restarts, caught.value.period_s) == ("root", 3, 5.0)
        assert "a (generation 4)" in str(caught.value)

    run(main, strict)


async def test_when_the_block_fails_while_the_supervisor_gives_up_both_come_out_and_nothing_else() -> None:
    mine = E("clean-up failed")

    with pytest.raises(ExceptionGroup) as caught:
        async with sv.open_root(intensity=sv.RestartIntensity(0, 1.0)) as root:
            await root.start_child(sv.ChildSpec("a", raises_after, F()))
            try:
                await trio.sleep_forever()
            finally:
                raise mine

    assert caught.value.exceptions[0] is mine
    assert isinstance(caught.value.exceptions[1], sv.RestartIntensityExceeded)
    assert len(caught.value.exceptions) == 2


async def test_a_cancel_from_outside_and_a_failure_in_one_step_leave_the_failure_visible() -> None:
    scope = trio.CancelScope()

    async def cancels_and_fails(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        await trio.lowlevel.checkpoint()
        scope.cancel()
        raise F("meanwhile")

    with pytest.raises((ExceptionGroup, sv.RestartIntensityExceeded)) as caught, scope:
        async with sv.open_root(intensity=sv.RestartIntensity(0, 1.0)) as root:
            await root.start_child(sv.ChildSpec("a", cancels_and_fails))
            await trio.sleep_forever()

    [leaf] = leaves_of(caught.value)
    assert isinstance(leaf, sv.RestartIntensityExceeded)
    assert isinstance(leaf.causes[0], F)


def leaves_of(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves_of(inner)]
    return [error]


async def test_a_cancel_from_outside_stays_a_cancel() -> None:
    stage = Stage()
    with trio.CancelScope() as scope:
        async with sv.open_root() as root:
            await root.start_child(stage.spec("a"))
            await root.start_child(stage.spec("b"))
            scope.cancel()
            await trio.sleep_forever()

    assert scope.cancelled_caught
    assert stage.log[2:] == ["b is cancelled", "b ends", "a is cancelled", "a ends"]


async def test_a_crash_during_the_stop_is_an_event_not_an_error_of_the_block() -> None:
    async def crashes_when_stopped(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            raise E("clean-up")

    async with AsyncExitStack() as stack:
        root = await stack.enter_async_context(sv.open_root())
        await root.start_child(sv.ChildSpec("a", crashes_when_stopped))
        events = await stack.enter_async_context(root.events())
        await root.stop_child("a")

        kinds = []
        while True:
            try:
                kinds.append(events.receive_nowait())
            except trio.WouldBlock:
                break
        [end] = [event for event in kinds if isinstance(event, sv.ChildExited)]
        assert isinstance(end.cause, E)
        assert end.asked


@pytest.mark.parametrize("error", [KeyboardInterrupt("c"), SystemExit(3)])
async def test_an_exit_of_the_interpreter_raised_in_a_child_is_never_swallowed(error: BaseException) -> None:
    stage = Stage()

    with pytest.raises(type(error)) as caught:
        async with sv.open_root() as root:
            await root.start_child(stage.spec("a"))
            pool = await root.start_pool("pool")
            await pool.start_child(sv.ChildSpec("b", raises_after, error))
            await trio.sleep_forever()

    assert caught.value is error
    assert stage.log[-1] == "a ends"


async def test_a_failed_restart_by_hand_has_the_childs_own_cause() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        await root.start_child(stage.spec("a"))
        await root.stop_child("a")
        stage.failing["a"] = 1
        with pytest.raises(sv.StartFailed) as caught:
            await root.restart_child("a")

        assert isinstance(caught.value.__cause__, NotYet)
        assert caught.value.generation == 2


async def test_the_traceback_of_a_cause_shows_the_childs_code_and_none_of_ours() -> None:
    error = Boom()
    async with sv.open_root() as root:
        with pytest.raises(sv.StartFailed):
            await root.start_child(sv.ChildSpec("a", raises_before, error))

    trace = error.__traceback__
    assert trace is not None
    assert trace.tb_frame.f_code is raises_before.__code__
