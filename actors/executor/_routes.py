"""Which way a path leads through roots and links, one name at a time. Pure: knows names, touches nothing.

Whoever walks holds a folder open and asks for the next name. A route never leads out of the roots: a path or link that
leaves them and does not come back into one raises `LeftRoots`, and nothing outside is ever named.
"""

from collections import deque
from collections.abc import Iterable, Sequence

import attrs

__all__ = ["LeftRoots", "Root", "Route", "TooManyTurns", "names_of"]

LINKS_MAX = 40
# Each step up begins again at the root, so that only one folder is held open: their number is bounded.
UPS_MAX = 256


class LeftRoots(Exception):
    """A path, or a link on it, leads out of the roots."""


class TooManyTurns(Exception):
    """Links lead in a circle, or as good as."""


@attrs.frozen
class Root:
    """A folder below which everything is open to clients."""

    path: tuple[str, ...]
    """How it was named."""
    real: tuple[str, ...]
    """Where it really is, without links."""


def names_of(path: str) -> tuple[str, ...]:
    """Take a path apart; empty names and single dots mean nothing."""
    return tuple(name for name in path.split("/") if name not in {"", "."})


class Route:
    """Where a walk stands, and what is left to go."""

    def __init__(self, roots: Sequence[Root], path: str) -> None:
        self._roots = roots
        self._todo: deque[str] = deque(names_of(path))
        self._links = self._ups = 0
        self.root = 0
        """The root it is in."""
        self.done: list[str] = []
        """Names below that root, all of them folders that were entered."""
        self.back = False
        """The walker has to begin again at the root."""
        self._enter(())

    @property
    def is_last(self) -> bool:
        """Whether the name that was taken last is the end of the path."""
        return not self._todo

    @property
    def where(self) -> tuple[str, ...]:
        """The place without links."""
        return (*self._roots[self.root].real, *self.done)

    def take(self) -> str | None:
        """Give the next name to look at; None when it ends in the folder that was entered last.

        Raises:
            LeftRoots: It goes up and out.
            TooManyTurns: It goes up more often than anybody needs.
        """
        while self._todo:
            name = self._todo.popleft()
            if name != "..":
                return name
            self._up()
            if self.back:
                return ""
        return None

    def entered(self, name: str) -> None:
        """The name is a folder, and the walker is in it."""
        self.done.append(name)

    def followed(self, target: str) -> None:
        """The name is a link.

        Raises:
            LeftRoots: It leads out.
            TooManyTurns: It is one link too many.
        """
        self._links += 1
        if self._links > LINKS_MAX:
            raise TooManyTurns
        self._put_back(names_of(target))
        if target.startswith("/"):
            self._enter(())

    def _put_back(self, names: Iterable[str]) -> None:
        self._todo.extendleft(reversed(tuple(names)))

    def _up(self) -> None:
        self._ups += 1
        if self._ups > UPS_MAX:
            raise TooManyTurns
        if not self.done:
            self._enter(self._roots[self.root].real[:-1])
            return
        self._put_back(self.done[:-1])
        self.done.clear()
        self.back = True

    def _enter(self, start: tuple[str, ...]) -> None:
        """Go by the letter, touching nothing, from a place outside to the first root on the way."""
        here = list(start)
        while True:
            for number, root in enumerate(self._roots):
                if tuple(here) in {root.path, root.real}:
                    self.root, self.back = number, True
                    self.done.clear()
                    return
            if not self._todo:
                raise LeftRoots
            name = self._todo.popleft()
            if name != "..":
                here.append(name)
            elif here:
                here.pop()
