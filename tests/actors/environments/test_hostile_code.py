"""Other people's providers, exceptions and ids at their worst: a typed outcome, every wait ends, texts are one line."""

import gc
import weakref
from collections.abc import Callable

import pytest
import trio
import trio.testing

from actors import ActorsError
from actors.environments import (
    ConnectFailed,
    Environment,
    EnvironmentClosed,
    NotInThisRun,
    PlainEndpoint,
    ProtocolError,
    ReadyInfo,
    RegistrationUsed,
    Snapshot,
    StatusDisconnected,
    UnknownEnvironment,
    WillNotStop,
)
from actors.environments._environment import body_of
from actors.environments.testing import (
    ENDPOINT,
    FailingProvider,
    MemoryConnector,
    ScriptedProvider,
    open_manager_in_memory,
)
from supervision import ChildSpec, ChildStatus, RestartIntensity, RestartIntensityExceeded, open_root
from tests.actors.environments.waiting import found, start, start_wait


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I have no words")


class Torn(ActorsError):
    @property
    def retryable(self) -> bool:
        raise RuntimeError("I cannot decide")


class Vague(ConnectFailed):
    retry_after_s = "in a while"


class Evasive(ConnectFailed):
    @property
    def retry_after_s(self) -> float:
        raise RuntimeError("I cannot say when")


class Odd(BaseException):
    """Not an `Exception`, and none of those that Python knows."""


class Calling:
    """Does whatever it is told when it is asked."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    async def connect_bundle(self, _key: object, /) -> PlainEndpoint:
        given = self._act()
        if hasattr(given, "__await__"):
            await given
        return ENDPOINT


async def test_an_exception_that_cannot_speak_is_named_by_its_kind(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", ScriptedProvider(Speechless()))
        error = await (await start_wait(nursery, environment)).error()

        assert str(error) == "exec-server connection attempt failed: Speechless"
        assert await environment.status() == StatusDisconnected(str(error))
        assert environment.why().reasons[-1].text == "Speechless"


async def test_an_exception_that_says_too_much_is_cut_in_texts_and_whole_as_the_cause(nursery, autojump_clock) -> None:
    endless = ValueError("x" * 1_000_000)
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", ScriptedProvider(endless))
        error = await (await start_wait(nursery, environment)).error()

        assert str(error).endswith("x and 995904 more characters")
        assert error.__cause__ is endless
        assert await environment.status() == StatusDisconnected(str(error))


async def test_an_error_that_cannot_say_whether_to_retry_is_final_and_the_wait_ends(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        error = await (await start_wait(nursery, manager.upsert("tools", ScriptedProvider(Torn("x"))))).error()

        assert isinstance(error, ConnectFailed)
        assert not error.retryable


@pytest.mark.parametrize("kind", [Vague, Evasive])
async def test_an_error_that_cannot_say_when_to_ask_again_is_tried_again_as_if_it_had_not(
    kind: type[ConnectFailed], nursery, autojump_clock
) -> None:
    """Killed: the attribute read as it stands, which ends the attempt with an error that nobody raised."""
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider(kind("not now", retryable=True), ENDPOINT)
        await manager.upsert("tools", provider).wait_until_ready()

        assert provider.calls == 2


@pytest.mark.parametrize("kind", [Odd, KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_p20_what_ends_the_run_comes_out_as_it_is_and_waiters_learn_of_it(kind: type[BaseException]) -> None:
    def end() -> None:
        raise kind

    seen: list[Exception] = []

    async def run_until_it_ends() -> None:
        async with open_manager_in_memory() as manager:
            environment = manager.upsert("tools", Calling(end))
            try:
                await environment.wait_until_ready()
            except ActorsError as error:
                seen.append(error)
            await trio.sleep_forever()

    with pytest.raises(kind) as raised:
        await run_until_it_ends()

    assert type(raised.value) is kind
    assert [type(error) for error in seen] == [ConnectFailed]


async def test_p20_a_root_that_gives_up_comes_out_alone_and_every_waiter_ends(nursery, autojump_clock) -> None:
    async def crash(*, task_status: ChildStatus[None]) -> None:
        task_status.started()
        await trio.sleep(1)
        raise ValueError("no luck")

    seen: list[Exception] = []

    async def wait(environment: Environment) -> None:
        with pytest.raises(EnvironmentClosed) as closed:
            await environment.wait_until_ready()
        seen.append(closed.value)

    async def run_until_it_fails() -> None:
        async with (
            open_root(intensity=RestartIntensity(restarts=0, period_s=5.0)) as root,
            open_manager_in_memory(root) as manager,
        ):
            held = [manager.register_deferred(f"env-{number}", ScriptedProvider()) for number in range(100)]
            for registration in held:
                nursery.start_soon(wait, found(manager, registration.environment_id))
            await root.start_child(ChildSpec("crash", crash))
            await trio.sleep_forever()

    with pytest.raises(RestartIntensityExceeded):
        await run_until_it_fails()
    await trio.testing.wait_all_tasks_blocked()

    assert len(seen) == 100


async def test_a_provider_may_replace_its_own_environment(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", Calling(lambda: manager.upsert("tools", ScriptedProvider())))
        await environment.wait_until_ready()

        assert environment.superseded
        assert found(manager, "tools").generation == 2


async def test_a_provider_may_complete_and_await_another_environment(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("second", ScriptedProvider()) as registration:
            second = found(manager, "second")

            async def complete() -> None:
                registration.complete(ReadyInfo())
                await second.wait_until_ready()

            await manager.upsert("first", Calling(complete)).wait_until_ready()

        assert await second.status() == await found(manager, "first").status()


@pytest.mark.parametrize("way", ["aclose", "drain"])
async def test_a_provider_that_closes_what_it_serves_ends_the_wait(way: str, nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = Calling(lambda: manager.drain() if way == "drain" else found(manager, "tools").aclose())
        error = await (await start_wait(nursery, manager.upsert("tools", provider))).error()

        assert isinstance(error, EnvironmentClosed)


async def test_a_provider_that_waits_for_its_own_environment_is_cut_off(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = Calling(lambda: found(manager, "tools").wait_until_ready())
        error = await (await start_wait(nursery, manager.upsert("tools", provider))).error()

        assert str(error).endswith("the provider did not answer within 6 s")


async def test_what_shields_itself_for_ever_is_named_after_a_while_and_does_not_hold_the_caller(autojump_clock) -> None:
    async def hide() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1000)

    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", Calling(hide))
        await trio.testing.wait_all_tasks_blocked()
        begun_s = trio.current_time()
        with pytest.raises(WillNotStop, match="environment `tools` generation 1 is closed, but its task still runs"):
            await environment.aclose()

        assert trio.current_time() == begun_s + 10
        with pytest.raises(EnvironmentClosed):
            await environment.wait_until_ready()


async def test_a_provider_is_not_asked_again_after_the_end_even_if_it_fails_retryably_in_that_very_step(
    autojump_clock,
) -> None:
    calls: list[Environment] = []

    async with open_manager_in_memory() as manager:

        async def close_and_fail() -> None:
            calls.append(found(manager, "tools"))
            with trio.CancelScope() as scope:
                scope.cancel()
                await calls[0].aclose()
            raise ConnectFailed("again, please", retryable=True)

        environment = manager.upsert("tools", Calling(close_and_fail))
        with pytest.raises(EnvironmentClosed):
            await environment.wait_until_ready()
        await trio.sleep(60)

    assert len(calls) == 1


async def test_closing_ends_the_pause_before_the_next_try_at_once(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider(ConnectFailed("503", retryable=True))
        environment = manager.upsert("tools", provider)
        await trio.testing.wait_all_tasks_blocked()
        begun_s = trio.current_time()
        await environment.aclose()

        assert trio.current_time() == begun_s
        assert provider.calls == 1


async def test_an_environment_closed_in_the_breath_of_its_birth_never_asks_its_provider(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = ScriptedProvider()
        await manager.upsert("tools", provider).aclose()

        assert provider.calls == 0
        assert manager.statistics().attempts == 0


async def test_p18_long_ids_that_agree_for_long_have_names_of_their_own_in_the_tree(autojump_clock) -> None:
    ids = ["x" * 255 + "y", "x" * 256, "x" * 200, "/" * 256, "/" * 255 + "a", "a/b", "a%2Fb", "\u00e9" * 128]
    async with open_root() as root, open_manager_in_memory(root) as manager:
        for environment_id in ids:
            manager.upsert(environment_id, ScriptedProvider())
        tree = root.tree().find("root/environments/actors")
        assert tree is not None
        assert tree.supervisor is not None

        assert len({child.name for child in tree.supervisor.children}) == len(ids)


@pytest.mark.parametrize("forged", ["a\n2024-01-01 INFO all is well", "a\x1b[2J", "\ud800", "a\u202eb"])
async def test_p18_no_id_forges_a_line_by_way_of_an_error(forged: str, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(UnknownEnvironment) as unknown:
            manager.publish_ready_info(forged, ReadyInfo())
        with pytest.raises(ProtocolError) as unconfigured:
            async with open_manager_in_memory(snapshot=Snapshot(default=forged)):
                raise AssertionError("never opened")

        assert str(unknown.value).isprintable()
        assert str(unconfigured.value).isprintable()
        assert str(manager.why(forged)).isprintable()


async def test_p18_a_message_forges_no_line_by_way_of_a_refusal(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())
        registration.fail("no disk\n2024-01-01 INFO all is well")
        with pytest.raises(RegistrationUsed) as used:
            registration.fail("again")

        assert str(used.value).isprintable()


def test_a_url_is_shown_without_the_password_in_it() -> None:
    endpoint = PlainEndpoint(websocket_url="ws://me:s3cret@host:1/path/?token=s3cret#s3cret")

    assert repr(endpoint) == "PlainEndpoint(websocket_url='ws://host:1/path/')"
    assert "s3cret" not in repr(Snapshot(environments=[("a", endpoint.websocket_url)]))


def test_after_the_run_only_what_can_be_said_is_said_and_no_road_leads_nowhere(autojump_clock) -> None:
    async def leave() -> tuple[Environment, Callable[[], object]]:
        async with open_manager_in_memory(connector=MemoryConnector()) as manager:
            manager.register_deferred("tools", FailingProvider()).abandon()
            return found(manager, "tools"), manager.drain

    environment, drain = trio.run(leave)

    async def use_it_in_another_run() -> None:
        for wait in (environment.wait_until_ready, environment.info, environment.aclose, drain):
            with pytest.raises(NotInThisRun) as outside:
                await wait()
            assert "registration.from_thread" not in str(outside.value)

    trio.run(use_it_in_another_run)


async def test_events_have_no_listener_outside_their_block(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        async with manager.events() as events:
            manager.materialize("tools", FailingProvider())
        late = await start(nursery, lambda: anext(events))
        manager.materialize("late", FailingProvider())

        assert [event.environment_id async for event in events] == []  # type: ignore[union-attr]
        assert late.value.environment_id == "tools"


@pytest.mark.parametrize("how", ["provider", "connector", "identity"])
async def test_an_environment_that_failed_is_freed_at_its_end_without_the_collector(how: str, autojump_clock) -> None:
    def no_identity() -> None:
        raise OSError("no entropy")

    connector = MemoryConnector()
    connector.failures = [OSError("no route")] if how == "connector" else []
    provider = FailingProvider() if how == "provider" else ScriptedProvider()
    identity = no_identity if how == "identity" else None
    async with open_manager_in_memory(connector=connector, identity=identity) as manager:
        gc.collect()
        gc.disable()
        try:
            manager.upsert("tools", provider)
            await trio.testing.wait_all_tasks_blocked()
            actor = weakref.ref(body_of(found(manager, "tools")).reference)
            await manager.remove("tools")
            await trio.testing.wait_all_tasks_blocked()

            assert actor() is None
        finally:
            gc.enable()
