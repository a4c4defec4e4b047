"""The connection of one environment: whether its harness can be used, and what became of the attempts.

An environment has at most one attempt under way and at most one link; both carry the number of the attempt, counted
from 1. News of an earlier attempt is *stale*: it belongs to something that was given up, so it changes nothing
(`Connection.is_stale`). A start that failed for good is never tried again; one that failed for now is, by the next
operation. After a loss the next operation tries again whatever the last attempt said.

A refresh looks up who has the environment's id now. Look-ups carry tickets in the order in which they were begun: one
that was overtaken by a later one decides nothing. Whoever is found to be held already is kept; for anybody else a new
attempt begins, and what was under way or held before is over (`Connection.handle`).
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from actors.environments._connection_events import (
    AttemptFailed,
    AttemptRefused,
    AttemptSucceeded,
    BundleLookedUp,
    Closed,
    ConnectionEvent,
    GateReopened,
    GateShut,
    LinkEnded,
    LinkInterrupted,
    LinkResumed,
    News,
    OperationAsked,
    Peer,
    StartAsked,
)
from actors.environments._errors import AttemptSuperseded, OutOfPlace

REPLACED: Final = "exec-server executor was replaced"
"""What the work of a session hears whose executor is not the environment's any more."""


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
        RECONNECTING: Another attempt is under way, after a loss or for another executor.
        CLOSED: The environment has ended.
    """

    # As in `_gate`.
    if not TYPE_CHECKING:
        __hash__ = object.__hash__

    NOT_STARTED = "not started"
    STARTING = "starting"
    START_FAILED = "start failed"
    START_REFUSED = "start refused"
    CONNECTED = "connected"
    RECOVERING = "recovering"
    LOST = "lost"
    RECONNECTING = "reconnecting"
    CLOSED = "closed"


# By themselves, as in `_gate`.
NOT_STARTED: Final = Phase.NOT_STARTED
STARTING: Final = Phase.STARTING
START_REFUSED: Final = Phase.START_REFUSED
CONNECTED: Final = Phase.CONNECTED
CLOSED: Final = Phase.CLOSED

CONNECTION_TRANSITIONS: Final[Mapping[tuple[Phase, type[ConnectionEvent]], Phase]] = MappingProxyType(
    {
        (Phase.NOT_STARTED, StartAsked): Phase.STARTING,
        (Phase.NOT_STARTED, OperationAsked): Phase.STARTING,
        (Phase.NOT_STARTED, BundleLookedUp): Phase.STARTING,
        (Phase.NOT_STARTED, GateShut): Phase.START_REFUSED,
        (Phase.STARTING, StartAsked): Phase.STARTING,
        (Phase.STARTING, OperationAsked): Phase.STARTING,
        (Phase.STARTING, BundleLookedUp): Phase.STARTING,
        (Phase.STARTING, AttemptSucceeded): Phase.CONNECTED,
        (Phase.STARTING, AttemptFailed): Phase.START_FAILED,
        (Phase.STARTING, AttemptRefused): Phase.START_REFUSED,
        (Phase.STARTING, GateShut): Phase.START_REFUSED,
        (Phase.START_FAILED, StartAsked): Phase.START_FAILED,
        (Phase.START_FAILED, OperationAsked): Phase.STARTING,
        (Phase.START_FAILED, BundleLookedUp): Phase.STARTING,
        (Phase.START_REFUSED, StartAsked): Phase.START_REFUSED,
        (Phase.START_REFUSED, OperationAsked): Phase.START_REFUSED,
        (Phase.START_REFUSED, BundleLookedUp): Phase.STARTING,
        (Phase.START_REFUSED, GateReopened): Phase.NOT_STARTED,
        (Phase.CONNECTED, StartAsked): Phase.CONNECTED,
        (Phase.CONNECTED, OperationAsked): Phase.CONNECTED,
        (Phase.CONNECTED, BundleLookedUp): Phase.RECONNECTING,
        (Phase.CONNECTED, LinkInterrupted): Phase.RECOVERING,
        (Phase.CONNECTED, LinkEnded): Phase.LOST,
        (Phase.RECOVERING, StartAsked): Phase.RECOVERING,
        (Phase.RECOVERING, OperationAsked): Phase.RECOVERING,
        (Phase.RECOVERING, BundleLookedUp): Phase.RECONNECTING,
        (Phase.RECOVERING, LinkResumed): Phase.CONNECTED,
        (Phase.RECOVERING, LinkEnded): Phase.LOST,
        (Phase.LOST, StartAsked): Phase.LOST,
        (Phase.LOST, OperationAsked): Phase.RECONNECTING,
        (Phase.LOST, BundleLookedUp): Phase.RECONNECTING,
        (Phase.RECONNECTING, StartAsked): Phase.RECONNECTING,
        (Phase.RECONNECTING, OperationAsked): Phase.RECONNECTING,
        (Phase.RECONNECTING, BundleLookedUp): Phase.RECONNECTING,
        (Phase.RECONNECTING, AttemptSucceeded): Phase.CONNECTED,
        (Phase.RECONNECTING, AttemptFailed): Phase.LOST,
        (Phase.RECONNECTING, AttemptRefused): Phase.LOST,
        **{(phase, Closed): Phase.CLOSED for phase in Phase if phase is not Phase.CLOSED},
    }
)
"""Where each event leads from each phase; what is not here raises and changes nothing.

A bundle for whom is held already, and one that was overtaken, lead nowhere from any phase.
"""

AT_WORK: Final = frozenset({Phase.STARTING, Phase.CONNECTED, Phase.RECOVERING, Phase.RECONNECTING})
"""Where a link is held, or an attempt at one is under way."""
_SETTLED: Final = (Phase.START_FAILED, Phase.START_REFUSED, Phase.CLOSED)
_STATES: Final = dict.fromkeys(Phase, ConnectionState.DISCONNECTED) | {Phase.CONNECTED: ConnectionState.CONNECTED}


class Connection(NamedTuple):
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
    peer: Peer | None = None
    """Whom the link leads to, or the attempt under way when a refresh began it."""
    ticket: int = 0
    """The latest look-up that was heard of; 0 before the first."""

    @property
    def state(self) -> ConnectionState:
        """What watchers see."""
        return _STATES[self.phase]

    @property
    def is_settled(self) -> bool:
        """Whether the start is over, well or badly."""
        return self.was_connected or self.phase in _SETTLED

    def is_stale(self, news: News) -> bool:
        """Whether news comes from an attempt that is no longer ours: an earlier one, or any after the end."""
        return news.attempt != self.attempt or self.phase is CLOSED

    def begin(self) -> "Connection":
        """Count a new attempt; whom it will meet is not known yet."""
        return Connection(
            self.phase,
            self.since_s,
            self.attempt + 1,
            self.position,
            self.reason,
            self.error,
            self.failed_attempt,
            self.was_connected,
            None,
            self.ticket,
        )

    def handle(self, event: ConnectionEvent) -> "Connection":
        """The connection after an event; a bundle for somebody else has begun an attempt.

        Raises:
            OutOfPlace: The event has no place in this phase.
        """
        target = CONNECTION_TRANSITIONS.get((self.phase, type(event)))
        if target is None:
            raise OutOfPlace(self.phase.value, type(event).__name__)
        if type(event) is BundleLookedUp:
            return self._look_at(event, target)
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
            self.was_connected or target is CONNECTED,
            self._peer_after(event),
            self.ticket,
        )

    def _look_at(self, event: BundleLookedUp, target: Phase) -> "Connection":
        if event.ticket <= self.ticket:
            return self  # It was overtaken: what it saw is older than what was acted on.
        if self.phase in AT_WORK and event.peer == self.peer:
            return self._replace(ticket=event.ticket)
        reason, error, failed_attempt = self.reason, self.error, self.failed_attempt
        if self.phase in (CONNECTED, Phase.RECOVERING):
            reason = REPLACED
        elif self.phase in AT_WORK:
            error, failed_attempt = AttemptSuperseded(), self.attempt
        return Connection(
            target,
            event.now_s,
            self.attempt + 1,
            self.position + (_STATES[target] is not self.state),
            reason,
            error,
            failed_attempt,
            self.was_connected,
            event.peer,
            event.ticket,
        )

    def _peer_after(self, event: ConnectionEvent) -> Peer | None:
        match event:
            case AttemptSucceeded():
                return event.peer
            case LinkResumed():
                return event.peer or self.peer
            case _:
                return self.peer

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
            case StartAsked() | OperationAsked() | BundleLookedUp() | GateShut():
                return self.reason, self.error, self.failed_attempt
