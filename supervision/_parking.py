"""Park a task until the answer to a command has come, with next to nothing.

What trio's loop is told is made once for all waits, and so is what wakes a task: `wait_task_rescheduled` and
`reschedule` make a coroutine, a message and an outcome each time, which is a fifth of what a start costs
(`benchmarks/supervision.py`). Who wants to know whether a task is still parked looks at `task.custom_sleep_data`:
trio clears it in the same breath as it wakes or cancels a task.
"""

import types
from collections.abc import Generator
from typing import Any, Final

from outcome import Outcome, Value
from trio.lowlevel import Abort, RaiseCancelT, wait_task_rescheduled

__all__: list[str] = []

# Never unwrapped, since an outcome can be unwrapped only once.
AWAKE: Final[Outcome[None]] = Value(None)


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
    """Park the current task until it is rescheduled with `AWAKE`.

    Cancelled:
        Nobody needs to be told: who wakes lets a task alone that is not parked here any more.
    """
    sent = yield _MESSAGE
    if sent is not AWAKE:
        sent.unwrap()
