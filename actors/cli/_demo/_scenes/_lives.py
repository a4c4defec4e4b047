"""How an environment comes to be, or not: completed, failed, forgotten, replaced."""

import trio

from actors.cli._demo._stage import Stage
from actors.environments import Environment, Gate, ReadyInfo, SelectedCapabilityRoot

__all__ = ["becomes_ready", "fails", "is_forgotten", "is_replaced"]


def _info(root_id: str, environment_id: str) -> ReadyInfo:
    root = SelectedCapabilityRoot(id=root_id, environment_id=environment_id, path="file:///plugins/root")
    return ReadyInfo(selected_capability_roots=(root,))


async def becomes_ready(stage: Stage) -> None:
    """Registered before its executor exists; waited for; completed; a command runs in it."""
    provider = stage.provider("tools")
    registration = stage.manager.register_deferred("tools", provider)
    environment = stage.current("tools")
    stage.narrator.fact("registered before anything runs: " + str(environment.why()))
    outcomes: list[str] = []
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(_note_outcome, stage, environment, outcomes)
        await stage.settle()
        waiting = not outcomes and provider.calls == 0
        stage.check("nothing connects before completion", waiting, f"3 wait, provider called {provider.calls} times")

        await stage.executor("tools")
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


async def fails(stage: Stage) -> None:
    """Whoever provisions it gives up; those who wait learn why."""
    provider = stage.provider("broken")
    registration = stage.manager.register_deferred("broken", provider)
    environment = stage.current("broken")
    registration.fail("the image could not be pulled: 403")
    outcome = await stage.outcome_of(environment.wait_until_ready)
    told = outcome.endswith("environment unavailable: the image could not be pulled: 403")
    stage.check("a failure reaches those who wait, word for word", told and provider.calls == 0, outcome)
    stage.narrator.fact("why? " + str(environment.why()))
    await stage.settle()


async def is_forgotten(stage: Stage) -> None:
    """Whoever holds the registration loses it; nobody waits for ever."""
    registration = stage.manager.register_deferred("forgotten", stage.provider("forgotten"))
    environment = stage.current("forgotten")
    with registration:
        stage.narrator.fact("the block that should have completed it ends without a word")
    outcome = await stage.outcome_of(environment.wait_until_ready)
    stage.check("a lost registration abandons", "registration ended before completion" in outcome, outcome)
    await stage.settle()


async def is_replaced(stage: Stage) -> None:
    """Its id is registered again; the late completion of the first touches the first alone."""
    await stage.executor("builder")
    late = stage.manager.register_deferred("builder", stage.provider("builder"))
    first = stage.current("builder")
    registration = stage.manager.register_deferred("builder", stage.provider("builder"))
    second = stage.current("builder")
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


async def _note_outcome(stage: Stage, environment: Environment, outcomes: list[str]) -> None:
    outcomes.append(await stage.outcome_of(environment.wait_until_ready))
