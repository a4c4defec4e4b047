"""Park a task with next to nothing: no abort function of its own, and what trio is told is made once for all.

`wait_task_rescheduled` makes a coroutine, a generator, a message to trio's loop and, by its caller, an abort function
for each wait, and each wake makes an outcome that is unwrapped: 400 bytes for each idle actor and 2 us for each time
it falls asleep (`benchmarks/memory.py`, `benchmarks/ask.py`). The message only says which function to call at a
cancel, so one whose function keeps nothing serves all, and so does one outcome for all wakes that bring nothing. Who
wants to know whether a task is still parked looks at `task.custom_sleep_data`, which trio clears in the same breath as
it wakes or cancels a task. That this equals trio's own wait is shown in `tests/actors/core/test_parking.py`.
"""

import types
from collections.abc import Callable, Generator
from typing import Any, Final

from outcome import Outcome, Value
from trio.lowlevel import Abort, RaiseCancelT, Task, reschedule, wait_task_rescheduled

__all__ = ["AWAKE", "PARKED", "park", "park_abortably", "wake_parked"]

# What `custom_sleep_data` of a parked actor's task is. That of an asker is its `Ask`.
PARKED: Final = object()

# What wakes a parked task that is brought nothing. Never unwrapped, since an outcome can be unwrapped only once.
AWAKE: Final[Outcome[None]] = Value(None)


def _let_go(_raise_cancel: RaiseCancelT) -> Abort:
    return Abort.SUCCEEDED


def _message(abort: Callable[[RaiseCancelT], Abort]) -> object:
    """Take from trio's own wait what it tells trio's loop."""
    wait = wait_task_rescheduled(abort)  # noqa: ASYNC105  # Never awaited: only what it says is wanted.
    try:
        return wait.send(None)
    finally:
        wait.close()


_MESSAGE: Final = _message(_let_go)


@types.coroutine
def park() -> Generator[object, Outcome[Any], None]:
    """Park the current task until it is rescheduled with `AWAKE` or an error.

    Its `custom_sleep_data` was made, in this same step, what those who wake it look for.

    Cancelled:
        Nobody needs to be told: who wakes lets a task alone that is not parked here any more.
    """
    sent = yield _MESSAGE
    if sent is not AWAKE:
        sent.unwrap()


@types.coroutine
def park_abortably(abort: Callable[[RaiseCancelT], Abort]) -> Generator[object, Outcome[Any], None]:
    """Do as `park`, and have `abort` called in the step in which the task is cancelled."""
    sent = yield _message(abort)
    if sent is not AWAKE:
        sent.unwrap()


def wake_parked(task: Task) -> None:
    """Wake a task if it is still parked here."""
    if task.custom_sleep_data is PARKED:
        reschedule(task, AWAKE)
