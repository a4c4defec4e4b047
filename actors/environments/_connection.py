"""The connection of one environment: whether its harness can be used, and what became of the attempts.

An environment has at most one attempt under way and at most one link; both carry the number of the attempt, counted
from 1. News of an earlier attempt is *stale*: it belongs to something that was given up, so it changes nothing
(`Connection.is_stale`). A start that failed for good is never tried again; one that failed for now is, by the next
operation. After a loss the next operation tries again whatever the last attempt said.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from actors.environments._errors import OutOfPlace


class ConnectionState(enum.Enum):
    """What a watcher of the connection sees.

    Attributes:
        CONNECTED: A link is up.
        DISCONNECTED: There is none: not yet, for the moment, or for good.
    """

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"


class Phase(enum.Enum):
    """Where the connection of an environment stands; see `CONNECTION_TRANSITIONS`.

    Attributes:
        NOT_STARTED: Nobody needed the link yet.
        STARTING: The first attempt is under way.
        START_FAILED: It failed for now; the next operation tries again.
        START_REFUSED: It failed for good, or the gate shut; it is not tried again.
        CONNECTED: The link is up.
        RECOVERING: The link was cut and resumes its session by itself.
        LOST: The link is gone; the next operation tries again.
        RECONNECTING: An attempt after a loss is under way.
        CLOSED: The environment has ended.
    """

    NOT_STARTED = "not started"
    STARTING = "starting"
    START_FAILED = "start failed"
    START_REFUSED = "start refused"
    CONNECTED = "connected"
    RECOVERING = "recovering"
    LOST = "lost"
    RECONNECTING = "reconnecting"
    CLOSED = "closed"


@attrs.frozen
class StartAsked:
    """Begin in the background, if that was never done."""

    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class OperationAsked:
    """Somebody needs the link now."""

    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class AttemptSucceeded:
    """The link is up and answers."""

    attempt: int
    """Which attempt."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class AttemptFailed:
    """The attempt failed in a way that another one may not."""

    attempt: int
    """Which attempt."""
    error: BaseException
    """What went wrong, as the provider or the transport raised it."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class AttemptRefused:
    """The attempt failed in a way that every other one would."""

    attempt: int
    """Which attempt."""
    error: BaseException
    """What went wrong, as the provider or the transport raised it."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class LinkInterrupted:
    """The connection is gone; the same session may come back."""

    attempt: int
    """Whose link."""
    reason: str
    """What was seen."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class LinkResumed:
    """The same session is back on a new connection."""

    attempt: int
    """Whose link."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class LinkEnded:
    """The link is gone for good."""

    attempt: int
    """Whose link."""
    reason: str
    """What was seen."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class GateShut:
    """The gate failed or was abandoned: there is nothing to connect to."""

    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class GateReopened:
    """The gate was recovered: starting may be asked for again."""

    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class Closed:
    """The environment ends."""

    reason: str
    """By whom or what."""
    now_s: float
    """When, on the run's clock."""


News = AttemptSucceeded | AttemptFailed | AttemptRefused | LinkInterrupted | LinkResumed | LinkEnded
ConnectionEvent = StartAsked | OperationAsked | News | GateShut | GateReopened | Closed

CONNECTION_TRANSITIONS: Final[Mapping[tuple[Phase, type[ConnectionEvent]], Phase]] = MappingProxyType(
    {
        (Phase.NOT_STARTED, StartAsked): Phase.STARTING,
        (Phase.NOT_STARTED, OperationAsked): Phase.STARTING,
        (Phase.NOT_STARTED, GateShut): Phase.START_REFUSED,
        (Phase.STARTING, StartAsked): Phase.STARTING,
        (Phase.STARTING, OperationAsked): Phase.STARTING,
        (Phase.STARTING, AttemptSucceeded): Phase.CONNECTED,
        (Phase.STARTING, AttemptFailed): Phase.START_FAILED,
        (Phase.STARTING, AttemptRefused): Phase.START_REFUSED,
        (Phase.STARTING, GateShut): Phase.START_REFUSED,
        (Phase.START_FAILED, StartAsked): Phase.START_FAILED,
        (Phase.START_FAILED, OperationAsked): Phase.STARTING,
        (Phase.START_REFUSED, StartAsked): Phase.START_REFUSED,
        (Phase.START_REFUSED, OperationAsked): Phase.START_REFUSED,
        (Phase.START_REFUSED, GateReopened): Phase.NOT_STARTED,
        (Phase.CONNECTED, StartAsked): Phase.CONNECTED,
        (Phase.CONNECTED, OperationAsked): Phase.CONNECTED,
        (Phase.CONNECTED, LinkInterrupted): Phase.RECOVERING,
        (Phase.CONNECTED, LinkEnded): Phase.LOST,
        (Phase.RECOVERING, StartAsked): Phase.RECOVERING,
        (Phase.RECOVERING, OperationAsked): Phase.RECOVERING,
        (Phase.RECOVERING, LinkResumed): Phase.CONNECTED,
        (Phase.RECOVERING, LinkEnded): Phase.LOST,
        (Phase.LOST, StartAsked): Phase.LOST,
        (Phase.LOST, OperationAsked): Phase.RECONNECTING,
        (Phase.RECONNECTING, StartAsked): Phase.RECONNECTING,
        (Phase.RECONNECTING, OperationAsked): Phase.RECONNECTING,
        (Phase.RECONNECTING, AttemptSucceeded): Phase.CONNECTED,
        (Phase.RECONNECTING, AttemptFailed): Phase.LOST,
        (Phase.RECONNECTING, AttemptRefused): Phase.LOST,
        **{(phase, Closed): Phase.CLOSED for phase in Phase if phase is not Phase.CLOSED},
    }
)
"""Where each event leads from each phase; what is not here raises and changes nothing."""

_STATES: Final = dict.fromkeys(Phase, ConnectionState.DISCONNECTED) | {Phase.CONNECTED: ConnectionState.CONNECTED}


@attrs.frozen
class Connection:
    """The connection of one environment, and the last thing that went wrong with it."""

    phase: Phase = Phase.NOT_STARTED
    """Where it stands."""
    since_s: float = 0.0
    """When it came to stand there."""
    attempt: int = 0
    """The number of the latest attempt that was begun; 0 before the first."""
    position: int = 0
    """How often what watchers see has changed."""
    reason: str | None = None
    """Why it was lost or closed."""
    error: BaseException | None = None
    """What the last failed attempt raised; forgotten when one succeeds."""
    failed_attempt: int = 0
    """The number of that attempt."""
    was_connected: bool = False
    """Whether it ever was up; then its start is over, and only losses can follow."""

    @property
    def state(self) -> ConnectionState:
        """What watchers see."""
        return _STATES[self.phase]

    @property
    def is_settled(self) -> bool:
        """Whether the start is over, well or badly."""
        return self.was_connected or self.phase in (Phase.START_FAILED, Phase.START_REFUSED, Phase.CLOSED)

    def is_stale(self, news: News) -> bool:
        """Whether news comes from an attempt that is no longer ours: an earlier one, or any after the end."""
        return news.attempt != self.attempt or self.phase is Phase.CLOSED

    def begin(self) -> "Connection":
        """Count a new attempt."""
        return Connection(
            self.phase,
            self.since_s,
            self.attempt + 1,
            self.position,
            self.reason,
            self.error,
            self.failed_attempt,
            self.was_connected,
        )

    def handle(self, event: ConnectionEvent) -> "Connection":
        """The connection after an event.

        Raises:
            OutOfPlace: The event has no place in this phase.
        """
        target = CONNECTION_TRANSITIONS.get((self.phase, type(event)))
        if target is None:
            raise OutOfPlace(self.phase.value, type(event).__name__)
        if target is self.phase:
            return self
        reason, error, failed_attempt = self._facts_after(event)
        return Connection(
            target,
            event.now_s,
            self.attempt,
            self.position + (_STATES[target] is not self.state),
            reason,
            error,
            failed_attempt,
            self.was_connected or target is Phase.CONNECTED,
        )

    def _facts_after(self, event: ConnectionEvent) -> tuple[str | None, BaseException | None, int]:
        """The reason, the error and whose it was, after an event."""
        match event:
            case AttemptSucceeded():
                return None, None, self.failed_attempt
            case AttemptFailed(attempt, error) | AttemptRefused(attempt, error):
                return self.reason, error, attempt
            case LinkInterrupted(_, reason) | LinkEnded(_, reason):
                return reason, self.error, self.failed_attempt
            case Closed(reason):
                return reason, None, self.failed_attempt
            case LinkResumed() | GateReopened():
                return None, self.error, self.failed_attempt
            case StartAsked() | OperationAsked() | GateShut():
                return self.reason, self.error, self.failed_attempt
