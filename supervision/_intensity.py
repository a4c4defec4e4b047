"""The restart intensity of one supervisor: a window that slides.

A restart is allowed while at most `restarts` of them, itself included, are no older than `period_s`. The boundary
counts: one that is exactly `period_s` old is still in the window, as in OTP.
"""

from collections import deque

import attrs

from supervision._rules import check_seconds, check_whole

__all__ = ["RestartIntensity"]

_RESTARTS_MAX = 1_000_000


@attrs.frozen
class RestartIntensity:
    """How many restarts within which time are allowed, over all children of a supervisor together.

    Attributes:
        restarts: Restarts allowed within the period; 0 allows none, 1,000,000 is the most.
        period_s: Length of the sliding window in seconds; a restart exactly this old still counts.
    """

    restarts: int = 3
    period_s: float = 5.0

    def __attrs_post_init__(self) -> None:
        check_whole("RestartIntensity.restarts", self.restarts, low=0, high=_RESTARTS_MAX)
        check_seconds("RestartIntensity.period_s", self.period_s)


class Window:
    """The times of the restarts that still count. Mutable: a supervisor owns exactly one."""

    __slots__ = ("_limit", "_times_s")

    def __init__(self, limit: RestartIntensity) -> None:
        self._limit = limit
        # At most `restarts + 1` times are ever held: the one that goes over the limit is the last.
        self._times_s: deque[float] = deque()

    def record(self, now_s: float) -> bool:
        """Count one restart and say whether it is allowed."""
        times_s, limit = self._times_s, self._limit
        times_s.append(now_s)
        while now_s - times_s[0] > limit.period_s:
            times_s.popleft()
        return len(times_s) <= limit.restarts

    def count(self, now_s: float) -> int:
        """Return how many restarts are in the window."""
        self._slide(now_s)
        return len(self._times_s)

    def _slide(self, now_s: float) -> None:
        while self._times_s and now_s - self._times_s[0] > self._limit.period_s:
            self._times_s.popleft()
