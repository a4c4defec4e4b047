import h2.events
import pytest
import trio
import trio.testing

from actors.sessions import grpc
from actors.sessions.grpc._connection import Connection
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.grpc.peers import run_ours
from tests.actors.sessions.grpc.raw import Raw, accept_raw
from tests.actors.sessions.grpc.service import CHAT, COUNT, ECHO, LEASE, SLEEP, Seen


async def test_nothing_is_dialled_before_the_first_call(network: MemoryNetwork, server: grpc.Server) -> None:
    async with grpc.open_channel("http://m", dial=network.dial) as channel:
        await trio.testing.wait_all_tasks_blocked()
        assert channel.connections_dialled == 0
        await channel.unary(ECHO, b"")

        assert channel.connections_dialled == channel.connections_open == 1


async def test_callers_share_one_attempt_and_its_failure(nursery: trio.Nursery) -> None:
    attempts = 0

    async def refuse() -> trio.abc.Stream:
        nonlocal attempts
        attempts += 1
        await trio.testing.wait_all_tasks_blocked()
        raise ConnectionRefusedError("nobody there")

    async with grpc.open_channel("http://nobody:1", dial=refuse) as channel:

        async def call() -> None:
            with pytest.raises(grpc.CallFailed) as caught:
                await channel.unary(ECHO, b"")
            assert "could not connect to http://nobody:1: nobody there; nothing listens there: check" in str(
                caught.value
            )
            assert caught.value.code is grpc.StatusCode.UNAVAILABLE
            assert caught.value.unprocessed

        async with trio.open_nursery() as callers:
            for _ in range(3):
                callers.start_soon(call)
        assert attempts == 1
        await call()
        assert attempts == 2


async def test_a_caller_who_leaves_does_not_take_the_attempt_with_it(nursery: trio.Nursery) -> None:
    network, go_on = MemoryNetwork(), trio.Event()

    async def slowly() -> trio.abc.Stream:
        await go_on.wait()
        return await network.dial()

    async with (
        run_ours(Seen(), [network.listener]),
        grpc.open_channel("http://m", dial=slowly) as channel,
        trio.open_nursery() as callers,
    ):
        with trio.CancelScope() as impatient:
            callers.start_soon(channel.unary, ECHO, b"patient")
            await trio.testing.wait_all_tasks_blocked()
            impatient.cancel()
            await channel.unary(ECHO, b"impatient")
        go_on.set()
        await channel.unary(ECHO, b"later")

        assert channel.connections_dialled == 1


async def test_a_connection_that_never_answers_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    network = MemoryNetwork()
    options = grpc.ChannelOptions(connect_timeout_s=7)
    async with grpc.open_channel("http://m", dial=network.dial, options=options) as channel:
        with pytest.raises(grpc.CallFailed, match="no answer within 7 s"):
            await channel.unary(ECHO, b"")
        await trio.sleep(1)

        assert channel.connections_open == 0


async def test_a_peer_that_does_not_speak_http2_is_named_so(network: MemoryNetwork, nursery: trio.Nursery) -> None:
    async def speak_http1() -> None:
        stream = await network.listener.accept()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    nursery.start_soon(speak_http1)
    async with grpc.open_channel("http://m", dial=network.dial) as channel:
        with pytest.raises(grpc.CallFailed, match="UNAVAILABLE: could not connect"):
            await channel.unary(ECHO, b"")


async def test_the_next_call_after_a_lost_connection_dials_again(
    network: MemoryNetwork, server: grpc.Server, channel: grpc.Channel
) -> None:
    async with channel.stream(LEASE, b"") as lease:
        await lease.receive()
        await trio.aclose_forcefully(network.pairs[0][1])
        with pytest.raises(grpc.CallFailed, match="UNAVAILABLE") as caught:
            await lease.receive()

    assert not caught.value.unprocessed
    assert await channel.unary(ECHO, b"again") == b"again"
    assert channel.connections_dialled == 2


async def test_messages_that_came_before_the_loss_are_still_received(
    network: MemoryNetwork, channel: grpc.Channel, nursery: trio.Nursery
) -> None:
    async def answer_half() -> None:
        server = await accept_raw(network)
        request = await server.wait_for(h2.events.RequestReceived)
        await server.answer(request.stream_id, b"outcome", ends=False)
        await trio.aclose_forcefully(server.stream)

    nursery.start_soon(answer_half)
    async with channel.stream(COUNT, b"") as stream:
        await trio.testing.wait_all_tasks_blocked()
        assert await stream.receive() == b"outcome"
        with pytest.raises(grpc.CallFailed, match="UNAVAILABLE"):
            await stream.receive()


async def test_what_arrives_late_for_a_call_that_was_let_go_hurts_nobody(
    network: MemoryNetwork, channel: grpc.Channel, nursery: trio.Nursery
) -> None:
    accepted: list[Raw] = []

    async def accept() -> None:
        accepted.append(await accept_raw(network))

    nursery.start_soon(accept)
    async with channel.stream(LEASE, b"", timeout_s=60):
        [server] = accepted
        let_go = await server.wait_for(h2.events.RequestReceived)
    # Not read yet: the reset of the client is on its way while this goes the other way.
    await server.answer(let_go.stream_id, b"late", ends=False)
    server.h2.send_headers(let_go.stream_id, [("grpc-status", "0")], end_stream=True)
    await server.flush()
    replies: list[bytes] = []

    async def call() -> None:
        replies.append(await channel.unary(ECHO, b""))

    nursery.start_soon(call)
    again = await server.wait_for(h2.events.RequestReceived, let_go.stream_id + 2)
    await server.answer(again.stream_id, b"fine")
    await trio.testing.wait_all_tasks_blocked()

    assert replies == [b"fine"]
    assert channel.connections_dialled == 1


async def test_an_error_of_the_body_comes_out_plain(network: MemoryNetwork, server: grpc.Server) -> None:
    with pytest.raises(LookupError, match="mine"):  # noqa: PT012  # It is the whole block that ends so.
        async with (
            grpc.open_channel("http://m", dial=network.dial) as channel,
            channel.stream(LEASE, b"") as lease,
        ):
            await lease.receive()
            raise LookupError("mine")


async def test_a_channel_refuses_calls_after_its_block(network: MemoryNetwork, server: grpc.Server) -> None:
    async with grpc.open_channel("http://m", dial=network.dial) as channel:
        await channel.unary(ECHO, b"")

    with pytest.raises(grpc.ChannelClosed, match="http://m"):
        await channel.unary(ECHO, b"")


async def test_a_stream_that_is_left_early_is_cancelled_at_the_server(
    server: grpc.Server, channel: grpc.Channel, seen: Seen
) -> None:
    async with channel.stream(LEASE, b"") as lease:
        await lease.receive()
    await trio.testing.wait_all_tasks_blocked()

    assert seen.lost_leases == 1
    assert server.statistics().calls_open == 0


async def test_a_released_channel_closes_when_its_calls_end_and_opens_again(
    server: grpc.Server, channel: grpc.Channel
) -> None:
    async with channel.stream(LEASE, b"") as lease:
        await lease.receive()
        channel.release()
        assert await channel.unary(ECHO, b"new connection") == b"new connection"
        assert channel.connections_open == 2
    await trio.testing.wait_all_tasks_blocked()
    assert channel.connections_open == 1
    channel.release()
    await trio.testing.wait_all_tasks_blocked()

    assert channel.connections_open == 0
    assert channel.connections_dialled == 2


class SlowNetwork:
    """Dials when it may."""

    def __init__(self, network: MemoryNetwork) -> None:
        self.network, self.may_dial = network, trio.Event()

    async def dial(self) -> trio.abc.Stream:
        await self.may_dial.wait()
        return await self.network.dial()


async def call_and_leave(channel: grpc.Channel) -> None:
    """Have a connection dialled, and do not wait for it."""
    async with trio.open_nursery() as leaving:

        async def call() -> None:
            await channel.unary(ECHO, b"")

        leaving.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        leaving.cancel_scope.cancel()


async def test_a_released_channel_keeps_no_connection_that_was_being_dialled_for_a_caller_who_left(
    network: MemoryNetwork, server: grpc.Server
) -> None:
    """Mutant: `release` ends only what is open. Found by chaos: a cut beside the end of the last session."""
    slow = SlowNetwork(network)
    async with grpc.open_channel("http://m", dial=slow.dial) as channel:
        await call_and_leave(channel)
        channel.release()
        slow.may_dial.set()
        await trio.testing.wait_all_tasks_blocked()

        assert channel.connections_open == 0
        assert server.statistics().connections_open == 0


async def test_who_calls_after_a_release_has_the_connection_that_is_being_dialled(
    network: MemoryNetwork, server: grpc.Server
) -> None:
    """Mutant: what is dialled at a release is dropped whoever waits for it."""
    slow = SlowNetwork(network)
    async with grpc.open_channel("http://m", dial=slow.dial) as channel, trio.open_nursery() as callers:
        await call_and_leave(channel)
        channel.release()

        async def call() -> None:
            await channel.unary(ECHO, b"")

        callers.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        slow.may_dial.set()
        await trio.testing.wait_all_tasks_blocked()

        assert channel.connections_dialled == channel.connections_open == len(network.pairs) == 1


async def test_a_connection_that_is_drained_before_it_runs_ends_when_it_does(nursery: trio.Nursery) -> None:
    """Mutant: only what changes later is looked at. Found by chaos: a release right behind a dial."""
    here, _ = trio.testing.memory_stream_pair()
    connection = Connection(here, client=True, limits=grpc.Limits(), keepalive=grpc.KeepalivePolicy())
    connection.drain()
    with trio.fail_after(1):
        await connection.run()


async def test_more_than_one_response_to_a_unary_call_is_an_error(server: grpc.Server, channel: grpc.Channel) -> None:
    as_unary = grpc.Method(COUNT.path, grpc.RAW, grpc.RAW)

    with pytest.raises(grpc.CallFailed, match="more than one response"):
        await channel.unary(as_unary, b"2 0")
    with pytest.raises(grpc.CallFailed, match="without a response"):
        await channel.unary(as_unary, b"0 0")


async def test_a_response_that_cannot_be_parsed_is_internal_and_keeps_its_cause(
    server: grpc.Server, channel: grpc.Channel
) -> None:
    number = grpc.Method(ECHO.path, grpc.RAW, grpc.Codec(str.encode, int))

    with pytest.raises(grpc.CallFailed, match="INTERNAL: a response cannot be parsed") as caught:
        await channel.unary(number, b"x")
    assert isinstance(caught.value.__cause__, ValueError)


async def test_sending_after_the_end_of_a_failed_call_says_why(server: grpc.Server, channel: grpc.Channel) -> None:
    async with channel.open_call(grpc.Method("/a.B/No", grpc.RAW, grpc.RAW, client_streaming=True)) as call:
        await call.send(b"")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(grpc.CallFailed, match="UNIMPLEMENTED"):
            await call.send(b"")


async def test_receive_ends_as_trio_channels_do(server: grpc.Server, channel: grpc.Channel) -> None:
    async with channel.stream(COUNT, b"1 0") as stream:
        assert await stream.receive() == b"0"
        with pytest.raises(trio.EndOfChannel):
            await stream.receive()


async def test_every_wait_is_a_checkpoint(server: grpc.Server, channel: grpc.Channel) -> None:
    await channel.unary(ECHO, b"")
    async with channel.open_call(CHAT) as call:
        with trio.testing.assert_checkpoints():
            await call.send(b"1")
        await call.send(b"2")
        await trio.testing.wait_all_tasks_blocked()
        with trio.testing.assert_checkpoints():
            await call.receive()
        with trio.testing.assert_checkpoints():
            await call.headers()


async def test_a_deadline_that_has_passed_already_sends_nothing(server: grpc.Server, channel: grpc.Channel) -> None:
    with pytest.raises(grpc.CallFailed, match="DEADLINE_EXCEEDED"):
        await channel.unary(SLEEP, b"", timeout_s=0)
    assert server.statistics().calls_begun == 0


@pytest.mark.parametrize("target", ["", "localhost:1", "ftp://x", "http://", "http://x/path", "http://x?q", "unix:"])
async def test_a_target_that_names_no_server_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="a target is"):
        grpc.parse_target(target)


def test_credentials_in_a_target_are_refused_without_repeating_them() -> None:
    with pytest.raises(ValueError, match="credentials") as caught:
        grpc.parse_target("http://me:hunter2@host:1")

    assert "hunter2" not in str(caught.value)


def test_targets_are_read() -> None:
    assert grpc.parse_target("http://[::1]:5").host == "::1"
    assert grpc.parse_target("https://host").port == 443
    assert grpc.parse_target("unix:/run/s").path == grpc.parse_target("unix:///run/s").path == "/run/s"
    assert grpc.parse_target("unix:relative").path == "relative"
