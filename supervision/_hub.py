"""Hands the events of one tree of supervisors to those who listen; costs nothing while nobody does."""

from collections import deque
from types import TracebackType
from typing import Final, Protocol, Self

import attrs
import trio
from trio.lowlevel import current_root_task

from supervision._errors import EventsNotOpen, NotInThisRun
from supervision._events import Event, EventsDropped
from supervision._rules import check_whole

__all__ = ["Events", "EventsStatistics"]


class Reporter(Protocol):
    """Whoever can be told whether to make events."""

    reporting: bool


class Listener:
    """What waits for one reader; when full, the oldest unread is dropped and the gap is told."""

    def __init__(self, path: str, capacity: int) -> None:
        check_whole("events.capacity", capacity, low=1)
        self.path: Final = path
        self.prefix: Final = path + "/"
        self.ended: bool = False
        self.news: trio.Event = trio.Event()
        self._capacity = capacity
        self._waiting: deque[Event] = deque()
        self._gap: EventsDropped | None = None
        self._peak = self._received = self._dropped = 0

    def put(self, event: Event) -> None:
        """Take one event in, at the price of the oldest when full."""
        if self.ended:
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
        self.news.set()

    def end(self) -> None:
        """Let the reader come to an end after what waits."""
        self.ended = True
        self.news.set()

    def take(self) -> Event | None:
        """Take the next event, or the news of a gap before it; None when nothing waits."""
        if not self._waiting:
            return None
        if self._gap is not None:
            gap, self._gap = self._gap, None
            return gap
        return self._waiting.popleft()

    def statistics(self) -> "EventsStatistics":
        """Return what came, what waits and what was dropped."""
        return EventsStatistics(
            waiting=len(self._waiting), waiting_peak=self._peak, received=self._received, dropped=self._dropped
        )


class Hub:
    """The listeners of one tree, and the plans that report to them."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._reporters: set[Reporter] = set()
        self._position = 0
        self._run = current_root_task()

    def check_run(self, path: str) -> None:
        """Refuse a call from outside of the run that the tree belongs to, before it changes anything."""
        try:
            if current_root_task() is self._run:
                return
        except RuntimeError:  # No run at all in this thread.
            pass
        raise NotInThisRun(path)

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

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)
        for reporter in self._reporters:
            reporter.reporting = True

    def remove(self, listener: Listener) -> None:
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
    """A bounded stream of events; when full, the oldest unread is dropped and the gap is told.

    Cancelled:
        No event is lost; whoever enters has not opened it.
    """

    def __init__(self, hub: Hub, path: str, capacity: int) -> None:
        self._hub, self._listener = hub, Listener(path, capacity)
        self._open = False

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        self._hub.add(self._listener)
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self._hub.remove(self._listener)
        self._listener.end()

    def __aiter__(self) -> Self:
        if not self._open:
            raise EventsNotOpen(self.path)
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event; ends when this generation of the supervisor, or the block, has ended.

        Raises:
            EventsNotOpen: Not inside of the block of ``async with``; from the beginning of ``async for`` as well.

        Cancelled:
            No event is lost.
        """
        await trio.lowlevel.checkpoint()
        listener = self._listener
        if not self._open and not listener.ended:
            raise EventsNotOpen(self.path)
        while (event := listener.take()) is None:
            if listener.ended:
                raise StopAsyncIteration
            listener.news = trio.Event()
            await listener.news.wait()
        return event

    def receive_nowait(self) -> Event:
        """Return the next event at once.

        Raises:
            trio.WouldBlock: There is none.
            EventsNotOpen: The block was never entered.
        """
        self._hub.check_run(self.path)
        if not self._open and not self._listener.ended:
            raise EventsNotOpen(self.path)
        event = self._listener.take()
        if event is None:
            raise trio.WouldBlock
        return event

    @property
    def path(self) -> str:
        """Of whom, and of all below whom, the events are."""
        return self._listener.path

    def statistics(self) -> EventsStatistics:
        """Return what came, what waits and what was dropped."""
        return self._listener.statistics()
