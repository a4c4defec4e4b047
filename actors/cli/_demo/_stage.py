"""What every scene plays on: one supervisor with executors, one manager, one narrator."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from actors.cli._demo._narration import Narrator, Proof, Row
from actors.cli._executor_process import ExecutorProcess, run_executor_process
from actors.environments import ConnectFailed, Environment, EnvironmentManager, EnvironmentUnavailable, PlainEndpoint
from supervision import Child, ChildSpec, Supervisor

__all__ = ["CountingProvider", "Stage"]


class CountingProvider:
    """Says where the present process of one supervised executor listens, and how often it was asked."""

    def __init__(self) -> None:
        self.executor: Child | None = None
        self.calls = 0

    async def connect_bundle(self, _harness_public_key: Any, /) -> PlainEndpoint:
        """Say it; asked anew for each attempt, so that a restarted executor is found at its new address."""
        self.calls += 1
        assert self.executor is not None, "nobody asks before an executor was given to this provider"
        with trio.fail_after(10):
            await self.executor.wait_started()
        process: ExecutorProcess = self.executor.value
        return PlainEndpoint(websocket_url=process.url)


@attrs.frozen
class Stage:
    """Handed from scene to scene."""

    root: Supervisor
    executors: Supervisor
    manager: EnvironmentManager
    narrator: Narrator
    pace_s: float
    proofs: list[Proof] = attrs.field(factory=list[Proof])

    async def start_executor(self, name: str) -> Child:
        """Start an executor process under the supervisor of executors."""
        child = await self.executors.start_child(ChildSpec(name, run_executor_process, shutdown_s=5.0))
        process: ExecutorProcess = child.value
        self.narrator.fact(f"executor process {process.pid} listens on {process.url}")
        return child

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
            with trio.fail_after(10):
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
