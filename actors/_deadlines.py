"""Which waits end when. Pure: time is an argument.

One book serves a whole run, since a cancel scope for each ask would halve the rate of asks (`benchmarks/ask.py`).
Waits that have ended are swept out in passing: the book never holds more than twice what still waits, and a floor.
"""

import heapq
import itertools
import math
from collections import deque
from typing import Final, Protocol

from actors._errors import InvalidOption

__all__ = ["ASK_TIMEOUT_S", "Deadlines", "Wait", "check_timeout", "is_time"]

ASK_TIMEOUT_S: Final = 5.0
SWEEP_FLOOR: Final = 1024


def check_timeout(timeout_s: float) -> None:
    """Refuse a timeout that is no time. Infinity is one: it says that the caller has another end in mind."""
    if not is_time(timeout_s) or timeout_s < 0:
        raise InvalidOption("timeout_s", timeout_s, "it must be a number of seconds, 0 or more")


def is_time(value: object) -> bool:
    """Whether it can be added to a time. A bool is an int in Python, but True is no time."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value.bit_length() <= 1023
    return isinstance(value, float) and not math.isnan(value)


class Wait(Protocol):
    """A wait that ends at a time, unless it has ended before."""

    deadline_s: float

    @property
    def task(self) -> object | None:
        """Give who waits; None once the wait has ended."""
        ...

    def expire(self) -> None:
        """End the wait: its time has come."""
        ...


class Deadlines:
    """Keep waits by deadline: one queue for the usual timeout, which needs no sorting, and a heap for the others."""

    __slots__ = ("_heap", "_numbers", "_sweep_above", "_usual")

    def __init__(self) -> None:
        self._usual: deque[Wait] = deque()
        self._heap: list[tuple[float, int, Wait]] = []
        self._numbers = itertools.count()
        self._sweep_above = SWEEP_FLOOR

    def add(self, wait: Wait, now_s: float, timeout_s: float) -> float:
        """Note a wait that begins now, and give its deadline."""
        wait.deadline_s = deadline_s = now_s + timeout_s
        usual = self._usual
        while usual and usual[0].task is None:
            usual.popleft()
        if timeout_s == ASK_TIMEOUT_S:
            usual.append(wait)
        else:
            heapq.heappush(self._heap, (deadline_s, next(self._numbers), wait))
        if len(usual) + len(self._heap) > self._sweep_above:
            self._sweep()
        return deadline_s

    def take_due(self, now_s: float) -> list[Wait]:
        """Take out the waits whose time has come, earliest first within each kind."""
        due: list[Wait] = []
        while self._usual and (self._usual[0].task is None or self._usual[0].deadline_s <= now_s):
            due.append(self._usual.popleft())
        while self._heap and (self._heap[0][2].task is None or self._heap[0][0] <= now_s):
            due.append(heapq.heappop(self._heap)[2])
        return [wait for wait in due if wait.task is not None]

    def next_s(self) -> float:
        """Say when to look again: no wait ends before. Infinity when nothing waits."""
        usual_s = self._usual[0].deadline_s if self._usual else math.inf
        return min(usual_s, self._heap[0][0] if self._heap else math.inf)

    def __len__(self) -> int:
        return len(self._usual) + len(self._heap)

    def _sweep(self) -> None:
        self._usual = deque(wait for wait in self._usual if wait.task is not None)
        self._heap = [entry for entry in self._heap if entry[2].task is not None]
        heapq.heapify(self._heap)
        # Doubling keeps the cost of sweeping constant for each wait added.
        self._sweep_above = max(SWEEP_FLOOR, 2 * len(self))
