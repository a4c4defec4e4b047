"""What an end means for those who hear of it: which ending it was, and how much of its exception is passed on."""

import contextlib
from types import TracebackType
from typing import Final, cast

import trio

from actors._messages import Ending
from supervision import Shutdown

__all__ = ["ending_of", "forget_locals", "gone_text", "without_cancellation"]

# By itself: before Python 3.12, to read a member from its enum costs as much as a call.
CRASHED: Final = Ending.CRASHED


def ending_of(error: BaseException | None) -> Ending:
    """Say how a generation ended, from what came out of it."""
    if error is None or isinstance(error, Shutdown):
        return Ending.STOPPED
    if not isinstance(error, BaseExceptionGroup):  # The commonest, without another call.
        return Ending.KILLED if isinstance(error, trio.Cancelled) else CRASHED
    return Ending.KILLED if without_cancellation(cast("BaseException", error)) is None else Ending.CRASHED


def without_cancellation(error: BaseException | None) -> BaseException | None:
    """Keep what failed; a cancellation belongs to its own task and is not passed on."""
    if isinstance(error, trio.Cancelled):
        return None
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        cancelled, rest = group.split(trio.Cancelled)
        return group if cancelled is None else rest
    return error


def forget_locals(error: BaseException | None) -> None:
    """Drop the variables of finished frames: an error that is kept must not keep the actor it ended."""
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        _clear_frames(one.__traceback__)
        left += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            left += cast("BaseExceptionGroup[BaseException]", one).exceptions


def _clear_frames(trace: TracebackType | None) -> None:
    """Clear the frames that ended where they raised.

    A frame that caught the error and went on stands elsewhere by now. It may be suspended, and before Python 3.13
    clearing it would end its task: test_a_task_that_once_caught_an_error_lives_on_when_an_actor_dies_of_it.
    """
    while trace is not None:
        if trace.tb_frame.f_lasti == trace.tb_lasti:
            with contextlib.suppress(RuntimeError):  # It is still running.
                trace.tb_frame.clear()
        trace = trace.tb_next


def gone_text(ending: Ending, cause: BaseException | None) -> str:
    """Say of an actor that is gone how it ended."""
    match ending:
        case Ending.STOPPED:
            return "is gone: it was stopped or returned"
        case Ending.KILLED:
            return "is gone: it was cancelled"
        case Ending.CRASHED:
            how = "crashed" if cause is None else f"crashed ({type(cause).__name__})"
            return f"is gone: it {how} and is not started again"
