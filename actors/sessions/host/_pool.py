"""Engine processes that wait to be used, so that the first cell of a session need not wait for one to start."""

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from actors.sessions.host._engines import Engine
from actors.sessions.host._launching import Launcher
from actors.sessions.host._process import EngineProcess
from actors.sessions.host._walls import BEYOND_HEAP_BYTES, resident_bytes
from supervision import ChildSpec, ChildStatus, Pool, Restart

_FAILURES_MAX: Final = 3
_WATCH_S: Final = 0.1
_START_AT_FIRST_S: Final = 0.05
_START_MOST_S: Final = 0.5
_SMOOTHING: Final = 0.2

Taker = Callable[[EngineProcess | None, str], object]
"""Told the process, or None and why there is none."""


class Ticket:
    """A place in the queue for a process."""

    def __init__(self, heap_bytes: int, taker: Taker) -> None:
        self.heap_bytes = heap_bytes
        self.taker: Taker | None = taker

    def cancel(self) -> None:
        """Give the place up."""
        self.taker = None

    def hand(self, process: EngineProcess | None, why: str = "") -> bool:
        """Give it a process; False when nobody wants it any more."""
        taker, self.taker = self.taker, None
        if taker is None:
            return False
        taker(process, why)
        return True


class EnginePool:
    """Starts processes ahead, hands each to one session for good, and watches the memory of all."""

    def __init__(
        self,
        children: Pool,
        launcher: Launcher,
        engine: Engine,
        place: str,
        *,
        heap_bytes: int,
        warm: int,
        starters: int,
    ) -> None:
        self._children, self._launcher, self._engine, self._place = children, launcher, engine, place
        self._heap_bytes, self._warm, self._starters = heap_bytes, warm, starters
        self._ready: deque[EngineProcess] = deque()
        self._starting: set[EngineProcess] = set()
        self._waiting: deque[Ticket] = deque()
        self._failures = 0
        self._stopped = False
        self.alive: set[EngineProcess] = set()
        """Every process that was started and has not been reaped."""
        self.started: int = 0
        """How many were ever started."""
        self.usual_start_s: float = _START_AT_FIRST_S
        """How long a process takes to start, lately; to wait no longer than that for a busy one costs nobody time."""

    def take(self, heap_bytes: int | None, taker: Taker) -> Ticket:
        """Ask for a process; the taker may be called before this returns."""
        ticket = Ticket(self._heap_bytes if heap_bytes is None else heap_bytes, taker)
        self._failures = 0
        while self._ready and ticket.heap_bytes == self._heap_bytes:
            process = self._ready.popleft()
            if not process.dead:
                ticket.hand(process)
                self.refill()
                return ticket
        self._waiting.append(ticket)
        self.refill()
        return ticket

    def refill(self) -> None:
        """Start what is missing, a few at a time."""
        while self._waiting and self._waiting[0].taker is None:
            self._waiting.popleft()
        while not self._stopped and len(self._starting) < self._starters and self._failures < _FAILURES_MAX:
            heap_bytes = self._wanted()
            if heap_bytes is None:
                return
            process = EngineProcess(
                self._launcher, self._engine, heap_bytes, self._place, on_ready=self._on_ready, on_end=self._on_end
            )
            self._starting.add(process)
            self.alive.add(process)
            self.started += 1
            self._children.start_child_nowait(
                ChildSpec(f"engine-{self.started}", process.run, restart=Restart.TEMPORARY)
            )

    def _wanted(self) -> int | None:
        starting = [process.heap_bytes for process in self._starting]
        for ticket in self._waiting:
            if ticket.taker is None:
                continue
            if ticket.heap_bytes not in starting:
                return ticket.heap_bytes
            starting.remove(ticket.heap_bytes)
        if len(self._ready) + starting.count(self._heap_bytes) < self._warm:
            return self._heap_bytes
        return None

    def _on_ready(self, process: EngineProcess) -> None:
        self._starting.discard(process)
        self._failures = 0
        took_s = min(trio.current_time() - process.began_s, _START_MOST_S)
        self.usual_start_s += _SMOOTHING * (took_s - self.usual_start_s)
        if not self._hand(process):
            if process.heap_bytes == self._heap_bytes:
                self._ready.append(process)
            else:
                process.kill()
        self.refill()

    def _hand(self, process: EngineProcess) -> bool:
        for ticket in [*self._waiting]:
            if ticket.heap_bytes == process.heap_bytes:
                self._waiting.remove(ticket)
                if ticket.hand(process):
                    return True
        return False

    def _on_end(self, process: EngineProcess) -> None:
        self.alive.discard(process)
        if process in self._starting:
            self._starting.discard(process)
            self._failures += 1
            if self._failures >= _FAILURES_MAX:
                waiting, self._waiting = self._waiting, deque()
                for ticket in waiting:
                    ticket.hand(None, f"exec runtime could not be started: {process.stderr.strip()[-200:]}")
        if process in self._ready:
            self._ready.remove(process)
        self.refill()

    def stop(self) -> None:
        """Start no more."""
        self._stopped = True

    async def watch(self, *, task_status: ChildStatus[None]) -> None:
        """Kill processes that take more memory than their cells may."""
        task_status.started()
        while True:
            await trio.sleep(_WATCH_S)
            for process in [*self.alive]:
                limit = process.resident_start_bytes + process.heap_bytes + BEYOND_HEAP_BYTES
                if process.listener is not None and process.pid and resident_bytes(process.pid) > limit:
                    process.kill(f"exec cell ran out of memory: it took more than {limit} bytes")
