"""What every scene plays on: a relay, one supervisor with executors, one manager, one narrator."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import attrs
import trio

from actors.cli._demo._narration import Narrator, Proof, Row
from actors.cli._demo._relay import Relay
from actors.cli._executor_process import ExecutorProcess, RegistryPlace, run_executor_process
from actors.environments import (
    ConnectBundle,
    ConnectFailed,
    Environment,
    EnvironmentManager,
    EnvironmentUnavailable,
    RegistryConnectProvider,
)
from actors.rendezvous import RegistryClient, Rendezvous
from supervision import Child, ChildSpec, ChildStarted, Events, Supervisor

__all__ = ["CountingProvider", "Stage", "restarted"]

T = TypeVar("T")
_WAIT_S: Final = 10.0


class CountingProvider:
    """Asks the registry for a bundle, and counts how often it was asked and how many it got."""

    def __init__(self, registry: RegistryClient, environment_id: str) -> None:
        self._provider = RegistryConnectProvider(registry, environment_id)
        self.calls = self.bundles = 0

    async def connect_bundle(self, harness_public_key: Any, /) -> ConnectBundle:
        """Ask for what one connection needs; anew for each, so a restarted executor is found with its new keys."""
        self.calls += 1
        bundle = await self._provider.connect_bundle(harness_public_key)
        self.bundles += 1
        return bundle


@attrs.frozen(kw_only=True)
class Stage:
    """Handed from scene to scene."""

    root: Supervisor
    relay: Relay
    rendezvous: Child[Rendezvous]
    executors: Supervisor
    manager: EnvironmentManager
    registry: RegistryClient
    narrator: Narrator
    pace_s: float
    proofs: list[Proof] = attrs.field(factory=list[Proof])

    def provider(self, environment_id: str) -> CountingProvider:
        """Give a provider that asks the demo's registry for one environment."""
        return CountingProvider(self.registry, environment_id)

    def begin_executor(self, environment_id: str) -> Child[ExecutorProcess]:
        """Begin to start an executor process under the supervisor of executors; it registers itself."""
        place = RegistryPlace(
            registry_url=self.rendezvous.value.url, environment_id=environment_id, token=self.relay.token
        )
        spec = ChildSpec(environment_id, run_executor_process, place, self.narrator.fact, shutdown_s=5.0)
        return self.executors.start_child_nowait(spec)

    async def executor(self, environment_id: str) -> None:
        """Wait until an executor process is registered, beginning to start it if need be."""
        child = self.executors.child(environment_id) or self.begin_executor(environment_id)
        await child.wait_started()
        process = child.value
        self.narrator.fact(f"executor process {process.pid} is registered as {process.environment_id}")

    def current(self, environment_id: str) -> Environment:
        """Give the environment that has the id now."""
        environment = self.manager.get(environment_id)
        assert environment is not None, f"{environment_id} was registered in an earlier step"
        return environment

    def check(self, claim: str, held: bool, seen: object) -> None:
        """Record whether a claim held."""
        proof = Proof(claim=claim, held=held, seen=str(seen))
        self.proofs.append(proof)
        self.narrator.proof(proof)

    async def settle(self) -> None:
        """Let what is scheduled run, show the environments, and give a watching person time to look."""
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        self.narrator.rows(self.rows())
        await trio.sleep(self.pace_s)

    def rows(self) -> list[Row]:
        """The environments that are registered now."""
        found = (self.manager.get(environment_id) for environment_id in self.manager.environment_ids)
        return [_row(environment) for environment in found if environment is not None]

    async def outcome_of(self, wait: Callable[[], Awaitable[object]]) -> str:
        """Wait, and say in words how that ended."""
        try:
            with trio.fail_after(_WAIT_S):
                await wait()
        except (EnvironmentUnavailable, ConnectFailed) as error:
            return str(error)
        return "ready"


def _row(environment: Environment) -> Row:
    why = environment.why()
    watch = environment.subscribe_connection_state()
    return Row(
        environment_id=environment.environment_id,
        generation=environment.generation,
        gate=environment.gate.value,
        connection="local" if watch is None else watch.current.value,
        why=str(why.reasons[0]),
    )


async def restarted(child: Child[T], events: Events) -> T:
    """Wait until a supervisor has brought a child back, and give what the new one says it is."""
    with trio.fail_after(_WAIT_S):
        async for event in events:
            if isinstance(event, ChildStarted) and event.path == child.path:
                break
    return child.value
