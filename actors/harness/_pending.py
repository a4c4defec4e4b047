"""Open calls by their ids, and what to think of an answer.

The first answer to a call counts; any other is told apart by why it has no place. Knows no connection.
"""

import enum
from collections import deque
from typing import Final, Generic, TypeVar

from actors.protocol import RequestId

T = TypeVar("T")

_REMEMBERED_MAX: Final = 4096


class Stray(enum.Enum):
    """Why an answer has no call waiting for it."""

    DUPLICATE = "duplicate"
    """The call had its answer already."""
    LATE = "late"
    """The caller stopped waiting: it timed out or was cancelled."""
    UNKNOWN = "unknown"
    """No call had this id, or its id is not one we give."""


class NoRoom(Exception):
    """As many calls are open as may be."""


class PendingCalls(Generic[T]):
    """What waits for an answer. Mutable, for it is on the path of every call."""

    __slots__ = ("_abandoned", "_abandoned_order", "_limit", "_next_id", "_open", "peak")

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._open: dict[int, T] = {}
        # Every id here was given out, is not open, and got no answer; the queue holds the same ids, oldest first.
        self._abandoned: set[int] = set()
        self._abandoned_order: deque[int] = deque()
        self._next_id = 1
        self.peak = 0
        """The most calls that were open at once."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def full(self) -> bool:
        """No regular call fits."""
        return len(self._open) >= self._limit

    def open(self, call: T, *, reserved: bool = False) -> int:
        """Give the call an id; ``reserved`` may use the one place kept free for clean-up.

        Raises:
            NoRoom: Nothing was opened.
        """
        if len(self._open) >= self._limit + reserved:
            raise NoRoom
        request_id = self._next_id
        self._next_id += 1
        self._open[request_id] = call
        self.peak = max(self.peak, len(self._open))
        return request_id

    def settle(self, request_id: RequestId) -> T | Stray:
        """Take the call an answer is for, or say why there is none."""
        if not isinstance(request_id, int) or not 0 < request_id < self._next_id:
            return Stray.UNKNOWN
        if request_id in self._open:
            return self._open.pop(request_id)
        if request_id in self._abandoned:
            self._abandoned.discard(request_id)
            return Stray.LATE
        return Stray.DUPLICATE

    def abandon(self, request_id: int) -> None:
        """Stop waiting for an answer; it will count as late."""
        if self._open.pop(request_id, None) is None:
            return
        self._abandoned.add(request_id)
        self._abandoned_order.append(request_id)
        if len(self._abandoned_order) > _REMEMBERED_MAX:
            self._abandoned.discard(self._abandoned_order.popleft())

    def end_all(self) -> list[T]:
        """Take every open call, oldest first."""
        calls = list(self._open.values())
        self._open.clear()
        return calls
