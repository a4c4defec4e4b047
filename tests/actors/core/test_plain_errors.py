"""What the user catches depends on what the user's code raised: at any depth, before and after the start."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import actors
from actors import Ending
from supervision import Restart, StartAborted, StartFailed, Supervisor
from tests.actors.core.troupe import Boom, Counter, Hold, Total

E = OSError("no licence")
F = LookupError("no seat")


class Broken(Counter):
    """Raises while it starts."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    async def started(self) -> None:
        await trio.lowlevel.checkpoint()
        raise self.error


async def below(root: Supervisor, levels: int) -> Supervisor:
    for level in range(levels):
        root = await root.start_supervisor(f"level {level}")
    return root


@pytest.mark.parametrize("levels", [0, 1, 2])
@pytest.mark.parametrize("error", [E, ExceptionGroup("both", [E, F])], ids=["one error", "a group"])
async def test_an_error_before_the_start_comes_out_as_one_typed_error_with_that_cause(
    root: Supervisor, levels: int, error: Exception
) -> None:
    supervisor = await below(root, levels)

    with pytest.raises(StartFailed) as failed:
        await actors.spawn(supervisor, Broken, error)

    assert failed.value.__cause__ is error


@pytest.mark.parametrize("levels", [0, 1, 2])
@pytest.mark.parametrize("error", [E, ExceptionGroup("both", [E, F])], ids=["one error", "a group"])
async def test_an_error_after_the_start_reaches_asker_and_watcher_as_it_was_raised(
    root: Supervisor, levels: int, error: Exception
) -> None:
    supervisor = await below(root, levels)
    ref = await actors.spawn(supervisor, Counter, restart=Restart.TEMPORARY)

    with pytest.raises(type(error)) as raised:
        await ref.ask(Boom(error))
    down = await ref.wait_stopped()

    assert raised.value is error
    assert down.cause is error
    assert down.ending is Ending.CRASHED


async def test_a_start_that_is_cancelled_from_outside_is_cancelled_and_nothing_else(root: Supervisor) -> None:
    class Slow(Counter):
        async def started(self) -> None:
            await trio.sleep_forever()

    with trio.move_on_after(0) as scope:
        await actors.spawn(root, Slow)
    await wait_all_tasks_blocked()

    assert scope.cancelled_caught
    assert root.children() == ()


async def test_a_start_that_is_stopped_by_somebody_else_is_no_cancellation(root: Supervisor) -> None:
    class Slow(Counter):
        async def started(self) -> None:
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:

        async def spawn() -> None:
            with pytest.raises(StartAborted):
                await actors.spawn(root, Slow, name="slow")

        nursery.start_soon(spawn)
        await wait_all_tasks_blocked()
        await root.stop_child("slow")


async def test_two_of_three_that_fail_in_the_same_step_each_say_so_themselves(root: Supervisor) -> None:
    gate = trio.Event()
    errors: list[BaseException | None] = []

    class Together(Counter):
        def __init__(self, error: Exception | None) -> None:
            super().__init__()
            self.error = error

        async def started(self) -> None:
            await gate.wait()
            if self.error is not None:
                raise self.error

    async def spawn(number: int, error: Exception | None) -> None:
        try:
            await actors.spawn(root, Together, error, name=f"sibling {number}")
        except StartFailed as failed:
            errors.append(failed.__cause__)

    async with trio.open_nursery() as nursery:
        for number, error in enumerate([E, None, F]):
            nursery.start_soon(spawn, number, error)
        await wait_all_tasks_blocked()
        gate.set()

    assert set(errors) == {E, F}
    assert [child.name for child in root.children()] == ["sibling 1"]


async def test_a_failure_beside_a_kill_stays_visible(root: Supervisor, autojump_clock: MockClock) -> None:
    class Torn(Counter):
        async def handle(self, message: Any) -> Any:
            try:
                return await super().handle(message)
            finally:
                raise E

    ref = await actors.spawn(root, Torn, shutdown_s=1, restart=Restart.TEMPORARY)
    ref.tell_nowait(Hold())
    await wait_all_tasks_blocked()
    ref.stop()
    down = await ref.wait_stopped()

    assert down.cause is E
    assert down.ending is Ending.CRASHED


async def test_a_handler_killed_in_a_nursery_of_its_own_keeps_the_failure_of_a_child(
    root: Supervisor, autojump_clock: MockClock
) -> None:
    class Parent(Counter):
        async def handle(self, message: Any) -> Any:
            async def fails_when_cancelled() -> None:
                try:
                    await trio.sleep_forever()
                finally:
                    raise F

            async with trio.open_nursery() as nursery:
                nursery.start_soon(fails_when_cancelled)
                await trio.sleep_forever()

    ref = await actors.spawn(root, Parent, shutdown_s=1, restart=Restart.TEMPORARY)
    asked: list[BaseException | None] = []

    async def ask() -> None:
        with pytest.raises(actors.ActorGone) as gone:
            await ref.ask(Total())
        asked.append(gone.value.__cause__)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        ref.stop()
        down = await ref.wait_stopped()

    assert isinstance(down.cause, ExceptionGroup)
    assert down.cause.exceptions == (F,)
    assert isinstance(asked[0], ExceptionGroup)
