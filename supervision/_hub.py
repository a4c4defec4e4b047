"""Hands the events of one tree of supervisors to those who listen; costs nothing while nobody does."""

from collections import deque
from types import TracebackType
from typing import Protocol, Self

import attrs
import trio

from supervision._events import Event, EventsDropped
from supervision._rules import check_whole

__all__ = ["Events", "EventsStatistics"]


class Reporter(Protocol):
    """Whoever can be told whether to make events."""

    reporting: bool


class Hub:
    """The listeners of one tree, and the plans that report to them."""

    def __init__(self) -> None:
        self._listeners: list[Events] = []
        self._reporters: set[Reporter] = set()
        self._position = 0

    def join(self, reporter: Reporter) -> None:
        """Let a plan report from now on, while somebody listens."""
        self._reporters.add(reporter)
        reporter.reporting = bool(self._listeners)

    def leave(self, path: str, reporter: Reporter) -> None:
        """Take out a plan that has ended; those who listened to it alone have heard everything."""
        self._reporters.discard(reporter)
        reporter.reporting = False
        for listener in self._listeners:
            if listener.path == path:
                listener.end()

    def emit(self, event: Event) -> None:
        """Hand one event to each listener whose part of the tree it is from."""
        self._position += 1
        placed = attrs.evolve(event, position=self._position)
        for listener in self._listeners:
            if placed.path == listener.path or placed.path.startswith(listener.prefix):
                listener.put(placed)

    def add(self, listener: "Events") -> None:
        self._listeners.append(listener)
        for reporter in self._reporters:
            reporter.reporting = True

    def remove(self, listener: "Events") -> None:
        self._listeners.remove(listener)
        for reporter in self._reporters:
            reporter.reporting = bool(self._listeners)


@attrs.frozen(kw_only=True)
class EventsStatistics:
    """A snapshot of one reader of events.

    Attributes:
        waiting: Events not yet read.
        waiting_peak: The most there ever were.
        received: Events that came, read or not.
        dropped: Events that were dropped because the reader was too slow.
    """

    waiting: int
    waiting_peak: int
    received: int
    dropped: int


class Events:
    """A bounded stream of events; when full, the oldest unread is dropped and the gap is told."""

    def __init__(self, hub: Hub, path: str, capacity: int) -> None:
        check_whole("events.capacity", capacity, low=1)
        self.path, self.prefix = path, path + "/"
        self._hub, self._capacity = hub, capacity
        self._waiting: deque[Event] = deque()
        self._gap: EventsDropped | None = None
        self._ended = False
        self._news = trio.Event()
        self._peak = self._received = self._dropped = 0

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        self._hub.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hub.remove(self)
        self.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event; ends when this generation of the supervisor has ended.

        Cancelled:
            No event is lost.
        """
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._news = trio.Event()
            await self._news.wait()
        return self._take()

    def receive_nowait(self) -> Event:
        """Return the next event at once.

        Raises:
            trio.WouldBlock: There is none.
        """
        if not self._waiting:
            raise trio.WouldBlock
        return self._take()

    def statistics(self) -> EventsStatistics:
        """Return what came, what waits and what was dropped."""
        return EventsStatistics(
            waiting=len(self._waiting), waiting_peak=self._peak, received=self._received, dropped=self._dropped
        )

    def put(self, event: Event) -> None:
        """Take one event in, at the price of the oldest when full."""
        if self._ended:
            return
        self._received += 1
        if len(self._waiting) >= self._capacity:
            oldest = self._waiting.popleft()
            self._dropped += 1
            if self._gap is None:
                self._gap = EventsDropped(path=self.path, at_s=oldest.at_s, position=oldest.position, dropped=1)
            else:
                self._gap = attrs.evolve(self._gap, dropped=self._gap.dropped + 1)
        self._waiting.append(event)
        self._peak = max(self._peak, len(self._waiting))
        self._news.set()

    def end(self) -> None:
        """Let readers come to an end after what waits."""
        self._ended = True
        self._news.set()

    def _take(self) -> Event:
        if self._gap is not None:
            gap, self._gap = self._gap, None
            return gap
        return self._waiting.popleft()
