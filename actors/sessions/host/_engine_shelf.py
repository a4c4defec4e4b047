"""The engine processes of one session: which may serve its next cell, and which must not."""

import math
import random
from typing import Final, Protocol

import attrs
import trio

from actors.sessions.host._alarms import Alarm, Alarms
from actors.sessions.host._pool import EnginePool, Ticket
from actors.sessions.host._process import Around, EngineProcess, Listener
from actors.sessions.host._walls import resident_bytes

_QUIET_S: Final = 0.05
_SMOOTHING: Final = 0.2
_IDLE_S: Final = 60.0
_GROWTH_BYTES_MAX: Final = 96 * 1024 * 1024


class Runner(Listener, Protocol):
    """A cell that needs a process."""

    def run_in(self, process: EngineProcess, /) -> None:
        """Start, in this process."""

    def process_ended(self, why: str, /) -> None:
        """Learn that there is none."""


@attrs.frozen(kw_only=True)
class ShelfOptions:
    """When a process is used again."""

    heap_bytes: int | None
    """Room for JavaScript of each; None is the default of the host."""

    cells_max: int
    """How many cells one may serve; 1 gives every cell a process of its own."""

    kept_max: int = 16
    """How many wait for the next cell."""


class EngineShelf:
    """A process belongs to one session from its first cell until it is killed."""

    def __init__(self, pool: EnginePool, alarms: Alarms, options: ShelfOptions) -> None:
        self._pool, self._alarms, self._options = pool, alarms, options
        self._idle: list[tuple[EngineProcess, Alarm]] = []
        self._resting: dict[EngineProcess, Alarm] = {}
        self._hoping: dict[Runner, Alarm] = {}  # Cells that wait for a process that is busy, the first first.
        self._tickets: dict[Runner, Ticket] = {}
        self._running: dict[Runner, tuple[EngineProcess, float]] = {}
        self._usual_s = math.inf  # How long a process is busy with a cell, lately.
        self._ended = False
        self.around_reads: Around | None = None
        """Called before and after all that a process wrote at a time is told."""

    def acquire(self, runner: Runner) -> None:
        """Give a cell a process, now or later."""
        while self._idle:
            process, alarm = self._idle.pop()
            alarm.cancel()
            if not process.dead:
                self._give(runner, process)
                return
        if self._soon_free():
            self._hoping[runner] = self._alarms.set(2 * self._pool.usual_start_s, lambda: self._gave_up(runner))
        else:
            self._ask(runner)

    def _soon_free(self) -> bool:
        """Guess whether waiting for a busy process is quicker than starting one: cells have been short lately, and
        those that run now have not been long."""
        patience_s = self._pool.usual_start_s
        now_s = trio.current_time()
        young = sum(now_s - began_s < patience_s for _, began_s in self._running.values())
        free_soon = young + len(self._resting) + len(self._tickets)
        return self._usual_s * (len(self._hoping) + 1) < patience_s * free_soon

    def _gave_up(self, runner: Runner) -> None:
        del self._hoping[runner]
        self._ask(runner)

    def _ask(self, runner: Runner) -> None:
        def take(process: EngineProcess | None, why: str) -> None:
            self._tickets.pop(runner, None)
            if process is None:
                runner.process_ended(why)
                self._hope_less()
            else:
                process.around_reads = self.around_reads
                process.on_idle = lambda _: self._came_to_rest(process)
                self._give(runner, process)

        ticket = self._pool.take(self._options.heap_bytes, take)
        if ticket.taker is not None:
            self._tickets[runner] = ticket

    def _give(self, runner: Runner, process: EngineProcess) -> None:
        self._running[runner] = process, trio.current_time()
        process.listener = runner
        process.cells += 1
        runner.run_in(process)

    def kill(self, runner: Runner) -> None:
        """End whatever runs a cell; what it wrote before is still read."""
        if (ticket := self._tickets.pop(runner, None)) is not None:
            ticket.cancel()
            self._hope_less()
        if (alarm := self._hoping.pop(runner, None)) is not None:
            alarm.cancel()
        process, _ = self._running.pop(runner, (None, 0.0))
        if process is not None:
            process.kill()
            process.take_what_is_written()
            process.listener = None
            self._hope_less()

    def release(self, runner: Runner, *, fit: bool) -> None:
        """Take back the process of a cell that has ended; it is used again once it has come to rest."""
        process, began_s = self._running.pop(runner, (None, 0.0))
        if process is None:
            return
        process.listener = None
        self._note(trio.current_time() - began_s)
        # Spread, so that sessions that began together do not all take new processes at once.
        spread = self._options.cells_max // 4
        limit = self._options.cells_max - (random.randrange(spread) if spread else 0)  # noqa: S311  # No secret.
        if not fit or self._ended or process.dead or process.cells >= limit:
            process.kill()
            self._hope_less()
            return
        # Where the machine is so busy that a process takes long to start, it takes long to come to rest, too.
        quiet_s = max(_QUIET_S, self._pool.usual_start_s)
        self._resting[process] = self._alarms.set(quiet_s, lambda: self._never_rested(process))

    def _came_to_rest(self, process: EngineProcess) -> None:
        alarm = self._resting.pop(process, None)
        if alarm is None:
            return
        alarm.cancel()
        grown = resident_bytes(process.pid) - process.resident_start_bytes if process.pid else 0
        if grown > _GROWTH_BYTES_MAX or process.dead:
            process.kill()
            self._hope_less()
        elif self._hoping:
            runner = next(iter(self._hoping))
            self._hoping.pop(runner).cancel()
            self._give(runner, process)
        else:
            self._idle.append((process, self._alarms.set(_IDLE_S, lambda: self._drop(process))))
            if len(self._idle) > self._options.kept_max:
                self._drop(self._idle[0][0])

    def _never_rested(self, process: EngineProcess) -> None:
        self._resting.pop(process, None)
        process.kill()
        self._hope_less()

    def _hope_less(self) -> None:
        """Let cells that wait for nothing any more ask for a process, and wait for that one if it is worth it."""
        if self._resting or self._running or self._tickets or self._ended:
            return
        hoping, self._hoping = self._hoping, {}
        for runner, alarm in hoping.items():
            alarm.cancel()
            self.acquire(runner)

    def _note(self, took_s: float) -> None:
        usual_s = self._usual_s
        self._usual_s = took_s if usual_s == math.inf else usual_s + _SMOOTHING * (took_s - usual_s)

    def _drop(self, process: EngineProcess) -> None:
        for held in self._idle:
            if held[0] is process:
                held[1].cancel()
                self._idle.remove(held)
                break
        process.kill()

    def end(self) -> None:
        """Kill every process."""
        self._ended = True
        for ticket in self._tickets.values():
            ticket.cancel()
        self._tickets.clear()
        running = [process for process, _ in self._running.values()]
        for process in [*running, *self._resting, *(process for process, _ in self._idle)]:
            process.listener = None
            process.kill()
        idling = [alarm for _, alarm in self._idle]
        for alarm in [*self._resting.values(), *self._hoping.values(), *idling]:
            alarm.cancel()
        self._hoping.clear()
        self._running.clear()
        self._resting.clear()
        self._idle.clear()
