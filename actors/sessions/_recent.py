"""Remember the newest ids of a kind, so many and no more."""

from typing import Final

REMEMBERED_MAX: Final = 4_096


class RecentIds:
    """A set that forgets its oldest member when it is full."""

    def __init__(self, capacity: int = REMEMBERED_MAX) -> None:
        self._capacity = capacity
        self._ids: dict[str, None] = {}

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, identifier: str) -> None:
        """Remember an id; one that is remembered keeps its age."""
        self._ids.setdefault(identifier)
        if len(self._ids) > self._capacity:
            del self._ids[next(iter(self._ids))]

    def discard(self, identifier: str) -> None:
        """Forget an id, if it is remembered."""
        self._ids.pop(identifier, None)
