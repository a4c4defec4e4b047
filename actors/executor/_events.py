"""What an executor tells its observer: who started, ended, stayed alive or was turned away. Names, never values."""

from collections.abc import Callable

import attrs

from actors.protocol import Survivor

__all__ = [
    "ConnectionEnded",
    "ConnectionRefused",
    "ExecutorEvent",
    "HttpRequested",
    "Observer",
    "PathRefused",
    "ProcessEnded",
    "ProcessStarted",
    "ProcessWillNotDie",
    "SessionAttached",
    "SessionDetached",
    "SessionEnded",
]


@attrs.frozen(kw_only=True)
class ConnectionRefused:
    """A peer was turned away before it could say anything.

    Attributes:
        peer: Its address.
        reason: Why.
    """

    peer: str
    reason: str


@attrs.frozen(kw_only=True)
class ConnectionEnded:
    """A connection is over.

    Attributes:
        peer: Its address.
        reason: Why.
    """

    peer: str
    reason: str


@attrs.frozen(kw_only=True)
class SessionAttached:
    """A connection opened or resumed a session.

    Attributes:
        session_id: Which.
        resumed: Whether it existed before.
        client_name: What the client calls itself.
    """

    session_id: str
    resumed: bool
    client_name: str


@attrs.frozen(kw_only=True)
class SessionDetached:
    """A session lost its connection; its processes run on for a while.

    Attributes:
        session_id: Which.
        processes: How many run.
    """

    session_id: str
    processes: int


@attrs.frozen(kw_only=True)
class SessionEnded:
    """A session was not resumed in time; its processes were killed.

    Attributes:
        session_id: Which.
        processes: How many ran until now.
    """

    session_id: str
    processes: int


@attrs.frozen(kw_only=True)
class ProcessStarted:
    """A process runs.

    Attributes:
        session_id: Whose.
        process_id: The client's name for it.
        pid: The system's number.
        program: What was executed, without its arguments.
        inherited_names: Variables passed on from the executor's own environment.
    """

    session_id: str
    process_id: str
    pid: int
    program: str
    inherited_names: tuple[str, ...]


@attrs.frozen(kw_only=True)
class ProcessEnded:
    """A process is over and its output closed.

    Attributes:
        session_id: Whose.
        process_id: The client's name for it.
        pid: The system's number.
        exit_code: 128 + n after a death by signal n.
        drain_limited: Whether its output was given up while somebody still held it.
        survivors: Whom it left running behind.
        killed_outside: Whom a kill of its group would have missed, and who was killed one by one.
    """

    session_id: str
    process_id: str
    pid: int
    exit_code: int
    drain_limited: bool
    survivors: tuple[Survivor, ...]
    killed_outside: tuple[Survivor, ...]


@attrs.frozen(kw_only=True)
class ProcessWillNotDie:
    """A process was killed and did not die within the limit; it stays unreaped.

    Attributes:
        session_id: Whose.
        process_id: The client's name for it.
        pid: The system's number.
    """

    session_id: str
    process_id: str
    pid: int


@attrs.frozen(kw_only=True)
class HttpRequested:
    """An HTTP request was made for a client, and is over.

    Attributes:
        session_id: Whose.
        method: Such as ``GET``.
        host: Where to; path and query may be secrets.
        status: What was answered; ``None`` when nothing was.
    """

    session_id: str
    method: str
    host: str
    status: int | None


@attrs.frozen(kw_only=True)
class PathRefused:
    """A client asked for what lies outside the roots.

    Attributes:
        session_id: Whose client.
        method: What it asked, such as ``fs/readFile``.
        path: The path as it was asked for, never where it would have led.
    """

    session_id: str
    method: str
    path: str


ExecutorEvent = (
    ConnectionEnded
    | ConnectionRefused
    | HttpRequested
    | PathRefused
    | ProcessEnded
    | ProcessStarted
    | ProcessWillNotDie
    | SessionAttached
    | SessionDetached
    | SessionEnded
)

Observer = Callable[[ExecutorEvent], None]
"""Called in the executor's own task; it must return soon and not raise."""
