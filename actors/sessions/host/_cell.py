"""A cell as a state machine: what it has put out, who observes it, how it ended.

A cell is running, or finished with a result that nobody has taken, or over. Only a running cell takes output and
only it can be interrupted; a finished one gives its result to whoever asks next, and is over; so does a terminated
one, to its observer and its terminator alike. Nothing here waits: an observer is settled by a plain call, exactly
once, in the step in which its observation ends.
"""

import enum
from collections.abc import Callable, Sequence

import attrs

from actors.sessions.grpc import Abort, StatusCode
from actors.sessions.host._items import Written
from actors.sessions.host._outputs import Ending, Outcome, Output


class Phase(enum.Enum):
    """What a cell is doing."""

    RUNNING = "running"
    """Its script has not ended."""
    FINISHED = "finished"
    """It has ended, and its result waits to be taken."""
    OVER = "over"
    """Its last event was taken; it is unknown from now on."""


@attrs.define(eq=False)
class Observer:
    """One pending request for the next event of a cell."""

    tokens: int
    """Its budget in Server mode."""

    settle: Callable[[Outcome], object]
    """Called once, with the event."""


class Cell:
    """The machine of one cell."""

    def __init__(self, cell_id: str, output: Callable[[], Output]) -> None:
        self.cell_id = cell_id
        self.phase: Phase = Phase.RUNNING
        self._new_output, self._output = output, output()
        self._error: str | None = None
        self._observer: Observer | None = None

    @property
    def observed(self) -> bool:
        """Whether somebody waits for its next event."""
        return self._observer is not None

    def put(self, items: Sequence[Written]) -> None:
        """Take output."""
        if self.phase is Phase.RUNNING:
            self._output.add(items)

    def observe(self, observer: Observer) -> None:
        """Let an observer have the next event, at once if it is there.

        Raises:
            Abort: Somebody observes it already, and is not disturbed.
        """
        if self._observer is not None:
            raise Abort(StatusCode.FAILED_PRECONDITION, f"exec cell {self.cell_id} already has an active observer")
        if self.phase is Phase.FINISHED:
            self._give_result(observer)
        else:
            self._observer = observer

    def retire(self, observer: Observer) -> None:
        """Forget an observer that does not wait any more; nothing is lost."""
        if self._observer is observer:
            self._observer = None

    def interrupt(self, observer: Observer | None = None) -> None:
        """End the present observation as yielded; without an observer, or for another one, nothing happens."""
        present = self._observer
        if self.phase is Phase.RUNNING and present is not None and observer in {None, present}:
            self._observer = None
            output, self._output = self._output, self._new_output()
            present.settle(output.outcome(Ending.YIELDED, None, present.tokens))

    def finish(self, error: str | None) -> None:
        """End the script; the result goes to the observer, or waits for one."""
        if self.phase is not Phase.RUNNING:
            return
        self.phase, self._error = Phase.FINISHED, error
        observer, self._observer = self._observer, None
        if observer is not None:
            self._give_result(observer)

    def terminate(self, tokens: int) -> Outcome | None:
        """Stop the cell and return what the terminator is told; a result that waits is told instead. None: over."""
        match self.phase:
            case Phase.OVER:
                return None
            case Phase.FINISHED:
                self.phase = Phase.OVER
                return self._output.outcome(Ending.COMPLETED, self._error, tokens)
            case Phase.RUNNING:
                self.phase = Phase.OVER
                observer, self._observer = self._observer, None
                if observer is not None:
                    observer.settle(self._output.outcome(Ending.TERMINATED, None, observer.tokens))
                return self._output.outcome(Ending.TERMINATED, None, tokens)

    def _give_result(self, observer: Observer) -> None:
        self.phase = Phase.OVER
        observer.settle(self._output.outcome(Ending.COMPLETED, self._error, observer.tokens))
