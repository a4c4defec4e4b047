"""What an executor tells its observer: who started, ended, stayed alive or was turned away. Names, never values."""

from collections.abc import Callable

import attrs

from actors.protocol import Survivor

__all__ = [
    "ConnectionEnded",
    "ConnectionRefused",
    "ExecutorEvent",
    "Observer",
    "ProcessEnded",
    "ProcessStarted",
    "ProcessWillNotDie",
    "SessionAttached",
    "SessionDetached",
    "SessionEnded",
]


@attrs.frozen(kw_only=True)
class ConnectionRefused:
    """A peer was turned away before it could say anything."""

    peer: str
    """Its address."""
    reason: str
    """Why."""


@attrs.frozen(kw_only=True)
class ConnectionEnded:
    """A connection is over."""

    peer: str
    """Its address."""
    reason: str
    """Why."""


@attrs.frozen(kw_only=True)
class SessionAttached:
    """A connection opened or resumed a session."""

    session_id: str
    """Which."""
    resumed: bool
    """Whether it existed before."""
    client_name: str
    """What the client calls itself."""


@attrs.frozen(kw_only=True)
class SessionDetached:
    """A session lost its connection; its processes run on for a while."""

    session_id: str
    """Which."""
    processes: int
    """How many run."""


@attrs.frozen(kw_only=True)
class SessionEnded:
    """A session was not resumed in time; its processes were killed."""

    session_id: str
    """Which."""
    processes: int
    """How many ran until now."""


@attrs.frozen(kw_only=True)
class ProcessStarted:
    """A process runs."""

    session_id: str
    """Whose."""
    process_id: str
    """The client's name for it."""
    pid: int
    """The system's number."""
    program: str
    """What was executed, without its arguments."""
    inherited_names: tuple[str, ...]
    """Variables passed on from the executor's own environment."""


@attrs.frozen(kw_only=True)
class ProcessEnded:
    """A process is over and its output closed."""

    session_id: str
    """Whose."""
    process_id: str
    """The client's name for it."""
    pid: int
    """The system's number."""
    exit_code: int
    """128 + n after a death by signal n."""
    drain_limited: bool
    """Whether its output was given up while somebody still held it."""
    survivors: tuple[Survivor, ...]
    """Whom it left running behind."""
    killed_outside: tuple[Survivor, ...]
    """Whom a kill of its group would have missed, and who was killed one by one."""


@attrs.frozen(kw_only=True)
class ProcessWillNotDie:
    """A process was killed and did not die within the limit; it stays unreaped."""

    session_id: str
    """Whose."""
    process_id: str
    """The client's name for it."""
    pid: int
    """The system's number."""


ExecutorEvent = (
    ConnectionEnded
    | ConnectionRefused
    | ProcessEnded
    | ProcessStarted
    | ProcessWillNotDie
    | SessionAttached
    | SessionDetached
    | SessionEnded
)

Observer = Callable[[ExecutorEvent], None]
"""Called in the executor's own task; it must return soon and not raise."""
