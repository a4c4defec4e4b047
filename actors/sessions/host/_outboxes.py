"""A bounded queue of messages for one stream, with an end and an alarm for silence."""

import math
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import trio

Message = TypeVar("Message")


class Outbox(Generic[Message]):
    """Filled by plain functions, emptied by the one handler of the stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: deque[Message] = deque()
        self._lot = trio.lowlevel.ParkingLot()
        self.ended: bool = False
        """Whether nothing more will come."""
        self.sink: Callable[[Message], bool] | None = None
        """Takes a message at once where its stream has room: no task need wake for it."""

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def full(self) -> bool:
        """Whether there is no room for another message."""
        return len(self._queue) >= self._limit

    def put(self, message: Message) -> bool:
        """Queue a message; False when there is no room, or it has ended."""
        if self.ended or self.full:
            return False
        if not self._queue and self.sink is not None and self.sink(message):
            return True
        self._queue.append(message)
        self._lot.unpark()
        return True

    def remove(self, message: Message) -> None:
        """Take back a message that was not sent yet."""
        if message in self._queue:
            self._queue.remove(message)

    def end(self) -> None:
        """Let the handler finish after what is queued."""
        self.ended = True
        self._lot.unpark_all()

    async def next(self, heartbeat_s: float = math.inf) -> Message | None:
        """Wait for the next message; None after `heartbeat_s` of waiting, or at the end."""
        if self._queue:
            return self._queue.popleft()
        with trio.move_on_after(heartbeat_s):
            while not self._queue and not self.ended:
                await self._lot.park()
        return self._queue.popleft() if self._queue else None
