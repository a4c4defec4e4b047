"""A cell and what belongs to it outside its machine: its process, timers, writes and tool calls."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from actors.sessions.host._alarms import Alarm, Alarms
from actors.sessions.host._catalogue import Tool, for_prelude
from actors.sessions.host._cell import Cell, Phase
from actors.sessions.host._frames import Frame, encode_answer
from actors.sessions.host._items import AudioItem, ImageItem
from actors.sessions.host._outputs import Outcome, Output
from actors.sessions.host._process import EngineProcess
from actors.sessions.host._sounds import long_enough
from actors.sessions.host._stored import StoredValues, size_of

_TIMERS_MAX: Final = 100_000
_OUTPUT: Final = {"texts", "image", "audio"}


class Surroundings(Protocol):
    """What a cell needs of its session."""

    alarms: Alarms
    stored: StoredValues

    def acquire(self, cell: "RunningCell", /) -> None:
        """Give it a process."""

    def release(self, cell: "RunningCell", /, *, fit: bool) -> None:
        """Take its process back."""

    def kill(self, cell: "RunningCell", /) -> None:
        """Kill its process."""

    def call_tool(self, cell: "RunningCell", call_id: int, tool: Tool, input_json: str | None, /) -> None:
        """Send a tool call."""

    def cancel_calls(self, cell: "RunningCell", /) -> None:
        """Cancel its open tool calls."""

    def notify(self, cell: "RunningCell", text: str, /) -> None:
        """Send a notification."""


class RunningCell:
    """Hears the process of one cell and tells its machine."""

    def __init__(
        self,
        session: Surroundings,
        cell_id: str,
        *,
        execution_id: str,
        tool_call_id: str,
        source: str,
        tools: Sequence[Tool],
        output: Callable[[], Output],
    ) -> None:
        self._session, self._source, self._tools = session, source, tools
        self._process: EngineProcess | None = None
        self._number = 0
        self._timers: dict[int, Alarm] = {}
        self._writes: dict[str, str] = {}
        self._writes_bytes = 0
        self._stopping = False
        self._deadline: Alarm | None = None
        self.machine: Cell = Cell(cell_id, output)
        self.cell_id: str = cell_id
        self.execution_id: str = execution_id
        self.tool_call_id: str = tool_call_id
        self.sequence = 0
        """The number of its latest tool call that was sent."""
        self.stems: dict[str, bytes] = {}
        """What the calls of each of its tools begin with."""
        self.finished_ns: int | None = None
        """When its script ended: in whole nanoseconds, as durations are told, so not on the run's clock of floats."""
        self.started: bool = False
        """Whether its script was given to a process."""
        self.on_start: Callable[[], object] | None = None
        """Called when it does."""
        self.closed = False
        """Whether its end was told."""

    def begin(self) -> None:
        """Ask for a process and run."""
        self._session.acquire(self)

    def run_in(self, process: EngineProcess, /) -> None:
        """Start, in this process."""
        self._process, self._number = process, process.cells
        stored = self._session.stored
        process.stored_seen, changes = stored.since(process.stored_seen)
        process.send(["run", self._number, self._source, for_prelude(self._tools), changes, stored.bytes_max])
        self._source = ""
        self.started = True
        if self.on_start is not None:
            self.on_start()

    def settle(self, call_id: int, good: bool, text: str, /) -> None:
        """Give the script the answer of a tool call."""
        if self._process is not None:
            self._process.write(encode_answer(self._number, call_id, good, text))

    def frame(self, frame: Frame, /) -> None:
        """Take one frame of the process."""
        if not self._stopping or frame[0] in _OUTPUT:
            self._FRAMES[frame[0]](self, *frame[2:])

    def _texts(self, texts: Sequence[bytes], *_: object) -> None:
        self.machine.put(texts)

    def _image(self, url: str, detail: str, *_: object) -> None:
        self.machine.put([ImageItem(_string(url), _string(detail))])

    def _audio(self, url: str, *_: object) -> None:
        self.machine.put([long_enough(AudioItem(_string(url)))])

    def _store(self, key: str, json: str, *_: object) -> None:
        key, json = _string(key), _string(json)
        self._writes_bytes += size_of(key, json)
        if (before := self._writes.get(key)) is not None:
            self._writes_bytes -= size_of(key, before)
        if self._writes_bytes > self._session.stored.bytes_max:
            raise ValueError("a cell that stores more than it was told that it may")
        self._writes[key] = json

    def _full(self, *_: object) -> None:
        self._session.stored.refused += 1

    def _notify(self, text: str, *_: object) -> None:
        self._session.notify(self, _string(text))

    def _call(self, call_id: int, tool: int, input_json: str | None, *_: object) -> None:
        self._session.call_tool(self, int(call_id), self._tools[tool], input_json)

    def _timer(self, timer_id: int, delay_ms: float, *_: object) -> None:
        if len(self._timers) >= _TIMERS_MAX:
            raise ValueError("a cell with too many timers")
        self._timers[timer_id] = self._session.alarms.set(delay_ms / 1000, lambda: self._fire(timer_id))

    def _clear(self, timer_id: int, *_: object) -> None:
        if (alarm := self._timers.pop(timer_id, None)) is not None:
            alarm.cancel()

    def _fire(self, timer_id: int) -> None:
        del self._timers[timer_id]
        if self._process is not None:
            self._process.send(["fire", self._number, timer_id])

    def _yield(self, *_: object) -> None:
        self.machine.interrupt()

    def _done(self, error: str | None, unfit: bool, *_: object) -> None:
        if self.machine.phase is not Phase.RUNNING:
            return
        self._session.release(self, fit=not unfit)
        self._let_go()
        refused = self._session.stored.commit(self._writes)
        self._finish("\n".join(filter(None, (error, refused))) if refused else error)

    _FRAMES: Final[dict[str, Callable[..., None]]] = {
        "texts": _texts,
        "image": _image,
        "audio": _audio,
        "store": _store,
        "full": _full,
        "notify": _notify,
        "call": _call,
        "timer": _timer,
        "clear": _clear,
        "yield": _yield,
        "done": _done,
    }

    def process_ended(self, why: str, /) -> None:
        """Learn that the process is gone: its writes are dropped, its output is kept."""
        if self.machine.phase is Phase.RUNNING:
            self._session.release(self, fit=False)
            self._let_go()
            self._finish(why)

    def _finish(self, error: str | None) -> None:
        self.finished_ns = time.perf_counter_ns()
        self.machine.finish(error)

    def end_after(self, deadline_s: float) -> None:
        """End it with an error if it runs longer than that."""
        self._deadline = self._session.alarms.set(deadline_s, lambda: self._overdue(deadline_s))

    def _overdue(self, deadline_s: float) -> None:
        if self.machine.phase is Phase.RUNNING:
            self._session.kill(self)
            self._let_go()
            self._finish(f"exec cell ran longer than its deadline of {deadline_s} s")

    def terminate(self, tokens: int) -> Outcome | None:
        """Stop it at once; its writes are dropped."""
        if self.machine.phase is Phase.RUNNING:
            # Output that it wrote before is still read; a result among it comes too late.
            self._writes.clear()
            self._stopping = True
            self._session.kill(self)
            self._let_go()
        return self.machine.terminate(tokens)

    def _let_go(self) -> None:
        self._process = None
        if self._deadline is not None:
            # It holds the cell and all that it put out.
            self._deadline.cancel()
        for alarm in self._timers.values():
            alarm.cancel()
        self._timers.clear()
        self._session.cancel_calls(self)


def _string(text: Any) -> str:
    if type(text) is not str:
        raise TypeError(f"an engine process wrote {type(text).__name__} where text belongs")
    # JSON can spell half a code point, which nothing behind this can write.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
