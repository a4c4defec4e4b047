"""The one task of a run that ends asks whose time has come.

It is a system task: it belongs to the run, is started by the first ask and ends with the run. Between deadlines it
sleeps; an ask touches it only when it must wake earlier than planned.
"""

import math
from typing import Protocol

import trio
from trio.lowlevel import RunVar

from actors._deadlines import Deadlines, Wait
from actors._errors import NotInThisRun

__all__ = ["Sweeper", "sweeper_of_this_run"]

_sweepers: RunVar["Sweeper"] = RunVar("actors deadline sweeper")


def sweeper_of_this_run() -> "Sweeper":
    """Give the sweeper of the current run."""
    try:
        return _sweepers.get()
    except RuntimeError:  # No run at all in this thread.
        raise NotInThisRun("an actor") from None
    except LookupError:
        sweeper = Sweeper()
        _sweepers.set(sweeper)
        return sweeper


class Labelled(Protocol):
    """What errors can name."""

    @property
    def label(self) -> str:
        """How errors name it."""
        ...


class Sweeper(Deadlines):
    """End waits in time."""

    __slots__ = ("_now_s", "_run", "_scope", "_wakes_s", "wakes")

    def __init__(self) -> None:
        super().__init__()
        self._run = trio.lowlevel.current_root_task()
        self._scope: trio.CancelScope | None = None
        self._wakes_s = math.inf
        # How many actors were woken and asks answered in this run, by which a busy actor sees that others are awake.
        self.wakes: int = 0
        # The clock of the run by itself: `trio.current_time` looks it up each time.
        self._now_s = trio.lowlevel.current_clock().current_time

    def check_run(self, seat: Labelled) -> None:
        """Refuse a call from outside of this run, before it changes anything."""
        try:
            if trio.lowlevel.current_root_task() is self._run:
                return
        except RuntimeError:  # No run at all in this thread.
            pass
        raise NotInThisRun(seat.label)

    def watch(self, wait: Wait, timeout_s: float) -> None:
        """End `wait` after `timeout_s`, unless it has ended before."""
        deadline_s = self.add(wait, self._now_s(), timeout_s)
        if deadline_s < self._wakes_s:
            self._wakes_s = deadline_s
            if self._scope is None:
                self._scope = trio.CancelScope(deadline=deadline_s)
                trio.lowlevel.spawn_system_task(self._sweep_for_ever, name="actors deadline sweeper")
            else:
                self._scope.deadline = deadline_s

    async def _sweep_for_ever(self) -> None:
        while True:
            assert self._scope is not None, "the sweeper sleeps in a scope of its own"
            with self._scope:
                await trio.sleep_forever()
            for wait in self.take_due(trio.current_time()):
                wait.expire()
            self._wakes_s = self.next_s()
            self._scope = trio.CancelScope(deadline=self._wakes_s)
