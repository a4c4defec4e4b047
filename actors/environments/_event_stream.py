"""Tell every listener what happened and wait for none: who is slow misses the oldest, and is told how many."""

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Final, Self

import attrs
import trio

from actors.blocks import block
from actors.environments._demands import must_be_count
from actors.environments._events import EnvironmentEvent, EventsMissed
from actors.environments._given import Handle


class Listener:
    """What waits for one listener: as much as fits, and how much had to give way."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[EnvironmentEvent] = deque()
        self._untold = 0
        self.missed: int = 0
        self.is_over: bool = False
        self.lot: Final = trio.lowlevel.ParkingLot()

    def put(self, event: EnvironmentEvent) -> None:
        """Queue an event; when there is no room the oldest gives way."""
        if len(self._waiting) >= self._capacity:
            self._waiting.popleft()
            self._untold += 1
            self.missed += 1
        self._waiting.append(event)
        self.lot.unpark_all()

    def end(self) -> None:
        """Let the iteration end after what still waits."""
        self.is_over = True
        self.lot.unpark_all()

    def take(self) -> EnvironmentEvent | EventsMissed | None:
        """Take the next event, or the news of a gap before it; None when nothing waits."""
        if not self._waiting:
            return None
        if self._untold:
            gap = EventsMissed(missed=self._untold, position=self._waiting[0].position)
            self._untold = 0
            return gap
        return self._waiting.popleft()


class EnvironmentEvents(Handle):
    """One listener's bounded queue: ``async with manager.events() as events: async for event in events``."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    @property
    def missed(self) -> int:
        """How many events gave way so far because this listener was too slow."""
        return self._listener.missed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EnvironmentEvent | EventsMissed:
        """The next event; the iteration ends with the manager.

        Cancelled:
            No event is lost.
        """
        await trio.lowlevel.checkpoint()
        while (event := self._listener.take()) is None:
            if self._listener.is_over:
                raise StopAsyncIteration
            await self._listener.lot.park()
        return event

    def receive_nowait(self) -> EnvironmentEvent | EventsMissed:
        """Take the next event at once.

        Raises:
            trio.WouldBlock: There is none.
        """
        event = self._listener.take()
        if event is None:
            raise trio.WouldBlock
        return event


class EventStream:
    """All events of one manager, in order; costs next to nothing while nobody listens."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
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

    def listen(self, capacity: int) -> AbstractAsyncContextManager[EnvironmentEvents]:
        """Let somebody listen for as long as a block lasts.

        Raises:
            InvalidOption: The capacity is no whole number of 1 or more.
        """
        must_be_count("capacity", capacity, 1)
        return self._listening(capacity)

    async def _listen(self, capacity: int) -> AsyncGenerator[EnvironmentEvents, None]:
        await trio.lowlevel.checkpoint()
        listener = Listener(capacity)
        self._listeners.append(listener)
        if self._is_over:
            listener.end()
        try:
            yield EnvironmentEvents.give(listener)
        finally:
            self._listeners.remove(listener)
            listener.end()

    _listening = block(_listen, "EnvironmentManager.events")
