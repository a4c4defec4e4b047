"""Let a new generation in: check its id, give it a body and an actor, put it in the roster, tell the one it replaces.

All in one breath: until the roster has it nothing has changed, and from then on everybody finds it.
"""

import weakref

import attrs

from actors import Machine, spawn_machine_nowait
from actors.environments._actor import EnvironmentActor
from actors.environments._backstage import Backstage, label_of
from actors.environments._body import Body
from actors.environments._connection import Connection, Phase
from actors.environments._connection_events import StartAsked
from actors.environments._demands import must_be_provider, must_be_seconds, must_be_text
from actors.environments._environment import Environment, body_of
from actors.environments._gate import FailureReported, Gate, Provisioning, ReadyReported
from actors.environments._ids import check_environment_id
from actors.environments._lifecycle import Effect, Event, Kind, Lifecycle, Removed, Superseded
from actors.environments._provider import ConnectProvider
from actors.environments._ready_info import ReadyInfo, check_ready_info
from actors.environments._registration import Registration
from actors.environments._roster import Roster
from supervision import Restart


@attrs.frozen(kw_only=True)
class Newcomer:
    """What is to be let in."""

    environment_id: str
    """Under which id."""
    kind: Kind
    """How it is provisioned."""
    provider: ConnectProvider | None
    """Who says how to connect; nobody for this machine."""
    report: ReadyInfo | str | None = None
    """What is reported of its provisioning at its birth: readiness, or what failed."""
    deadline_s: float | None = None
    """How long it may be pending, from now on."""
    bundle_environment_id: str | None = None
    """How the registry calls it, if not by its id."""


def check_newcomer(newcomer: Newcomer) -> None:
    """Refuse what cannot be let in.

    Raises:
        InvalidEnvironmentId: Its id may not name an environment.
        InvalidOption: Its provider or its deadline cannot serve.
        InvalidReadyInfo: What is reported of it breaks a rule.
    """
    if newcomer.kind is not Kind.LOCAL:
        check_environment_id(newcomer.environment_id)
        must_be_provider(newcomer.provider)
    if isinstance(newcomer.report, ReadyInfo):
        check_ready_info(newcomer.report, newcomer.environment_id)
    if newcomer.deadline_s is not None:
        must_be_seconds("deadline_s", newcomer.deadline_s)
    if newcomer.bundle_environment_id is not None:
        must_be_text("bundle_environment_id", newcomer.bundle_environment_id)


def admit(newcomer: Newcomer, backstage: Backstage, roster: Roster[Environment], now_s: float) -> Environment:
    """Let a checked newcomer in."""
    environment_id = newcomer.environment_id
    generation = roster.next_generation(environment_id)
    life = born(newcomer, generation, now_s)
    body = Body(backstage, life, newcomer.provider, newcomer.bundle_environment_id or environment_id)
    machine: Machine[Event, Effect, Lifecycle] = life
    body.reference = spawn_machine_nowait(
        backstage.actors, EnvironmentActor, machine, body, name=label_of(life), restart=Restart.TEMPORARY
    )
    backstage.bodies.add(body)
    environment = Environment.give(body)
    before = roster.take(environment_id, generation, environment)
    backstage.note_registered(life)
    if before is not None:
        lose_id(before, Superseded(generation, now_s), now_s)
    if life.deadline_s is not None:
        backstage.set_deadline(body, life.deadline_s)
    if newcomer.kind is Kind.ORDINARY:
        body.step(StartAsked(now_s), now_s)
    return environment


def born(newcomer: Newcomer, generation: int, now_s: float) -> Lifecycle:
    """The life of a newcomer, with what is reported of it at its birth."""
    provisioned_by_others = newcomer.kind in (Kind.DEFERRED, Kind.PROVISIONED)
    # A deferred one is born asked to start: its attempt begins when the gate opens, whether anybody waits or not.
    starting = newcomer.kind is Kind.DEFERRED
    life = Lifecycle(
        environment_id=newcomer.environment_id,
        generation=generation,
        kind=newcomer.kind,
        born_s=now_s,
        provisioning=Provisioning(Gate.PENDING if provisioned_by_others else Gate.READY, now_s),
        connection=Connection(Phase.STARTING if starting else Phase.NOT_STARTED, now_s),
        deadline_s=None if newcomer.deadline_s is None else now_s + newcomer.deadline_s,
    )
    if isinstance(newcomer.report, str):
        return life.handle(FailureReported(newcomer.report, now_s))[0]
    if newcomer.report is not None:
        return life.handle(ReadyReported(newcomer.report, now_s))[0]
    return life


def lose_id(environment: Environment, event: Superseded | Removed, now_s: float) -> None:
    """Tell an environment that its id is gone."""
    body = body_of(environment)
    if body.final is None:
        life = body.step(event, now_s)
        body.backstage.note_lost_id(life, now_s)


def registration_of(environment: Environment) -> Registration:
    """The one registration of a deferred environment; called once, right after it was let in."""
    body = body_of(environment)
    registration = Registration.give(body, weakref.ref(environment))
    body.holder = weakref.ref(registration)
    return registration
