"""Watch the latest value of something: no queue, no history, only what is true now and that it has changed."""

from typing import Generic, Self, TypeVar

import attrs
import trio

from actors import ActorsError
from actors.environments._given import Handle

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Change(Generic[T]):
    """One value of what is watched, and how it came about.

    Attributes:
        value: What is true from then on.
        reason: Why it changed.
        generation: Which generation of the environment.
        position: The how-manieth change; a gap means that values in between were overtaken.
    """

    value: T
    reason: str
    generation: int
    position: int


class WatchSource(Generic[T]):
    """The one end that says what is true. It keeps the latest change and nothing of those who watch."""

    __slots__ = ("_ended", "_latest", "_lot")

    def __init__(self, first: Change[T]) -> None:
        self._latest = first
        self._ended: ActorsError | None = None
        self._lot = trio.lowlevel.ParkingLot()

    @property
    def latest(self) -> Change[T]:
        """What is true now."""
        return self._latest

    @property
    def ended(self) -> ActorsError | None:
        """Why there will be no further change."""
        return self._ended

    def show(self, change: Change[T]) -> None:
        """Say what is true from now on."""
        self._latest = change
        self._lot.unpark_all()

    def end(self, why: ActorsError) -> None:
        """Say that there will be no further change."""
        self._ended = why
        self._lot.unpark_all()

    async def wait(self) -> None:
        """Park until `show` or `end` is called.

        Cancelled:
            Nothing is left behind.
        """
        await self._lot.park()


class Watch(Handle, Generic[T]):
    """One watcher's view: what is true now, and whether this watcher has seen it.

    Cancelled:
        Nothing counts as seen.
    """

    __slots__ = ("_seen", "_source")

    def __init__(self, source: WatchSource[T]) -> None:
        self._source = source
        self._seen = source.latest.position

    def __repr__(self) -> str:
        latest = self._source.latest
        return f"<Watch {latest.value!r} at position {latest.position}, seen {self._seen}>"

    @property
    def current(self) -> T:
        """What is true now; looking does not count as having seen it."""
        return self._source.latest.value

    @property
    def latest(self) -> Change[T]:
        """The change that led to what is true now."""
        return self._source.latest

    def has_changed(self) -> bool:
        """Whether there is a change this watcher has not been given by `changed` or by iterating."""
        return self._source.latest.position != self._seen

    async def changed(self) -> Change[T]:
        """Wait for a change that this watcher has not seen, and give the latest.

        Raises:
            EnvironmentClosed: The environment ended, so there will be none.

        Cancelled:
            Nothing counts as seen.
        """
        await trio.lowlevel.checkpoint()
        while not self.has_changed():
            if self._source.ended is not None:
                raise self._source.ended.with_traceback(None)
            await self._source.wait()
        latest = self._source.latest
        self._seen = latest.position
        return latest

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change[T]:
        """The next change; the iteration ends with the environment."""
        try:
            return await self.changed()
        except ActorsError:
            raise StopAsyncIteration from None
