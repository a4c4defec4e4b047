"""What has to be right about gRPC over HTTP/2, each point hit by somebody before: one section a point."""

import ast
import functools
import math
import socket
from pathlib import Path

import h2.errors
import h2.events
import h2.settings
import pytest
import trio
import trio.testing

from actors.sessions import grpc
from actors.sessions.grpc._framing import message_prefix
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.grpc.peers import run_ours
from tests.actors.sessions.grpc.raw import Raw, accept_raw, raw_client
from tests.actors.sessions.grpc.service import CHAT, COUNT, ECHO, LEASE, SLEEP, SUM, Seen, method, our_routes

KIB = 1024
GOAWAY, PING = b"\0\0\x08\x07\0\0\0\0\0", b"\0\0\x08\x06\0\0\0\0\0"


def limited(**limits: int) -> grpc.ServerOptions:
    return grpc.ServerOptions(limits=grpc.Limits(**limits))  # type: ignore[arg-type]  # every field named here is an int


# --- 1. GOAWAY, in both directions


async def test_1_a_call_in_flight_survives_the_goaway_of_its_server(
    network: MemoryNetwork, channel: grpc.Channel, nursery: trio.Nursery
) -> None:
    replies: list[bytes] = []

    async def call() -> None:
        replies.append(await channel.unary(ECHO, b"first"))

    nursery.start_soon(call)
    old = await accept_raw(network)
    request = await old.wait_for(h2.events.RequestReceived)
    await old.goaway(2**31 - 1)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(call)
    new = await accept_raw(network)
    second = await new.wait_for(h2.events.RequestReceived)
    await new.answer(second.stream_id, b"on the new connection")
    await old.answer(request.stream_id, b"on the old one")
    await trio.testing.wait_all_tasks_blocked()

    assert replies == [b"on the new connection", b"on the old one"]
    await old.wait_end()


async def test_1_a_call_that_goaway_says_was_not_processed_is_made_again_unseen(
    network: MemoryNetwork, channel: grpc.Channel, nursery: trio.Nursery
) -> None:
    replies: list[bytes] = []

    async def call() -> None:
        replies.append(await channel.unary(ECHO, b"x"))

    nursery.start_soon(call)
    old = await accept_raw(network)
    await old.wait_for(h2.events.RequestReceived)
    old.h2.close_connection(last_stream_id=0)
    await old.flush()
    new = await accept_raw(network)
    again = await new.wait_for(h2.events.RequestReceived)
    await new.answer(again.stream_id, b"done")
    await trio.testing.wait_all_tasks_blocked()

    assert replies == [b"done"]


async def test_1_a_draining_server_lets_open_calls_end_and_the_client_moves_on(
    network: MemoryNetwork, channel: grpc.Channel, nursery: trio.Nursery
) -> None:
    async with run_ours(Seen(), [network.listener]) as server, channel.open_call(CHAT) as call:
        await call.send(b"before")
        assert await call.receive() == b"re: before"
        drained = trio.Event()

        async def drain() -> None:
            await server.drain(grace_s=30)
            drained.set()

        nursery.start_soon(drain)
        await trio.testing.wait_all_tasks_blocked()
        await call.send(b"during")
        assert await call.receive() == b"re: during"
        assert not drained.is_set()
        with pytest.raises(grpc.CallFailed, match="nobody listens"):
            await channel.unary(ECHO, b"new")
        call.finish_sending()

        assert [message async for message in call] == []
        await drained.wait()


async def test_1_a_server_tells_twice_and_takes_what_was_on_its_way(
    network: MemoryNetwork, server: grpc.Server, nursery: trio.Nursery
) -> None:
    async with raw_client(network) as client:
        await client.wait_for(h2.events.RemoteSettingsChanged)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(functools.partial(server.drain, grace_s=30))
        await trio.testing.wait_all_tasks_blocked()
        # This was sent before the first GOAWAY could be read.
        number = await client.request(ECHO, b"on its way")
        wire = b""
        while wire.count(GOAWAY) < 2:
            wire += bytes(await client.stream.receive_some(65_536))
            if wire.endswith(PING + b"draining"):
                await client.stream.send_all(PING[:4] + b"\1" + PING[5:] + b"draining")
        first, second = (int.from_bytes(part[:4]) for part in wire.split(GOAWAY)[1:])

        assert first == 2**31 - 1
        assert second == number
        assert b"on its way" in wire


async def test_1_a_client_that_goes_away_ends_its_calls_first(network: MemoryNetwork, server: grpc.Server) -> None:
    async with (
        grpc.open_channel("http://memory", dial=network.dial) as channel,
        channel.open_call(CHAT) as call,
    ):
        await call.send(b"1")
        channel.release()
        await call.send(b"2")
        call.finish_sending()

        assert [message async for message in call] == [b"re: 1", b"re: 2"]
        await trio.testing.wait_all_tasks_blocked()
        assert channel.connections_open == 0


# --- 2. frame size


async def test_2_frames_above_16_kib_are_accepted_from_the_start(network: MemoryNetwork, server: grpc.Server) -> None:
    async with raw_client(network) as client:
        await client.wait_for(h2.events.RemoteSettingsChanged)
        assert client.h2.max_outbound_frame_size == 64 * KIB
        number = await client.request(ECHO, bytes(60 * KIB))

        assert (await client.status_of(number)).code is grpc.StatusCode.OK


async def test_2_a_frame_over_the_limit_ends_the_connection(network: MemoryNetwork, server: grpc.Server) -> None:
    async with raw_client(network) as client:
        await client.stream.send_all((64 * KIB + 1).to_bytes(3) + b"\0\0\0\0\0\1")

        ended = await client.wait_for(h2.events.ConnectionTerminated)
        assert ended.error_code == h2.errors.ErrorCodes.FRAME_SIZE_ERROR


# --- 3. two levels of flow control


async def test_3_a_message_larger_than_the_window_arrives(network: MemoryNetwork) -> None:
    options = limited(stream_window_bytes=64 * KIB, connection_window_bytes=64 * KIB)
    limits = options.limits
    async with (
        run_ours(Seen(), [network.listener], options),
        grpc.open_channel("http://m", dial=network.dial, options=grpc.ChannelOptions(limits=limits)) as channel,
    ):
        message = bytes(3_000_000)
        assert await channel.unary(ECHO, message) == message


async def test_3_a_call_that_nobody_reads_stops_its_sender_but_not_the_other_calls(
    network: MemoryNetwork,
) -> None:
    taken: list[int] = []
    go_on = trio.Event()

    async def slow(call: grpc.ServerCall, requests: grpc.Requests[bytes]) -> bytes:
        await go_on.wait()
        taken.extend([len(request) async for request in requests])
        return b""

    options = limited(stream_window_bytes=64 * KIB, connection_window_bytes=64 * KIB)
    server = grpc.Server([*our_routes(Seen())[:1], grpc.client_stream(SUM, slow)], options)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [network.listener])
        async with (
            grpc.open_channel("http://m", dial=network.dial) as channel,
            channel.open_call(SUM) as call,
        ):
            sent = 0

            async def send() -> None:
                nonlocal sent
                for _ in range(200):
                    await call.send(bytes(10 * KIB))
                    sent += 10 * KIB
                call.finish_sending()

            nursery.start_soon(send)
            await trio.testing.wait_all_tasks_blocked()
            # The window, what waits in our own queue, and one message over.
            assert sent <= 64 * KIB + 256 * KIB + 10 * KIB
            for _ in range(20):
                assert await channel.unary(ECHO, bytes(50 * KIB)) == bytes(50 * KIB)
            go_on.set()
            await call.receive()

        assert taken == [10 * KIB] * 200
        nursery.cancel_scope.cancel()


# --- 4. one writer


async def test_4_a_cancelled_send_leaves_the_connection_whole(
    network: MemoryNetwork, server: grpc.Server, channel: grpc.Channel
) -> None:
    await channel.unary(ECHO, b"")
    for _ in range(5):
        async with channel.open_call(SLEEP) as call:
            with trio.CancelScope() as scope:
                scope.cancel()
                await call.send(bytes(5_000_000))
            with trio.move_on_after(0.01):
                await call.send(bytes(5_000_000))

        assert await channel.unary(ECHO, b"still whole") == b"still whole"
    assert channel.connections_dialled == 1


# --- 5. never OK by default


async def test_5_a_handler_cancelled_from_within_is_cancelled(network: MemoryNetwork) -> None:
    async def give_up(call: grpc.ServerCall, request: bytes) -> bytes:
        call.scope.cancel()
        await trio.sleep_forever()
        raise AssertionError

    server = grpc.Server([grpc.unary(ECHO, give_up)])
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [network.listener])
        async with grpc.open_channel("http://m", dial=network.dial) as channel:
            with pytest.raises(grpc.CallFailed) as caught:
                await channel.unary(ECHO, b"")
        nursery.cancel_scope.cancel()

    assert caught.value.code is grpc.StatusCode.CANCELLED


async def test_5_a_server_that_is_cancelled_says_unavailable(network: MemoryNetwork, channel: grpc.Channel) -> None:
    seen = Seen()
    async with trio.open_nursery() as nursery:
        await nursery.start(grpc.Server(our_routes(seen)).serve, [network.listener])
        async with channel.stream(LEASE, b"") as lease:
            assert await lease.receive() == b"open"
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True), pytest.raises(grpc.CallFailed) as caught:
                await lease.receive()

    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert "stopped" in caught.value.status.message
    assert seen.lost_leases == 1


# --- 6. oversize


@pytest.mark.parametrize("announced", [1001, 2**32 - 1])
async def test_6_an_oversize_request_is_answered_in_trailers(network: MemoryNetwork, announced: int) -> None:
    async with (
        run_ours(Seen(), [network.listener], limited(message_bytes_max=1000)),
        raw_client(network) as client,
    ):
        number = await client.request(ECHO, None)
        client.h2.send_data(number, message_prefix(announced) + bytes(500))
        await client.flush()

        status = await client.status_of(number)
        assert status.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert str(announced) in status.message


async def test_6_oversize_is_refused_at_every_place(network: MemoryNetwork, server: grpc.Server) -> None:
    small = grpc.ChannelOptions(limits=grpc.Limits(message_bytes_max=1000))
    async with grpc.open_channel("http://m", dial=network.dial, options=small) as channel:
        with pytest.raises(grpc.CallFailed, match="to be sent has 1001 bytes") as caught:
            await channel.unary(ECHO, bytes(1001))
        assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(grpc.CallFailed, match="received has 2000 bytes") as caught:
            async with channel.stream(COUNT, b"1 2000") as stream:
                await stream.receive()
        assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await channel.unary(ECHO, b"unharmed") == b"unharmed"


async def test_6_a_server_may_say_oversize_in_its_own_words(network: MemoryNetwork) -> None:
    def words(oversize: grpc.MessageTooLarge) -> grpc.Status:
        return grpc.Status(grpc.StatusCode.OUT_OF_RANGE, f"found {oversize.found_bytes}")

    limits = grpc.Limits(message_bytes_max=10, oversize_status=words)
    async with (
        run_ours(Seen(), [network.listener], grpc.ServerOptions(limits=limits)),
        grpc.open_channel("http://m", dial=network.dial) as channel,
    ):
        for request in (bytes(11), b"1 11"):
            with pytest.raises(grpc.CallFailed, match="OUT_OF_RANGE: found 11"):
                async with channel.stream(ECHO if len(request) == 11 else COUNT, request) as stream:
                    await stream.receive()


# --- 7. early ends


async def test_7_a_server_that_is_done_early_says_trailers_and_then_no_error(network: MemoryNetwork) -> None:
    async def first_only(call: grpc.ServerCall, requests: grpc.Requests[bytes]) -> bytes:
        return await anext(requests)

    server = grpc.Server([grpc.client_stream(SUM, first_only)])
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [network.listener])
        async with raw_client(network) as client:
            number = await client.request(SUM, b"one", ends=False)
            assert (await client.status_of(number)).code is grpc.StatusCode.OK
            reset = await client.wait_for(h2.events.StreamReset)
            assert reset.error_code == h2.errors.ErrorCodes.NO_ERROR
        async with (
            grpc.open_channel("http://m", dial=network.dial) as channel,
            channel.open_call(SUM) as call,
        ):
            await call.send(b"two")
            assert [message async for message in call] == [b"two"]
        nursery.cancel_scope.cancel()


async def test_7_a_reset_after_the_trailers_is_a_normal_end(
    network: MemoryNetwork, channel: grpc.Channel, nursery: trio.Nursery
) -> None:
    async def answer() -> None:
        server = await accept_raw(network)
        request = await server.wait_for(h2.events.RequestReceived)
        await server.answer(request.stream_id, b"early")
        server.h2.reset_stream(request.stream_id, 0)
        await server.flush()

    nursery.start_soon(answer)
    async with channel.open_call(CHAT) as call:
        assert [message async for message in call] == [b"early"]


# --- 8. trailers only (and see test_status, test_metadata, test_headers)


async def test_8_an_error_before_any_message_is_one_header_block(network: MemoryNetwork, server: grpc.Server) -> None:
    async with raw_client(network) as client:
        number = await client.request(method("Nothing"))
        await client.status_of(number)

        assert [type(event) for event in client.events if getattr(event, "stream_id", 0) == number] == [
            h2.events.ResponseReceived,
            h2.events.StreamEnded,
        ]


# --- 9. deadlines, at both ends


async def test_9_a_server_enforces_the_deadline_of_a_caller_that_does_not(
    network: MemoryNetwork, server: grpc.Server, autojump_clock: trio.testing.MockClock
) -> None:
    async with raw_client(network) as client:
        begin_s = trio.current_time()
        number = await client.request(SLEEP, b"", ("grpc-timeout", "5S"))

        assert (await client.status_of(number)).code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert trio.current_time() - begin_s == pytest.approx(5)


async def test_9_a_client_enforces_the_deadline_on_a_server_that_does_not(
    network: MemoryNetwork,
    channel: grpc.Channel,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def accept() -> None:
        server = await accept_raw(network)
        request = await server.wait_for(h2.events.RequestReceived)
        assert (b"grpc-timeout", b"5000000u") in request.headers
        reset = await server.wait_for(h2.events.StreamReset)
        assert reset.error_code == h2.errors.ErrorCodes.CANCEL

    nursery.start_soon(accept)
    begin_s = trio.current_time()
    with pytest.raises(grpc.CallFailed, match="no answer within 5 s") as caught:
        await channel.unary(SLEEP, b"", timeout_s=5)

    assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert trio.current_time() - begin_s == pytest.approx(5)


async def test_9_a_deadline_covers_connecting_and_the_body_of_a_block(
    network: MemoryNetwork, server: grpc.Server, autojump_clock: trio.testing.MockClock
) -> None:
    async def never() -> trio.abc.Stream:
        await trio.sleep_forever()
        raise AssertionError

    async with grpc.open_channel("http://nowhere", dial=never) as channel:
        with pytest.raises(grpc.CallFailed, match="DEADLINE_EXCEEDED"):
            await channel.unary(ECHO, b"", timeout_s=3)
    async with grpc.open_channel("http://m", dial=network.dial) as channel:
        with pytest.raises(grpc.CallFailed, match="DEADLINE_EXCEEDED"):
            async with channel.stream(LEASE, b"", timeout_s=3):
                await trio.sleep_forever()


# --- 10. concurrent streams


async def test_10_a_client_waits_for_a_slot_and_looks_again(network: MemoryNetwork, nursery: trio.Nursery) -> None:
    done: list[int] = []
    options = grpc.ChannelOptions(connections_max=1)
    async with grpc.open_channel("http://m", dial=network.dial, options=options) as channel:

        async def call(number: int) -> None:
            await channel.unary(ECHO, b"")
            done.append(number)

        for number in range(3):
            nursery.start_soon(call, number)
        server = await accept_raw(network, calls_max=2)
        await server.wait_for(h2.events.RequestReceived, 3)
        await trio.testing.wait_all_tasks_blocked()
        requests = [event for event in server.events if isinstance(event, h2.events.RequestReceived)]
        await server.answer(1)
        await server.wait_for(h2.events.RequestReceived, 5)
        await server.answer(3)
        await server.answer(5)
        await trio.testing.wait_all_tasks_blocked()

        assert len(requests) == 2
        assert sorted(done) == [0, 1, 2]
        assert channel.connections_dialled == 1


async def test_10_a_waiting_call_goes_to_another_connection_when_its_own_drains(
    network: MemoryNetwork, nursery: trio.Nursery
) -> None:
    options = grpc.ChannelOptions(connections_max=1, limits=grpc.Limits(concurrent_calls_max=1))
    async with grpc.open_channel("http://m", dial=network.dial, options=options) as channel:
        nursery.start_soon(channel.unary, ECHO, b"first")
        old = await accept_raw(network)
        await old.wait_for(h2.events.RequestReceived)
        nursery.start_soon(channel.unary, ECHO, b"waits")
        await trio.testing.wait_all_tasks_blocked()
        await old.goaway(1)
        new = await accept_raw(network)
        second = await new.wait_for(h2.events.RequestReceived)
        await new.answer(second.stream_id)
        await old.answer(1)
        await trio.testing.wait_all_tasks_blocked()

        assert channel.connections_dialled == 2


async def test_10_thousands_of_leases_spread_over_several_connections(network: MemoryNetwork) -> None:
    async with (
        run_ours(Seen(), [network.listener], limited(concurrent_calls_max=50)) as server,
        grpc.open_channel("http://m", dial=network.dial) as channel,
        trio.open_nursery() as nursery,
    ):
        opened = trio.open_memory_channel[None](math.inf)

        async def lease() -> None:
            async with channel.stream(LEASE, b"") as stream:
                await stream.receive()
                opened[0].send_nowait(None)
                await trio.sleep_forever()

        for _ in range(200):
            nursery.start_soon(lease)
        for _ in range(200):
            await opened[1].receive()

        assert server.statistics().calls_open == 200
        assert 4 <= channel.connections_open <= 8
        nursery.cancel_scope.cancel()


async def test_10_a_call_over_the_limit_is_refused_not_the_connection(network: MemoryNetwork) -> None:
    async with (
        run_ours(Seen(), [network.listener], limited(concurrent_calls_max=1)),
        raw_client(network) as client,
    ):
        first = await client.request(CHAT, b"a", ends=False)
        second = await client.request(ECHO, b"b")

        reset = await client.wait_for(h2.events.StreamReset, second)
        assert reset.error_code == h2.errors.ErrorCodes.REFUSED_STREAM
        client.h2.end_stream(first)
        await client.flush()
        assert (await client.status_of(first)).code is grpc.StatusCode.OK


# --- 11. keepalive


async def test_11_a_frozen_peer_is_found_by_pings(
    network: MemoryNetwork, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    options = grpc.ChannelOptions(keepalive=grpc.KeepalivePolicy(interval_s=10, timeout_s=4))

    async def freeze() -> None:
        server = await accept_raw(network)
        await server.wait_for(h2.events.RequestReceived)

    async with grpc.open_channel("http://m", dial=network.dial, options=options) as channel:
        nursery.start_soon(freeze)
        begin_s = trio.current_time()
        with pytest.raises(grpc.CallFailed, match="silent for 4 s after a ping") as caught:
            await channel.unary(SLEEP, b"")

        assert caught.value.code is grpc.StatusCode.UNAVAILABLE
        assert 14 <= trio.current_time() - begin_s <= 24.001


async def test_11_a_server_finds_a_frozen_caller_and_cancels_its_handler(
    network: MemoryNetwork, autojump_clock: trio.testing.MockClock
) -> None:
    seen = Seen()
    options = grpc.ServerOptions(keepalive=grpc.KeepalivePolicy(interval_s=10, timeout_s=4))
    async with run_ours(seen, [network.listener], options) as server, raw_client(network) as client:
        await client.request(LEASE)
        await trio.sleep(25)

        assert seen.lost_leases == 1
        assert server.statistics().connections_open == 0


async def test_11_a_lease_that_answers_pings_lives_for_hours(
    network: MemoryNetwork, server: grpc.Server, autojump_clock: trio.testing.MockClock
) -> None:
    options = grpc.ChannelOptions(keepalive=grpc.KeepalivePolicy(interval_s=10, timeout_s=4))
    async with (
        grpc.open_channel("http://m", dial=network.dial, options=options) as channel,
        channel.stream(LEASE, b"") as lease,
    ):
        await lease.receive()
        with trio.move_on_after(3 * 3600):
            await lease.receive()

        assert channel.connections_open == 1


async def test_11_a_server_that_finds_us_a_nuisance_is_asked_half_as_often(
    network: MemoryNetwork, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    options = grpc.ChannelOptions(
        keepalive=grpc.KeepalivePolicy(interval_s=10, timeout_s=4, without_calls=True), connections_max=1
    )
    pauses: list[float] = []

    async with grpc.open_channel("http://m", dial=network.dial, options=options) as channel:
        for _ in range(2):
            nursery.start_soon(channel.unary, ECHO, b"")
            server = await accept_raw(network)
            request = await server.wait_for(h2.events.RequestReceived)
            await server.answer(request.stream_id)
            begin_s = trio.current_time()
            await server.wait_for(h2.events.PingReceived)
            pauses.append(trio.current_time() - begin_s)
            server.h2.close_connection(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings", 1)
            await server.flush()
            await server.wait_end()

    assert pauses == [pytest.approx(10, abs=0.1), pytest.approx(20, abs=0.1)]


# --- 12. fairness


async def test_12_a_small_call_is_not_stuck_behind_a_bulk_stream(nursery: trio.Nursery) -> None:
    here, there = trio.socket.socketpair()
    for end in (here, there):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * KIB)
    nursery.start_soon(grpc.Server(our_routes(Seen())).serve_connection, trio.SocketStream(there))
    client = Raw(trio.SocketStream(here), client=True)
    await client.begin()
    client.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 2**30})
    client.h2.increment_flow_control_window(2**30)
    bulk = await client.request(COUNT, b"100 1000000")
    await client.wait_for(h2.events.DataReceived, bulk)
    small = await client.request(ECHO, b"small")
    before = len(client.data_of(bulk))
    await client.wait_for(h2.events.DataReceived, small)
    await trio.aclose_forcefully(client.stream)

    # What the sockets hold, the batch that is being written, the one behind it, and one turn of the bulk
    # stream.
    assert len(client.data_of(bulk)) - before < 1024 * KIB
    nursery.cancel_scope.cancel()


# --- 13. handlers


async def test_13_a_handler_may_hold_a_nursery_across_its_sends(network: MemoryNetwork, channel: grpc.Channel) -> None:
    async def handler(call: grpc.ServerCall, request: bytes, send: grpc.Send[bytes]) -> None:
        async with trio.open_nursery() as nursery:
            for index in range(3):
                nursery.start_soon(send, b"%d" % index)
        with trio.move_on_after(60):
            await send(b"last")

    server = grpc.Server([grpc.server_stream(COUNT, handler)])
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [network.listener])
        async with channel.stream(COUNT, b"") as stream:
            messages = [message async for message in stream]
        nursery.cancel_scope.cancel()

    assert sorted(messages[:3]) == [b"0", b"1", b"2"]
    assert messages[3:] == [b"last"]


async def test_13_an_abort_within_a_nursery_of_the_handler_is_still_an_abort(
    network: MemoryNetwork, channel: grpc.Channel
) -> None:
    async def handler(call: grpc.ServerCall, request: bytes) -> bytes:
        async def fail() -> None:
            raise grpc.Abort(grpc.StatusCode.NOT_FOUND, "no such thing")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep_forever)
        raise AssertionError

    server = grpc.Server([grpc.unary(ECHO, handler)])
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [network.listener])
        with pytest.raises(grpc.CallFailed, match="NOT_FOUND: no such thing"):
            await channel.unary(ECHO, b"")
        nursery.cancel_scope.cancel()


# --- 14. limits


async def test_14_a_header_list_over_the_limit_ends_the_connection_of_its_sender_only(
    network: MemoryNetwork, server: grpc.Server, channel: grpc.Channel
) -> None:
    async with raw_client(network) as client:
        await client.request(ECHO, b"", *[(f"x-{index}", "y" * 100) for index in range(200)])

        ended = await client.wait_for(h2.events.ConnectionTerminated)
        assert ended.error_code == h2.errors.ErrorCodes.ENHANCE_YOUR_CALM
    assert await channel.unary(ECHO, b"unharmed") == b"unharmed"


async def test_14_our_client_does_not_send_more_headers_than_the_server_takes(
    server: grpc.Server, channel: grpc.Channel
) -> None:
    with pytest.raises(grpc.CallFailed, match="metadata is larger") as caught:
        await channel.unary(ECHO, b"", metadata=[("x-large", "y" * 20_000)])

    assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert channel.connections_open == 1


async def test_14_trailers_that_the_caller_would_not_take_are_left_out(
    network: MemoryNetwork, channel: grpc.Channel
) -> None:
    async def handler(call: grpc.ServerCall, request: bytes) -> bytes:
        raise grpc.Abort(grpc.StatusCode.NOT_FOUND, "x" * 50_000)

    server = grpc.Server([grpc.unary(ECHO, handler)])
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [network.listener])
        with pytest.raises(grpc.CallFailed, match="left out") as caught:
            await channel.unary(ECHO, b"")
        nursery.cancel_scope.cancel()

    assert caught.value.code is grpc.StatusCode.NOT_FOUND


async def test_14_a_flood_of_resets_ends_the_connection_and_a_burst_does_not(network: MemoryNetwork) -> None:
    options = limited(resets_per_s_max=10, resets_burst_max=100)
    async with run_ours(Seen(), [network.listener], options) as server:
        async with raw_client(network) as client:
            for _ in range(60):
                client.h2.reset_stream(await client.request(ECHO, None), 8)
            await client.flush()
            number = await client.request(ECHO, b"a burst is fine")
            assert (await client.status_of(number)).code is grpc.StatusCode.OK
            with pytest.raises(trio.BrokenResourceError):  # noqa: PT012  # It is the whole block that ends so.
                for _ in range(600):
                    client.h2.reset_stream(await client.request(ECHO, None), 8)
                    await client.flush()
                    await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()

        assert server.statistics().connections_open == 0
        assert server.statistics().calls_open == 0


@pytest.mark.parametrize("flood", ["ping", "settings", "empty data"])
async def test_14_a_flood_of_frames_that_cost_nothing_ends_the_connection(network: MemoryNetwork, flood: str) -> None:
    options = limited(resets_per_s_max=10, resets_burst_max=100)
    async with run_ours(Seen(), [network.listener], options), raw_client(network) as client:
        number = await client.request(CHAT, b"", ends=False)
        frame = {
            "ping": b"\0\0\x08\x06\0\0\0\0\0" + bytes(8),
            "settings": b"\0\0\0\x04\0\0\0\0\0",
            "empty data": b"\0\0\0\0\0" + number.to_bytes(4),
        }[flood]
        await client.stream.send_all(frame * 300)

        ended = await client.wait_for(h2.events.ConnectionTerminated)
        assert ended.error_code == h2.errors.ErrorCodes.ENHANCE_YOUR_CALM


async def test_14_a_peer_that_does_not_read_is_not_read_either(network: MemoryNetwork) -> None:
    options = limited(backlog_bytes_max=64 * KIB, resets_burst_max=10**9, resets_per_s_max=10**9)
    server = grpc.Server(our_routes(Seen()), options)
    here, there = trio.testing.lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve_connection, there)
        sent = 0

        async def ping() -> None:
            nonlocal sent
            await here.send_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            while True:
                await here.send_all((b"\0\0\x08\x06\0\0\0\0\0" + bytes(8)) * 100)
                sent += 1_700

        nursery.start_soon(ping)
        await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()

        assert sent < 500 * KIB
        nursery.cancel_scope.cancel()


# --- 15. trio's events are no booleans


def test_15_no_event_of_trio_is_used_as_a_boolean() -> None:
    for path in Path(grpc.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        events = {
            ast.unparse(target)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and "trio.Event" in ast.unparse(node)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        }
        tested = {ast.unparse(node.test) for node in ast.walk(tree) if isinstance(node, ast.If | ast.While | ast.IfExp)}
        assert not events & tested
