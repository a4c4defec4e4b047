"""One question under way, and one sender who stands in line: slotted objects that hold a parked task.

Hazard: a task may be woken only while it is parked on this very object. So the object is handed out and the task
parked without a step between, and whoever wakes it clears `task` first
(`test_an_ask_is_correct_when_cancelled_at_each_step` and its kin in `tests/actors/core/`). An asker has also put its
`Ask` into `task.custom_sleep_data`, which trio clears as it cancels: so an ask needs no abort function of its own
unless it stands in line.
"""

from typing import TYPE_CHECKING, Any

from outcome import Error, Value
from trio.lowlevel import Abort, RaiseCancelT, Task, reschedule

from actors._errors import AskTimedOut

if TYPE_CHECKING:
    from actors._seat import Seat

__all__ = ["Ask", "Part", "Sender", "Whole"]


class Ask:
    """One question: in the mailbox, its asker parked."""

    # Filled in by `Reference.ask` and answered by the loop, both in line: a call each would cost a tenth of an ask.
    __slots__ = ("deadline_s", "message", "seat", "taken", "task", "timeout_s", "value")

    message: object
    seat: "Seat"
    # The parked asker; None once the wait has ended. In the steps from its cancellation to its waking up, the asker is
    # here and does not wait any more.
    task: Task | None
    taken: bool
    # The answer, on its way to the asker.
    value: Any
    timeout_s: float
    deadline_s: float

    @property
    def entry(self) -> "Ask":
        """Give what goes into the mailbox."""
        return self

    def fail(self, error: BaseException) -> bool:
        """Raise `error` in the asker; say whether it still waited."""
        task, self.task = self.task, None
        if task is None or task.custom_sleep_data is not self:
            return False
        reschedule(task, Error(error))
        return True

    def expire(self) -> None:
        """End the wait: its time has come. A question that was not taken is withdrawn."""
        seat = self.seat
        seat.leave_line(self)
        self.fail(
            AskTimedOut(self.message, seat.label, seat.generation, self.timeout_s, taken=self.taken),
        )

    def abort(self, _raise_cancel: RaiseCancelT) -> Abort:
        """End the wait, which may be one in line: the asker was cancelled."""
        self.task = None
        self.seat.leave_line(self)
        return Abort.SUCCEEDED


class Whole:
    """Many questions under way with one parked asker."""

    __slots__ = ("deadline_s", "left", "parts", "task", "timeout_s")

    def __init__(self, task: Task, timeout_s: float) -> None:
        self.task: Task | None = task
        self.timeout_s: float = timeout_s
        self.deadline_s: float = 0.0
        self.parts: list[Part] = []
        self.left: int = 0

    def settle_one(self) -> None:
        """Count one question as settled, and wake the asker at the last one."""
        self.left -= 1
        if not self.left and self.task is not None:
            task, self.task = self.task, None
            reschedule(task, Value(None))

    def expire(self) -> None:
        """Fail what is still open."""
        for part in self.parts:
            part.expire()

    def abort(self, _raise_cancel: RaiseCancelT) -> Abort:
        """Withdraw what was not taken: the asker was cancelled."""
        self.task = None
        for part in self.parts:
            part.task = None
            part.seat.leave_line(part)
        return Abort.SUCCEEDED


class Part:
    """One of many questions."""

    # Answered by the loop in line, as an `Ask` is.
    __slots__ = ("error", "message", "seat", "taken", "task", "value", "whole")

    def __init__(self, message: object, seat: "Seat", whole: Whole) -> None:
        self.message: object = message
        self.seat: Seat = seat
        self.whole: Whole = whole
        # Never rescheduled from here: it only says, as in `Ask`, that the asker still waits for this answer.
        self.task = whole.task
        self.taken: bool = False
        self.value: Any = None
        self.error: BaseException | None = None

    @property
    def entry(self) -> "Part":
        """Give what goes into the mailbox."""
        return self

    def fail(self, error: BaseException) -> bool:
        """Note the failure; say whether the asker still waited for this one."""
        if self.task is None:
            return False
        self.task = None
        self.error = error
        self.whole.settle_one()
        return True

    def expire(self) -> None:
        """End this wait: its time has come."""
        if self.task is not None:
            seat = self.seat
            seat.leave_line(self)
            timeout_s = self.whole.timeout_s
            self.fail(AskTimedOut(self.message, seat.label, seat.generation, timeout_s, taken=self.taken))


class Sender:
    """A sender who waits in line with one message."""

    __slots__ = ("message", "seat", "task")

    def __init__(self, message: object, seat: "Seat", task: Task) -> None:
        self.message = message
        self.seat = seat
        self.task: Task | None = task

    @property
    def entry(self) -> object:
        """Give what goes into the mailbox."""
        return self.message

    def admitted(self) -> None:
        """Wake the sender: its message is in the mailbox."""
        if self.task is not None:
            task, self.task = self.task, None
            reschedule(task, Value(None))

    def fail(self, error: BaseException) -> None:
        """Raise `error` in the sender."""
        if self.task is not None:
            task, self.task = self.task, None
            reschedule(task, Error(error))

    def abort(self, _raise_cancel: RaiseCancelT) -> Abort:
        """Leave the line: the sender was cancelled, nothing was sent."""
        self.task = None
        self.seat.leave_line(self)
        return Abort.SUCCEEDED
