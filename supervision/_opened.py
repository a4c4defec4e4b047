"""An engine at work around a block of code, and what comes out of that block.

Two nurseries stand between the block and the children, and neither may ever show: what comes out is the block's own
exception, or the supervisor's failure, plain. Only when there is more than one does a group come out, of exactly
these.
"""

from collections.abc import Callable
from types import TracebackType
from typing import cast

import trio

from supervision._engine import Engine
from supervision._errors import RestartIntensityExceeded, StartAborted, SupervisorClosed
from supervision._news import CloseReason

__all__: list[str] = []


class Opened:
    """Enter: children can be started. Leave: they are stopped in order, and nothing of them is left."""

    def __init__(self, engine: Engine, *, when_cancelled: Callable[[], object], cancel_grace_s: float) -> None:
        self._engine = engine
        self._when_cancelled = when_cancelled
        self._cancel_grace_s = cancel_grace_s
        self._manager = trio.open_nursery(strict_exception_groups=True)
        self._body = trio.CancelScope()

    async def __aenter__(self) -> Engine:
        nursery = await self._manager.__aenter__()
        # Shielded, since a cancel between two open doors would leave one open. It takes two steps.
        with trio.CancelScope(shield=True):
            await nursery.start(self._engine.hold_children)
        self._body.__enter__()
        self._engine.on_closing = self._closing
        return self._engine

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._engine.on_closing = None
        left = self._leave_body(kind, error, trace)
        cancelled: trio.Cancelled | None = None
        try:
            await self._stop_children()
        except trio.Cancelled as ours:
            # Raised again below, unless something failed as well: a cancel must not hide a failure.
            cancelled = ours
        failures = [*self._failure(), *await self._leave_nursery()]
        own = _own(left, failures)
        if own is not None:
            failures.insert(0, own)
        if len(failures) > 1:
            raise BaseExceptionGroup(f"{self._engine.path}: more than one thing failed", failures)
        outcome = failures[0] if failures else left or cancelled
        if outcome is not None and outcome is not error:
            raise outcome
        return outcome is None

    def _closing(self, reason: CloseReason) -> None:
        if reason is not CloseReason.ASKED:
            self._body.cancel()

    def _leave_body(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> BaseException | None:
        """Return what the block raised, without the cancellation that was ours."""
        try:
            return None if self._body.__exit__(kind, error, trace) else error
        except (Exception, BaseExceptionGroup) as left:  # Synchronous: no cancel can arrive here.
            return left

    async def _stop_children(self) -> None:
        closed = self._engine.closed
        if trio.current_effective_deadline() > trio.current_time():
            self._engine.close()
        try:
            await closed.wait()
        finally:
            if not closed.is_set():
                # Cancelled from outside. The stop goes on, but from here on it has a bound.
                self._when_cancelled()
                with trio.move_on_after(self._cancel_grace_s, shield=True):
                    await closed.wait()
                self._engine.kill_all()

    async def _leave_nursery(self) -> list[BaseException]:
        """Wait until no task of ours is left; return what broke through from the children."""
        try:
            await self._manager.__aexit__(None, None, None)
        except BaseExceptionGroup as ours:
            # Our nursery around the holder around its nursery: two wrappers, both ours.
            return [leaf for holder in ours.exceptions for leaf in _unwrapped(holder)]
        return []

    def _failure(self) -> list[BaseException]:
        plan = self._engine.plan
        if plan.closing is not CloseReason.INTENSITY:
            return []
        limit = plan.intensity
        return [RestartIntensityExceeded(plan.path, limit.restarts, limit.period_s, plan.last_deaths())]


def _unwrapped(error: BaseException) -> tuple[BaseException, ...]:
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).exceptions
    return (error,)


def _own(left: BaseException | None, failures: list[BaseException]) -> BaseException | None:
    """What the block raised of its own: no cancellation, and nothing that only tells of the Ctrl-C that comes out here.

    A nursery of the user's in the block gathers one cancellation a task, in a group.
    """
    ended_by_force = any(not isinstance(failure, Exception) for failure in failures)
    echoes = (trio.Cancelled, StartAborted, SupervisorClosed) if ended_by_force else (trio.Cancelled,)
    if failures and isinstance(left, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", left).split(echoes)[1]
    return None if isinstance(left, echoes) else left
