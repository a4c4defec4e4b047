"""The beginning and the end of one generation, whatever kind of actor has the seat.

The loops between are in `actors/_loop.py` and `actors/_machine_actor.py`. These are called by them and gone when
the actor is at work: a coroutine that stays on the stack of an idle actor weighs 300 bytes (`benchmarks/memory.py`).
"""

from collections.abc import Callable
from typing import Any

from trio import Cancelled

from actors._actor import Performer, check_performer, take_seat
from actors._seat import Seat
from supervision import ChildStatus

__all__ = ["begin", "clean_up", "cleans_up", "ends_unheard", "finish", "make_ready"]


def begin(seat: Seat, task_status: ChildStatus[None]) -> Any:
    """Make a performer and put it on the seat; what fails leaves the seat.

    It is up on return unless its author wrote `started`; then `make_ready` is next. Most have nothing to await, and a
    coroutine that awaits nothing is a hundredth of a start.
    """
    try:
        seat.begin(task_status.child, task_status.generation)
        performer: Performer = seat.make(*seat.args)
        if type(performer) is not seat.make:  # A class was looked at when it was spawned.
            check_performer(type(performer), Performer)
        take_seat(performer, seat)
        if not overrides(performer.started, Performer.started):
            say_up(seat, task_status)
    except BaseException as failure:  # Every failed start leaves the seat.
        seat.leave(failure)
        raise
    return performer


async def make_ready(seat: Seat, performer: Performer, task_status: ChildStatus[None]) -> None:
    """Let a performer make ready on the seat, and say that it is up; what fails leaves the seat."""
    try:
        task_status.enter()
        await performer.started()
        say_up(seat, task_status)
    except BaseException as failure:  # Also a cancelled one.
        seat.leave(failure)
        raise


def say_up(seat: Seat, task_status: ChildStatus[None]) -> None:
    """Say that an actor can serve."""
    # Only from here on is a polite stop a message; before, it is a cancellation, since nobody reads messages yet.
    task_status.wake_by(seat, seat)
    seat.up = True
    task_status.started()


def ends_unheard(seat: Seat, performer: Performer) -> bool:
    """Say whether a performer that has had no mail is asked to stop and has nothing to clean up."""
    unheard = seat.stop_now and not seat.control and not overrides(performer.stopping, Performer.stopping)
    if unheard:
        seat.up = False
    return unheard


def overrides(hook: Callable[..., object], default: Callable[..., object]) -> bool:
    """Say whether an author wrote a hook, and be it on the instance."""
    return getattr(hook, "__func__", None) is not default


async def finish(seat: Seat, performer: Performer) -> None:
    """Let a performer that was asked to stop clean up."""
    seat.up = False
    await performer.stopping(None)


def cleans_up(seat: Seat, performer: Performer, failure: BaseException) -> bool:
    """Say whether a performer cleans up after a failure: its author wrote how, and it is not being killed."""
    if not seat.up or not isinstance(failure, Exception):
        return False
    seat.up = False
    return overrides(performer.stopping, Performer.stopping)


async def clean_up(performer: Performer, failure: BaseException) -> BaseException:
    """Let a performer clean up after a failure, and say what came of it all.

    Returns:
        The failure; or, if the clean-up ended badly too, a group of the failure and that, in this order.
    """
    assert isinstance(failure, Exception), "who is being killed does not clean up"
    try:
        await performer.stopping(failure)
    except Cancelled as killed:
        # The kill goes on its way, and the failure that came first stays visible beside it.
        return BaseExceptionGroup("an actor was killed while it cleaned up after a crash", [failure, killed])
    except BaseException as second:  # Whatever it is, it must not take the place of the crash.
        if second is not failure:
            return BaseExceptionGroup("an actor crashed, and so did its clean-up", [failure, second])
    return failure
