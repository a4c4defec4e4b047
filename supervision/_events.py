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
    """A child said that it can serve.

    Attributes:
        path, generation, at_s, position: Whose event and of which life (the first is 1), when on the run's clock, and
            its number in the whole tree (a jump is a gap).
    """


@attrs.frozen(kw_only=True)
class ChildStartFailed(_ChildEvent):
    """A child ended, or its time ran out, before it said that it can serve.

    Attributes:
        cause: What it raised; None when it returned, was stopped or was too slow.
        path, generation, at_s, position: Whose event and of which life (the first is 1), when on the run's clock, and
            its number in the whole tree (a jump is a gap).
    """

    cause: BaseException | None = attrs.field(eq=False)


@attrs.frozen(kw_only=True)
class ChildExited(_ChildEvent):
    """The task of a child that was up, or was being stopped, has ended.

    Attributes:
        kind: How.
        asked: Whether its supervisor had asked it to stop, or killed it.
        cause: What it raised, if it raised.
        path, generation, at_s, position: Whose event and of which life (the first is 1), when on the run's clock, and
            its number in the whole tree (a jump is a gap).
    """

    kind: ExitKind
    asked: bool
    cause: BaseException | None = attrs.field(eq=False)


@attrs.frozen(kw_only=True)
class ChildAsked(_ChildEvent):
    """A child was asked to stop.

    Attributes:
        shutdown_s: How long it has before it is killed; may be infinite.
        path, generation, at_s, position: Whose event and of which life (the first is 1), when on the run's clock, and
            its number in the whole tree (a jump is a gap).
    """

    shutdown_s: float


@attrs.frozen(kw_only=True)
class ChildKilled(_ChildEvent):
    """A child was cancelled, without being asked or after it had been asked in vain.

    Attributes:
        path, generation, at_s, position: Whose event and of which life (the first is 1), when on the run's clock, and
            its number in the whole tree (a jump is a gap).
    """


@attrs.frozen(kw_only=True)
class ChildStuck(_ChildEvent):
    """A child still runs a while after it was killed, and nothing more can be done about it.

    Attributes:
        waited_s: How long ago it was killed.
        path, generation, at_s, position: Whose event and of which life (the first is 1), when on the run's clock, and
            its number in the whole tree (a jump is a gap).
    """

    waited_s: float


@attrs.frozen(kw_only=True)
class ChildRestarting(_ChildEvent):
    """It was decided to bring a child back; the generation is the one that ended.

    Attributes:
        delay_s: How long its backoff makes it wait; 0 is at once.
        restarts_in_window: How many restarts the supervisor has made within the period, with this one if it has
            been counted.
        cause: What ended it.
        path, generation, at_s, position: Whose event and of which life (the first is 1), when on the run's clock, and
            its number in the whole tree (a jump is a gap).
    """

    delay_s: float
    restarts_in_window: int
    cause: BaseException | None = attrs.field(eq=False)


@attrs.frozen(kw_only=True)
class SupervisorStopping(_Event):
    """A supervisor began to stop its children.

    Attributes:
        why: ``asked``, ``intensity`` or ``auto_shutdown``.
        path, at_s, position: Whose event, when on the run's clock, and its number in the whole tree (a jump is a gap).
    """

    why: str


@attrs.frozen(kw_only=True)
class SupervisorStopped(_Event):
    """A supervisor has no child left running and ends.

    Attributes:
        why: ``asked``, ``intensity`` or ``auto_shutdown``.
        path, at_s, position: Whose event, when on the run's clock, and its number in the whole tree (a jump is a gap).
    """

    why: str


@attrs.frozen(kw_only=True)
class EventsDropped(_Event):
    """This reader was too slow: the oldest of its unread events were dropped here.

    Attributes:
        dropped: How many since the last event it read; ``position`` is that of the first of them.
        path, at_s, position: Whose event, when on the run's clock, and its number in the whole tree (a jump is a gap).
    """

    dropped: int


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
