"""A channel over a relay stream: one task answers without a turn of another, and nothing overtakes anything."""

from collections import deque
from collections.abc import Sequence

import pytest
import trio
import trio.testing

from actors.executor._outbox import Outbox
from actors.executor._relay_channel import RelayChannel
from actors.relay import StreamReset


class Narrow:
    """A stream with room for so many messages."""

    stream_id = "narrow"

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[bytes] = []
        self.incoming: deque[bytes] = deque()
        self.is_reset = False
        self._lot = trio.lowlevel.ParkingLot()

    @property
    def is_idle(self) -> bool:
        return not self.incoming

    def send_nowait(self, message: bytes) -> None:
        if self.is_reset:
            raise StreamReset
        if not self.room:
            raise trio.WouldBlock
        self.room -= 1
        self.sent.append(message)

    def send_some(self, messages: Sequence[bytes]) -> int:
        for number, message in enumerate(messages):
            try:
                self.send_nowait(message)
            except trio.WouldBlock:
                return number
        return len(messages)

    async def send(self, message: bytes) -> None:
        await trio.lowlevel.checkpoint()
        while not self.room and not self.is_reset:
            await self._lot.park()
        self.send_nowait(message)

    def make_room(self, room: int) -> None:
        self.room += room
        self._lot.unpark_all()

    async def receive(self) -> bytes:
        await trio.lowlevel.checkpoint()
        while not self.incoming:
            await trio.sleep_forever()
        return self.incoming.popleft()


def connected(room: int) -> tuple[Narrow, RelayChannel, Outbox]:
    stream, outbox = Narrow(room), Outbox(room_bytes=1_000_000)
    channel = RelayChannel(stream, close_s=1.0)  # type: ignore[arg-type]  # What it asks of a stream, and no more.
    channel.send_when_idle(outbox)
    return stream, channel, outbox


async def send(channel: RelayChannel, outbox: Outbox) -> None:
    while True:
        await channel.send(await outbox.take())


def answer(outbox: Outbox, *answers: bytes) -> None:
    outbox.cork()
    for each in answers:
        outbox.add_answer(each)


async def test_answers_go_out_before_more_is_waited_for_and_without_the_task_that_sends() -> None:
    stream, channel, outbox = connected(room=9)
    answer(outbox, b"one", b"two")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.receive)
        await trio.testing.wait_all_tasks_blocked()

        assert stream.sent == [b"one", b"two"]
        nursery.cancel_scope.cancel()


async def test_what_finds_no_room_is_sent_by_the_task_that_sends_and_in_order() -> None:
    """Mutant: `_idle` does not keep what found no room."""
    stream, channel, outbox = connected(room=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, channel, outbox)
        await trio.testing.wait_all_tasks_blocked()
        answer(outbox, b"one", b"two", b"three")
        nursery.start_soon(channel.receive)
        await trio.testing.wait_all_tasks_blocked()
        assert stream.sent == [b"one"]
        stream.make_room(9)
        await trio.testing.wait_all_tasks_blocked()

        assert stream.sent == [b"one", b"two", b"three"]
        nursery.cancel_scope.cancel()


async def test_an_answer_never_overtakes_what_the_task_that_sends_has_in_its_hands() -> None:
    """Mutant: `_idle` does not look whether the other task is sending."""
    stream, channel, outbox = connected(room=0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, channel, outbox)
        outbox.add_news(b"news 1")
        outbox.add_news(b"news 2")
        await trio.testing.wait_all_tasks_blocked()
        stream.room = 2  # There is room, but the other task has not run yet.
        answer(outbox, b"answer")
        nursery.start_soon(channel.receive)
        await trio.testing.wait_all_tasks_blocked()
        stream.make_room(9)
        await trio.testing.wait_all_tasks_blocked()

        assert stream.sent == [b"news 1", b"news 2", b"answer"]
        nursery.cancel_scope.cancel()


async def test_a_peer_that_never_pauses_is_answered_all_the_same() -> None:
    """Mutant: answers wait until nothing more is there to be received."""
    stream, channel, outbox = connected(room=9)
    stream.incoming.extend([b"question"] * 100)
    answer(outbox, b"answer")
    for _ in range(20):
        await channel.receive()

    assert stream.sent == [b"answer"]
    assert stream.incoming


async def test_a_stream_that_ended_is_told_to_the_task_that_sends() -> None:
    stream, channel, outbox = connected(room=9)
    stream.is_reset = True
    answer(outbox, b"answer")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.receive)
        await trio.testing.wait_all_tasks_blocked()

        with pytest.raises(trio.BrokenResourceError):
            await channel.send(await outbox.take())
        nursery.cancel_scope.cancel()
