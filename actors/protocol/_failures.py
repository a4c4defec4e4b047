"""Error codes and texts, exactly as they travel."""

import enum
from typing import Any, Final

from actors.protocol._envelope import ErrorResponse, Failure
from actors.protocol._faults import InvalidParams
from actors.protocol._methods import Family
from actors.protocol._shapes import shortened

UNREADABLE_ID: Final = -1
"""The id in an answer to a message that had none to read."""


class ErrorCode(enum.IntEnum):
    """What a failure's number means.

    Attributes:
        INVALID_REQUEST: It has no place here: out of order, or about what is not there.
        METHOD_NOT_FOUND: There is no such method.
        INVALID_PARAMS: A parameter breaks a rule.
        INTERNAL: The operating system or the other end failed.
        NOT_FOUND: There is nothing at this path.
        SESSION_ATTACHED: Another connection holds this session.
        TRANSPORT_CLOSED: The connection is gone; never sent, only told to callers.
    """

    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603
    NOT_FOUND = -32004
    SESSION_ATTACHED = -32010
    TRANSPORT_CLOSED = -32000


class SpawnFailureKind(enum.Enum):
    """Why a process could not be started: member ``kind`` of the failure's data.

    Attributes:
        NOT_FOUND: There is no such program or working folder.
        PERMISSION_DENIED: It may not be run, or not there.
        FAILED: Any other reason.
    """

    NOT_FOUND = "spawnNotFound"
    PERMISSION_DENIED = "spawnPermissionDenied"
    FAILED = "spawnFailed"


def invalid_request(message: str, data: Any = None) -> Failure:
    """Say that a request has no place here."""
    return Failure(ErrorCode.INVALID_REQUEST, message, data)


def invalid_params(fault: InvalidParams | str) -> Failure:
    """Say which rule a parameter breaks, in the wire's words: these do not name the member."""
    return Failure(ErrorCode.INVALID_PARAMS, fault if isinstance(fault, str) else fault.rule)


def internal(message: str, data: Any = None) -> Failure:
    """Say that the operating system or we failed."""
    return Failure(ErrorCode.INTERNAL, message, data)


def method_not_found(method: str) -> Failure:
    """Say that there is no such method."""
    return Failure(ErrorCode.METHOD_NOT_FOUND, f"exec-server stub does not implement `{shortened(method)}` yet")


def initialize_first(family: Family) -> Failure:
    """Refuse a method before `initialize`."""
    return invalid_request(f"client must call initialize before using {family.value} methods")


def initialized_first(family: Family) -> Failure:
    """Refuse a method between `initialize` and `initialized`."""
    return invalid_request(f"client must send initialized before using {family.value} methods")


def initialize_once() -> Failure:
    """Refuse a second `initialize` on one connection."""
    return invalid_request("initialize may only be sent once per connection")


def unknown_session(session_id: str) -> Failure:
    """Refuse to resume a session that is not there, or no longer."""
    return invalid_request(f"unknown session id {session_id}")


def session_attached(session_id: str) -> Failure:
    """Refuse to resume a session that another connection holds."""
    return Failure(ErrorCode.SESSION_ATTACHED, f"session {session_id} is already attached to another connection")


def unknown_process(process_id: str) -> Failure:
    """Refuse to read from a process that is not there."""
    return invalid_request(f"unknown process id {process_id}")


def process_exists(process_id: str) -> Failure:
    """Refuse a second process of one id."""
    return invalid_request(f"process {process_id} already exists")


def argv_empty() -> Failure:
    """Refuse to start nothing."""
    return invalid_params("argv must not be empty")


def write_id_empty() -> Failure:
    """Refuse a write that could not be told from another."""
    return invalid_params("writeId must not be empty")


def stdin_write_failed() -> Failure:
    """Say that a process that had standard input has it no more."""
    return internal("failed to write to process stdin")


def cwd_foreign(uri: str, platform: str) -> Failure:
    """Refuse a working folder that cannot be on this machine."""
    uri = shortened(uri)
    return invalid_params(f"cwd URI `{uri}` is not valid on this exec-server host: '{uri}' is invalid on '{platform}'")


def spawn_failed(kind: SpawnFailureKind, message: str) -> Failure:
    """Say why a process could not be started."""
    return internal(message, {"kind": kind.value})


def os_failure_text(errno: int, text: str) -> str:
    """Write an operating system's error: "No such file or directory (os error 2)"."""
    return f"{text} (os error {errno})"


def unreadable_message(peer: str, reason: str) -> ErrorResponse:
    """Answer a message that could not be read, on a plain WebSocket; ``peer`` is `ip:port`."""
    text = f"failed to parse websocket JSON-RPC message from exec-server websocket {peer}: {reason}"
    return ErrorResponse(UNREADABLE_ID, invalid_request(text))
