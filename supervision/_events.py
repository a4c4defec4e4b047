"""What supervisors tell: each step and each decision, with its grounds."""

import attrs

from supervision._exits import ExitKind

__all__ = [
    "ChildAsked",
    "ChildExited",
    "ChildKilled",
    "ChildRestarting",
    "ChildStartFailed",
    "ChildStarted",
    "ChildStuck",
    "Event",
    "EventsDropped",
    "SupervisorStopped",
    "SupervisorStopping",
]


@attrs.frozen(kw_only=True)
class _Event:
    path: str
    """Whose event this is, from the root down: ``root/relay``."""
    at_s: float
    """When, on the clock of the run."""
    position: int = 0
    """Counts the events of the whole tree while somebody listens; a jump is a gap."""


@attrs.frozen(kw_only=True)
class _ChildEvent(_Event):
    generation: int
    """Which life of the child; the first is 1."""


@attrs.frozen(kw_only=True)
class ChildStarted(_ChildEvent):
    """A child said that it can serve."""


@attrs.frozen(kw_only=True)
class ChildStartFailed(_ChildEvent):
    """A child ended, or its time ran out, before it said that it can serve."""

    cause: BaseException | None = attrs.field(eq=False)
    """What it raised; None when it returned, was stopped or was too slow."""


@attrs.frozen(kw_only=True)
class ChildExited(_ChildEvent):
    """The task of a child that was up, or was being stopped, has ended."""

    kind: ExitKind
    """How."""
    asked: bool
    """Whether its supervisor had asked it to stop, or killed it."""
    cause: BaseException | None = attrs.field(eq=False)
    """What it raised, if it raised."""


@attrs.frozen(kw_only=True)
class ChildAsked(_ChildEvent):
    """A child was asked to stop."""

    shutdown_s: float
    """How long it has before it is killed; may be infinite."""


@attrs.frozen(kw_only=True)
class ChildKilled(_ChildEvent):
    """A child was cancelled, without being asked or after it had been asked in vain."""


@attrs.frozen(kw_only=True)
class ChildStuck(_ChildEvent):
    """A child still runs a while after it was killed, and nothing more can be done about it."""

    waited_s: float
    """How long ago it was killed."""


@attrs.frozen(kw_only=True)
class ChildRestarting(_ChildEvent):
    """It was decided to bring a child back; the generation is the one that ended."""

    delay_s: float
    """How long its backoff makes it wait; 0 is at once."""
    restarts_in_window: int
    """How much of the supervisor's budget is used, this restart included if it has been counted."""
    cause: BaseException | None = attrs.field(eq=False)
    """What ended it."""


@attrs.frozen(kw_only=True)
class SupervisorStopping(_Event):
    """A supervisor began to stop its children."""

    why: str
    """``asked``, ``intensity`` or ``auto_shutdown``."""


@attrs.frozen(kw_only=True)
class SupervisorStopped(_Event):
    """A supervisor has no child left running and ends."""

    why: str
    """``asked``, ``intensity`` or ``auto_shutdown``."""


@attrs.frozen(kw_only=True)
class EventsDropped(_Event):
    """This reader was too slow: the oldest of its unread events were dropped here."""

    dropped: int
    """How many since the last event it read; ``position`` is that of the first of them."""


Event = (
    ChildStarted
    | ChildStartFailed
    | ChildExited
    | ChildAsked
    | ChildKilled
    | ChildStuck
    | ChildRestarting
    | SupervisorStopping
    | SupervisorStopped
    | EventsDropped
)
"""Every kind of event."""
