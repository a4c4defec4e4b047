"""Waits that a test holds in its hand, and short words for information."""

from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from actors.environments import Environment, EnvironmentManager, ReadyInfo, SelectedCapabilityRoot


def root(root_id: str, environment_id: str) -> SelectedCapabilityRoot:
    return SelectedCapabilityRoot(id=root_id, environment_id=environment_id, path="file:///plugins/root")


def info(root_id: str, environment_id: str) -> ReadyInfo:
    return ReadyInfo(selected_capability_roots=[root(root_id, environment_id)])


def found(manager: EnvironmentManager, environment_id: str) -> Environment:
    environment = manager.get(environment_id)
    assert environment is not None
    return environment


class Wait:
    """One call that runs in a task of its own."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.raised: Exception | None = None
        self.value: Any = None

    @property
    def is_pending(self) -> bool:
        return not self.ended.is_set()

    async def run(self, call: Any) -> None:
        with self.scope:
            try:
                self.value = await call()
            except Exception as error:
                # Without its frames: those hold this wait and the environment, which a test may want to let go.
                self.raised = error.with_traceback(None)
        self.ended.set()

    async def error(self) -> Exception:
        with trio.fail_after(60):
            await self.ended.wait()
        assert self.raised is not None, "the wait ended well"
        return self.raised

    async def well(self) -> Any:
        with trio.fail_after(60):
            await self.ended.wait()
        if self.raised is not None:
            raise self.raised
        assert not self.scope.cancelled_caught
        return self.value


async def start(nursery: trio.Nursery, call: Any) -> Wait:
    """Start a call and let everything run that can."""
    wait = Wait()
    nursery.start_soon(wait.run, call)
    await wait_all_tasks_blocked()
    return wait


async def start_wait(nursery: trio.Nursery, environment: Environment) -> Wait:
    return await start(nursery, environment.wait_until_ready)
