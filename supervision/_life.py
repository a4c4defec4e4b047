"""The task of a child: one generation after the other, from the call of its function to what its end means."""

# pyright: reportPrivateUsage=false
# A handle's private half belongs to its package; users see only its public one.

import math
from collections.abc import Awaitable
from types import CoroutineType
from typing import Any, cast

import trio
from trio.lowlevel import cancel_shielded_checkpoint, current_task

from supervision._child import Child, ChildStatus
from supervision._exits import KILLED, OBEYED, RETURNED, Exit, exit_of
from supervision._functions import check_awaitable, raise_misfit
from supervision._specs import NO_SUBJECT, ChildSpec

__all__: list[str] = []


async def live(child: Child[Any], status: ChildStatus[Any]) -> None:
    """Run generations of a child and tell its supervisor how each ended, whatever happens.

    The task goes on with the next generation only where the supervisor orders it in the very step in which the last
    one ended, and only if that one left the task as it found it. That saves a fifth of a restart
    (`benchmarks/spawning.py`). Nothing else may tell the two cases apart: the next generation starts in a later turn,
    in the context in which the child was added, and with no exception being handled.
    """
    while True:
        how, error = OBEYED, None
        try:
            # Not a `with`: it would keep a bound method on the stack of each idle child, which weighs 64 bytes.
            if not child._entry.spec.enters_late:
                status.enter()
            if not status._pressed:  # Else stopped before its first step: the user's function is never entered.
                await body_of(child, status)
                how = RETURNED
        except BaseException as raised:  # Its supervisor hears of every end, also of one that ends more than a child.
            error = raised
        how, fresh, error = _ended(status, how, error)
        following = child._engine.child_exited(child, status.generation, how, clean=error is None, goes_on=fresh)
        del how
        if error is not None:  # Ctrl-C, an exit of the interpreter, or the cancellation that follows one.
            try:
                raise error
            finally:
                del error
        if following is None:
            return
        status = following
        assert child._context is not None, "only a child that can come back goes on"
        current_task().context = child._context.copy()
        await cancel_shielded_checkpoint()


def _ended(status: ChildStatus[Any], how: Exit, error: BaseException | None) -> tuple[Exit, bool, BaseException | None]:
    """Leave the scope of a generation that has ended.

    Returns:
        How it ended; whether its task is as it was before; and what is to go on, since it ends more than a child.
    """
    fresh = False
    try:
        caught = status._leave(error)
        # Only the leaving of a scope shows whether another was left open in it.
        fresh = status._inside and not current_task().child_nurseries
        if error is None or caught:
            return status._end(how), fresh, None
    except BaseException as instead:  # A scope that was left open, or the fault of an `on_stop`: it is the end as well.
        error = instead
    if isinstance(error, Exception):  # The one place where a child's error is kept: its supervisor judges it.
        return exit_of(_without_our_frame(error)), fresh, None
    return _exit_beside_cancellation(error), fresh, None if _is_stray(error) else error


def _exit_beside_cancellation(error: BaseException) -> Exit:
    if not isinstance(error, BaseExceptionGroup):
        return KILLED
    rest = cast("BaseExceptionGroup[BaseException]", error).split(trio.Cancelled)[1]
    return exit_of(rest) if rest is not None else KILLED


def _is_stray(error: BaseException) -> bool:
    """Whether it is a cancellation that was kept elsewhere and raised here, where nothing is cancelled: a crash."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        stray = group.split((trio.Cancelled, Exception))[1] is None
    else:
        stray = isinstance(error, trio.Cancelled)
    return stray and trio.current_effective_deadline() != -math.inf


def body_of(child: Child[Any], status: ChildStatus[Any]) -> Awaitable[object]:
    """Call the function that a child is."""
    spec = child._entry.spec
    if not isinstance(spec, ChildSpec):
        return child._engine.serve_nested(spec, status)
    subject = child._subject
    try:
        body: Any
        if subject is NO_SUBJECT:
            body = spec.run(*spec.args, task_status=status)
        else:
            body = spec.run(subject, *spec.args, task_status=status)
    except TypeError as error:
        raise_misfit(error)
    if type(body) is not CoroutineType:
        check_awaitable(spec.run, body)
    return cast("Awaitable[object]", body)


def _without_our_frame(error: Exception) -> Exception:
    # What is kept of a crash must not keep our frame, whose locals hold the child, which holds the crash.
    if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
        error.__traceback__ = error.__traceback__.tb_next
    return error
