"""Faults that others reported of their systems, and what must happen here (P01 to P06, P20, P25 as they apply)."""

from itertools import permutations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors import ActorsError
from actors.environments import (
    AttemptRules,
    ConnectFailed,
    EnvironmentClosed,
    EnvironmentEvents,
    EnvironmentSuperseded,
    EnvironmentUnavailable,
    Gate,
    GateMoved,
    PlainEndpoint,
    RegistrationUsed,
    StatusReady,
)
from actors.environments.testing import FailingProvider, MemoryConnector, ScriptedProvider, open_manager_in_memory
from supervision import Supervisor, open_root
from tests.actors.environments.waiting import found, info, start, start_wait


class SlowProvider:
    """Answers after a time of virtual clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.calls, self.answered = seconds, 0, 0

    async def connect_bundle(self, _key: object, /) -> PlainEndpoint:
        self.calls += 1
        await trio.sleep(self.seconds)
        self.answered += 1
        return PlainEndpoint(websocket_url="ws://memory.invalid/")


def heard(events: EnvironmentEvents) -> list[object]:
    told: list[object] = []
    while True:
        try:
            told.append(events.receive_nowait())
        except trio.WouldBlock:
            return told


# P01: a late completion lands on the replacement.


@pytest.mark.parametrize("late", ["complete", "fail"])
@pytest.mark.parametrize("order", ["old first", "new first"])
async def test_p01_a_late_completion_never_touches_the_replacement(
    late: str, order: str, nursery, autojump_clock
) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager, manager.events() as events:
        a = manager.register_deferred("env-1", ScriptedProvider())
        old = found(manager, "env-1")
        old_wait = await start_wait(nursery, old)
        b = manager.register_deferred("env-1", ScriptedProvider())
        new = found(manager, "env-1")
        new_wait = await start_wait(nursery, new)

        for one in ("old", "new") if order == "old first" else ("new", "old"):
            if one == "new":
                b.complete(info("address-B", "env-1"))
            elif late == "complete":
                a.complete(info("address-A", "env-1"))
            else:
                a.fail("too late")
            await wait_all_tasks_blocked()

        await new_wait.well()
        assert [root.id for root in new.selected_capability_roots] == ["address-B"]
        if late == "complete":
            await old_wait.well()
            assert [root.id for root in old.selected_capability_roots] == ["address-A"]
        else:
            assert isinstance(await old_wait.error(), EnvironmentUnavailable)
        assert manager.get("env-1") is new
        assert (a.superseded, b.superseded) == (True, False)
        told = heard(events)
        moved = [event for event in told if isinstance(event, GateMoved)]
        assert sorted(event.generation for event in moved) == [1, 2]
        assert [event.superseded for event in moved if event.generation == 1] == [True]
        assert [event.by_generation for event in told if isinstance(event, EnvironmentSuperseded)] == [2]
        assert manager.statistics().late_completions == 1


@pytest.mark.parametrize("end", ["abandon", "aclose", "manager"])
async def test_p01_without_a_completion_the_old_waiter_ends_with_its_own_environment(
    end: str, nursery, autojump_clock
) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("env-1", FailingProvider()) as a:
            old = found(manager, "env-1")
            wait = await start_wait(nursery, old)
            manager.upsert("env-1", ScriptedProvider())
            await wait_all_tasks_blocked()
            assert wait.is_pending

            if end == "abandon":
                a.abandon()
            else:
                await (old.aclose() if end == "aclose" else manager.aclose())
            expected = EnvironmentUnavailable if end == "abandon" else EnvironmentClosed
            assert isinstance(await wait.error(), expected)


# P02: the process dies before it is ever ready.


async def test_p02_all_waiters_learn_of_a_death_at_once_and_so_do_later_ones(nursery, autojump_clock) -> None:
    class Died(ActorsError):
        pass

    class Launcher:
        async def connect_bundle(self, _key: object, /) -> PlainEndpoint:
            await trio.sleep(0.2)
            raise Died("starting: exit status 3: no such module / giving up")

    async with open_manager_in_memory() as manager:
        environment = manager.upsert("bad", Launcher())
        waits = [await start_wait(nursery, environment) for _ in range(5)]

        async def with_a_timeout() -> None:
            with trio.fail_after(60):
                await environment.wait_until_ready()

        waits.append(await start(nursery, with_a_timeout))
        errors = [await wait.error() for wait in waits]
        assert trio.current_time() < 1
        await trio.sleep(5)
        late_s = trio.current_time()
        errors.append(await (await start_wait(nursery, environment)).error())

        assert trio.current_time() == late_s
        for error in errors:
            assert isinstance(error, ConnectFailed)
            assert "starting: exit status 3: no such module" in str(error)
            assert isinstance(error.__cause__, Died)


async def test_p02_an_environment_that_is_not_there_is_never_stood_in_for(nursery, autojump_clock) -> None:
    from actors.environments import Snapshot

    async with open_manager_in_memory(snapshot=Snapshot(include_local=True)) as manager:
        assert manager.get("elsewhere") is None

        manager.register_deferred("failed", FailingProvider()).fail("no machine")
        wait = await start(nursery, lambda: found(manager, "failed").run(["rm"]))
        assert isinstance(await wait.error(), EnvironmentUnavailable)
        assert manager.statistics().attempts == 0


# P03: a readiness answer from the previous life is reused.


async def test_p03_an_answer_of_the_previous_life_marks_nothing_ready(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    rules = AttemptRules(provider_call_s=30, budget_s=60)
    async with open_manager_in_memory(connector=connector, rules=rules) as manager:
        slow = SlowProvider(4)
        old = manager.upsert("kernel", slow)
        old_wait = await start_wait(nursery, old)
        await trio.sleep(1)
        again = SlowProvider(6)
        new = manager.upsert("kernel", again)
        await old.aclose()
        ended_s = trio.current_time()
        assert isinstance(await old_wait.error(), EnvironmentClosed)
        assert ended_s == 1

        await trio.sleep(4)
        assert not new.startup_finished
        await new.wait_until_ready()
        assert trio.current_time() == 7
        assert [link.request.generation for link in connector.links] == [2]
        assert slow.answered == 0


# P04: cancelled creation leaves something running that nobody owns.


@pytest.mark.parametrize("at_s", [1, 5, 9.999, 10])
async def test_p04_a_caller_that_gives_up_leaves_an_environment_that_somebody_owns(
    at_s: float, nursery, autojump_clock
) -> None:
    connector = MemoryConnector()
    rules = AttemptRules(provider_call_s=30, budget_s=60)
    async with open_manager_in_memory(connector=connector, rules=rules) as manager:
        provider = SlowProvider(10)
        environment = manager.upsert("sandbox", provider)
        with trio.move_on_at(at_s) as scope:
            await environment.wait_until_ready()
        await trio.sleep_until(20)

        assert scope.cancelled_caught or at_s == 10
        assert (provider.calls, provider.answered) == (1, 1)
        assert len(connector.open_links) == 1
        assert await environment.status() == StatusReady()


@pytest.mark.parametrize("at_s", [1, 5, 9.999, 10])
async def test_p04_closing_while_it_is_created_leaves_nothing(at_s: float, nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    rules = AttemptRules(provider_call_s=30, budget_s=60)
    async with open_manager_in_memory(connector=connector, rules=rules) as manager:
        environment = manager.upsert("sandbox", SlowProvider(10))
        await trio.sleep_until(at_s)
        await environment.aclose()
        await trio.sleep_until(20)

        assert connector.open_links == []
        assert manager.statistics().alive == 0


async def test_p04_of_two_who_take_one_id_in_the_same_step_one_wins_and_the_other_knows(autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector, max_environments=1) as manager:
        twins = []

        async def take() -> None:
            twins.append(manager.upsert("one", ScriptedProvider()))

        async with trio.open_nursery() as both:
            both.start_soon(take)
            both.start_soon(take)

        assert sorted(twin.superseded for twin in twins) == [False, True]
        assert manager.get("one") is next(twin for twin in twins if not twin.superseded)
        assert manager.statistics().current == 1


# P05 and P06: nothing is brought back that was stopped on purpose, and nothing loops.


@pytest.mark.parametrize("order", [*permutations(["close", "lose", "settle", "use"])], ids="-".join)
async def test_p05_no_order_of_a_loss_and_a_stop_brings_anything_back(
    order: tuple[str, ...], nursery, autojump_clock
) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        closed_at_attempts = None
        for step in order:
            if step == "close":
                await environment.aclose()
                closed_at_attempts = manager.statistics().attempts
            elif step == "lose":
                connector.links[-1].cut()
            elif step == "settle":
                await wait_all_tasks_blocked()
            else:
                await start(nursery, environment.info)
        await wait_all_tasks_blocked()

        assert manager.statistics().attempts == closed_at_attempts
        assert connector.open_links == []
        assert environment.why().reasons[1].text == "aclose() was called"


async def test_p06_a_link_that_dies_again_and_again_is_only_opened_when_somebody_uses_it(autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        provider = ScriptedProvider()
        environment = manager.upsert("tools", provider)
        for _ in range(5):
            await environment.info()
            await trio.sleep(4)
            connector.links[-1].cut("killed for memory")
            await wait_all_tasks_blocked()
        await trio.sleep(600)

        assert provider.calls == 5
        assert environment.why().reasons[1].text == "killed for memory"


# P20: an error in start-up arrives in a different wrapping than the same error later.


async def nested(root: Supervisor, levels: int) -> Supervisor:
    for level in range(levels - 1):
        root = await root.start_supervisor(f"level-{level}")
    return root


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize(
    "cause", [ValueError("E"), ExceptionGroup("both", [ValueError("E"), KeyError("F")]), TimeoutError("slow")], ids=str
)
async def test_p20_what_a_provider_raises_comes_out_as_one_typed_error_at_any_depth(
    levels: int, cause: Exception, autojump_clock
) -> None:
    async with open_root() as root:
        supervisor = await nested(root, levels)
        async with open_manager_in_memory(supervisor) as manager:
            environment = manager.upsert("tools", ScriptedProvider(cause))
            for call in (environment.wait_until_ready, environment.info):
                with pytest.raises(ConnectFailed) as failed:
                    await call()

                assert failed.value.__cause__ is cause


@pytest.mark.parametrize("levels", [1, 2, 3])
async def test_p20_what_the_link_raises_after_it_was_open_reaches_those_who_use_it(levels: int, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_root() as root, open_manager_in_memory(await nested(root, levels), connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        connector.links[0].client.failure = KeyError("F")
        with pytest.raises(KeyError):
            await environment.info()

        connector.links[0].why = ExceptionGroup("both", [ValueError("E"), KeyError("F")])
        connector.links[0].ended.set()
        await wait_all_tasks_blocked()
        assert "both (2 sub-exceptions)" in str(environment.why())


async def test_p20_cancellation_is_never_turned_into_a_failure(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider()
        provider.hold_back()
        environment = manager.upsert("tools", provider)
        with trio.move_on_after(1) as scope:
            await environment.wait_until_ready()

        assert scope.cancelled_caught
        assert not environment.startup_finished


# P25: the answer comes twice.


async def test_p25_a_second_answer_reaches_its_sender_and_nobody_else(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        held = [manager.register_deferred(f"env-{number}", ScriptedProvider()) for number in range(100)]
        waits = [await start_wait(nursery, found(manager, f"env-{number}")) for number in range(100)]
        for registration in held:
            registration.complete(info("r", registration.environment_id))
        for late in (held[7].complete, held[7].complete):
            with pytest.raises(RegistrationUsed):
                late(info("s", "env-7"))
        with pytest.raises(RegistrationUsed):
            held[7].fail("after all")

        for wait in waits:
            await wait.well()
        assert found(manager, "env-7").gate is Gate.READY
        assert manager.statistics().refused_completions == 3


async def test_p25_a_connector_that_opens_twice_harms_only_its_own_link(nursery, autojump_clock) -> None:
    class Stutterer(MemoryConnector):
        async def hold(self, request, report, /) -> None:
            if request.environment_id == "bad":
                report.opened(None)
                report.opened(None)
            await super().hold(request, report)

    async with open_manager_in_memory(connector=Stutterer()) as manager:
        good, bad = manager.upsert("good", ScriptedProvider()), manager.upsert("bad", ScriptedProvider())
        await wait_all_tasks_blocked()

        assert await good.status() == StatusReady()
        assert bad.why().reasons[0].code == "lost"
        assert "AttemptSucceeded has no place while the environment is connected" in str(bad.why())
