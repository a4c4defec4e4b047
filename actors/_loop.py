"""The task of an actor: one generation on its seat, from start to end.

A message is handled in the same breath as the one before it, until a batch is full or a slice of time is used up;
then others get a turn. Without that, an actor that feeds itself would starve the whole run (`benchmarks/fairness.py`).
"""

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final, TypeVar

from outcome import Value
from trio import Cancelled
from trio.lowlevel import checkpoint, current_task, reschedule, wait_task_rescheduled

from actors._actor import Actor, Performer, take_seat
from actors._ask import Ask, Part
from actors._errors import Refusal
from actors._messages import Down, Terminal
from actors._seat import Seat
from supervision import ChildStatus

__all__ = ["BATCH", "SLICE_S", "run_actor", "run_generation"]

SeatT = TypeVar("SeatT", bound=Seat)

BATCH: Final = 64
SLICE_S: Final = 0.000_5


async def run_actor(
    seat: Seat, make: Callable[..., Actor[Any]], args: tuple[object, ...], *, task_status: ChildStatus[None]
) -> None:
    """Run one generation of an actor: make it, start it, and let it handle its mail until it ends."""
    await run_generation(seat, make, args, serve, task_status)


async def run_generation(
    seat: SeatT,
    make: Callable[..., Performer],
    args: tuple[object, ...],
    serve: Callable[[SeatT, Any], Awaitable[None]],
    task_status: ChildStatus[None],
) -> None:
    """Run one generation of any kind of performer; whatever happens, it leaves the seat."""
    error: BaseException | None = None
    performer: Performer | None = None
    try:
        seat.begin(task_status.child, task_status.generation)
        performer = make(*args)
        take_seat(performer, seat)
        await performer.started()
        # Only from here on is a polite stop a message; before, it is a cancellation, since nobody reads messages yet.
        task_status.on_stop(seat.stop_generation)
        seat.up = True
        task_status.started()
        await serve(seat, performer)
        seat.up = False
        await performer.stopping(None)
    except BaseException as failure:
        error = failure
        if seat.up and performer is not None and isinstance(failure, Exception):
            seat.up = False
            error = await clean_up(performer, failure)
            if error is not failure:
                raise error from failure
        raise
    finally:
        # The frames of a traceback outlive the task; they must not keep the performer.
        performer = None
        seat.leave(error)
        error = None


async def clean_up(performer: Performer, failure: Exception) -> BaseException:
    """Let a crashed performer clean up, and say what came of it all: the failure, or what the clean-up raised."""
    try:
        await performer.stopping(failure)
    except Cancelled as killed:
        # The kill goes on its way, and the failure that came first stays visible beside it.
        return BaseExceptionGroup("an actor was killed while it cleaned up after a crash", [failure, killed])
    except BaseException as second:
        return second
    return failure


async def serve(seat: Seat, actor: Actor[Any]) -> None:  # noqa: C901, PLR0915 - a message costs less than a call
    """Handle mail until a stop comes; control entries before user mail."""
    handle = actor.handle
    task = current_task()
    item: Any
    while True:
        inbox = seat.inbox
        left = BATCH
        ends = perf_counter() + SLICE_S
        while left:
            if seat.alert:
                if seat.control:
                    left -= 1
                    await attend(seat, actor)
                    inbox = seat.inbox
                    continue
                if seat.stop_now:
                    return
                seat.admit_senders()
            depth = len(inbox)
            if depth > seat.peak:
                seat.peak = depth
            elif not depth:
                break
            left -= 1
            item = inbox.popleft()
            kind = type(item)  # pyright: ignore[reportUnknownVariableType]  # Anything may be told.
            if kind is Ask or kind is Part:
                if item.task is None:
                    seat.withdrawn += 1
                    continue
                item.taken = True
                try:
                    value = await handle(item.message)
                except BaseException as error:
                    seat.answer_error(item, error)
                    if not isinstance(error, Refusal):
                        raise
                else:
                    asker = item.task
                    if asker is None:
                        seat.late += 1
                    elif kind is Ask:
                        item.task = None
                        reschedule(asker, Value(value))
                    else:
                        item.answer(value)
            else:
                try:
                    await handle(item)
                except Refusal:
                    seat.unheard += 1
            seat.handled += 1
            if not left & 7 and perf_counter() > ends:
                break
        item = value = None  # An idle actor keeps neither its last message nor its last answer.
        if seat.inbox or seat.alert:
            await checkpoint()
        else:
            seat.waiter = task
            await wait_task_rescheduled(seat.abort_park)


async def attend(seat: Seat, actor: Actor[Any]) -> None:
    """Handle the oldest control entry."""
    entry = seat.take_control()
    if isinstance(entry, Down):
        await actor.down(entry)
    elif isinstance(entry, Terminal):
        try:
            await actor.handle(entry.message)
        except Refusal:
            seat.unheard += 1
        seat.handled += 1
