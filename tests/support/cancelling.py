"""Run an operation again and again, cancelled one step later each time."""

from collections.abc import Awaitable, Callable

import trio
import trio.testing
from trio.lowlevel import Task

__all__ = ["cancel_at_each_step"]

_STEPS_MAX = 1_000


class _CancelAtStep(trio.abc.Instrument):
    """Cancels a scope when one task is about to take its n-th step."""

    def __init__(self, task: Task, scope: trio.CancelScope, step: int) -> None:
        self.task, self.scope, self.left = task, scope, step

    def before_task_step(self, task: Task) -> None:
        if task is self.task:
            self.left -= 1
            if self.left == 0:
                self.scope.cancel()


async def cancel_at_each_step(
    operation: Callable[[], Awaitable[object]],
    *,
    check: Callable[[], Awaitable[object]] | None = None,
) -> int:
    """Cancel ``operation`` at its first step, then at its second, until it finishes untouched.

    Step 0 is a scope that is cancelled before the operation begins. After each run every other task settles and
    ``check`` looks at what is left. Errors of the operation come out as they are.

    Returns:
        How many times the operation was started (so 2 means: cancelled once, then finished).
    """
    for step in range(_STEPS_MAX):
        scope = trio.CancelScope()
        instrument = _CancelAtStep(trio.lowlevel.current_task(), scope, step)
        with scope:
            if step == 0:
                scope.cancel()
            trio.lowlevel.add_instrument(instrument)
            try:
                await operation()
            finally:
                trio.lowlevel.remove_instrument(instrument)
        await trio.testing.wait_all_tasks_blocked()
        if check is not None:
            await check()
        if not scope.cancelled_caught and step > 0 and instrument.left > 0:
            return step + 1
    raise AssertionError(f"the operation still had not finished after {_STEPS_MAX} steps")
