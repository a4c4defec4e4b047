"""One leased session: its cells, stored values, observations, tool calls and the events on its lease."""

import os
from collections.abc import Callable
from typing import Final

import attrs
import trio

from actors.sessions._wire.code_mode_pb2 import (
    CellClosed,
    ExecuteRequest,
    Notification,
    SessionEvent,
    ToolCallCancelled,
)
from actors.sessions.grpc import Abort, StatusCode
from actors.sessions.host._alarms import Alarm, Alarms
from actors.sessions.host._catalogue import Catalogue, Tool
from actors.sessions.host._cell import Observer, Phase
from actors.sessions.host._engine_shelf import EngineShelf
from actors.sessions.host._outboxes import Outbox
from actors.sessions.host._outputs import (
    DEFAULT_TOKENS,
    MESSAGE_BYTES_MAX,
    CutOutput,
    Ending,
    Outcome,
    WholeOutput,
    effective_yield_ms,
)
from actors.sessions.host._remembered import Observations
from actors.sessions.host._running_cell import RunningCell
from actors.sessions.host._stored import StoredValues
from actors.sessions.host._tool_calls import ToolCalls

_LEASE_EVENTS_MAX: Final = 65_536
_DEFAULT_YIELD_MS: Final = 10_000
_START_S: Final = 30.0


class Observation:
    """A pending Execute or Wait: the next event of a cell, or the news that none will come."""

    def __init__(self, cell: RunningCell, tokens: int) -> None:
        self.cell = cell
        self.observer: Observer = Observer(tokens, self._settle)
        self.outcome: Outcome | None = None
        self.alarm: Alarm | None = None
        self._over = trio.Event()

    def _settle(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.end()

    def end(self) -> None:
        """Wake whoever waits."""
        if self.alarm is not None:
            self.alarm.cancel()
        self._over.set()

    async def wait(self) -> Outcome | None:
        """Wait for the event; None when there will be none."""
        await self._over.wait()
        return self.outcome


@attrs.frozen(kw_only=True)
class SessionOptions:
    """What the opening of a session asked for."""

    cut_output: bool
    """Whether output is cut here (Server mode)."""

    yield_ms_max: int | None
    """Longest observation; None is unlimited."""

    pending_calls_max: int
    """Tool calls that may be open at once."""


class Session:
    """Everything of one session; all of it is plain functions, driven by handlers, processes and alarms."""

    def __init__(
        self,
        options: SessionOptions,
        shelf: EngineShelf,
        alarms: Alarms,
        *,
        cells_max: int,
        cell_deadline_s: float | None,
        stored_bytes_max: int,
        on_cell: Callable[[int], object],
        on_end: Callable[["Session"], object],
    ) -> None:
        self.session_id: str = _new_id()
        self.alarms: Alarms = alarms
        self._shelf = shelf
        self._options = options
        self._on_cell, self._on_end = on_cell, on_end
        self._cells_max, self._cell_deadline_s = cells_max, cell_deadline_s
        self._cells_made = 0
        self._catalogue = Catalogue()
        self.stored: StoredValues = StoredValues(stored_bytes_max)
        """What its cells keep for each other."""
        self.cells: dict[str, RunningCell] = {}
        self.executions: Observations[Observation] = Observations("execution")
        self.waits: Observations[Observation] = Observations("wait")
        self.lease: Outbox[SessionEvent] = Outbox(_LEASE_EVENTS_MAX)
        self.calls: ToolCalls = ToolCalls(
            self.session_id,
            capacity=options.pending_calls_max,
            new_id=_new_id,
            on_cancel=self._call_cancelled,
        )
        self.ended: trio.Event = trio.Event()
        self._draining = False
        self.written: list[Callable[[], object]] = []
        """What writes out the messages that were queued just now."""
        self.hears: bool = False
        """Whether an engine process is being heard: what is queued meanwhile is written right after."""
        shelf.around_reads = self._hear, self._write_out

    @property
    def cut_output(self) -> bool:
        """Whether output is cut here (Server mode)."""
        return self._options.cut_output

    # --- requests

    def execute(self, request: ExecuteRequest) -> Observation:
        """Start a cell, observed by whoever called.

        Raises:
            Abort: The request is refused, and its execution id can still be used unless that is the reason.
        """
        if len(self.cells) >= self._cells_max:
            raise Abort(StatusCode.RESOURCE_EXHAUSTED, "code-mode session has too many active cells")
        tools = self._catalogue.tools_for(request)
        self.executions.reserve(request.execution_id)
        self._cells_made += 1
        cell = RunningCell(
            self,
            str(self._cells_made),
            execution_id=request.execution_id,
            tool_call_id=request.tool_call_id,
            source=request.source,
            tools=tools,
            output=CutOutput if self._options.cut_output else WholeOutput,
        )
        self._on_cell(1)
        self.cells[cell.cell_id] = cell
        tokens = request.max_output_tokens if request.HasField("max_output_tokens") else DEFAULT_TOKENS
        yield_ms = request.yield_time_ms if request.HasField("yield_time_ms") else _DEFAULT_YIELD_MS
        observation = Observation(cell, tokens)
        self.observe(observation, self.executions, request.execution_id, yield_ms)
        if self._cell_deadline_s is not None:
            cell.end_after(self._cell_deadline_s)
        cell.begin()
        return observation

    def observe(self, observation: Observation, kind: Observations[Observation], one: str, yield_ms: int) -> None:
        """Attach an observation to its cell and start its time.

        Raises:
            Abort: The cell is observed already.
        """
        cell = observation.cell.machine
        early = kind.was_yielded(one)
        cell.observe(observation.observer)
        if observation.outcome is not None:
            self._taken(observation)
            return
        kind.active[one] = observation
        granted_ms = effective_yield_ms(yield_ms, self._options.yield_ms_max)
        if early or granted_ms == 0:
            cell.interrupt(observation.observer)
            return

        def elapsed() -> None:
            cell.interrupt(observation.observer)

        def count(delay_s: float = granted_ms / 1000) -> None:
            if observation.alarm is not None:
                observation.alarm.cancel()
            if observation.outcome is None:
                observation.alarm = self.alarms.set(delay_s, elapsed)

        if observation.cell.started:
            count()
        else:
            # Time to get a process is not the script's; but an observation must end, whatever becomes of that.
            observation.cell.on_start = count
            count(granted_ms / 1000 + _START_S)

    def observed(self, observation: Observation, kind: Observations[Observation], one: str) -> None:
        """Forget an observation that is over, however it ended."""
        kind.active.pop(one, None)
        observation.end()
        observation.cell.machine.retire(observation.observer)
        self._taken(observation)
        if self._draining:
            self.drain()

    def _hear(self) -> None:
        self.hears = True

    def _write_out(self) -> None:
        self.hears = False
        written, self.written = self.written, []
        for write in written:
            write()

    def drain(self) -> None:
        """End once nobody waits for a cell: the connection takes no new calls, so nobody can ask again."""
        self._draining = True
        if not self.executions.active and not self.waits.active:
            self.alarms.set(0, self.end)  # Later, so that what was just observed is told first.

    def _taken(self, observation: Observation) -> None:
        if observation.cell.machine.phase is Phase.OVER:
            self.cells.pop(observation.cell.cell_id, None)

    def terminate(self, cell_id: str, tokens: int) -> Outcome | None:
        """Stop a cell; None when there is no such cell."""
        cell = self.cells.get(cell_id)
        if cell is None or cell.machine.phase is Phase.OVER:
            return None
        outcome = cell.terminate(tokens)
        self.close_cell(cell)
        return outcome

    def close_cell(self, cell: RunningCell) -> None:
        """Tell, once, that a cell is over."""
        if cell.machine.phase is not Phase.OVER or cell.closed:
            return
        cell.closed = True
        self.cells.pop(cell.cell_id, None)
        self._on_cell(-1)
        self._tell(
            SessionEvent(
                cell_closed=CellClosed(
                    execution_id=cell.execution_id,
                    cell_id=cell.cell_id,
                    final_tool_call_sequence=cell.sequence,
                )
            )
        )

    def end(self) -> None:
        """End the session: observers learn it, streams finish, every process is killed. Once only."""
        if self.ended.is_set():
            return
        self.ended.set()
        # Observers are retired first: what their cells end with now is no event for anybody.
        for observation in [*self.waits.active.values(), *self.executions.active.values()]:
            observation.cell.machine.retire(observation.observer)
            observation.end()
        self.calls.end()
        self.lease.end()
        for cell in [*self.cells.values()]:
            cell.terminate(0)
            self._on_cell(-1)
            cell.closed = True
        self.cells.clear()
        self._shelf.end()
        self._on_end(self)

    # --- what cells need

    def acquire(self, cell: RunningCell, /) -> None:
        """Give a cell a process."""
        self._shelf.acquire(cell)

    def release(self, cell: RunningCell, /, *, fit: bool) -> None:
        """Take the process of a cell back."""
        self._shelf.release(cell, fit=fit)

    def kill(self, cell: RunningCell, /) -> None:
        """Kill the process of a cell."""
        self._shelf.kill(cell)

    def call_tool(self, cell: RunningCell, call_id: int, tool: Tool, input_json: str | None, /) -> None:
        """Send a tool call."""
        self.calls.dispatch(cell, call_id, tool, input_json)

    def cancel_calls(self, cell: RunningCell, /) -> None:
        """Cancel the open tool calls of a cell."""
        self.calls.cancel_all_of(cell)

    def notify(self, cell: RunningCell, text: str, /) -> None:
        """Queue a notification; one that fits no message is dropped."""
        if len(text.encode()) + 1024 > MESSAGE_BYTES_MAX:
            return
        self._tell(
            SessionEvent(
                notification=Notification(
                    notification_id=_new_id(),
                    execution_id=cell.execution_id,
                    cell_id=cell.cell_id,
                    call_id=cell.tool_call_id,
                    text=text,
                )
            )
        )

    def _call_cancelled(self, invocation_id: str) -> None:
        if not self.ended.is_set():
            self._tell(SessionEvent(tool_call_cancelled=ToolCallCancelled(invocation_id=invocation_id)))

    def _tell(self, event: SessionEvent) -> None:
        # A client that does not read its lease loses the session: an event must not be lost from the middle.
        if not self.lease.put(event):
            self.alarms.set(0, self.end)


def _new_id() -> str:
    """Make a UUID of version 4, four times as fast as `uuid` does."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def is_last(outcome: Outcome) -> bool:
    """Say whether a cell is over with this event."""
    return outcome.ending is not Ending.YIELDED
