"""The task of an actor: one generation on its seat, from start to end.

A message is handled in the same breath as the one before it, until a batch is full or a slice of time is used up;
then others get a turn. Without that, an actor that feeds itself would starve the whole run (`benchmarks/fairness.py`).
"""

from time import perf_counter
from types import CoroutineType
from typing import Any, Final

from trio.lowlevel import checkpoint, reschedule

from actors._actor import Actor
from actors._ask import Ask, Part
from actors._errors import NotAwaited, Refusal
from actors._generation import begin, clean_up, cleans_up, ends_unheard, finish, make_ready
from actors._messages import Down, Terminal
from actors._parking import AWAKE, park
from actors._seat import Seat
from supervision import ChildStatus

__all__ = ["BATCH", "SLICE_S", "run_actor"]

# A batch is a square: the time is looked at after each row. While other actors or their askers are awake, it is cut to
# a few rows, since each of their steps waits for up to one batch (`benchmarks/fairness.py`).
PARTS: Final = range(8)
FEW: Final = range(2)
BATCH: Final = len(PARTS) ** 2
SMALL_BATCH: Final = len(FEW) * len(PARTS)
SLICE_S: Final = 0.000_5


async def run_actor(  # noqa: C901, PLR0915 - a message costs less than a call, and a coroutine 300 bytes an actor
    seat: Seat, *, task_status: ChildStatus[None]
) -> None:
    """Run one generation of an actor: start it, and let it handle its mail until it ends; control before user mail."""
    actor: Actor[Any] = begin(seat, task_status)
    if not seat.up:
        await make_ready(seat, actor, task_status)
    error: BaseException | None = None
    item: Any
    try:
        if not seat.inbox and not seat.alert:
            # The first sleep is outside of the cancel scope, which weighs 700 bytes (`benchmarks/memory.py`).
            seat.sleeps()
            await park()
            if ends_unheard(seat, actor):
                return
        task_status.enter()
        del task_status
        others_awake = 0
        while True:
            handle: Any = actor.handle
            inbox, peak = seat.inbox, seat.peak
            # Not the run's clock: a slice bounds real work, also where time is virtual.
            ends = perf_counter() + SLICE_S
            for _ in FEW if others_awake else PARTS:
                for _ in PARTS:
                    if seat.alert:
                        if seat.control:
                            await attend(seat, actor)
                            inbox = seat.inbox
                            continue
                        if seat.stop_now:
                            await finish(seat, actor)
                            return
                        seat.admit_senders()
                    depth = len(inbox)
                    if depth > peak:
                        seat.note_depth()
                        peak = seat.peak
                    elif not depth:
                        break
                    item = inbox.popleft()
                    kind = type(item)  # pyright: ignore[reportUnknownVariableType]  # Anything may be told.
                    if kind is Ask or kind is Part:
                        asker = item.task
                        if asker is None or (kind is Ask and asker.custom_sleep_data is not item):
                            seat.counting().withdrawn += 1
                            continue
                        item.taken = True
                        try:
                            value = await handle(item.message)
                            if type(value) is CoroutineType:
                                raise not_awaited(item.message, handle, value)
                        except BaseException as failure:  # The asker learns of every end, in this step.
                            seat.answer_error(item, failure)
                            if not isinstance(failure, Refusal):
                                raise
                        else:
                            asker = item.task
                            if asker is None or (kind is Ask and asker.custom_sleep_data is not item):
                                seat.counting().late += 1
                            elif kind is Ask:
                                item.task = None
                                item.value = value
                                reschedule(asker, AWAKE)
                                seat.sweeper.wakes += 1
                            else:
                                item.task = None
                                item.value = value
                                item.whole.settle_one()
                    else:
                        try:
                            await handle(item)
                        except Refusal:
                            seat.counting().unheard += 1
                    seat.handled += 1
                else:
                    if perf_counter() < ends:
                        continue
                break
            # An idle actor keeps neither its last message nor its last answer, and is lean.
            item = value = handle = asker = None
            ends = 0.0
            if seat.inbox or seat.alert:
                wakes = seat.sweeper.wakes
                await checkpoint()
                others_awake = awake_for(others_awake, wakes, seat)
            else:
                seat.sleeps()
                await park()
    except BaseException as failure:  # Every end passes here and goes on, with what the clean-up added.
        error = await clean_up(actor, failure) if cleans_up(seat, actor, failure) else failure
        if error is not failure:
            raise error from failure
        raise
    finally:
        # The frames of a traceback outlive the task; they must not keep the actor.
        del actor
        item = handle = asker = None
        seat.leave(error)
        error = None


def not_awaited(message: object, handle: Any, answer: Any) -> NotAwaited:
    """Say of an answer that is a coroutine whose handler forgot `await`. It is closed: Python need not warn as well."""
    answer.close()
    return NotAwaited(message, getattr(handle, "__qualname__", "handle"), answer.__qualname__)


def awake_for(turns: int, wakes: int, seat: Seat) -> int:
    """Say for how many more turns others are taken to be awake, by what they woke in the turn that this actor gave.

    Two, since trio changes the order of tasks from turn to turn: one that runs in each may not run between two of ours.
    """
    return 2 if wakes != seat.sweeper.wakes else max(turns - 1, 0)


async def attend(seat: Seat, actor: Actor[Any]) -> None:
    """Handle the oldest control entry."""
    entry = seat.take_control()
    if isinstance(entry, Down):
        await actor.down(entry)
    elif isinstance(entry, Terminal):
        try:
            await actor.handle(entry.message)
        except Refusal:
            seat.counting().unheard += 1
        seat.handled += 1
