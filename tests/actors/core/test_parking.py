"""Parking with a shared message to trio's loop is trio's own wait: the same wakes, values, errors and cancels."""

import signal

import pytest
import trio
import trio.testing
from outcome import Error
from trio.lowlevel import Task, current_task, reschedule

from actors._parking import PARKED, park, wake_parked


async def parked() -> None:
    current_task().custom_sleep_data = PARKED
    await park()


async def parks(log: list[object], *, scope: trio.CancelScope | None = None) -> None:
    with scope or trio.CancelScope():
        try:
            await parked()
            log.append("woke")
        except BaseException as error:
            log.append(type(error))
            raise


async def parked_task(nursery: trio.Nursery, log: list[object], scope: trio.CancelScope | None = None) -> Task:
    found: list[Task] = []

    async def child() -> None:
        found.append(current_task())
        await parks(log, scope=scope)

    nursery.start_soon(child)
    await trio.testing.wait_all_tasks_blocked()
    assert found[0].custom_sleep_data is PARKED
    return found[0]


async def test_a_parked_task_sleeps_until_it_is_woken() -> None:
    log: list[object] = []
    async with trio.open_nursery() as nursery:
        task = await parked_task(nursery, log)
        assert log == []
        wake_parked(task)

    assert log == ["woke"]


async def test_waking_twice_in_one_step_is_waking_once() -> None:
    log: list[object] = []
    async with trio.open_nursery() as nursery:
        task = await parked_task(nursery, log)
        wake_parked(task)
        wake_parked(task)

    assert log == ["woke"]


async def test_a_wake_after_a_cancel_in_the_same_step_changes_nothing() -> None:
    log: list[object] = []
    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        task = await parked_task(nursery, log, scope)
        scope.cancel()
        wake_parked(task)

    assert log == [trio.Cancelled]
    assert scope.cancelled_caught


async def test_a_cancel_after_a_wake_in_the_same_step_comes_at_the_next_wait() -> None:
    log: list[object] = []
    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        task = await parked_task(nursery, log, scope)
        wake_parked(task)
        scope.cancel()

    assert log == ["woke"]


async def test_parking_in_a_cancelled_scope_is_cancelled_at_once() -> None:
    log: list[object] = []
    scope = trio.CancelScope()
    scope.cancel()
    await parks(log, scope=scope)

    assert log == [trio.Cancelled]


async def test_an_error_given_to_a_parked_task_is_raised_there() -> None:
    log: list[object] = []
    try:
        async with trio.open_nursery() as nursery:
            task = await parked_task(nursery, log)
            reschedule(task, Error(KeyError("given")))
    except* KeyError:
        pass

    assert log == [KeyError]


async def test_many_tasks_park_on_the_same_message() -> None:
    log: list[object] = []
    async with trio.open_nursery() as nursery:
        tasks = [await parked_task(nursery, log) for _ in range(10)]
        for task in tasks[::2]:
            wake_parked(task)
        await trio.testing.wait_all_tasks_blocked()
        assert log == ["woke"] * 5
        nursery.cancel_scope.cancel()

    assert log == ["woke"] * 5 + [trio.Cancelled] * 5


async def test_a_task_that_sleeps_elsewhere_is_left_alone() -> None:
    async with trio.open_nursery() as nursery:
        found: list[Task] = []

        async def child() -> None:
            found.append(current_task())
            await trio.sleep_forever()

        nursery.start_soon(child)
        await trio.testing.wait_all_tasks_blocked()
        wake_parked(found[0])
        await trio.testing.wait_all_tasks_blocked()

        assert nursery.child_tasks == {found[0]}
        nursery.cancel_scope.cancel()


def test_a_ctrl_c_reaches_a_parked_main_task() -> None:
    async def main() -> None:
        trio.lowlevel.spawn_system_task(interrupt)
        await parked()

    async def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
