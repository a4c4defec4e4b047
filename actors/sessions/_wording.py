"""Say what a host answered, in words that depend on its code and message alone.

Tests compare these texts, so metadata and transport never enter them.
"""

import enum
from typing import Final

from actors.sessions.grpc import MessageTooLarge, Status, StatusCode

MESSAGE_BYTES_MAX: Final = 512
_CUT: Final = "..."


class Operation(enum.Enum):
    """What was asked of the host, as texts name it."""

    TRANSPORT_CONNECTION = "transport connection"
    SESSION_OPENING = "session opening"
    SESSION_LEASE = "session lease"
    TOOL_SUBSCRIPTION = "tool subscription"
    EXECUTION = "execution"
    EXECUTION_STARTING_EVENT = "execution starting event"
    EXECUTION_OUTCOME = "execution outcome"
    CELL_CLOSURE = "cell closure"
    WAIT = "wait"
    WAIT_CANCELLATION = "wait cancellation"
    TERMINATION = "termination"
    TOOL_INVOCATION_COMPLETION = "tool invocation completion"
    YIELD_OBSERVATION = "yield observation"
    SESSION_SHUTDOWN = "session shutdown"


_MEANING: Final = {
    StatusCode.OK: "The call succeeded",
    StatusCode.CANCELLED: "The call was cancelled",
    StatusCode.UNKNOWN: "The cause is not known",
    StatusCode.INVALID_ARGUMENT: "The request is not valid",
    StatusCode.DEADLINE_EXCEEDED: "The deadline passed first",
    StatusCode.NOT_FOUND: "What was asked for does not exist",
    StatusCode.ALREADY_EXISTS: "What was to be made exists already",
    StatusCode.PERMISSION_DENIED: "The caller has no right to this",
    StatusCode.RESOURCE_EXHAUSTED: "A limit is used up",
    StatusCode.FAILED_PRECONDITION: "The state does not allow this",
    StatusCode.ABORTED: "The call was given up",
    StatusCode.OUT_OF_RANGE: "The request or answer is out of range",
    StatusCode.UNIMPLEMENTED: "The host does not know this call",
    StatusCode.INTERNAL: "Something broke inside",
    StatusCode.UNAVAILABLE: "The host is not available now",
    StatusCode.DATA_LOSS: "Data was lost",
    StatusCode.UNAUTHENTICATED: "The caller did not say who it is",
}


def status_text(code: StatusCode, message: str) -> str:
    """Describe a status: what its code means, and the host's message, cut at 512 bytes."""
    return f"'{_MEANING[code]}' ({code.name}), message: \"{cut_message(message)}\""


def cut_message(message: str) -> str:
    """Keep a message within 512 bytes, cut between characters and ended with three dots."""
    data = message.encode("utf-8", "replace")
    if len(data) <= MESSAGE_BYTES_MAX:
        return message
    return data[: MESSAGE_BYTES_MAX - len(_CUT)].decode("utf-8", "ignore") + _CUT


def oversize_status(oversize: MessageTooLarge) -> Status:
    """Say at either end that a message is over its limit, in the words of deployed hosts."""
    which = "decoded" if oversize.inbound else "encoded"
    return Status(
        StatusCode.OUT_OF_RANGE,
        f"Error, {which} message length too large: found {oversize.found_bytes} bytes, "
        f"the limit is: {oversize.limit_bytes} bytes",
    )


def call_failed_text(operation: Operation, code: StatusCode, message: str) -> str:
    """Say that a call to the host failed."""
    return f"gRPC code-mode {operation.value} failed: {status_text(code, message)}"


def timed_out_text(operation: Operation) -> str:
    """Say that the host did not answer in time."""
    return f"gRPC code-mode host timed out waiting for {operation.value} response"
