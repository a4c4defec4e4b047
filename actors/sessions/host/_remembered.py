"""Which ids were used, and what was asked of an id before it was seen; bounded, the oldest forgotten first."""

from typing import Final, Generic, TypeVar

from actors.sessions.grpc import Abort, StatusCode

REMEMBERED_MAX: Final = 4096

Active = TypeVar("Active")


class Remembered:
    """A set of the latest ids."""

    def __init__(self, limit: int = REMEMBERED_MAX) -> None:
        self._limit = limit
        self._ids: dict[str, None] = {}

    def __contains__(self, one: str) -> bool:
        return one in self._ids

    def add(self, one: str) -> None:
        """Remember one more."""
        self._ids[one] = None
        if len(self._ids) > self._limit:
            del self._ids[next(iter(self._ids))]

    def take(self, one: str) -> bool:
        """Forget one, and say whether it was there."""
        return self._ids.pop(one, self) is None


class Observations(Generic[Active]):
    """The executions or the waits of a session by the id that its client chose."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.active: dict[str, Active] = {}
        """Those that wait for an event now."""
        self._used = Remembered()
        self._yielded, self._cancelled = Remembered(), Remembered()

    def reserve(self, one: str) -> None:
        """Use up an id.

        Raises:
            Abort: It was used before.
        """
        if one in self._used:
            raise Abort(StatusCode.ALREADY_EXISTS, f"code-mode {self._kind} ID `{one}` was reused")
        self._used.add(one)

    def ask_yield(self, one: str) -> Active | None:
        """Return the observation to interrupt; one that was never seen will be when it comes."""
        if (active := self.active.get(one)) is None and one not in self._used:
            self._yielded.add(one)
        return active

    def ask_cancel(self, one: str) -> Active | None:
        """Return the observation to cancel; one that was never seen will be when it comes."""
        if (active := self.active.get(one)) is None and one not in self._used:
            self._cancelled.add(one)
        return active

    def was_yielded(self, one: str) -> bool:
        """Say, once, whether an interruption came before the id."""
        return self._yielded.take(one)

    def was_cancelled(self, one: str) -> bool:
        """Say, once, whether a cancellation came before the id."""
        return self._cancelled.take(one)
