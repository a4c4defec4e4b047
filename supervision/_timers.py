"""One task that wakes a supervisor for all its children: start and stop timeouts, backoff, polite second tries.

A cancel scope with a deadline per child would cost more than the child itself (`benchmarks/supervision.py`).
"""

import heapq
import math
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Final

import trio

from supervision._states import Entry

__all__: list[str] = []

_QUIET_TURNS_MAX: Final = 64


class Timers:
    """At most one pending time per child.

    Times of starts lie in one line for each length of `start_timeout_s`, in which the first to come is the first to
    end, so that the commonest time of all is an entry in a dict, made and taken away. The others lie in a heap.
    """

    def __init__(self, tell: Callable[[Entry, int], None], activity: Callable[[], int]) -> None:
        self._tell = tell
        self._activity = activity
        self._lines: dict[float, dict[Entry, float]] = {}
        # A timer in here is valid while it is the one its entry holds, so forgetting one is a single assignment.
        self._heap: list[tuple[float, int, Entry]] = []
        self._serial = 0
        self._live = 0
        self._soon: list[tuple[Entry, int]] = []
        self._alarm = trio.Event()
        self._scope: trio.CancelScope | None = None
        self._next_s = math.inf

    def set_start(self, entry: Entry, at_s: float) -> None:
        """Wake this child at the end of its `start_timeout_s`, which begins now, instead of any time set before."""
        if entry.timer is not None:
            self.clear(entry)
        if at_s == math.inf:
            return
        timeout_s = entry.spec.start_timeout_s
        line = self._lines.get(timeout_s)
        if line is None:
            line = self._lines[timeout_s] = {}
        line[entry] = at_s
        entry.timer = line
        if at_s < self._next_s:
            self._aim(at_s)

    def set(self, entry: Entry, at_s: float) -> None:
        """Wake this child at a time, instead of any time set for it before."""
        if entry.timer is not None:
            self.clear(entry)
        if at_s == math.inf:
            return
        self._live += 1
        self._serial = serial = self._serial + 1
        entry.timer = serial
        heapq.heappush(self._heap, (at_s, serial, entry))
        if at_s < self._next_s:
            self._aim(at_s)
        if len(self._heap) > 2 * self._live + 64:
            self._heap = [timer for timer in self._heap if timer[2].timer == timer[1]]
            heapq.heapify(self._heap)

    def clear(self, entry: Entry) -> None:
        """Forget the time of this child; it has one."""
        timer, entry.timer = entry.timer, None
        # The deadline of the scope is left where it is: moving it back and forth with each start costs 5 us,
        # and to wake once for nothing costs one turn.
        if type(timer) is dict:
            del timer[entry]
            return
        self._live -= 1
        if not self._live:
            self._heap.clear()

    def soon(self, entry: Entry) -> None:
        """Wake this child when all who can run now have run, and no command came or was answered meanwhile."""
        self._soon.append((entry, entry.generation))
        self._alarm.set()

    async def run(self) -> None:
        """Wake children until cancelled."""
        while True:
            next_s = self._first_s()
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

    def _aim(self, at_s: float) -> None:
        self._next_s = at_s
        if self._scope is not None:
            self._scope.deadline = at_s

    def _first_s(self) -> float:
        while self._heap and self._heap[0][2].timer != self._heap[0][1]:
            heapq.heappop(self._heap)
        first_s = self._heap[0][0] if self._heap else math.inf
        for timeout_s, line in list(self._lines.items()):
            if line:
                first_s = min(first_s, next(iter(line.values())))
            else:
                del self._lines[timeout_s]
        return first_s

    def _wake_due(self) -> None:
        now_s = trio.current_time()
        self._next_s = -math.inf  # Until the next round: nobody aims while we are at work.
        while self._heap and self._heap[0][0] <= now_s:
            _, serial, entry = heapq.heappop(self._heap)
            if entry.timer == serial:
                entry.timer = None
                self._live -= 1
                self._tell(entry, entry.generation)
        late = [(line, entry) for line in self._lines.values() for entry in _due(line, now_s)]
        for line, entry in late:
            # Not if it was forgotten, or set anew, by what was told of another.
            if line.get(entry, math.inf) <= now_s:
                self.clear(entry)
                self._tell(entry, entry.generation)


def _due(line: dict[Entry, float], now_s: float) -> Iterator[Entry]:
    return (entry for entry, _ in takewhile(lambda timer: timer[1] <= now_s, line.items()))
