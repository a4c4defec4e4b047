"""Tell every listener what happened and wait for none: who is slow misses the oldest, and is told how many."""

from collections import deque
from types import TracebackType
from typing import Self

import attrs
import trio

from actors import InvalidOption
from actors.environments._events import EnvironmentEvent, EventsMissed


class EnvironmentEvents:
    """One listener's bounded queue: ``async with manager.events() as events: async for event in events``."""

    def __init__(self, stream: "EventStream", capacity: int) -> None:
        if capacity < 1:
            raise InvalidOption("capacity", capacity, "it must be at least 1")
        self._stream, self._capacity = stream, capacity
        self._waiting: deque[EnvironmentEvent] = deque()
        self._missed = 0
        self._is_over = False
        self._lot = trio.lowlevel.ParkingLot()
        self.missed = 0

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        self._stream.add(self)
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stream.remove(self)
        self.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EnvironmentEvent | EventsMissed:
        """The next event; the iteration ends with the manager.

        Cancelled:
            No event is lost.
        """
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            if self._is_over:
                raise StopAsyncIteration
            await self._lot.park()
        return self._take()

    def receive_nowait(self) -> EnvironmentEvent | EventsMissed:
        """Take the next event at once.

        Raises:
            trio.WouldBlock: There is none.
        """
        if not self._waiting:
            raise trio.WouldBlock
        return self._take()

    def put(self, event: EnvironmentEvent) -> None:
        """Queue an event; when there is no room the oldest gives way."""
        if len(self._waiting) >= self._capacity:
            self._waiting.popleft()
            self._missed += 1
            self.missed += 1
        self._waiting.append(event)
        self._lot.unpark_all()

    def end(self) -> None:
        """Let the iteration end after what still waits."""
        self._is_over = True
        self._lot.unpark_all()

    def _take(self) -> EnvironmentEvent | EventsMissed:
        if self._missed:
            gap = EventsMissed(missed=self._missed, position=self._waiting[0].position)
            self._missed = 0
            return gap
        return self._waiting.popleft()


class EventStream:
    """All events of one manager, in order; costs next to nothing while nobody listens."""

    def __init__(self) -> None:
        self._listeners: list[EnvironmentEvents] = []
        self._is_over = False
        self._position = 0

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens, so that an event is worth making."""
        return bool(self._listeners)

    def emit(self, event: EnvironmentEvent) -> None:
        """Tell every listener."""
        self._position += 1
        placed = attrs.evolve(event, position=self._position)
        for listener in self._listeners:
            listener.put(placed)

    def close(self) -> None:
        """End every listener after what it still holds."""
        self._is_over = True
        for listener in self._listeners:
            listener.end()

    def add(self, listener: EnvironmentEvents) -> None:
        """Let somebody listen from now on."""
        self._listeners.append(listener)
        if self._is_over:
            listener.end()

    def remove(self, listener: EnvironmentEvents) -> None:
        """Let somebody listen no more."""
        self._listeners.remove(listener)
