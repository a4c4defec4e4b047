"""Stand in line for room in a full mailbox, and refuse to when that would close a ring."""

from typing import TYPE_CHECKING

from trio.lowlevel import RunVar, Task, current_task, wait_task_rescheduled

from actors._ask import Sender
from actors._errors import MailboxDeadlock

if TYPE_CHECKING:
    from actors._mail import Mail
    from actors._seat import Seat

__all__ = ["check_no_ring", "wait_in_line"]

# Who stands in line where. It only holds tasks that are parked right now, and is how rings are found.
_standing: RunVar[dict[Task, "Mail"]] = RunVar("actors senders in line")


async def wait_in_line(seat: "Seat", message: object) -> None:
    """Wait until there is room for `message` and it is queued.

    Cancelled:
        Nothing was sent.
    """
    check_no_ring(seat, message)
    standing, task = senders_in_line(), current_task()
    sender = Sender(message, seat, task)
    standing[task] = seat
    seat.stand_in_line(sender)
    seat.wake()
    try:
        await wait_task_rescheduled(sender.abort)
    finally:
        del standing[task]


def check_no_ring(seat: "Mail", message: object) -> None:
    """Raise when every actor on the way from here is full and waits for the next, back to the current task."""
    standing, ring = senders_in_line(), [seat.label]
    me = current_task()
    while seat.task is not None and seat.task is not me and seat.task in standing:
        seat = standing[seat.task]
        ring.append(seat.label)
    if seat.task is me:
        raise MailboxDeadlock(message, ring)


def senders_in_line() -> dict[Task, "Mail"]:
    """Give the senders of this run that stand in a line now."""
    try:
        return _standing.get()
    except LookupError:
        _standing.set({})
        return _standing.get()
