"""What waits to be sent on one connection: answers first, news behind them, each in its own order.

Bounded by back-pressure: whoever adds news waits for room before adding more, and requests are read only while
there is room for answers. An answer never waits behind queued output, so a flood of one process delays it by one
message at most; a flood of answers lets one piece of news through in nine.
"""

from collections import deque

import attrs
import trio

__all__ = ["Lane", "Outbox", "OutboxStatistics"]

_ANSWERS_IN_A_ROW = 8
# Small messages are packed up to here; it is also what an answer may have to wait for.
_TAKE_BYTES = 64 * 1024


@attrs.frozen(kw_only=True)
class OutboxStatistics:
    """How full an outbox is."""

    queued_bytes: int
    """Not yet handed to the transport."""
    queued_bytes_peak: int
    """The most there ever was."""
    sent_messages: int
    """Handed to the transport so far."""
    dropped_messages: int
    """Added after the connection had ended."""


class Lane:
    """Messages of one kind, in order."""

    __slots__ = ("_messages", "_room", "_room_bytes", "queued_bytes")

    def __init__(self, room_bytes: int) -> None:
        self._messages: deque[bytes] = deque()
        self._room_bytes = room_bytes
        self._room = trio.lowlevel.ParkingLot()
        # The sum of the lengths of `_messages`.
        self.queued_bytes: int = 0

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def has_room(self) -> bool:
        """Whether more may be added without waiting."""
        return self.queued_bytes < self._room_bytes

    async def wait_room(self) -> None:
        """Wait until more may be added, or the connection has ended.

        Cancelled:
            Nothing changed.
        """
        await trio.lowlevel.checkpoint()
        while not self.has_room:
            await self._room.park()

    def append(self, data: bytes) -> None:
        """Add a message, whether there is room or not."""
        self._messages.append(data)
        self.queued_bytes += len(data)

    def popleft(self) -> bytes:
        """Take the oldest message."""
        data = self._messages.popleft()
        self.queued_bytes -= len(data)
        if self._room and self.has_room:
            self._room.unpark_all()
        return data

    def clear(self) -> None:
        """Drop everything and let everybody go who waits."""
        self._messages.clear()
        self.queued_bytes = 0
        self._room.unpark_all()


class Outbox:
    """Two lanes and one reader."""

    def __init__(self, *, room_bytes: int) -> None:
        self.answers: Lane = Lane(room_bytes)
        """Answers to requests."""
        self.news: Lane = Lane(room_bytes)
        """News of processes."""
        self._peak = self._sent = self._dropped = self._in_a_row = 0
        self._reader = trio.lowlevel.ParkingLot()
        self._closed = False
        # Whoever adds will take by itself, at the end of what it does: the reader is not woken for it.
        self._is_corked = False
        self._is_nudged = False

    def add_answer(self, data: bytes) -> None:
        """Queue an answer to a request; dropped when the connection has ended."""
        self._add(self.answers, data)

    def add_news(self, data: bytes) -> None:
        """Queue news of a process; dropped when the connection has ended."""
        self._add(self.news, data)

    def _add(self, lane: Lane, data: bytes) -> None:
        if self._closed:
            self._dropped += 1
            return
        lane.append(data)
        self._peak = max(self._peak, self.answers.queued_bytes + self.news.queued_bytes)
        if not self._is_corked:
            self._reader.unpark()

    def cork(self) -> None:
        """Wake nobody until `take_now` or `uncork`, which must come before anything is waited for."""
        self._is_corked = True

    def uncork(self) -> None:
        """Leave what is there to the reader."""
        self._is_corked = False
        if self.answers or self.news:
            self._reader.unpark()

    def take_now(self) -> list[bytes]:
        """Uncork, and take what `take` would take next; nothing when nothing is there."""
        taken = self._take_some()
        self.uncork()
        return taken

    def nudge(self) -> None:
        """Have `take` return, if with nothing: the transport has a rest to send."""
        self._is_nudged = True
        self._reader.unpark()

    async def take(self) -> list[bytes]:
        """Take the next messages to send, to be sent in one piece: one, or more if they are small; none when nudged.

        Raises:
            trio.EndOfChannel: It was closed.

        Cancelled:
            Nothing was taken.
        """
        while not self.answers and not self.news and not self._is_nudged:
            if self._closed:
                raise trio.EndOfChannel
            await self._reader.park()
        self._is_nudged = False
        return self._take_some()

    def _take_some(self) -> list[bytes]:
        taken: list[bytes] = []
        taken_bytes = 0
        while (self.answers or self.news) and taken_bytes < _TAKE_BYTES:
            data = self._next_lane().popleft()
            taken.append(data)
            taken_bytes += len(data)
        self._sent += len(taken)
        return taken

    def _next_lane(self) -> Lane:
        if self.answers and (not self.news or self._in_a_row < _ANSWERS_IN_A_ROW):
            self._in_a_row += 1
            return self.answers
        self._in_a_row = 0
        return self.news

    def close(self) -> None:
        """Drop what is queued and let everybody go who waits."""
        self._closed = True
        self._dropped += len(self.answers) + len(self.news)
        self.answers.clear()
        self.news.clear()
        self._reader.unpark_all()

    def statistics(self) -> OutboxStatistics:
        """Look at it."""
        return OutboxStatistics(
            queued_bytes=self.answers.queued_bytes + self.news.queued_bytes,
            queued_bytes_peak=self._peak,
            sent_messages=self._sent,
            dropped_messages=self._dropped,
        )
