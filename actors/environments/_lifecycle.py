"""The whole life of one generation of an environment: its gate, its connection, its place in the roster, its end.

The rules that are not in the two tables are here, and nowhere else:

* an attempt begins only when the gate is ready *and* somebody asked; whichever comes last begins it;
* a gate that shuts ends the start, a gate that is recovered lets it be asked for again;
* a superseded environment goes on for those who hold it, but one that only reports by id could complete is abandoned
  when its id is given away, since no report can reach it any more;
* a refresh ends what is held or under way only for somebody else, and begins the new attempt in the same step;
* closing abandons a pending gate and ends the link; after it nothing has a place.

Effects are what needs a task: beginning and ending a link. Who waits or watches is told in the same breath by whoever
steps the life.
"""

import enum
from collections.abc import Sequence
from typing import NamedTuple

import attrs

from actors.environments._connection import AT_WORK, CLOSED, REPLACED, STARTING, Connection, Phase
from actors.environments._connection_events import (
    BundleLookedUp,
    Closed,
    ConnectionEvent,
    GateReopened,
    GateShut,
    News,
    OperationAsked,
    StartAsked,
)
from actors.environments._errors import OutOfPlace
from actors.environments._gate import (
    PENDING,
    READY,
    Gate,
    GateEvent,
    Provisioning,
    ProvisioningAbandoned,
)


class Kind(enum.Enum):
    """How an environment is provisioned.

    Attributes:
        ORDINARY: It was there from the beginning: `upsert`, `upsert_url`.
        DEFERRED: By the holder of its registration: `register_deferred`.
        PROVISIONED: By reports for its id: `report_provisioning`, `materialize`.
        LOCAL: It is this machine.
    """

    ORDINARY = "ordinary"
    DEFERRED = "deferred"
    PROVISIONED = "provisioned"
    LOCAL = "local"


@attrs.frozen
class Superseded:
    """The id was given to another generation."""

    by_generation: int
    """Which one has it now."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class Removed:
    """The id was taken away."""

    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class BeginAttempt:
    """Start the task that connects."""

    attempt: int
    """Its number."""
    ticket: int = 0
    """The look-up whose bundle it takes; 0 when it asks for itself."""


@attrs.frozen
class EndLink:
    """Stop the task that connects or holds the link."""

    attempt: int
    """Its number."""
    reason: str | None = None
    """What those hear who used it; the end of the environment when there is none."""


@attrs.frozen
class EndActor:
    """There is nothing left to do."""


Event = GateEvent | ConnectionEvent | Superseded | Removed
Effect = BeginAttempt | EndLink | EndActor

_END = EndActor()
_UNREPORTABLE = "environment provisioning ended before completion"


class Lifecycle(NamedTuple):
    """One generation of one environment, as a value."""

    environment_id: str
    """The id it was registered under."""
    generation: int
    """Which of those that bore the id; the first is 1."""
    kind: Kind
    """How it is provisioned."""
    born_s: float
    """When it was registered, on the run's clock."""
    provisioning: Provisioning
    """Its gate."""
    connection: Connection = Connection()
    """Its connection."""
    deadline_s: float | None = None
    """When a gate that is still pending fails, on the run's clock."""
    superseded_by: int | None = None
    """The generation that has the id now."""
    removed: bool = False
    """Whether the id was taken away without a successor."""

    @property
    def gate(self) -> Gate:
        """Where the gate stands."""
        return self.provisioning.gate

    @property
    def state(self) -> Phase:
        """What counts as its state to its actor, which compares this one and not the whole value after each step."""
        return self.connection.phase

    @property
    def shown_phase(self) -> Phase:
        """Where the connection stands as people see it: behind a gate that is pending, nothing is being started."""
        return Phase.NOT_STARTED if self.gate is PENDING and not self.is_closed else self.connection.phase

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self.connection.phase is CLOSED

    def handle(self, event: Event) -> tuple["Lifecycle", Sequence[Effect]]:
        """The life after an event, and what is to be done about it.

        Raises:
            OutOfPlace: The event has no place now; nothing was changed.
        """
        if self.is_closed:
            return self._after_the_end(event)
        if isinstance(event, GateEvent):
            return self._move_gate(event)
        if isinstance(event, News):
            return self._hear(event)
        match event:
            case StartAsked() | OperationAsked() | BundleLookedUp():
                return self._ask(event)
            case Superseded() | Removed():
                return self._lose_id(event)
            case Closed(reason, now_s):
                return self._close(event, reason, now_s)
            case GateShut() | GateReopened():
                raise OutOfPlace(self.gate.value, type(event).__name__)  # Ours to say, when the gate moves.

    def _with(self, connection: Connection, provisioning: Provisioning | None = None) -> "Lifecycle":
        # By hand, since every step of every life comes by here: `_replace` takes three times as long.
        return Lifecycle(
            self.environment_id,
            self.generation,
            self.kind,
            self.born_s,
            provisioning or self.provisioning,
            connection,
            self.deadline_s,
            self.superseded_by,
            self.removed,
        )

    def _after_the_end(self, event: Event) -> tuple["Lifecycle", Sequence[Effect]]:
        # A late word of the link, a second close and the loss of the id are no news to what has ended.
        if isinstance(event, News | Closed):
            return self, ()
        if isinstance(event, Superseded | Removed):
            return self._without_id(event), ()
        raise OutOfPlace(CLOSED.value, type(event).__name__)

    def _ask(self, event: StartAsked | OperationAsked | BundleLookedUp) -> tuple["Lifecycle", Sequence[Effect]]:
        if isinstance(event, BundleLookedUp):
            return self._look_at(event)
        connection = self.connection.handle(event)
        if connection is self.connection:
            return self, ()
        return self._begin(connection) if self.gate is READY else (self._with(connection), ())

    def _look_at(self, event: BundleLookedUp) -> tuple["Lifecycle", Sequence[Effect]]:
        if self.gate is not READY:
            raise OutOfPlace(self.gate.value, type(event).__name__)  # Nobody may be asked before.
        before, connection = self.connection, self.connection.handle(event)
        if connection.attempt == before.attempt:
            return (self if connection is before else self._with(connection)), ()
        begin = BeginAttempt(connection.attempt, event.ticket)
        if before.phase not in AT_WORK:
            return self._with(connection), (begin,)
        # Here and nowhere else work is taken from those who did nothing: they are told why.
        ending = REPLACED if before.phase in (Phase.CONNECTED, Phase.RECOVERING) else str(connection.error)
        return self._with(connection), (EndLink(before.attempt, ending), begin)

    def _begin(
        self, connection: Connection, provisioning: Provisioning | None = None
    ) -> tuple["Lifecycle", Sequence[Effect]]:
        begun = connection.begin()
        return self._with(begun, provisioning), (BeginAttempt(begun.attempt),)

    def _move_gate(self, event: GateEvent) -> tuple["Lifecycle", Sequence[Effect]]:
        connection, provisioning = self.connection, self.provisioning.handle(event)
        if self.superseded_by is not None or self.removed:
            provisioning = provisioning.without_frames()
        if provisioning.gate is not self.gate:
            if provisioning.gate is not READY:
                connection = connection.handle(GateShut(event.now_s))
            elif self.gate is not PENDING:
                connection = connection.handle(GateReopened(event.now_s))
            elif connection.phase is STARTING:
                return self._begin(connection, provisioning)
        return self._with(connection, provisioning), ()

    def _hear(self, news: News) -> tuple["Lifecycle", Sequence[Effect]]:
        if self.connection.is_stale(news):
            return self, ()  # Whose attempt was given up speaks of nothing that is ours.
        return self._with(self.connection.handle(news)), ()

    def _without_id(self, event: Superseded | Removed) -> "Lifecycle":
        # From here on the roster does not hold it: an error whose frames hold a handle must not do so in its place.
        provisioning = self.provisioning.without_frames()
        if isinstance(event, Superseded):
            return self._replace(superseded_by=event.by_generation, provisioning=provisioning)
        return self._replace(removed=True, provisioning=provisioning)

    def _lose_id(self, event: Superseded | Removed) -> tuple["Lifecycle", Sequence[Effect]]:
        life = self._without_id(event)
        if self.kind is Kind.PROVISIONED and self.gate is PENDING:
            return life._move_gate(ProvisioningAbandoned(_UNREPORTABLE, event.now_s))
        return life, ()

    def _close(self, event: Closed, reason: str, now_s: float) -> tuple["Lifecycle", Sequence[Effect]]:
        provisioning = self.provisioning.without_frames()
        if self.gate is PENDING:
            message = f"environment was closed before completion: {reason}"
            provisioning = provisioning.handle(ProvisioningAbandoned(message, now_s))
        life = self._with(self.connection.handle(event), provisioning)
        at_work = self.connection.attempt > 0 and self.connection.phase in AT_WORK
        ending = (EndLink(self.connection.attempt),) if at_work else ()
        return life, (*ending, _END)
