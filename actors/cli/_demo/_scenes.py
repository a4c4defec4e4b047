"""The five scenes of the demo. Each checks its own claims on the real thing."""

import os
import signal
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from actors.cli._demo._stage import CountingProvider, Stage
from actors.cli._executor_process import ExecutorProcess
from actors.environments import ConnectionState, Environment, Gate, ReadyInfo, SelectedCapabilityRoot
from supervision import Child, ChildStarted, Events

__all__ = ["SCENES"]

_WAIT_S: Final = 10.0


def _info(root_id: str, environment_id: str) -> ReadyInfo:
    root = SelectedCapabilityRoot(id=root_id, environment_id=environment_id, path="file:///plugins/root")
    return ReadyInfo(selected_capability_roots=(root,))


async def _becomes_ready(stage: Stage) -> None:
    """Registered before its executor exists; waited for; completed; a command runs in it."""
    provider, manager = CountingProvider(), stage.manager
    registration = manager.register_deferred("tools", provider)
    environment = _current(stage, "tools")
    stage.narrator.fact("registered before anything runs: " + str(environment.why()))
    outcomes: list[str] = []
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(_note_outcome, stage, environment, outcomes)
        await stage.settle()
        waiting = not outcomes and provider.calls == 0
        stage.check("nothing connects before completion", waiting, f"3 wait, provider called {provider.calls} times")

        provider.executor = await stage.start_executor("tools")
        registration.complete(_info("build", "tools"))
        visible = environment.gate is Gate.READY and environment.selected_capability_roots[0].id == "build"
        stage.check("completion is visible when it returns", visible, f"gate {environment.gate.value}")
    one_attempt = outcomes == ["ready"] * 3 and provider.calls == 1
    stage.check("one attempt serves all who wait", one_attempt, f"{outcomes}, provider called once: {provider.calls}")
    result = await environment.run(["sh", "-c", "echo $GREETING from process $$; uname -s"], env={"GREETING": "hello"})
    text: str = result.stdout_text
    for line in text.splitlines():
        stage.narrator.fact(f"tools | {line}")
    stage.check("a real command ran in it", result.exit_code == 0 and "hello" in text, f"exit code {result.exit_code}")
    await stage.settle()


async def _fails(stage: Stage) -> None:
    """Whoever provisions it gives up; those who wait learn why."""
    provider = CountingProvider()
    registration = stage.manager.register_deferred("broken", provider)
    environment = _current(stage, "broken")
    registration.fail("the image could not be pulled: 403")
    outcome = await stage.outcome_of(environment.wait_until_ready)
    told = outcome.endswith("environment unavailable: the image could not be pulled: 403")
    stage.check("a failure reaches those who wait, word for word", told and provider.calls == 0, outcome)
    stage.narrator.fact("why? " + str(environment.why()))
    await stage.settle()


async def _is_forgotten(stage: Stage) -> None:
    """Whoever holds the registration loses it; nobody waits for ever."""
    registration = stage.manager.register_deferred("forgotten", CountingProvider())
    environment = _current(stage, "forgotten")
    with registration:
        stage.narrator.fact("the block that should have completed it ends without a word")
    outcome = await stage.outcome_of(environment.wait_until_ready)
    stage.check("a lost registration abandons", "registration ended before completion" in outcome, outcome)
    await stage.settle()


async def _is_replaced(stage: Stage) -> None:
    """Its id is registered again; the late completion of the first touches the first alone."""
    first_provider, second_provider = CountingProvider(), CountingProvider()
    executor = await stage.start_executor("builder")
    first_provider.executor = second_provider.executor = executor
    late = stage.manager.register_deferred("builder", first_provider)
    first = _current(stage, "builder")
    registration = stage.manager.register_deferred("builder", second_provider)
    second = _current(stage, "builder")
    stage.check("the id leads to the new generation", second.generation == 2 and first.superseded, f"{second!r}")
    late.complete(_info("old", "builder"))
    fenced = second.gate is Gate.PENDING and second.selected_capability_roots == ()
    stage.check("a late completion is fenced off", fenced, f"generation 2 is still {second.gate.value}")
    registration.complete(_info("new", "builder"))
    outcome = await stage.outcome_of(second.wait_until_ready)
    roots = [root.id for root in second.selected_capability_roots]
    stage.check(
        "the new generation becomes ready by its own", outcome == "ready" and roots == ["new"], f"roots {roots}"
    )
    await stage.settle()


async def _loses_its_executor(stage: Stage) -> None:
    """The executor is killed; its supervisor starts another one; the environment finds it."""
    environment, child = _current(stage, "tools"), stage.executors.child("tools")
    assert child is not None, "the first scene started it"
    before: ExecutorProcess = child.value
    watch = environment.subscribe_connection_state()
    assert watch is not None, "a remote environment has a connection to watch"
    async with stage.executors.events() as events:
        os.kill(before.pid, signal.SIGKILL)
        stage.narrator.fact(f"executor process {before.pid} is killed")
        await _until(lambda: watch.current is ConnectionState.DISCONNECTED, watch.changed)
        stage.check("the loss is noticed", watch.current is ConnectionState.DISCONNECTED, watch.latest.reason)
        after = await _restarted(child, events)
    stage.check("the supervisor brings the executor back", after.pid != before.pid, f"process {after.pid}, {after.url}")
    await stage.settle()
    result = await environment.run(["echo", "back again"])
    stage.narrator.fact(f"tools | {result.stdout_text.strip()}")
    back = watch.current is ConnectionState.CONNECTED and environment.generation == 1
    stage.check("the environment reconnects when it is used", back, f"{environment!r}")
    await stage.settle()


SCENES: Final[dict[str, Callable[[Stage], Awaitable[None]]]] = {
    "An environment is registered, awaited, completed and used": _becomes_ready,
    "Another one fails": _fails,
    "A registration is lost": _is_forgotten,
    "An environment is replaced while its completion is late": _is_replaced,
    "An executor is killed": _loses_its_executor,
}


def _current(stage: Stage, environment_id: str) -> Environment:
    environment = stage.manager.get(environment_id)
    assert environment is not None, f"{environment_id} was registered just now"
    return environment


async def _note_outcome(stage: Stage, environment: Environment, outcomes: list[str]) -> None:
    outcomes.append(await stage.outcome_of(environment.wait_until_ready))


async def _until(holds: Callable[[], bool], change: Callable[[], Awaitable[object]]) -> None:
    with trio.fail_after(_WAIT_S):
        while not holds():
            await change()


async def _restarted(child: Child, events: Events) -> ExecutorProcess:
    with trio.fail_after(_WAIT_S):
        async for event in events:
            if isinstance(event, ChildStarted) and event.path == child.path:
                break
    process: ExecutorProcess = child.value
    return process
