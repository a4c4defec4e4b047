"""Park an idle actor with next to nothing: no abort function of its own, and what trio is told is made once for all.

`wait_task_rescheduled` makes a coroutine, a generator, a message to trio's loop and, by its caller, an abort function
for each wait: 400 bytes for each idle actor and 1 us for each time it falls asleep (`benchmarks/memory.py`). The
message only says which function to call at a cancel, so one whose function keeps nothing serves all. Who wants to know
whether a task is still parked looks at `task.custom_sleep_data`, which trio clears in the same breath as it wakes or
cancels a task. That this equals trio's own wait is shown in `tests/actors/core/test_parking.py`.
"""

import types
from collections.abc import Generator
from typing import Any, Final

from outcome import Outcome
from trio.lowlevel import Abort, RaiseCancelT, Task, reschedule, wait_task_rescheduled

__all__ = ["PARKED", "park", "wake_parked"]

# What `custom_sleep_data` of a parked actor's task is.
PARKED: Final = object()


def _let_go(_raise_cancel: RaiseCancelT) -> Abort:
    return Abort.SUCCEEDED


def _message() -> object:
    """Take from trio's own wait what it tells trio's loop."""
    wait = wait_task_rescheduled(_let_go)  # noqa: ASYNC105  # Never awaited: only what it says is wanted.
    try:
        return wait.send(None)
    finally:
        wait.close()


_MESSAGE: Final = _message()


@types.coroutine
def park() -> Generator[object, Outcome[Any], None]:
    """Park the current task, whose `custom_sleep_data` was just made `PARKED`, until `wake_parked`.

    Cancelled:
        Nobody needs to be told: `wake_parked` lets a task alone that is not parked any more.
    """
    (yield _MESSAGE).unwrap()


def wake_parked(task: Task) -> None:
    """Wake a task if it is still parked here."""
    if task.custom_sleep_data is PARKED:
        reschedule(task)
