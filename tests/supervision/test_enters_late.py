"""Children that sleep outside of their cancel scope at first: they can be killed all the same."""

import pytest
import trio
import trio.testing
from trio.lowlevel import Abort, Task, current_task, reschedule, wait_task_rescheduled

import supervision as sv


class Sleep:
    """A sleep that ends by being woken, and by a cancel if there is a scope around it."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.woken = 0

    async def __call__(self) -> None:
        def abort(_: object) -> Abort:
            self.task = None
            return Abort.SUCCEEDED

        self.task = current_task()
        await wait_task_rescheduled(abort)

    def wake(self) -> None:
        self.woken += 1
        if self.task is not None:
            task, self.task = self.task, None
            reschedule(task)


async def naps(log: list[str], sleep: Sleep, *, task_status: sv.ChildStatus[None]) -> None:
    """Sleep outside of the scope until woken, then inside."""
    task_status.wake_by(sleep)
    task_status.started()
    try:
        await sleep()
        log.append("woken")
        task_status.enter()
        task_status.enter()
        await trio.sleep_forever()
    except trio.Cancelled:
        log.append("cancelled")
        raise


def late(log: list[str], sleep: Sleep, *, shutdown_s: float = 5.0) -> sv.ChildSpec:
    spec = sv.ChildSpec("late", naps, log, sleep, restart=sv.Restart.TEMPORARY, shutdown_s=shutdown_s, enters_late=True)
    assert spec.enters_late
    return spec


async def kinds(events: sv.Events) -> list[sv.ExitKind]:
    found: list[sv.ExitKind] = []
    while True:
        try:
            event = events.receive_nowait()
        except trio.WouldBlock:
            return found
        if isinstance(event, sv.ChildExited):
            found.append(event.kind)


@pytest.mark.parametrize(("shutdown_s", "kind"), [(5.0, sv.ExitKind.SHUTDOWN), (0.0, sv.ExitKind.KILLED)])
async def test_a_child_outside_of_its_scope_is_woken_to_be_cancelled(
    autojump_clock: trio.testing.MockClock, shutdown_s: float, kind: sv.ExitKind
) -> None:
    """Mutant killed: `_cancel` that wakes nobody."""
    log: list[str] = []
    async with sv.open_root() as root, root.events() as events:
        await root.start_child(late(log, Sleep(), shutdown_s=shutdown_s))
        await root.stop_child("late")

        assert trio.current_time() < 1.0
        assert await kinds(events) == [kind]
    assert log == ["woken", "cancelled"]


async def test_one_that_has_entered_is_cancelled_and_not_woken() -> None:
    log: list[str] = []
    sleep = Sleep()
    async with sv.open_root() as root:
        await root.start_child(late(log, sleep))
        sleep.wake()
        await trio.testing.wait_all_tasks_blocked()
        await root.stop_child("late")

    assert log == ["woken", "cancelled"]
    assert sleep.woken == 1


async def test_a_scope_that_was_never_entered_is_never_left() -> None:
    async def ends(how: Exception | None, *, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        if how is not None:
            raise how

    spec = sv.ChildSpec("late", ends, restart=sv.Restart.TEMPORARY, enters_late=True)
    async with sv.open_root() as root, root.events() as events:
        pool = await root.start_pool("pool")
        await (await pool.start_child(spec, None)).wait_stopped()
        await (await pool.start_child(spec, ValueError("on purpose"))).wait_stopped()

        assert await kinds(events) == [sv.ExitKind.NORMAL, sv.ExitKind.CRASHED]


async def test_one_that_is_stopped_before_its_first_step_never_runs() -> None:
    log: list[str] = []
    async with sv.open_root() as root:
        child = root.start_child_nowait(late(log, Sleep()))
        child.request_stop()
        await child.wait_stopped()

    assert log == []


async def test_a_ctrl_c_of_a_sibling_kills_one_outside_of_its_scope() -> None:
    log: list[str] = []

    async def interrupted(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        await trio.testing.wait_all_tasks_blocked()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  # The root is what must raise it.
        async with sv.open_root() as root:
            await root.start_child(late(log, Sleep()))
            await root.start_child(sv.ChildSpec("interrupted", interrupted))
            await trio.sleep_forever()

    assert log in (["woken", "cancelled"], ["cancelled"])
