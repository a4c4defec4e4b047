"""Open a manager under a supervisor, and close it in bounded time whatever happens to the block."""

import contextlib
from collections.abc import AsyncGenerator

import trio

from actors.blocks import block
from actors.environments._admission import Newcomer, admit
from actors.environments._backstage import Backstage, Connectors
from actors.environments._body import Body
from actors.environments._configuration import Snapshot, check_snapshot, provider_of
from actors.environments._deadline_keeper import keep_deadlines
from actors.environments._demands import must_be, must_be_count
from actors.environments._environment import Environment, body_of
from actors.environments._harness_connector import HarnessConnector
from actors.environments._ids import LOCAL_ENVIRONMENT_ID
from actors.environments._lifecycle import Kind
from actors.environments._local_connector import LocalConnector
from actors.environments._manager import EnvironmentManager
from actors.environments._noise_connector import NoiseConnector
from actors.environments._retry import AttemptRules
from actors.environments._roster import Roster
from actors.noise import Identity
from supervision import ChildSpec, Supervisor, SupervisorClosed

CLOSE_S = 15.0
MAX_ENVIRONMENTS = 1_000_000


@block
async def open_manager(
    supervisor: Supervisor,
    *,
    snapshot: Snapshot | None = None,
    connectors: Connectors | None = None,
    rules: AttemptRules | None = None,
    max_environments: int = MAX_ENVIRONMENTS,
    name: str = "environments",
) -> AsyncGenerator[EnvironmentManager, None]:
    """Open a manager of environments as a child of a supervisor.

    Args:
        supervisor: Under whom everything runs.
        snapshot: The first environments; they begin connecting at once. None by default.
        connectors: How links are opened; by default a `PlainEndpoint` over a WebSocket, a `ConnectBundle` through its
            rendezvous with keys made for each environment when it first connects, this machine in this process.
        rules: How long attempts may take and how often providers are asked.
        max_environments: How many ids may be taken at once.
        name: Under which the manager is found in the supervision tree; unique in its supervisor.

    Raises:
        ProtocolError: The snapshot breaks a rule; nothing was started.

    Cancelled:
        All environments are closed and their tasks stopped, within a bounded time.
    """
    connectors = _default_connectors() if connectors is None else connectors
    snapshot = Snapshot() if snapshot is None else snapshot
    rules = AttemptRules() if rules is None else rules
    must_be(Supervisor, "supervisor", supervisor)
    must_be(Connectors, "connectors", connectors)
    must_be(Snapshot, "snapshot", snapshot)
    must_be(AttemptRules, "rules", rules)
    must_be_count("max_environments", max_environments, 1)
    check_snapshot(snapshot, can_be_local=connectors.local is not None, most=max_environments)
    tree = await supervisor.start_supervisor(name)
    try:
        backstage = Backstage(
            actors=await tree.start_pool("actors"),
            connectors=connectors,
            rules=rules,
            token=trio.lowlevel.current_trio_token(),
        )
        # Started last, so stopped first: it closes what the pool could not go on with.
        await tree.start_child(ChildSpec("deadlines", keep_deadlines, backstage))
        manager = _manager_of(backstage, snapshot, max_environments)
        try:
            yield manager
        finally:
            backstage.close("the manager was closed", trio.current_time())
    finally:
        with trio.move_on_after(CLOSE_S, shield=True):
            # When the supervisor itself is ending it stops us: what ended it comes out of it, and not that it ends.
            with contextlib.suppress(SupervisorClosed):
                await supervisor.stop_child(name)
                supervisor.delete_child(name)


def _default_connectors() -> Connectors:
    return Connectors(
        plain=HarnessConnector(), noise=NoiseConnector(), local=LocalConnector(), identity=Identity.generate
    )


def _manager_of(backstage: Backstage, snapshot: Snapshot, max_environments: int) -> EnvironmentManager:
    roster: Roster[Environment] = Roster(most=max_environments)

    def vacate(body: Body) -> None:
        environment = roster.get(body.life.environment_id)
        if environment is not None and body_of(environment) is body:
            roster.free(body.life.environment_id)

    backstage.vacate = vacate
    manager = EnvironmentManager.give(backstage, roster, snapshot.default)
    for environment_id, way in snapshot.environments:
        manager.upsert(environment_id, provider_of(way))
    if snapshot.include_local:
        this_machine = Newcomer(environment_id=LOCAL_ENVIRONMENT_ID, kind=Kind.LOCAL, provider=None)
        admit(this_machine, backstage, roster, trio.current_time())
    return manager
