"""Which deadline falls first, among many of which most are called off.

What is called off is forgotten at once; its mark in the heap goes when it comes up, or when marks outnumber deadlines.
"""

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")

_MARKS_KEPT = 64


class Deadlines(Generic[K]):
    """The deadline of each key, by time."""

    def __init__(self) -> None:
        self._serials: dict[K, int] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._serials)

    @property
    def marks(self) -> int:
        """How many marks the heap holds; never more than twice the deadlines, and a few."""
        return len(self._heap)

    def set(self, key: K, deadline_s: float) -> None:
        """Let a key fall due at this time, whatever it was before."""
        self._serial += 1
        self._serials[key] = self._serial
        heapq.heappush(self._heap, (deadline_s, self._serial, key))

    def call_off(self, key: K) -> None:
        """Forget a key; one that is not known is no fault."""
        self._serials.pop(key, None)
        if len(self._heap) > 2 * len(self._serials) + _MARKS_KEPT:
            self._heap = [mark for mark in self._heap if self._serials.get(mark[2]) == mark[1]]
            heapq.heapify(self._heap)

    def next_s(self) -> float | None:
        """When the next key falls due."""
        while self._heap and self._serials.get(self._heap[0][2]) != self._heap[0][1]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_s: float) -> Iterator[K]:
        """Take out each key that is due, in the order of their times."""
        while (next_s := self.next_s()) is not None and next_s <= now_s:
            key = heapq.heappop(self._heap)[2]
            del self._serials[key]
            yield key
