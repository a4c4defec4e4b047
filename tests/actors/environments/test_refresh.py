"""A planned replacement of the executor under one id: whom the link leads to, what ends, what is kept, who is asked.

Mutants planted one at a time in the library, each seen killed here or in `test_connection.py`:

 1. `Connection._look_at` never keeps anybody;
 2. `Connection._look_at` compares the key alone, or the registration alone;
 3. `Connection._look_at` does not compare tickets;
 4. `Lifecycle._look_at` gives no `EndLink`;
 5. `Body.turn_to` leaves `EndLink` to the actor, which is busy with that very link;
 6. `Link.stop` does not tell the client why;
 7. `Body.turn_to` keeps no bundle, so that the attempt asks the provider again;
 8. `Link.opened` takes any attempt for the one that counts;
 9. `hold_link` begins an attempt that was superseded before its actor came to it;
10. `Body._tell` wakes only for another phase, so that who joined a superseded attempt goes on waiting;
11. `refresh` does not ask for a status;
12. `_ask` has no bound, or does not end with the environment;
13. `_check` is left out, so that a bundle nobody can use costs the session;
14. `Link._renew` does not remember whom the fresh bundle leads to;
15. `refresh` asks the provider while the gate is pending.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.environments import (
    AttemptSuperseded,
    ConnectFailed,
    ConnectionMoved,
    ConnectionState,
    ConnectProvider,
    Environment,
    EnvironmentClosed,
    EnvironmentManager,
    EnvironmentUnavailable,
    FixedEndpoint,
    Phase,
    PlainEndpoint,
    ProtocolError,
    ReadyInfo,
    Snapshot,
    StatusReady,
)
from actors.environments.testing import LinkCut, MemoryConnector, ScriptedProvider, open_manager_in_memory
from tests.actors.environments.executors import Registry, bundle_of
from tests.actors.environments.waiting import found, start, start_wait

ENDPOINT = PlainEndpoint(websocket_url="ws://memory.invalid/")


def open_world(connector: MemoryConnector | None = None, **options: Any):
    connector = connector or MemoryConnector()
    return open_manager_in_memory(connector=connector, noise=connector, **options)


class Slow(MemoryConnector):
    """Links that are given up take until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.unwind = trio.Event()

    async def hold(self, request: Any, report: Any, /) -> None:
        try:
            await super().hold(request, report)
        finally:
            with trio.CancelScope(shield=True):
                await self.unwind.wait()


@asynccontextmanager
async def connected(
    connector: MemoryConnector | None = None,
) -> AsyncGenerator[tuple[Environment, Registry, MemoryConnector, EnvironmentManager], None]:
    """Set the scene of most tests: an environment of a registry whose first link is open, and what lies behind it."""
    connector, registry = connector or MemoryConnector(), Registry()
    async with open_world(connector) as manager:
        environment = manager.upsert("tools", registry)
        await environment.wait_until_ready()
        yield environment, registry, connector, manager


async def test_the_same_executor_keeps_its_session(autojump_clock) -> None:
    async with connected() as (environment, registry, connector, manager):
        watch = environment.subscribe_connection_state()
        await environment.refresh_connection()

        assert registry.asked == 2
        assert [link.is_held for link in connector.links] == [True]
        assert connector.links[0].client.retired is None
        assert watch is not None
        assert not watch.has_changed()
        counted = manager.statistics()
        assert (counted.look_ups, counted.replaced, counted.superseded_attempts, counted.attempts) == (1, 0, 0, 1)


@pytest.mark.parametrize("place", [1, 2], ids=["another key", "another registration"])
async def test_another_executor_retires_the_session_and_gets_the_bundle_just_fetched(
    place: int, nursery, autojump_clock
) -> None:
    async with connected() as (environment, registry, connector, manager):
        old = connector.links[0].client
        old.proceed = trio.Event()
        work = await start(nursery, lambda: environment.run(["sleep"]))
        registry.place = place
        await environment.refresh_connection()

        assert str(await work.error()) == "exec-server executor was replaced"
        assert old.retired == "exec-server executor was replaced"
        assert [link.is_held for link in connector.links] == [False, True]
        assert connector.links[1].client.commands == [], "nothing is done again"
        assert registry.asked == 2
        assert connector.links[1].request.answer is registry.bundles[1]
        assert (await environment.info()).executor_version == "2"
        counted = manager.statistics()
        assert (counted.look_ups, counted.replaced, counted.superseded_attempts, counted.attempts) == (1, 1, 0, 2)


async def test_what_ends_ends_at_once_and_those_who_watch_are_told_why(autojump_clock) -> None:
    connector, registry = Slow(), Registry()
    async with open_world(connector) as manager, manager.events() as events, trio.open_nursery() as nursery:
        environment = manager.upsert("tools", registry)
        await environment.wait_until_ready()
        watch = environment.subscribe_connection_state()
        assert watch is not None
        registry.replace_executor()
        refresh = await start(nursery, environment.refresh_connection)

        assert refresh.is_pending
        assert connector.links[0].client.retired is not None, "before its connector has come to its end"
        assert (watch.latest.value, watch.latest.reason) == (
            ConnectionState.DISCONNECTED,
            "exec-server executor was replaced",
        )
        causes = [reason.text for reason in environment.why().reasons]
        assert "exec-server executor was replaced" in causes
        connector.unwind.set()
        await refresh.well()
        assert watch.current is ConnectionState.CONNECTED
        moved: list[tuple[Phase, int, str | None]] = []
        while len(moved) < 4:
            event = await anext(events)
            if isinstance(event, ConnectionMoved):
                moved.append((event.phase, event.attempt, event.reason))
        assert moved == [
            (Phase.STARTING, 1, None),
            (Phase.CONNECTED, 1, None),
            (Phase.RECONNECTING, 2, "exec-server executor was replaced"),
            (Phase.CONNECTED, 2, None),
        ]


async def test_the_bundle_is_used_once(nursery, autojump_clock) -> None:
    async with connected() as (environment, registry, connector, _):
        registry.replace_executor()
        await environment.refresh_connection()
        connector.links[1].cut()
        await wait_all_tasks_blocked()
        await environment.info()

        answers = [link.request.answer for link in connector.links]
        assert answers == registry.bundles
        assert len({id(answer) for answer in answers}) == 3


async def test_a_look_up_that_fails_leaves_the_session_as_it_was(nursery, autojump_clock) -> None:
    async with connected() as (environment, registry, connector, manager):
        registry.replace_executor()
        registry.failure = LinkCut("environment registry request failed (503): busy")
        error = await (await start(nursery, environment.refresh_connection)).error()

        assert isinstance(error, ConnectFailed)
        assert str(error) == "exec-server connection attempt failed: environment registry request failed (503): busy"
        assert error.retryable
        assert error.__cause__ is registry.failure
        assert (error.environment_id, error.generation) == ("tools", 1)
        assert registry.asked == 2
        assert len(connector.open_links) == 1
        assert (await environment.info()).executor_version == "1"
        assert manager.statistics().look_ups == 0


async def test_a_look_up_takes_10_s_at_most(nursery, autojump_clock) -> None:
    async with connected() as (environment, registry, connector, _):
        registry.replace_executor()
        registry.holds = True
        began_s = trio.current_time()
        error = await (await start(nursery, environment.refresh_connection)).error()

        assert trio.current_time() - began_s == 10
        assert "the provider did not answer within 10 s" in str(error)
        assert isinstance(error, ConnectFailed)
        assert error.retryable
        assert await environment.status() == StatusReady()
        assert connector.links[0].client.retired is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (bundle_of(1, "other"), "connect bundle is for environment `other`, expected `tools`"),
        (42, "provider answered with int"),
        (ENDPOINT, "exec-server protocol error: connection refresh requires a Noise registry"),
    ],
    ids=["for another environment", "of another kind", "without encryption"],
)
async def test_an_answer_that_cannot_be_used_leaves_the_session_as_it_was(
    answer: Any, said: str, nursery, autojump_clock
) -> None:
    async with connected() as (environment, registry, connector, _):
        registry.says = answer
        error = await (await start(nursery, environment.refresh_connection)).error()

        assert said in str(error)
        assert "s3cret" not in str(error)
        assert connector.links[0].client.retired is None
        assert await environment.status() == StatusReady()


async def test_a_key_that_is_none_leaves_the_session_as_it_was(nursery, autojump_clock) -> None:
    import attrs

    async with connected() as (environment, registry, connector, _):
        registry.says = attrs.evolve(bundle_of(0), executor_public_key=b"key")
        error = await (await start(nursery, environment.refresh_connection)).error()

        assert "connect bundle holds no actors.noise.PublicKey" in str(error)
        assert len(connector.open_links) == 1


async def test_it_succeeds_only_when_the_executor_answers(nursery, autojump_clock) -> None:
    async with connected() as (environment, _, connector, _):
        client = connector.links[0].client
        client.failure = LinkCut("exec-server rejected request (-32603): busy")
        assert await (await start(nursery, environment.refresh_connection)).error() is client.failure
        client.proceed = trio.Event()
        began_s = trio.current_time()
        error = await (await start(nursery, environment.refresh_connection)).error()

        said = "timed out waiting for exec-server `environment/status` response after 10s"
        assert (str(error), trio.current_time() - began_s) == (said, 10)
        client.failure = None
        client.proceed.set()
        await environment.refresh_connection()
        assert len(connector.links) == 1


async def test_an_attempt_under_way_is_superseded_and_can_never_install_itself(nursery, autojump_clock) -> None:
    class Stubborn(MemoryConnector):
        async def hold(self, request: Any, report: Any, /) -> None:
            if request.attempt > 1:
                await super().hold(request, report)
            try:
                await trio.sleep_forever()
            finally:
                with pytest.raises(AttemptSuperseded, match="connection attempt was superseded"):
                    report.opened(None)
                told.append(request.attempt)

    told: list[int] = []
    connector, registry = Stubborn(), Registry()
    async with open_world(connector) as manager, manager.events() as events:
        environment = manager.upsert("tools", registry)
        wait, use = await start_wait(nursery, environment), await start(nursery, environment.info)
        registry.replace_executor()
        await environment.refresh_connection()

        assert told == [1]
        for waiter in (wait, use):
            error = await waiter.error()
            assert isinstance(error, ConnectFailed)
            assert str(error) == "exec-server connection attempt failed: connection attempt was superseded"
            assert (error.retryable, error.attempt) == (True, 1)
        assert (await environment.info()).executor_version == "2"
        assert environment.startup_finished
        counted = manager.statistics()
        assert (counted.replaced, counted.superseded_attempts) == (0, 1)
        await anext(events)
        began, over = await anext(events), await anext(events)
        assert isinstance(began, ConnectionMoved)
        assert isinstance(over, ConnectionMoved)
        assert (over.phase, over.attempt, over.reason) == (Phase.STARTING, 2, "connection attempt was superseded")


async def test_an_attempt_that_its_actor_has_not_come_to_is_never_begun(nursery, autojump_clock) -> None:
    slow = Slow()
    async with connected(slow) as (environment, registry, connector, _):
        registry.place = 1
        first = await start(nursery, environment.refresh_connection)
        registry.place = 2
        second = await start(nursery, environment.refresh_connection)
        assert "connection attempt was superseded" in str(await first.error())
        assert second.is_pending
        slow.unwind.set()
        await second.well()

        assert [link.request.attempt for link in connector.links] == [1, 3]
        assert connector.links[1].request.answer is registry.bundles[2]


async def test_two_refreshes_that_find_the_same_executor_share_one_attempt(nursery, autojump_clock) -> None:
    async with connected() as (environment, registry, connector, _):
        registry.replace_executor()
        connector.proceed = trio.Event()
        refreshes = [await start(nursery, environment.refresh_connection) for _ in range(3)]
        assert all(refresh.is_pending for refresh in refreshes)
        connector.proceed.set()
        for refresh in refreshes:
            await refresh.well()

        assert registry.asked == 4
        assert len(connector.links) == 2


async def test_what_a_slow_look_up_saw_does_not_undo_what_a_later_one_found(nursery, autojump_clock) -> None:
    async with connected() as (environment, registry, connector, _):
        registry.holds = True
        slow = await start(nursery, environment.refresh_connection)
        registry.holds = False
        registry.replace_executor()
        await environment.refresh_connection()
        registry.release()
        await slow.well()

        assert [link.is_held for link in connector.links] == [False, True]
        assert (await environment.info()).executor_version == "2"


async def test_a_session_that_is_recovering_is_kept_for_the_same_executor_and_waited_for(
    nursery, autojump_clock
) -> None:
    async with connected() as (environment, _, connector, _):
        connector.links[0].interrupt("no frame for 30 s")
        refresh = await start(nursery, environment.refresh_connection)
        assert refresh.is_pending
        connector.links[0].resume()
        await refresh.well()

        assert len(connector.links) == 1


async def test_a_session_that_is_recovering_is_retired_for_another_executor(autojump_clock) -> None:
    async with connected() as (environment, registry, connector, _):
        connector.links[0].interrupt("no frame for 30 s")
        registry.replace_executor()
        await environment.refresh_connection()
        connector.links[0].resume()

        assert connector.links[0].client.retired == "exec-server executor was replaced"
        assert (await environment.info()).executor_version == "2"


async def test_a_recovery_that_ends_badly_is_followed_by_an_attempt_of_its_own(nursery, autojump_clock) -> None:
    async with connected() as (environment, _, connector, _):
        connector.links[0].interrupt()
        refresh = await start(nursery, environment.refresh_connection)
        connector.links[0].cut("recovery timed out after 25s")
        await refresh.well()

        assert [link.is_held for link in connector.links] == [False, True]


async def test_whom_a_resumed_session_leads_to_is_whom_its_fresh_bundle_named(autojump_clock) -> None:
    """Its executor has registered anew meanwhile: what a refresh finds then is what is held."""
    async with connected() as (environment, registry, connector, _):
        link = connector.links[0]
        registry.place = 2
        link.interrupt()
        assert link.request.renew is not None
        await link.request.renew()
        link.resume()
        await environment.refresh_connection()

        assert len(connector.links) == 1


async def test_a_lost_session_is_not_kept_whoever_held_it(autojump_clock) -> None:
    async with connected() as (environment, registry, connector, _):
        connector.links[0].cut("the peer is gone")
        await wait_all_tasks_blocked()
        await environment.refresh_connection()

        assert registry.asked == 2
        assert connector.links[1].request.answer is registry.bundles[1]


async def test_a_refresh_installs_the_first_link_also_after_a_start_that_failed_for_good(
    nursery, autojump_clock
) -> None:
    connector, registry = MemoryConnector(), Registry()
    async with open_world(connector) as manager:
        registry.failure = ValueError("no such environment")
        environment = manager.upsert("tools", registry)
        await (await start_wait(nursery, environment)).error()
        registry.failure = None
        await (await start_wait(nursery, environment)).error()
        await environment.refresh_connection()

        assert environment.startup_finished
        await environment.wait_until_ready()
        unused = manager.report_provisioning("lazy", ReadyInfo(), Registry("lazy"))
        assert unused is not None
        await unused.refresh_connection()
        assert unused.startup_finished


async def test_a_refresh_whose_attempt_fails_says_so_and_the_next_operation_tries_again(
    nursery, autojump_clock
) -> None:
    async with connected() as (environment, registry, connector, _):
        registry.replace_executor()
        connector.failures.append(ProtocolError("bad handshake"))
        error = await (await start(nursery, environment.refresh_connection)).error()

        assert isinstance(error, ConnectFailed)
        assert "bad handshake" in str(error)
        assert (await environment.info()).executor_version == "3"
        assert registry.asked == 3


async def test_nobody_is_asked_while_the_gate_is_pending(nursery, autojump_clock) -> None:
    connector, registry = MemoryConnector(), Registry()
    async with open_world(connector) as manager:
        with manager.register_deferred("tools", registry) as registration:
            refresh = await start(nursery, found(manager, "tools").refresh_connection)
            assert refresh.is_pending
            assert registry.asked == 0
            registration.complete(ReadyInfo())
            await refresh.well()

        assert registry.asked == 1
        assert len(connector.links) == 1


async def test_a_gate_that_failed_and_a_closed_environment_refuse(nursery, autojump_clock) -> None:
    async with open_world() as manager:
        registry = Registry()
        registration = manager.register_deferred("tools", registry)
        environment = found(manager, "tools")
        waiting = await start(nursery, environment.refresh_connection)
        registration.fail("no capacity")
        assert isinstance(await waiting.error(), EnvironmentUnavailable)
        error = await (await start(nursery, environment.refresh_connection)).error()
        assert str(error).endswith("environment unavailable: no capacity")
        await environment.aclose()
        assert isinstance(await (await start(nursery, environment.refresh_connection)).error(), EnvironmentClosed)
        assert registry.asked == 0


async def test_closing_ends_a_look_up_at_once(nursery, autojump_clock) -> None:
    async with connected() as (environment, registry, _, _):
        registry.holds = True
        refresh = await start(nursery, environment.refresh_connection)
        began_s = trio.current_time()
        await environment.aclose()

        assert isinstance(await refresh.error(), EnvironmentClosed)
        assert trio.current_time() == began_s


async def test_cancelling_a_look_up_changes_nothing_and_cancelling_later_leaves_the_attempt(
    nursery, autojump_clock
) -> None:
    async with connected() as (environment, registry, connector, _):
        registry.replace_executor()
        registry.holds = True
        refresh = await start(nursery, environment.refresh_connection)
        refresh.scope.cancel()
        await wait_all_tasks_blocked()
        assert refresh.scope.cancelled_caught
        assert [link.is_held for link in connector.links] == [True]

        registry.holds = False
        connector.proceed = trio.Event()
        refresh = await start(nursery, environment.refresh_connection)
        refresh.scope.cancel()
        await wait_all_tasks_blocked()
        connector.proceed.set()
        await wait_all_tasks_blocked()
        assert [link.is_held for link in connector.links] == [False, True]
        assert registry.asked == 3


@pytest.mark.parametrize(
    "provider", [FixedEndpoint(ENDPOINT), ScriptedProvider(ENDPOINT)], ids=["fixed", "of a kind that shows late"]
)
async def test_only_what_a_registry_knows_can_be_refreshed(provider: ConnectProvider, nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_world(connector) as manager:
        environment = manager.upsert("tools", provider)
        await environment.wait_until_ready()
        error = await (await start(nursery, environment.refresh_connection)).error()
        assert isinstance(error, ProtocolError)
        assert error.message == "connection refresh requires a Noise registry"

        with manager.register_deferred("later", provider) as registration:
            refresh = await start(nursery, found(manager, "later").refresh_connection)
            registration.complete(ReadyInfo())
        assert "connection refresh requires a Noise registry" in str(await refresh.error())
        assert len(connector.open_links) >= 1


async def test_this_machine_cannot_be_refreshed_nor_anything_without_encryption(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector, snapshot=Snapshot(include_local=True)) as manager:
        local = manager.try_local_environment()
        assert local is not None
        error = await (await start(nursery, local.refresh_connection)).error()
        assert isinstance(error, ProtocolError)
        assert error.message == "connection refresh requires a remote environment"

        registry = Registry()
        environment = manager.upsert("tools", registry)
        await wait_all_tasks_blocked()
        asked = registry.asked
        error = await (await start(nursery, environment.refresh_connection)).error()
        assert "connection refresh requires a Noise registry" in str(error)
        assert registry.asked == asked


async def test_a_client_that_knows_no_retirement_is_stopped_all_the_same(autojump_clock) -> None:
    class Plain(MemoryConnector):
        async def hold(self, request: Any, report: Any, /) -> None:
            class Odd:
                async def status(self) -> str:
                    await trio.lowlevel.checkpoint()
                    return "ready"

            held.append(request.attempt)
            try:
                report.opened(Odd())
                await trio.sleep_forever()
            finally:
                held.remove(request.attempt)

    held: list[int] = []
    async with connected(Plain()) as (environment, registry, _, _):
        registry.replace_executor()
        await environment.refresh_connection()

        assert held == [2]


async def test_draining_waits_for_a_refresh(nursery, autojump_clock) -> None:
    async with connected() as (environment, registry, _, manager):
        registry.holds = True
        refresh = await start(nursery, environment.refresh_connection)
        drain = await start(nursery, manager.drain)
        assert drain.is_pending
        registry.release()
        await refresh.well()
        await drain.well()
