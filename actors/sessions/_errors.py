"""What can go wrong with a code session. Each error holds facts; the texts are those other clients of the host use."""

from typing import Final

import attrs

from actors.sessions._invalid import InvalidArgument as InvalidArgument
from actors.sessions._invalid import InvalidRequest as InvalidRequest
from actors.sessions._invalid import SessionsError as SessionsError
from actors.sessions._responses import ToolCall
from actors.sessions._wording import Operation, call_failed_text, timed_out_text
from actors.sessions.grpc import StatusCode


class InvalidEndpoint(SessionsError, ValueError):
    """The URL of the host cannot be used; the text never repeats credentials."""


class SessionClosed(SessionsError):
    """The session was shut down by its holder, or its provider has ended."""

    def __init__(self, text: str = "code mode session is shutting down") -> None:
        super().__init__(text)


class SessionStopped(SessionsError):
    """The binding of the session to its host ended while this call was under way.

    Whether the host had done what was asked is not known. The cause says why it ended.
    """

    def __init__(self) -> None:
        super().__init__("gRPC code-mode session closed")


_TOO_LARGE: Final = (
    "It was not sent again, and the rest cannot be fetched. Let the script put out less before each yield_control() "
    "and wait for the parts, or open the session with OutputTruncation.SERVER; let a tool give what is too large for a "
    "source."
)


class HostCallFailed(SessionsError):
    """The host answered a call with a failure."""

    def __init__(self, operation: Operation, code: StatusCode, message: str) -> None:
        super().__init__(call_failed_text(operation, code, message))
        self.operation: Operation = operation
        self.code: StatusCode = code
        self.message: str = message
        if code is StatusCode.OUT_OF_RANGE:
            # The text is the same for all clients; what to do about it stands beside it.
            self.add_note(_TOO_LARGE)


class HostUnavailable(HostCallFailed):
    """The host could not be reached, was lost, or has no room now. Another try may help."""


class HostTimedOut(HostUnavailable):
    """The host did not answer within the bound of the operation; its session counts as lost."""

    def __init__(self, operation: Operation) -> None:
        text = timed_out_text(operation)
        super().__init__(operation, StatusCode.DEADLINE_EXCEEDED, text)
        self.args: tuple[object, ...] = (text,)


def call_failed(operation: Operation, code: StatusCode, message: str) -> HostCallFailed:
    """Make the error for a failed call: `HostUnavailable` where another try may help."""
    unavailable = code in {StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED}
    return (HostUnavailable if unavailable else HostCallFailed)(operation, code, message)


class ProtocolViolation(SessionsError):
    """The host said something that the protocol has no place for; its session is given up."""


class OutputModeChanged(SessionsError):
    """A replacement host cuts output in another place than the session was promised.

    The session keeps its mode. The next call tries again, which helps once a fitting host is there.
    """

    def __init__(self) -> None:
        super().__init__("gRPC code-mode host changed the session output truncation mode on reconnect")


class UnexpectedOutputMode(SessionsError):
    """The host chose to cut output although it was not asked to."""

    def __init__(self, selected: str, requested: str) -> None:
        super().__init__(f"gRPC code-mode host selected {selected} output truncation, requested {requested}")
        self.selected: str = selected
        self.requested: str = requested


class StaleGeneration(SessionsError):
    """The cell lived in a host session that is gone. Nothing was sent."""

    def __init__(self, cell_id: str, generation: int) -> None:
        super().__init__("cell belongs to a stale code-mode host generation")
        self.add_note(
            f"cell {cell_id!r:.200} is not of generation {generation}, in which this session is now: its cells are "
            f"called g{generation}:N, and those of an earlier one ended with their host"
        )
        self.cell_id: str = cell_id
        self.generation: int = generation


class CellBusy(SessionsError):
    """Another wait of this client observes the cell; at most one may."""

    def __init__(self, cell_id: str) -> None:
        super().__init__(f"exec cell {cell_id} already has an active observer")
        self.cell_id = cell_id


class ResponseTaken(SessionsError):
    """The first response of a cell was taken before, or the cell was abandoned; use `Session.wait`."""

    def __init__(self, cell_id: str) -> None:
        super().__init__(
            f"the initial response of cell {cell_id} was taken or abandoned before; wait for the cell instead"
        )
        self.cell_id = cell_id


class ToolFailed(SessionsError):
    """Raise this in `Delegate.call_tool` to reject the call in the script, with this text."""


@attrs.frozen(kw_only=True)
class Lost:
    """What is known to have been lost with one generation of a session.

    Attributes:
        generation: Which.
        running_cells: Cells that had not ended, in the order they began.
        unanswered_tool_calls: Calls given to a delegate whose answer the host never acknowledged. They may have had
            their effect.
        stored_keys: Keys of the stored values, where a journal was kept; None: not known.
        cause: Why the generation ended.
    """

    generation: int

    running_cells: tuple[str, ...] = ()

    unanswered_tool_calls: tuple[ToolCall, ...] = ()

    stored_keys: tuple[str, ...] | None = None

    cause: SessionsError = attrs.field(eq=False)


class SessionReset(SessionsError):
    """The host session was replaced since this call was made. The call was not sent, nothing was replayed.

    Calls made from now on run in the new generation, whose stored values are empty, but for `restored_keys`.
    """

    def __init__(self, lost: Lost, generation: int, restored_keys: tuple[str, ...] = ()) -> None:
        restored = f" Of the stored values, the client's journal has put back: {_listed(restored_keys)}."
        super().__init__(
            "The exec runtime was replaced. Stored values and running cells were lost. "
            "Prior external tool operations may have completed; inspect their results before retrying. "
            f"You may continue with a fresh exec call.{restored if restored_keys else ''}"
        )
        self.lost: Lost = lost
        self.generation: int = generation
        self.restored_keys: tuple[str, ...] = restored_keys


def _listed(keys: tuple[str, ...]) -> str:
    shown = ", ".join(repr(key if len(key) <= 40 else f"{key[:37]}...") for key in keys[:8])
    return shown if len(keys) <= 8 else f"{shown} and {len(keys) - 8} more"


class WaitNotRetired(SessionsError):
    """A wait whose caller went away could not be withdrawn, so its session is given up."""

    def __init__(self, why: str) -> None:
        super().__init__(f"failed to retire canceled gRPC code-mode wait: {why}")
