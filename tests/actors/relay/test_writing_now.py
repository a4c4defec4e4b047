"""Frames that are written by whoever made them: in one piece, in order, and never past what is being written."""

import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from actors.relay import ConnectionLost, DisconnectReason, MessageTooLarge, RelayLimits, WebSocketConnection
from actors.relay._outgoing import Outgoing
from actors.relay._schedule import Lane, LaneFailed
from actors.relay._websocket import ListeningStream
from actors.websocket import FrameDecoder, Opcode, Ping, Pong, WholeMessage, encode_frame

LIMITS = RelayLimits(close_s=0.02)


class Piecewise:
    """A connection that keeps the pieces it was given, and is free when it is told to be."""

    def __init__(self) -> None:
        self.pieces: list[list[bytes]] = []
        self.is_free = True
        self.is_lost = False
        self.may_go_on = trio.Event()

    def send_now(self, frames: Sequence[bytes]) -> None:
        assert self.is_free, "nobody writes into what is being written"
        self.pieces.append(list(frames))

    async def wait_free(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.is_lost:
            raise ConnectionLost(DisconnectReason.WRITE_ERROR, "")
        if not self.is_free:
            await self.may_go_on.wait()
            self.is_free = True

    async def send(self, frame: bytes) -> None:
        raise AssertionError(f"{len(frame)} bytes were not sent in a piece")

    async def receive(self) -> bytes | str:
        raise AssertionError("nobody reads here")


@attrs.define
class End:
    """An outgoing half with one lane that seals nothing."""

    connection: Piecewise = attrs.field(factory=Piecewise)
    outgoing: Outgoing = attrs.field(factory=lambda: Outgoing(LIMITS, _fail))
    lane: Lane = attrs.field(factory=lambda: Lane("stream", bytes, LIMITS))

    def send(self, *messages: bytes) -> int:
        return self.outgoing.send_some(self.lane, messages, lambda: None)


def _fail(failed: LaneFailed) -> None:
    raise AssertionError(f"a lane failed: {failed}")


@asynccontextmanager
async def writing() -> AsyncGenerator[End, None]:
    end = End()
    end.outgoing.schedule.open_lane(end.lane)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(end.outgoing.run, end.connection)
        await trio.testing.wait_all_tasks_blocked()
        yield end
        nursery.cancel_scope.cancel()


async def test_small_messages_are_written_without_a_turn_of_the_writing_task_and_in_one_record() -> None:
    async with writing() as end:
        sent = end.send(b"answer", b"news")

        assert sent == 2
        assert [len(piece) for piece in end.connection.pieces] == [1]
        assert all(word in end.connection.pieces[0][0] for word in (b"answer", b"news"))


async def test_nothing_is_written_into_what_is_being_written_and_it_follows_in_one_piece() -> None:
    """Mutant: `write_now` does not ask whether the connection is free."""
    async with writing() as end:
        end.connection.is_free = False
        assert end.send(b"one") == 1
        assert end.send(b"two") == 1
        await trio.testing.wait_all_tasks_blocked()
        assert end.connection.pieces == []
        end.connection.may_go_on.set()
        await trio.testing.wait_all_tasks_blocked()

        assert [len(piece) for piece in end.connection.pieces] == [1]


async def test_a_large_message_is_written_in_pieces_and_a_full_lane_takes_no_more() -> None:
    async with writing() as end:
        end.connection.is_free = False
        big = bytes(LIMITS.lane_bytes * 4)
        assert end.send(big, b"no room for this") == 1
        assert end.send(b"nor for this") == 0
        end.connection.may_go_on.set()
        await trio.testing.wait_all_tasks_blocked()

        sizes = [sum(map(len, piece)) for piece in end.connection.pieces]
        assert sum(sizes) > len(big)
        assert max(sizes) < 256 * 1024 + LIMITS.max_frame_bytes
        assert len(sizes) > 3


async def test_a_message_that_may_not_be_sent_stops_the_others_and_is_refused_when_it_comes_first() -> None:
    async with writing() as end:
        assert end.send(b"fine", b"", b"after it") == 1
        with pytest.raises(MessageTooLarge):
            end.send(b"", b"after it")

        assert len(end.connection.pieces) == 1


async def test_a_loss_is_found_by_the_writing_task_when_whoever_wrote_did_not_learn_of_it() -> None:
    """Mutant: `write_now` does not wake the writing task when the connection is no longer free."""
    end = End()
    end.outgoing.schedule.open_lane(end.lane)
    with pytest.RaisesGroup(ConnectionLost), trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(end.outgoing.run, end.connection)
            await trio.testing.wait_all_tasks_blocked()

            def lose(frames: Sequence[bytes]) -> None:
                del frames
                end.connection.is_free, end.connection.is_lost = False, True

            end.connection.send_now = lose  # type: ignore[method-assign]
            end.send(b"into the void")


async def socket_pair() -> tuple[WebSocketConnection, trio.SocketStream]:
    near, far = socket.socketpair()
    for each in (near, far):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * 1024)
    ours, theirs = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in (near, far))
    return WebSocketConnection(ListeningStream(ours), b"", LIMITS), theirs


async def read_all(stream: trio.SocketStream, count: int) -> list[bytes]:
    decoder, found = FrameDecoder(message_bytes_max=LIMITS.max_frame_bytes), list[bytes]()
    while len(found) < count:
        while isinstance(event := decoder.next_event(), WholeMessage):
            found.append(event.data)
        if event is None and len(found) < count:
            decoder.feed(await stream.receive_some())
    return found


async def test_what_the_system_does_not_take_at_once_follows_before_everything_else() -> None:
    """Mutant: what is left of a piece is dropped."""
    connection, theirs = await socket_pair()
    frames = [bytes([number]) * 50_000 for number in range(4)]
    connection.send_now(frames)
    assert not connection.is_free
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.send, b"later")
            nursery.start_soon(connection.wait_free)
            found = await read_all(theirs, 5)

    assert found == [*frames, b"later"]
    assert connection.is_free
    await trio.aclose_forcefully(theirs)
    await connection.close()


async def test_pings_and_pongs_go_between_the_pieces_of_a_stream_without_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Seen to fail when who waits behind the writing task only has its turn: the next piece was always faster."""
    limits = attrs.evolve(LIMITS, ping_interval_s=5.0, silence_s=60.0)
    near, far = trio.testing.memory_stream_pair()
    assert isinstance(near.send_stream, trio.testing.MemorySendStream)
    may_take, deliver = trio.Semaphore(0), near.send_stream.send_all_hook

    async def take_one() -> None:
        await may_take.acquire()
        assert deliver is not None
        await deliver()

    near.send_stream.send_all_hook = take_one
    connection = WebSocketConnection(ListeningStream(near), b"", limits)
    outgoing = Outgoing(limits, _fail)
    lane = Lane("stream", bytes, limits)
    outgoing.schedule.open_lane(lane)

    async def feed() -> None:
        while True:
            await outgoing.send(lane, bytes(60_000), None, lambda: None)

    async def read() -> None:
        while True:
            await connection.receive()

    async with trio.open_nursery() as nursery:
        connection.answer_from(nursery)
        for task in (feed, read, partial(outgoing.run, connection), partial(connection.keep_alive, nursery)):
            nursery.start_soon(task)
        await trio.testing.wait_all_tasks_blocked()
        await far.send_all(encode_frame(Opcode.PING, b"are you there?"))
        await trio.sleep(6)
        seen: list[object] = []
        decoder = FrameDecoder(message_bytes_max=limits.max_frame_bytes, from_client=True)
        for _ in range(3):
            may_take.release()
            await trio.testing.wait_all_tasks_blocked()
            decoder.feed(await far.receive_some())
            while (event := decoder.next_event()) is not None:
                seen.append(event)
        nursery.cancel_scope.cancel()

    bulk = [number for number, event in enumerate(seen) if isinstance(event, WholeMessage)]
    pong, ping = seen.index(Pong(b"are you there?")), seen.index(Ping(b""))
    assert bulk[0] < pong < bulk[-1], "behind what was being written, before what was not"
    assert ping == pong + 1


async def test_a_broken_connection_is_told_to_whoever_waits_for_it() -> None:
    connection, theirs = await socket_pair()
    await trio.aclose_forcefully(theirs)
    connection.send_now([b"nobody is there"])

    assert not connection.is_free
    with pytest.raises(ConnectionLost):
        await connection.wait_free()
    await connection.close()
