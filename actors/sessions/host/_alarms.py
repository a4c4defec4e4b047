"""One task that calls plain functions when their time has come: yields, timers of cells, deadlines of processes."""

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Final

import trio

from supervision import ChildStatus

_FAR_S: Final = 1e9
_SWEEP_LEAST: Final = 1024


class Alarm:
    """A call that is due at some time, until it is cancelled."""

    __slots__ = ("_call", "due_s")

    def __init__(self, due_s: float, call: Callable[[], object]) -> None:
        self._call: Callable[[], object] | None = call
        self.due_s: float = due_s

    def cancel(self) -> None:
        """Do not call; harmless when it was called already."""
        self._call = None

    def ring(self) -> None:
        """Call, unless cancelled; once only."""
        call, self._call = self._call, None
        if call is not None:
            call()

    @property
    def waiting(self) -> bool:
        """Whether it will still call."""
        return self._call is not None


class Alarms:
    """All alarms of one host. Those due at one time ring in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._sleeping: trio.CancelScope | None = None
        self._wakes_s = -math.inf
        self._sweep_at = _SWEEP_LEAST

    def set(self, delay_s: float, call: Callable[[], object]) -> Alarm:
        """Call a plain function, which must not raise, after a delay; 0 is at the next turn."""
        alarm = Alarm(trio.current_time() + min(delay_s, _FAR_S), call)
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        heapq.heappush(self._heap, (alarm.due_s, next(self._order), alarm))
        if self._sleeping is not None and alarm.due_s < self._wakes_s:
            self._sleeping.cancel()
        return alarm

    async def run(self, *, task_status: "trio.TaskStatus[None] | ChildStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Ring alarms until cancelled."""
        task_status.started()
        while True:
            self._ring_due()
            self._wakes_s = self._heap[0][0] if self._heap else math.inf
            with trio.CancelScope(deadline=self._wakes_s) as self._sleeping:
                await trio.sleep_forever()
            self._sleeping = None

    def _sweep(self) -> None:
        # Most alarms are cancelled long before they are due: without this they would be kept until then.
        self._heap = [entry for entry in self._heap if entry[2].waiting]
        heapq.heapify(self._heap)
        self._sweep_at = max(_SWEEP_LEAST, 2 * len(self._heap))

    def __len__(self) -> int:
        return len(self._heap)

    def _ring_due(self) -> None:
        now_s = trio.current_time()
        while self._heap and (self._heap[0][0] <= now_s or not self._heap[0][2].waiting):
            heapq.heappop(self._heap)[2].ring()
