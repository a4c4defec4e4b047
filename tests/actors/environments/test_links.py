"""Attempts and links: one for all, none before the gate, fresh answers, losses, and what comes out of failures."""

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.environments import (
    AttemptRules,
    ConnectBundle,
    ConnectFailed,
    EnvironmentClosed,
    PlainEndpoint,
    ProtocolError,
    ReadyInfo,
    StatusDisconnected,
    StatusPending,
    StatusReady,
)
from actors.environments.testing import (
    FailingProvider,
    LinkCut,
    MemoryConnector,
    ScriptedProvider,
    open_manager_in_memory,
)
from tests.actors.environments.waiting import found, start, start_wait


def bundle(environment_id: str = "tools") -> ConnectBundle:
    return ConnectBundle(
        websocket_url="wss://rendezvous/harness?token=s3cret",
        environment_id=environment_id,
        executor_registration_id="r1",
        executor_public_key=b"key",
        harness_key_authorization="s3cret-proof",
    )


async def test_all_waiters_share_one_attempt(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider()
        with manager.register_deferred("tools", provider) as registration:
            waits = [await start_wait(nursery, found(manager, "tools")) for _ in range(5)]
            registration.complete(ReadyInfo())
        for wait in waits:
            await wait.well()

        assert provider.calls == 1
        assert await found(manager, "tools").status() == StatusReady()


async def test_cancelling_a_waiter_ends_only_its_wait(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider()
        provider.hold_back()
        environment = manager.upsert("tools", provider)
        first, second = await start_wait(nursery, environment), await start_wait(nursery, environment)
        first.scope.cancel()
        await wait_all_tasks_blocked()
        assert first.scope.cancelled_caught
        assert second.is_pending

        provider.proceed.set()
        await second.well()
        assert provider.calls == 1


async def test_each_waiter_gets_an_error_of_its_own_with_the_shared_cause(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        cause = ValueError("no such machine")
        environment = manager.upsert("tools", ScriptedProvider(cause))
        errors = [await (await start_wait(nursery, environment)).error() for _ in range(2)]

        assert errors[0] is not errors[1]
        for error in errors:
            assert isinstance(error, ConnectFailed)
            assert error.__cause__ is cause
            assert str(error) == "exec-server connection attempt failed: no such machine"
            assert (error.environment_id, error.generation, error.attempt) == ("tools", 1, 1)
            assert not error.retryable


async def test_what_a_provider_raises_is_the_cause_whatever_it_is(nursery, autojump_clock) -> None:
    group = ExceptionGroup("two things", [ValueError("a"), OSError("b")])
    async with open_manager_in_memory() as manager:
        error = await (await start_wait(nursery, manager.upsert("tools", ScriptedProvider(group)))).error()

        assert error.__cause__ is group
        assert type(error) is ConnectFailed


async def test_a_permanent_failure_is_never_tried_again(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        environment = manager.upsert("tools", provider)
        for _ in range(3):
            await (await start_wait(nursery, environment)).error()
            await (await start(nursery, environment.info)).error()

        assert provider.calls == 1
        assert environment.startup_finished


async def test_a_retryable_failure_is_tried_again_within_its_budget(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider(LinkCut("503"), LinkCut("503"), PlainEndpoint(websocket_url="ws://x"))
        environment = manager.upsert("tools", provider)
        began_s = trio.current_time()
        await environment.wait_until_ready()

        assert provider.calls == 3
        assert 1.5 <= trio.current_time() - began_s < 2.25


async def test_when_the_budget_ends_the_last_failure_comes_out_and_the_next_operation_tries_again(
    nursery, autojump_clock
) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider(*[LinkCut("503")] * 5, PlainEndpoint(websocket_url="ws://x"))
        environment = manager.upsert("tools", provider)
        error = await (await start_wait(nursery, environment)).error()
        assert isinstance(error, ConnectFailed)
        assert error.retryable
        assert str(error) == "exec-server connection attempt failed: 503"
        assert provider.calls == 5
        assert environment.startup_finished
        assert await environment.status() == StatusDisconnected(str(error))

        await environment.wait_until_ready()
        assert provider.calls == 6


async def test_a_provider_that_does_not_answer_is_cut_off_and_asked_again(nursery, autojump_clock) -> None:
    async with open_manager_in_memory(rules=AttemptRules(provider_call_s=6, retries=1)) as manager:
        provider = ScriptedProvider()
        provider.hold_back()
        began_s = trio.current_time()
        error = await (await start_wait(nursery, manager.upsert("tools", provider))).error()

        assert "the provider did not answer within 6 s" in str(error)
        assert isinstance(error, ConnectFailed)
        assert error.retryable
        assert provider.calls == 2
        assert 12.5 <= trio.current_time() - began_s < 13


async def test_a_link_that_does_not_open_is_cut_off(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    connector.proceed = trio.Event()
    async with open_manager_in_memory(connector=connector, rules=AttemptRules(connect_s=7)) as manager:
        error = await (await start_wait(nursery, manager.upsert("tools", ScriptedProvider()))).error()

        assert "no link was open 7 s after the provider's answer" in str(error)
        assert trio.current_time() - 7 < 1


async def test_an_open_link_is_not_cut_off(autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector, rules=AttemptRules(connect_s=7)) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        await trio.sleep(100)

        assert await environment.status() == StatusReady()
        assert len(connector.open_links) == 1


async def test_after_a_loss_the_next_operation_reconnects_with_a_fresh_answer(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        provider = ScriptedProvider()
        environment = manager.upsert("tools", provider)
        assert (await environment.info()).executor_version == "1"
        connector.links[0].cut("the peer is gone")
        await wait_all_tasks_blocked()
        assert await environment.status() == StatusDisconnected("the peer is gone")
        assert provider.calls == 1
        await environment.wait_until_ready()
        assert provider.calls == 1

        requests = [await start(nursery, environment.info) for _ in range(3)]
        assert [(await wait.well()).executor_version for wait in requests] == ["2", "2", "2"]
        assert provider.calls == 2


async def test_a_failed_reconnect_ends_only_those_who_joined_it(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        connector.links[0].cut()
        await wait_all_tasks_blocked()
        connector.failures.append(ProtocolError("bad handshake"))
        error = await (await start(nursery, environment.info)).error()
        assert isinstance(error, ConnectFailed)
        assert "bad handshake" in str(error)

        assert (await environment.info()).executor_version == "3"


async def test_operations_wait_while_the_session_may_come_back(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        connector.links[0].interrupt("no frame for 30 s")
        wait = await start(nursery, environment.info)
        assert wait.is_pending
        assert await environment.status() == StatusDisconnected("no frame for 30 s")

        connector.links[0].resume()
        assert (await wait.well()).executor_version == "1"
        assert await environment.status() == StatusReady()


async def test_operations_reconnect_when_the_session_does_not_come_back(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()
        connector.links[0].interrupt()
        wait = await start(nursery, environment.info)
        connector.links[0].cut("recovery timed out after 25s")

        assert (await wait.well()).executor_version == "2"


async def test_status_asks_an_open_link_and_starts_nothing(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        provider = ScriptedProvider()
        lazy = manager.materialize("lazy", provider)
        assert await lazy.status() == StatusPending()
        assert provider.calls == 0
        assert not lazy.startup_finished
        environment = manager.upsert("tools", ScriptedProvider())
        await environment.wait_until_ready()

        connector.links[0].client.failure = LinkCut("exec-server rejected request (-32603): busy")
        busy = StatusDisconnected("exec-server rejected request (-32603): busy")
        assert await environment.status() == busy
        connector.links[0].client.proceed = trio.Event()
        said = StatusDisconnected("timed out waiting for exec-server `environment/status` response after 10s")
        assert await environment.status() == said


async def test_a_bundle_needs_a_noise_connector_and_never_falls_back_to_plain(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        error = await (await start_wait(nursery, manager.upsert("tools", ScriptedProvider(bundle())))).error()

        assert isinstance(error, ConnectFailed)
        assert "this manager has no Noise connector" in str(error)
        assert not error.retryable
        assert connector.links == []


async def test_a_bundle_for_another_environment_is_refused(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        error = await (await start_wait(nursery, manager.upsert("tools", ScriptedProvider(bundle("other"))))).error()
        said = "connect bundle is for environment `other`, expected `tools`"
        assert said in str(error)
        assert isinstance(error.__cause__, ProtocolError)

        as_named = manager.upsert("tools", ScriptedProvider(bundle("env_1")), bundle_environment_id="env_1")
        assert "no Noise connector" in str(await (await start_wait(nursery, as_named)).error())


@pytest.mark.parametrize("answer", [None, "ws://x", 42])
async def test_an_answer_of_another_kind_is_refused(answer: Any, nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        error = await (await start_wait(nursery, manager.upsert("tools", ScriptedProvider(answer)))).error()

        assert f"provider answered with {type(answer).__name__}, expected a ConnectBundle" in str(error)


async def test_the_identity_is_made_once_per_environment_and_only_when_it_connects(autojump_clock) -> None:
    class Identity:
        def __init__(self) -> None:
            made.append(self)

        @property
        def public_key(self) -> object:
            return f"key-{made.index(self)}"

    made: list[Identity] = []
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector, identity=Identity) as manager:
        manager.materialize("lazy", ScriptedProvider())
        provider = ScriptedProvider()
        environment = manager.upsert("tools", provider)
        await environment.info()
        connector.links[0].cut()
        await wait_all_tasks_blocked()
        await environment.info()

        assert provider.keys == ["key-0", "key-0"]
        assert len(made) == 1


async def test_an_identity_that_cannot_be_made_ends_the_attempt(nursery, autojump_clock) -> None:
    def no_entropy() -> Any:
        raise OSError("no entropy")

    async with open_manager_in_memory(identity=no_entropy) as manager:
        provider = ScriptedProvider()
        error = await (await start_wait(nursery, manager.upsert("tools", provider))).error()

        said = "exec-server protocol error: failed to generate Noise harness identity: no entropy"
        assert said in str(error)
        assert provider.calls == 0


async def test_closing_while_connecting_gives_back_the_link(nursery, autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        provider = ScriptedProvider()
        provider.hold_back()
        environment = manager.upsert("tools", provider)
        wait = await start_wait(nursery, environment)
        await environment.aclose()

        assert isinstance(await wait.error(), EnvironmentClosed)
        provider.proceed.set()
        await wait_all_tasks_blocked()
        assert connector.open_links == []


async def test_a_connector_that_opens_after_the_end_is_told_to_unwind(nursery, autojump_clock) -> None:
    class Stubborn(MemoryConnector):
        async def hold(self, request: Any, report: Any, /) -> None:
            try:
                await trio.sleep_forever()
            finally:
                with pytest.raises(EnvironmentClosed):
                    report.opened(None)
                told.append(request.environment_id)

    told: list[str] = []
    async with open_manager_in_memory(connector=Stubborn()) as manager:
        environment = manager.upsert("tools", ScriptedProvider())
        await wait_all_tasks_blocked()
        await environment.aclose()

        assert told == ["tools"]


async def test_a_connector_that_lets_go_early_fails_the_attempt(nursery, autojump_clock) -> None:
    class Early(MemoryConnector):
        async def hold(self, request: Any, report: Any, /) -> None:
            await trio.lowlevel.checkpoint()

    async with open_manager_in_memory(connector=Early()) as manager:
        error = await (await start_wait(nursery, manager.upsert("tools", ScriptedProvider()))).error()

        assert "the connector let the link go" in str(error)


async def test_commands_run_over_the_link(autojump_clock) -> None:
    connector = MemoryConnector()
    async with open_manager_in_memory(connector=connector) as manager:
        environment = manager.upsert("tools", ScriptedProvider())

        assert (await environment.run(["echo", "a"])).stdout == b"echo a"
        assert connector.links[0].client.commands == [["echo", "a"]]


def test_a_bundle_shows_no_secret_and_is_not_pickled() -> None:
    import copy
    import pickle

    assert "s3cret" not in repr(bundle())
    assert "wss://rendezvous/harness'" in repr(bundle())
    for write in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="holds secrets"):
            write(bundle())


@pytest.mark.parametrize("url", ["http://x", "", "x", "file:///x"])
def test_an_endpoint_that_is_no_websocket_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="websocket_url"):
        PlainEndpoint(websocket_url=url)


def test_a_refused_url_is_shown_without_its_query() -> None:
    with pytest.raises(ValueError, match="websocket_url") as refused:
        PlainEndpoint(websocket_url="http://x/?token=s3cret")

    assert "s3cret" not in str(refused.value)
