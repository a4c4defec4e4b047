"""Which process a cell gets: an idle one, one that is soon free, or one of its own."""

from typing import Any, cast

import pytest
import trio

from actors.sessions.host._alarms import Alarms
from actors.sessions.host._engine_shelf import EngineShelf, ShelfOptions
from actors.sessions.host._pool import EnginePool, Taker, Ticket
from actors.sessions.host._process import EngineProcess


class Process:
    """What a shelf sees of a process."""

    def __init__(self) -> None:
        self.cells = 0
        self.dead = False
        self.listener: Any = None
        self.on_idle: Any = None
        self.pid = 0
        self.resident_start_bytes = 0

    def kill(self) -> None:
        self.dead = True

    def take_what_is_written(self) -> None:
        pass


class Processes:
    """Gives as many as it has; whoever asks for more waits."""

    usual_start_s = 0.1

    def __init__(self, *ready: Process) -> None:
        self.ready = [*ready]
        self.waiting: list[Ticket] = []

    def take(self, heap_bytes: int | None, taker: Taker) -> Ticket:
        ticket = Ticket(0, taker)
        if self.ready:
            ticket.hand(cast("EngineProcess", self.ready.pop(0)))
        else:
            self.waiting.append(ticket)
        return ticket


class Cell:
    def __init__(self) -> None:
        self.process: EngineProcess | None = None

    def run_in(self, process: EngineProcess, /) -> None:
        self.process = process

    def frame(self, frame: list[Any], /) -> None:
        pass

    def process_ended(self, why: str, /) -> None:
        pass


@pytest.fixture
def alarms(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> Alarms:
    alarms = Alarms()
    nursery.start_soon(alarms.run)
    return alarms


def shelf_of(processes: Processes, alarms: Alarms) -> EngineShelf:
    return EngineShelf(cast("EnginePool", processes), alarms, ShelfOptions(heap_bytes=None, cells_max=1000))


async def after_a_short_cell(processes: Processes, alarms: Alarms) -> tuple[EngineShelf, Cell]:
    """A shelf that has seen a cell of one millisecond, and runs another."""
    shelf = shelf_of(processes, alarms)
    first, second = Cell(), Cell()
    shelf.acquire(first)
    process = first.process
    assert process is not None
    await trio.sleep(0.001)
    shelf.release(first, fit=True)
    assert process.on_idle is not None
    process.on_idle(1)
    shelf.acquire(second)
    return shelf, second


async def test_a_cell_waits_for_a_busy_process_where_cells_are_short(alarms: Alarms) -> None:
    processes = Processes(Process())
    shelf, running = await after_a_short_cell(processes, alarms)
    waiting = [Cell() for _ in range(5)]
    for cell in waiting:
        shelf.acquire(cell)
    process = running.process
    assert process is not None
    assert process.on_idle is not None
    shelf.release(running, fit=True)
    process.on_idle(2)

    assert processes.waiting == []
    assert waiting[0].process is process
    assert waiting[1].process is None


async def test_a_cell_that_waited_too_long_gets_a_process_of_its_own(alarms: Alarms) -> None:
    """Killed: waiting for ever for a process whose cell never ends."""
    processes = Processes(Process(), Process())
    shelf, _ = await after_a_short_cell(processes, alarms)
    waiting = Cell()
    shelf.acquire(waiting)
    before = waiting.process
    await trio.sleep(1)

    assert before is None
    assert waiting.process is not None


async def test_a_cell_does_not_wait_behind_one_that_runs_long(alarms: Alarms) -> None:
    processes = Processes(Process(), Process())
    shelf, _ = await after_a_short_cell(processes, alarms)
    await trio.sleep(1)
    other = Cell()
    shelf.acquire(other)

    assert other.process is not None


async def test_a_process_that_is_not_used_again_is_replaced_by_one_for_all_who_wait(alarms: Alarms) -> None:
    """Killed: a process asked for by each of them, sixteen at once where one would do."""
    processes = Processes(Process())
    shelf, running = await after_a_short_cell(processes, alarms)
    waiting = [Cell() for _ in range(5)]
    for cell in waiting:
        shelf.acquire(cell)
    shelf.release(running, fit=False)

    assert len(processes.waiting) == 1
