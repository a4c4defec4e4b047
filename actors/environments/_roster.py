"""Who has which id, and which generation comes next.

A generation never comes twice for the same id, also after the id was free for a while. The last generations of freed
ids are remembered up to a bound; beyond it the oldest is forgotten and every id unknown from then on starts above it.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from actors.environments._errors import TooManyEnvironments

T = TypeVar("T")


class Roster(Generic[T]):
    """The current holder of each id, in the order in which ids were first taken."""

    def __init__(self, *, most: int, remembered: int = 10_000) -> None:
        self._most, self._remembered = most, remembered
        self._held: dict[str, tuple[int, T]] = {}
        # The last generation of each freed id. No id is here and in `_held` at once.
        self._freed: dict[str, int] = {}
        self._floor = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return iter([(key, held) for key, (_, held) in self._held.items()])

    def get(self, environment_id: str) -> T | None:
        """Who has the id now."""
        held = self._held.get(environment_id)
        return None if held is None else held[1]

    def next_generation(self, environment_id: str) -> int:
        """Which generation takes the id next; asking changes nothing.

        Raises:
            TooManyEnvironments: The id is free and there is no room for another one.
        """
        if held := self._held.get(environment_id):
            return held[0] + 1
        if len(self._held) >= self._most:
            raise TooManyEnvironments(environment_id, self._most)
        return self._freed.get(environment_id, self._floor) + 1

    def take(self, environment_id: str, generation: int, holder: T) -> T | None:
        """Give the id to a new holder; the place in the order stays.

        Returns:
            Who had it until now.
        """
        assert generation == self.next_generation(environment_id), "a generation was skipped or came twice"
        before = self.get(environment_id)
        self._freed.pop(environment_id, None)
        self._held[environment_id] = (generation, holder)
        return before

    def free(self, environment_id: str) -> T | None:
        """Take the id from its holder.

        Returns:
            Who had it.
        """
        held = self._held.pop(environment_id, None)
        if held is None:
            return None
        self._freed[environment_id] = held[0]
        if len(self._freed) > self._remembered:
            oldest = next(iter(self._freed))
            self._floor = max(self._floor, self._freed.pop(oldest))
        return held[1]
