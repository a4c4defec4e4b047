"""An executor and a harness with a rendezvous between them, in memory and on a virtual clock."""

from contextlib import AsyncExitStack

import pytest
import trio

from actors.executor import serve_remote_executor
from actors.executor.testing import open_memory_launcher
from actors.harness import (
    RELAY_RECOVERY,
    ChannelClosed,
    ConnectionChange,
    NoBundle,
    RelayDialer,
    WebSocketConnectFailed,
    open_client,
)
from actors.noise import Identity
from actors.relay import RegistrarFailed
from actors.rendezvous import HarnessConnection, open_rendezvous
from supervision import ChildSpec, open_root
from tests.actors.through_relay.world import EXECUTOR, GRANTS, HARNESS, PROGRAMS, World, open_world
from tests.support.cancelling import cancel_at_each_step


async def test_a_command_runs_through_the_rendezvous(autojump_clock) -> None:
    async with open_world() as world, world.open_client() as client:
        done = await client.run(["hello"])

        assert (done.exit_code, done.stdout_text) == (0, "hello\n")
        assert world.remote.executor.statistics().connections == 1
        assert len(world.bundles) == 1


async def test_a_cut_costs_one_more_bundle_and_neither_the_session_nor_any_output(autojump_clock) -> None:
    async with open_world() as world, world.open_client() as client:
        session_id = client.session_id
        async with client.processes.start(["ticking"]) as process:
            lines = [await anext(aiter(process.output()))]
            await world.network.cut()
            lines += [line async for line in process.output()]
            code = await process.wait()

        assert code == 0
        assert b"".join(lines) == b"".join(b"%d\n" % number for number in range(40))
        assert client.session_id == session_id
        first, second = world.bundles
        assert first.harness_key_authorization != second.harness_key_authorization
        assert first.executor_registration_id == second.executor_registration_id
        assert [event.what for event in world.events] == ["registered", "connected", "disconnected", "connected"]


class Changes:
    """When the connection of a client came and went."""

    def __init__(self) -> None:
        self._tell, self._told = trio.open_memory_channel[tuple[float, bool]](100)

    def note(self, change: ConnectionChange) -> None:
        self._tell.send_nowait((trio.current_time(), change.connected))

    async def next(self, *, connected: bool) -> float:
        async for at_s, is_connected in self._told:
            if is_connected is connected:
                return at_s
        raise AssertionError("the channel is never closed")


async def test_a_session_is_back_within_300_ms_of_a_cut_again_and_again(autojump_clock) -> None:
    """Mutant: `Outgoing.run` does not say that it has ended, so that leaving a lost stream waits for its goodbye."""
    async with open_world() as world:
        changes = Changes()
        async with world.open_client(recovery=RELAY_RECOVERY, on_change=changes.note) as client:
            session_id = client.session_id
            await changes.next(connected=True)
            for _ in range(5):
                await trio.sleep(6)
                cut_s = trio.current_time()
                await world.network.cut()

                assert await changes.next(connected=True) - cut_s < 0.3
                assert client.session_id == session_id


async def test_a_session_is_back_within_300_ms_of_the_restart_of_a_rendezvous_that_remembers_nothing(
    autojump_clock,
) -> None:
    """Mutant: `RELAY_RECOVERY` has no quick tries."""
    async with open_world() as world, AsyncExitStack() as stack:
        changes = Changes()
        client = await stack.enter_async_context(world.open_client(recovery=RELAY_RECOVERY, on_change=changes.note))
        session_id = client.session_id
        world.network.unplug()
        await world.network.cut()
        await trio.sleep(0.7)
        options = {"listeners": world.network.listeners(), "public_url": world.network.url}
        back_s = trio.current_time()
        # The first one is beneath: what follows is left in the order in which it came.
        rendezvous = await stack.enter_async_context(open_rendezvous(GRANTS, **options))
        stack.push_async_callback(world.network.cut)

        await changes.next(connected=True)
        assert await changes.next(connected=True) - back_s < 0.3
        assert client.session_id == session_id
        assert rendezvous.statistics().registrations == 1
        assert (await client.run(["hello"])).stdout == b"hello\n"


async def test_p12_a_registry_that_says_later_is_not_asked_before_while_a_session_is_resumed(autojump_clock) -> None:
    """Mutant: `_in_our_words` is used for `_translated`, which forgets when to ask again."""
    async with open_world() as world:
        asked_s: list[float] = []

        async def next_bundle() -> HarnessConnection:
            asked_s.append(trio.current_time())
            if len(asked_s) == 2:
                raise RegistrarFailed("later", retryable=True, retry_after_s=7.0)
            return await world.next_bundle()

        dialer = RelayDialer(next_bundle, HARNESS, dialer=world.dialer)
        async with open_client("env", dialer=dialer, recovery=RELAY_RECOVERY) as client:
            await world.network.cut()
            await client.status()

        assert 7.0 <= asked_s[2] - asked_s[1] <= 10.5
        assert len(asked_s) == 3


async def test_large_answers_and_many_small_ones_come_whole(autojump_clock) -> None:
    async with open_world() as world, world.open_client() as client:
        for _ in range(50):
            assert (await client.run(["hello"])).stdout == b"hello\n"

        assert world.remote.executor.statistics().processes == 0


async def test_a_refused_registration_ends_the_executor_with_the_registrys_reason(autojump_clock) -> None:
    async with open_world() as world, open_memory_launcher({}) as launcher:
        with pytest.raises(RegistrarFailed, match="cannot stand in an address"):
            await serve_remote_executor(world.registry, "..", EXECUTOR, dialer=world.dialer, launcher=launcher)


async def test_an_environment_without_an_executor_is_no_use_now_but_may_be_later(autojump_clock) -> None:
    async with open_world() as world:

        async def elsewhere():
            return await world.registry.connect("nobody-home", HARNESS.public_key)

        with pytest.raises(Exception, match="environment registry request failed") as failed:
            async with open_client("env", dialer=RelayDialer(elsewhere, HARNESS, dialer=world.dialer)):
                raise AssertionError("nobody is there")

        assert isinstance(failed.value.__cause__, RegistrarFailed)
        assert isinstance(failed.value, NoBundle) is not failed.value.__cause__.retryable


async def test_a_bundle_that_was_used_is_refused_and_another_one_asked_for(autojump_clock) -> None:
    async with open_world() as world:
        used = await world.next_bundle()
        given = [used, used]

        async def next_bundle():
            return given.pop(0) if given else await world.next_bundle()

        dialer = RelayDialer(next_bundle, HARNESS, dialer=world.dialer)
        async with open_client("env", dialer=dialer) as client:
            await client.status()
        async with open_client("env", dialer=dialer) as client:
            await client.status()

        assert given == []
        assert len(world.bundles) == 2


async def test_a_stranger_with_somebody_elses_bundle_is_not_let_in(autojump_clock) -> None:
    async with open_world() as world:
        stranger = RelayDialer(world.next_bundle, Identity.generate(), dialer=world.dialer)

        with pytest.raises(Exception, match="Noise relay stream reset"):
            async with open_client("env", dialer=stranger):
                raise AssertionError("the executor let a stranger in")

        assert world.remote.executor.statistics().connections_accepted == 0


async def test_no_rendezvous_at_all_is_said_with_a_url_that_holds_no_secret(autojump_clock) -> None:
    async with open_world() as world:
        bundle = await world.next_bundle()
        world.network.unplug()

        async def next_bundle():
            return bundle

        with pytest.raises(WebSocketConnectFailed) as failed:
            async with open_client("env", dialer=RelayDialer(next_bundle, HARNESS, dialer=world.dialer)):
                raise AssertionError("nobody listens")

        assert "ticket" in bundle.websocket_url
        assert "ticket" not in str(failed.value)


async def test_dialling_may_be_cancelled_anywhere_and_the_executor_keeps_no_place(autojump_clock) -> None:
    async with open_world() as world:
        dialer = RelayDialer(world.next_bundle, HARNESS, dialer=world.dialer)

        async def dial() -> None:
            async with dialer.dial("env") as channel:
                await channel.ping()

        async def nothing_is_left() -> None:
            await trio.sleep(5)
            assert world.rendezvous.statistics().streams == 0
            assert world.remote.executor.statistics().connections == 0

        assert await cancel_at_each_step(dial, check=nothing_is_left) > 3


async def test_a_channel_says_that_its_stream_is_gone(autojump_clock) -> None:
    async with open_world() as world, world.dial() as channel:
        await channel.ping()
        await world.network.cut()
        with pytest.raises(ChannelClosed):
            await channel.receive()

        with pytest.raises(ChannelClosed):
            await channel.ping()
        with pytest.raises(ChannelClosed) as refused:
            await channel.send(b"{}")
        assert not refused.value.written


async def test_leaving_is_quick_also_when_all_around_is_cancelled(autojump_clock) -> None:
    """The goodbye is written and answered by tasks that such a cancel would take away if they were not shielded."""
    async with open_world() as world:
        with trio.CancelScope() as scope:
            async with world.dial():
                began_s = trio.current_time()
                scope.cancel()
        took_s = trio.current_time() - began_s
        await trio.testing.wait_all_tasks_blocked()

        assert took_s < 0.01
        assert world.rendezvous.statistics().streams == 0
        assert world.remote.executor.statistics().connections == 0


async def test_stopping_an_executor_is_quick(autojump_clock) -> None:
    async with open_world():
        began_s = trio.current_time()

    assert trio.current_time() - began_s < 0.01


async def test_what_is_no_json_costs_the_stream_and_not_the_connection(autojump_clock) -> None:
    async with open_world() as world, world.open_client() as client:
        async with world.dial() as channel:
            await channel.send(b"this is no JSON")
            with pytest.raises(ChannelClosed):
                await channel.receive()

        assert (await client.run(["hello"])).exit_code == 0


async def test_it_is_a_child_of_a_supervisor_and_kills_what_it_runs_when_stopped(autojump_clock) -> None:
    async with open_world() as world, open_root() as root:
        child = await root.start_child(ChildSpec("remote", _serve_second, world))
        bundle = await world.registry.connect("second", HARNESS.public_key)

        async def next_bundle():
            return bundle

        dialer = RelayDialer(next_bundle, HARNESS, dialer=world.dialer)
        async with open_client("second", dialer=dialer) as client, client.processes.start(["ticking"]):
            assert child.value.environment_id == "second"
            assert child.value.executor.statistics().processes == 1
            await root.stop_child("remote")

            assert child.value.executor.statistics().processes == 0


async def _serve_second(world: World, *, task_status) -> None:
    async with open_memory_launcher(PROGRAMS) as launcher:
        options = {"dialer": world.dialer, "launcher": launcher, "task_status": task_status}
        await serve_remote_executor(world.registry, "second", EXECUTOR, **options)
