"""Every state that is not ready says why, in a chain that ends in a cause and with something to do."""

import re
from collections.abc import AsyncIterator

import pytest
import trio

from actors.environments import Environment, EnvironmentManager, Phase, ProvisioningConflict, Registration
from actors.environments._printable import time_text
from actors.environments.testing import (
    FailingProvider,
    LinkCut,
    MemoryConnector,
    ScriptedProvider,
    open_manager_in_memory,
)
from tests.actors.environments.waiting import found, info, start, start_wait


def codes(environment: Environment) -> list[str]:
    why = environment.why()
    assert why.advice
    assert str(why).isprintable()
    return [reason.code for reason in why.reasons]


async def test_a_pending_gate_names_who_must_complete_it_its_deadline_and_its_age(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider(), deadline_s=60):
            await trio.sleep(41)
            environment = found(manager, "tools")

            assert codes(environment) == ["pending", "waiting_for_completion", "deadline", "registered"]
            said = str(environment.why())
            assert "environment `tools` generation 1 is not provisioned" in said
            assert "it fails in 19 s" in said
            assert "it was registered, 41 s ago" in said
            assert said.endswith("registration.complete(info), .fail(message) or .abandon()")
            assert "connection not started" in repr(environment)


async def test_a_gate_without_deadline_says_so(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        assert codes(manager.materialize("tools", FailingProvider()))[2] == "no_deadline"


async def test_a_failed_gate_ends_in_the_words_of_who_failed_it(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        manager.register_deferred("tools", FailingProvider()).fail("no\nmachine\x1b[2J free")

        assert codes(found(manager, "tools")) == ["failed", "cause"]
        assert r"environment unavailable: no\nmachine\x1b[2J free" in str(manager.why("tools"))


async def test_a_failed_attempt_ends_in_the_words_of_the_provider(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", FailingProvider("403 forbidden"))
        await (await start_wait(nursery, environment)).error()

        assert codes(environment) == ["start_refused", "attempt_failed", "cause"]
        assert "403 forbidden" in str(environment.why())
        assert "attempt 1 failed, its provider was asked once, " in str(environment.why())


async def test_a_failed_attempt_says_how_often_the_provider_was_asked(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider(*[LinkCut("503")] * 9)
        environment = manager.upsert("tools", provider)
        await (await start_wait(nursery, environment)).error()

        assert provider.calls == 5
        assert "attempt 1 failed, its provider was asked 5 times, " in str(environment.why())


async def every_state(manager: EnvironmentManager) -> AsyncIterator[Environment]:
    """One environment after the other, each in another state, as users bring them there."""
    registration = manager.register_deferred("tools", FailingProvider())
    yield found(manager, "tools")
    registration.fail("no machine")
    yield found(manager, "tools")
    manager.register_deferred("abandoned", FailingProvider()).abandon()
    yield found(manager, "abandoned")
    yield manager.materialize("reported", FailingProvider())
    manager.report_provisioning("reported", "no machine", FailingProvider())
    yield found(manager, "reported")
    old = manager.upsert("refused", FailingProvider())
    await trio.sleep(1)
    yield old
    manager.upsert("refused", FailingProvider())
    yield old
    refused = manager.report_provisioning("refused later", info("r", "refused later"), FailingProvider())
    assert refused is not None
    yield refused
    refused.start_connecting()
    await trio.sleep(1)
    yield refused
    await refused.aclose()
    yield refused
    failed = manager.upsert("failed", ScriptedProvider(*[LinkCut("503")] * 9))
    await trio.sleep(60)
    yield failed
    await manager.remove("failed")
    yield failed


async def test_every_advice_names_calls_that_exist_with_the_right_number_of_arguments(autojump_clock) -> None:
    """The mutant that advises `manager.recover()` is killed."""
    here = {"manager": EnvironmentManager, "environment": Environment, "registration": Registration}
    async with open_manager_in_memory() as manager:
        advised = [str(environment.why().advice) async for environment in every_state(manager)]
        advised.append(manager.why("nobody").advice)

    assert len(set(advised)) >= 9
    for advice in advised:
        calls = re.findall(r"(?<![\w.])(\w*)\.(\w+)(?:\(([^()]*)\))?", advice)
        for owner, method, _ in calls:
            assert hasattr(here[owner or "registration"], method), advice
        assert calls or advice == "nothing to do", advice


async def test_what_is_advised_for_an_abandoned_environment_works_and_the_second_time_is_a_conflict(
    autojump_clock,
) -> None:
    async with open_manager_in_memory() as manager:
        manager.register_deferred("tools", ScriptedProvider()).abandon()
        environment = found(manager, "tools")
        assert "manager.report_provisioning('tools', info, provider, recover=True)" in environment.why().advice

        ready = info("r", "tools")
        assert manager.report_provisioning("tools", ready, FailingProvider(), recover=True) is environment
        await environment.wait_until_ready()
        with pytest.raises(ProvisioningConflict, match="with a different provisioning mode") as refused:
            manager.report_provisioning("tools", ready, FailingProvider(), recover=True)

        assert refused.value.__notes__[0].startswith("It was registered by register_deferred() and is ready; ")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-1, "0.0001 s"), (0, "0.0001 s"), (0.000364, "0.0004 s"), (0.0012345, "0.00123 s"), (0.5, "0.5 s"),
        (41.26, "41.3 s"), (599.4, "599 s"), (600, "10 min"), (27352.027, "456 min"), (36_000, "10 h"),
        (172_800, "2 d"), (1e9, "11574 d"),
    ],
)  # fmt: skip
def test_a_time_is_told_in_at_most_three_digits_that_count(seconds: float, told: str) -> None:
    assert time_text(seconds) == told


async def test_an_attempt_under_way_says_how_often_the_provider_was_asked(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider(LinkCut("503"))
        environment = manager.upsert("tools", provider)
        await trio.sleep(2)

        assert codes(environment) == ["starting", "attempt"]
        assert f"its provider was asked {provider.calls} times" in str(environment.why())
        assert provider.calls > 1


async def test_a_lost_link_says_what_was_seen_and_what_the_last_reconnect_met(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        assert codes(environment) == ["connected", "answers"]

        connector.links[0].interrupt("no frame for 30 s")
        assert codes(environment) == ["recovering", "cause"]
        connector.links[0].cut("recovery timed out after 25s")
        await trio.testing.wait_all_tasks_blocked()
        assert codes(environment) == ["lost", "cause"]
        connector.failures.append(LinkCut("connection refused"))
        await (await start(nursery, environment.info)).error()

        assert codes(environment) == ["lost", "cause", "attempt_failed"]
        assert "connection refused" in str(environment.why())


async def test_a_closed_a_superseded_and_an_unknown_environment_say_so(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        old = manager.upsert("tools", ScriptedProvider())
        new = manager.upsert("tools", ScriptedProvider())
        await old.aclose()

        assert codes(old) == ["closed", "cause", "superseded"]
        assert "its id belongs to generation 2 by now" in str(old.why())
        await manager.remove("tools")
        assert codes(new)[-1] == "removed"
        assert [reason.code for reason in manager.why("a\nb").reasons] == ["unknown"]
        assert str(manager.why("a\nb")).isprintable()


async def test_one_that_nobody_used_says_so(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.report_provisioning("tools", info("r", "tools"), FailingProvider())
        assert environment is not None

        assert codes(environment) == ["not_started", "unused"]


@pytest.mark.parametrize("phase", [*Phase])
async def test_every_phase_has_an_advice(phase: Phase) -> None:
    from actors.environments._why import _PHASE_ADVICE

    assert _PHASE_ADVICE[phase]


async def test_ten_thousand_environments_are_explained_quickly(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        manager_of_many(manager, 1_000)

        assert all(len(manager.why(key).reasons) == 4 for key in manager.environment_ids)


def manager_of_many(manager: EnvironmentManager, count: int) -> None:
    for number in range(count):
        manager.materialize(f"env-{number}", FailingProvider())
