"""What all environments of one manager share: where their tasks run, their clock, their log, their counters.

Also the only road from a finaliser into the run: `post` appends to a queue and asks the run to look at it. It takes no
lock of ours, never waits and never raises, on any thread, also when the run is over.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypedDict

import attrs
import trio
from attrs.validators import optional

from actors.environments._connection import Phase
from actors.environments._deadlines import Deadlines
from actors.environments._demands import offering
from actors.environments._errors import NotInThisRun
from actors.environments._event_stream import EventStream
from actors.environments._events import (
    CompletionRefused,
    ConnectionMoved,
    EnvironmentEnded,
    EnvironmentEvent,
    EnvironmentRegistered,
    EnvironmentRemoved,
    EnvironmentSuperseded,
    GateMoved,
    ReadyInfoReplaced,
)
from actors.environments._gate import ABANDONED, FAILED, PENDING, READY
from actors.environments._lifecycle import Lifecycle
from actors.environments._retry import AttemptRules
from actors.environments._seams import Connector, IdentityFactory
from supervision import Pool

if TYPE_CHECKING:
    from actors.environments._body import Body


_LABEL_CHARS = 200


def label_of(life: Lifecycle) -> str:
    """How one generation of an environment is called in the supervision tree."""
    # There a name has no slash; an id may, and `%` keeps the two apart.
    name = life.environment_id.replace("%", "%25").replace("/", "%2F")
    if len(name) > _LABEL_CHARS:
        # Longer than any name that is not cut, so that only a name cut alike could be taken for it.
        name = f"{name[:_LABEL_CHARS]}~{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}"
    return f"{name}#{life.generation}"


class _Named(TypedDict):
    environment_id: str
    generation: int
    at_s: float


def _named(life: Lifecycle, at_s: float) -> _Named:
    return {"environment_id": life.environment_id, "generation": life.generation, "at_s": at_s}


@attrs.frozen(kw_only=True)
class Connectors:
    """How links are opened, by what a provider answered or by kind.

    Attributes:
        plain: For a `PlainEndpoint`.
        noise: For a `ConnectBundle`; without one such an answer ends the attempt.
        local: For the environment on this machine; without one there is none.
        identity: Makes the harness identity of an environment when it first connects.
    """

    plain: Connector = attrs.field(validator=offering("hold"))
    noise: Connector | None = attrs.field(default=None, validator=optional(offering("hold")))
    local: Connector | None = attrs.field(default=None, validator=optional(offering("hold")))
    identity: IdentityFactory | None = attrs.field(default=None, validator=optional(offering("__call__")))


@attrs.define
class Counters:
    """How often what happened in one manager."""

    registered: int = 0
    superseded: int = 0
    removed: int = 0
    ended: int = 0
    ready: int = 0
    failed: int = 0
    abandoned: int = 0
    late_completions: int = 0
    refused_completions: int = 0
    attempts: int = 0
    look_ups: int = 0
    replaced: int = 0
    superseded_attempts: int = 0


class Backstage:
    """Shared by a manager and its environments; made by `open_manager`."""

    def __init__(
        self,
        *,
        actors: Pool,
        connectors: Connectors,
        rules: AttemptRules,
        token: trio.lowlevel.TrioToken,
    ) -> None:
        self.actors = actors
        self.connectors: Connectors = connectors
        self.rules: AttemptRules = rules
        self.token: trio.lowlevel.TrioToken = token
        self.events: EventStream = EventStream()
        self.counters: Counters = Counters()
        # Every body that has not ended, current or not: closing the manager must reach those nobody can look up.
        self.bodies: set[Body] = set()
        self.deadlines: Deadlines[Body] = Deadlines()
        self.deadline_set: trio.Event = trio.Event()
        # Frees the id of a body that has ended, if it still has it; the manager's.
        self.vacate: Callable[[Body], None] = lambda _body: None
        # Why nobody is taken in any more.
        self.doing: str | None = None
        self.operations: int = 0
        self.idle: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()
        self._posted: deque[Callable[[], None]] = deque()

    def post(self, job: Callable[[], None]) -> None:
        """Have a job done in the run's own thread, soon; what comes after the end of the run is let go."""
        self._posted.append(job)
        try:
            self.token.run_sync_soon(self._do_posted, idempotent=True)
        except trio.RunFinishedError:
            self._posted.clear()

    def _do_posted(self) -> None:
        while self._posted:
            self._posted.popleft()()

    def set_deadline(self, body: "Body", deadline_s: float) -> None:
        """Have `Body.expire` called at this time unless it is called off."""
        first_s = self.deadlines.next_s()
        self.deadlines.set(body, deadline_s)
        if first_s is None or deadline_s < first_s:
            self.deadline_set.set()
            self.deadline_set = trio.Event()

    def forget(self, body: "Body") -> None:
        """Let go of a body that has ended."""
        self.bodies.discard(body)
        self.deadlines.call_off(body)
        self.vacate(body)

    def close(self, reason: str, now_s: float) -> None:
        """Take nobody in any more, and end every environment, current or not, at once."""
        self.doing = "closed"
        for body in [*self.bodies]:
            body.close(reason, now_s)
        self.events.close()

    def now_s(self, operation: str) -> float:
        """What the run's clock says.

        Raises:
            NotInThisRun: This is another run, another thread, or none.
        """
        try:
            if trio.lowlevel.current_trio_token() is self.token:
                return trio.current_time()
        except RuntimeError:
            pass  # No run in this thread at all.
        raise NotInThisRun(operation)

    async def wait_idle(self) -> None:
        """Wait until no operation is under way.

        Cancelled:
            Nothing is left behind.
        """
        while self.operations:
            await self.idle.park()

    def enter_operation(self) -> None:
        """Count an operation that draining waits for."""
        self.operations += 1

    def leave_operation(self) -> None:
        """The opposite of `enter_operation`."""
        self.operations -= 1
        if not self.operations:
            self.idle.unpark_all()

    def note_registered(self, life: Lifecycle) -> None:
        """Tell of a new generation."""
        self.counters.registered += 1
        if self.events.is_heard:
            self.events.emit(EnvironmentRegistered(**_named(life, life.born_s), kind=life.kind))

    def note_lost_id(self, life: Lifecycle, now_s: float) -> None:
        """Tell of a generation that was superseded or removed."""
        facts = _named(life, now_s)
        event: EnvironmentEvent
        if life.superseded_by is None:
            self.counters.removed += 1
            event = EnvironmentRemoved(**facts)
        else:
            self.counters.superseded += 1
            event = EnvironmentSuperseded(**facts, by_generation=life.superseded_by)
        if self.events.is_heard:
            self.events.emit(event)

    def note_refused(self, life: Lifecycle, operation: str, outcome: str, now_s: float) -> None:
        """Tell of a registration that was used too late or twice."""
        self.counters.refused_completions += 1
        if self.events.is_heard:
            facts = _named(life, now_s)
            self.events.emit(CompletionRefused(**facts, operation=operation, outcome=outcome))

    def note_look_up(self, before: Lifecycle, after: Lifecycle) -> None:
        """Count what the bundle of a refresh led to."""
        self.counters.look_ups += 1
        if after.connection.attempt != before.connection.attempt:
            self.counters.replaced += before.connection.phase in (Phase.CONNECTED, Phase.RECOVERING)
            self.counters.superseded_attempts += before.connection.phase in (Phase.STARTING, Phase.RECONNECTING)

    def note_step(self, before: Lifecycle, after: Lifecycle, now_s: float) -> None:
        """Count and tell what a step of a life changed."""
        if after.gate is not before.gate:
            self._count_gate(before, after)
        if after.is_closed and not before.is_closed:
            self.counters.ended += 1
        if self.events.is_heard:
            for event in events_of(before, after, now_s):
                self.events.emit(event)

    def _count_gate(self, before: Lifecycle, after: Lifecycle) -> None:
        gate = after.gate
        assert gate is not PENDING, "a gate never becomes pending again"
        if gate is READY:
            self.counters.ready += 1
        elif gate is FAILED:
            self.counters.failed += 1
        else:
            self.counters.abandoned += 1
        if before.superseded_by is not None and gate is not ABANDONED:
            self.counters.late_completions += 1


def events_of(before: Lifecycle, after: Lifecycle, now_s: float) -> Iterator[EnvironmentEvent]:
    """What a step of a life changed, as events."""
    facts = _named(after, now_s)
    if after.gate is not before.gate:
        yield GateMoved(
            **facts,
            gate=after.gate,
            message=after.provisioning.message,
            superseded=before.superseded_by is not None or before.removed,
            recovered=before.gate is not PENDING,
        )
    elif after.provisioning is not before.provisioning:
        yield ReadyInfoReplaced(**facts, replaced=after.provisioning.position)
    connection = after.connection
    if connection.phase is before.connection.phase:
        if connection.failed_attempt != before.connection.failed_attempt:
            # One attempt took another's place.
            yield ConnectionMoved(
                **facts, phase=connection.phase, attempt=connection.attempt, reason=str(connection.error)
            )
        return
    if after.is_closed:
        yield EnvironmentEnded(**facts, reason=connection.reason or "closed")
    else:
        reason = connection.reason
        yield ConnectionMoved(**facts, phase=connection.phase, attempt=connection.attempt, reason=reason)
