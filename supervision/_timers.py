"""One task that wakes a supervisor for all its children: start and stop timeouts, backoff, polite second tries.

A cancel scope with a deadline per child would cost more than the child itself (`benchmarks/supervision.py`).
"""

import heapq
import math
from collections.abc import Callable
from typing import Final

import trio

from supervision._states import Entry

__all__: list[str] = []

_Timer = tuple[float, int]
_QUIET_TURNS_MAX: Final = 64


class Timers:
    """At most one pending time per child."""

    def __init__(self, tell: Callable[[Entry, int], None], activity: Callable[[], int]) -> None:
        self._tell = tell
        self._activity = activity
        # A timer is valid while it is the one its entry holds, so forgetting one is a single assignment.
        self._heap: list[tuple[float, int, Entry]] = []
        self._serial = 0
        self._live = 0
        self._soon: list[tuple[Entry, int]] = []
        self._alarm = trio.Event()
        self._scope: trio.CancelScope | None = None
        self._next_s = math.inf

    def set(self, entry: Entry, at_s: float) -> None:
        """Wake this child at a time, instead of any time set for it before."""
        if entry.timer is None:
            self._live += 1
        entry.timer = None
        if at_s == math.inf:
            self._live -= 1
            return
        self._serial = serial = self._serial + 1
        entry.timer = serial
        heapq.heappush(self._heap, (at_s, serial, entry))
        if at_s < self._next_s:
            self._next_s = at_s
            if self._scope is not None:
                self._scope.deadline = at_s
        if len(self._heap) > 2 * self._live + 64:
            self._heap = [timer for timer in self._heap if timer[2].timer == timer[1]]
            heapq.heapify(self._heap)

    def clear(self, entry: Entry) -> None:
        """Forget the time of this child."""
        entry.timer = None
        self._live -= 1
        if not self._live:
            # The deadline of the scope is left where it is: moving it back and forth with each start costs 5 us,
            # and to wake once for nothing costs one turn.
            self._heap.clear()

    def soon(self, entry: Entry) -> None:
        """Wake this child when all who can run now have run, and no command came or was answered meanwhile."""
        self._soon.append((entry, entry.generation))
        self._alarm.set()

    async def run(self) -> None:
        """Wake children until cancelled."""
        while True:
            self._drop_stale()
            next_s = self._heap[0][0] if self._heap else math.inf
            with trio.CancelScope(deadline=next_s) as self._scope:
                self._next_s = next_s
                await self._alarm.wait()
            self._scope = None
            self._wake_due()
            if self._soon:
                self._alarm = trio.Event()
                await self._settle()
                soon, self._soon = self._soon, []
                for entry, generation in soon:
                    self._tell(entry, generation)

    async def _settle(self) -> None:
        """Give everyone turns until no command came or was answered in two; bounded, or traffic could hold it up."""
        for _ in range(_QUIET_TURNS_MAX):
            seen = self._activity()
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            if self._activity() == seen:
                return

    def _drop_stale(self) -> None:
        while self._heap and self._heap[0][2].timer != self._heap[0][1]:
            heapq.heappop(self._heap)

    def _wake_due(self) -> None:
        now_s = trio.current_time()
        self._next_s = -math.inf  # Until the next round: nobody aims while we are at work.
        while self._heap and self._heap[0][0] <= now_s:
            _, serial, entry = heapq.heappop(self._heap)
            if entry.timer == serial:
                entry.timer = None
                self._live -= 1
                self._tell(entry, entry.generation)
