"""Standard input of one process: bytes queued once for each write id, within a bound.

A write that finds no room is answered once there is some, in order. Knows nothing of requests: it calls back.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum

import attrs
import trio

from actors.executor._launching import InputEnd

__all__ = ["Offer", "StdinQueue"]


class Offer(Enum):
    """What became of bytes that were offered."""

    ACCEPTED = "accepted"
    WAITING = "waiting"
    FULL = "full"
    ENDED = "ended"
    BROKEN = "broken"


@attrs.frozen
class _Write:
    data: bytes = attrs.field(repr=False)
    eof: bool


class StdinQueue:
    """What is still to be written to one process."""

    def __init__(self, *, bytes_max: int, waiting_max: int, write_ids_max: int, end_byte: bytes | None = None) -> None:
        # A terminal has no end of input but the character that means it.
        self._end_byte = end_byte
        self._bytes_max, self._waiting_max, self._write_ids_max = bytes_max, waiting_max, write_ids_max
        # The bytes in `_queue` and of the write under way. While there is room, nothing is in `_waiting`.
        self._queued_bytes = 0
        self._queue: deque[_Write] = deque()
        self._waiting: deque[tuple[_Write, Callable[[Offer], None]]] = deque()
        self._seen: dict[str, None] = {}
        self._ended = self._broken = False
        self._reader = trio.lowlevel.ParkingLot()
        self._feeding = trio.CancelScope()

    def offer(self, write_id: str, data: bytes, *, eof: bool, later: Callable[[Offer], None]) -> Offer:
        """Take bytes, unless this write id was taken before.

        Args:
            write_id: Names the write; the second one with a name is accepted and not done.
            data: The bytes.
            eof: Nothing comes after them.
            later: Called once with the outcome when this returns ``WAITING``.
        """
        if write_id in self._seen:
            return Offer.ACCEPTED
        if self._ended:
            return Offer.ENDED
        if self._broken:
            return Offer.BROKEN
        room = self._queued_bytes < self._bytes_max
        if not room and len(self._waiting) >= self._waiting_max:
            return Offer.FULL
        self._remember(write_id)
        self._ended = eof
        write = _Write(data + (self._end_byte or b"") if eof else data, eof)
        if room:
            self._enqueue(write)
            return Offer.ACCEPTED
        self._waiting.append((write, later))
        return Offer.WAITING

    def _remember(self, write_id: str) -> None:
        self._seen[write_id] = None
        if len(self._seen) > self._write_ids_max:
            del self._seen[next(iter(self._seen))]

    def _enqueue(self, write: _Write) -> None:
        self._queue.append(write)
        self._queued_bytes += len(write.data)
        self._reader.unpark()

    async def feed(self, end: InputEnd) -> None:
        """Write what is queued, in order, until the end of input, the process or this task.

        Cancelled:
            Part of a write may be with the process; nobody can write after it.
        """
        with self._feeding:
            while not self._broken:
                while not self._queue:
                    await self._reader.park()
                write = self._queue.popleft()
                try:
                    await end.send_all(write.data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self.close()
                    return
                if write.eof and self._end_byte is None:
                    end.close()
                    return
                self._queued_bytes -= len(write.data)
                self._admit()

    def _admit(self) -> None:
        while self._waiting and self._queued_bytes < self._bytes_max:
            write, later = self._waiting.popleft()
            self._enqueue(write)
            later(Offer.ACCEPTED)

    def close(self) -> None:
        """Nobody reads any more: drop what is queued and refuse what comes."""
        self._broken = True
        self._feeding.cancel()
        self._queue.clear()
        self._queued_bytes = 0
        while self._waiting:
            self._waiting.popleft()[1](Offer.BROKEN)
