"""Open a manager under a supervisor, and close it in bounded time whatever happens to the block."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from actors import InvalidOption
from actors.environments._admission import Newcomer, admit
from actors.environments._backstage import Backstage, Connectors
from actors.environments._body import Body
from actors.environments._configuration import Snapshot, check_snapshot
from actors.environments._deadline_keeper import keep_deadlines
from actors.environments._environment import Environment, body_of
from actors.environments._harness_connector import HarnessConnector
from actors.environments._ids import LOCAL_ENVIRONMENT_ID
from actors.environments._lifecycle import Kind
from actors.environments._link import hold_link
from actors.environments._local_connector import LocalConnector
from actors.environments._manager import EnvironmentManager
from actors.environments._retry import AttemptRules
from actors.environments._roster import Roster
from supervision import ChildSpec, Supervisor

CLOSE_S = 15.0
MAX_ENVIRONMENTS = 1_000_000


@asynccontextmanager
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
        connectors: How links are opened; by default a `PlainEndpoint` over a WebSocket, this machine in this process.
        rules: How long attempts may take and how often providers are asked.
        max_environments: How many ids may be taken at once.
        name: Under which the manager is found in the supervision tree; unique in its supervisor.

    Raises:
        ProtocolError: The snapshot breaks a rule; nothing was started.

    Cancelled:
        All environments are closed and their tasks stopped, within a bounded time.
    """
    connectors = connectors or Connectors(plain=HarnessConnector(), local=LocalConnector())
    snapshot = snapshot or Snapshot()
    check_snapshot(snapshot, can_be_local=connectors.local is not None)
    if max_environments < 1:
        raise InvalidOption("max_environments", max_environments, "it must be at least 1")
    tree = await supervisor.start_supervisor(name)
    try:
        backstage = Backstage(
            actors=await tree.start_pool("actors"),
            links=await tree.start_pool("links"),
            hold=hold_link,
            connectors=connectors,
            rules=rules or AttemptRules(),
            token=trio.lowlevel.current_trio_token(),
        )
        # Started last, so stopped first: it closes what the pools could not go on with.
        await tree.start_child(ChildSpec("deadlines", keep_deadlines, backstage))
        manager = _manager_of(backstage, snapshot, max_environments)
        try:
            yield manager
        finally:
            backstage.close("the manager was closed", trio.current_time())
    finally:
        with trio.move_on_after(CLOSE_S, shield=True):
            await supervisor.stop_child(name)
            supervisor.delete_child(name)


def _manager_of(backstage: Backstage, snapshot: Snapshot, max_environments: int) -> EnvironmentManager:
    roster: Roster[Environment] = Roster(most=max_environments)

    def vacate(body: Body) -> None:
        environment = roster.get(body.life.environment_id)
        if environment is not None and body_of(environment) is body:
            roster.free(body.life.environment_id)

    backstage.vacate = vacate
    manager = EnvironmentManager.give(backstage, roster, snapshot.default)
    for environment_id, transport in snapshot.environments:
        if isinstance(transport, str):
            manager.upsert_url(environment_id, transport)
        else:
            manager.upsert(environment_id, transport)
    if snapshot.include_local:
        this_machine = Newcomer(environment_id=LOCAL_ENVIRONMENT_ID, kind=Kind.LOCAL, provider=None)
        admit(this_machine, backstage, roster, trio.current_time())
    return manager
