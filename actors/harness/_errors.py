"""What can go wrong between a harness and its executor.

Two questions are answered by type. What became of the call: `DidNotRun`, `MayHaveRun`, `Failed`. And what broke: the
other classes, whose texts are those of the other implementation, word for word.
"""

from typing import Any

from actors import ActorsError
from actors.harness._wording import duration_text, shown_text, shown_url


class HarnessError(ActorsError):
    """Something went wrong between this harness and its executor."""

    retry_after_s: float | None = None
    """When the other side asked to be tried again, counted from the error; None if it did not say."""


class DidNotRun(HarnessError):
    """The call never reached the executor: it is safe to make it again."""


class MayHaveRun(HarnessError):
    """The call may or may not have had its effect; making it again may do it twice."""


class Failed(HarnessError):
    """The executor answered the call with a refusal or a failure."""


class InvalidArgument(DidNotRun, ValueError):
    """An argument breaks a rule; nothing was sent."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field: str = field
        self.rule: str = rule


class ProtocolBroken(HarnessError):
    """The peer did what the protocol forbids."""

    def __init__(self, message: str) -> None:
        super().__init__(f"exec-server protocol error: {message}")
        self.message = message


class Disconnected(HarnessError):
    """The connection was lost."""

    def __init__(self, reason: str | None = None) -> None:
        text = "exec-server transport disconnected"
        super().__init__(f"{text}: {reason}" if reason else text)
        self.reason = reason


class RecoveryFailed(Disconnected):
    """The connection was lost and the session could not be resumed."""

    def __init__(self, lost: HarnessError, reason: str) -> None:
        HarnessError.__init__(self, f"{lost}; failed to resume exec-server session: {reason}")
        self.reason = reason


class TransportClosed(HarnessError):
    """We closed the connection."""

    def __init__(self) -> None:
        super().__init__("exec-server transport closed")


class SessionRetired(HarnessError):
    """We gave the session up for a reason of ours; it is not resumed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CallNotSent(DidNotRun):
    """A call was withdrawn before the first of its bytes was written."""

    def __init__(self, method: str, reason: HarnessError, *, identity: str = "") -> None:
        super().__init__(f"{_call_text(method, identity)} was not sent: {reason}")
        self.method: str = method
        self.reason: HarnessError = reason
        self.identity: str = identity


class AnswerLost(MayHaveRun):
    """A call was written, and the connection was lost before its answer came."""

    def __init__(self, method: str, reason: HarnessError, *, identity: str = "") -> None:
        super().__init__(f"{_call_text(method, identity)} may have run, its answer was lost: {reason}")
        self.method: str = method
        self.reason: HarnessError = reason
        self.identity: str = identity


class CallTimedOut(MayHaveRun, TimeoutError):
    """No answer came in time; one that comes later is dropped and counted."""

    def __init__(self, method: str, timeout_s: float) -> None:
        super().__init__(f"timed out waiting for exec-server `{method}` response after {duration_text(timeout_s)}")
        self.method: str = method
        self.timeout_s: float = timeout_s


class TooManyCalls(DidNotRun):
    """As many calls are open as may be."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"exec-server has reached its limit of {limit} pending requests")
        self.limit = limit


class RequestTooLarge(DidNotRun):
    """A call is over the message limit; the connection stays up."""

    def __init__(self, method: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"`{method}` request of {size_bytes} bytes is over the limit of {limit_bytes} bytes; send it in pieces"
        )
        self.method: str = method
        self.size_bytes: int = size_bytes
        self.limit_bytes: int = limit_bytes


class RequestRejected(Failed):
    """The executor answered with an error; ``about`` is what we know of its object, which peers do not name."""

    def __init__(self, code: int, message: str, data: Any = None, *, about: str = "") -> None:
        super().__init__(f"exec-server rejected request ({code}): {message}" + (f": {about}" if about else ""))
        self.code: int = code
        self.message: str = message
        self.data: Any = data


class ProgramNotFound(RequestRejected):
    """There is no such program where the executor runs; nothing was started.

    An executor that does not say whether the program or the folder is missing makes it a plain `RequestRejected`.
    """


class WorkingFolderNotFound(RequestRejected):
    """There is no such folder where the executor runs; nothing was started."""


class AnswerUnreadable(Failed):
    """The executor answered with something that is no answer to this call."""

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(f"failed to serialize or deserialize exec-server JSON: `{method}` answer: {reason}")
        self.method: str = method
        self.reason: str = reason


class InitializeTimedOut(HarnessError, TimeoutError):
    """The executor took the connection and did not answer `initialize`."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"timed out waiting for exec-server initialize handshake after {duration_text(timeout_s)}")
        self.timeout_s = timeout_s


class WebSocketConnectTimedOut(DidNotRun, TimeoutError):
    """No WebSocket was established in time."""

    def __init__(self, url: str, timeout_s: float, *, hint: str = "") -> None:
        self.url: str = shown_url(url)
        self.timeout_s: float = timeout_s
        text = f"timed out connecting to exec-server websocket `{self.url}` after {duration_text(timeout_s)}"
        super().__init__(f"{text}{hint}")


class WebSocketConnectFailed(DidNotRun):
    """No WebSocket could be established."""

    def __init__(self, url: str, source: str, *, status: int | None = None) -> None:
        self.url: str = shown_url(url)
        self.source: str = source
        self.status: int | None = status
        super().__init__(f"failed to connect to exec-server websocket `{self.url}`: {source}")


class ProcessStateUnknown(MayHaveRun):
    """The connection is gone and took the fate of a process with it."""

    def __init__(self, process_id: str, position: int, reason: HarnessError) -> None:
        super().__init__(
            f"connection lost, process state unknown: process `{process_id}` after position {position}: {reason}"
        )
        self.process_id: str = process_id
        self.position: int = position
        self.reason: HarnessError = reason


class ProcessFailed(Failed):
    """A process ended without an exit of its own, or can no longer be followed."""

    def __init__(self, process_id: str, position: int, reason: str) -> None:
        super().__init__(f"process `{process_id}` failed after position {position}: {reason}")
        self.process_id: str = process_id
        self.position: int = position
        self.reason: str = reason


class ProcessNeverStarted(DidNotRun):
    """The answer to a start was lost, and the executor, asked again, knows of no such process."""

    def __init__(self, process_id: str) -> None:
        super().__init__(f"process `{process_id}` was not started: its executor does not know it after the reconnect")
        self.process_id = process_id


class OutputLost(HarnessError):
    """Part of a process's output is gone; reading on continues behind it."""

    def __init__(self, process_id: str, first_seq: int, last_seq: int) -> None:
        super().__init__(
            f"output of process `{process_id}` from position {first_seq} to {last_seq} is gone: it came faster than it "
            "was read; read on to continue behind the gap, or iterate chunks() to get gaps as values"
        )
        self.process_id: str = process_id
        self.first_seq: int = first_seq
        self.last_seq: int = last_seq


class ReaderBusy(HarnessError):
    """Another task is waiting for the output of this process."""

    def __init__(self, process_id: str) -> None:
        super().__init__(f"another task is reading the output of process `{process_id}`; give each process one reader")
        self.process_id = process_id


class StdinUnavailable(HarnessError):
    """Standard input of a process cannot do what was asked."""

    def __init__(self, process_id: str, why: str, *, program: str = "") -> None:
        super().__init__(f"standard input of {_process_text(process_id, program)} {why}")
        self.process_id = process_id


def _process_text(process_id: str, program: str) -> str:
    return f"process {shown_text(program)} (`{process_id}`)" if program else f"process `{process_id}`"


def _call_text(method: str, identity: str) -> str:
    return f"`{method}` of process `{identity}`" if identity else f"`{method}`"
