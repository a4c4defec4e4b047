"""Decide when a process's exit and its close may be told.

Two facts, never one. *Exited*: the leader is dead and everything it wrote before it died was told before. *Closed*:
nothing more will come. A pipe found empty after the death (or read for its whole capacity since) holds nothing that
was written before it, so neither fact needs a timer to be in order; only a descendant that keeps a pipe open does,
and then the drain limit cuts the pipe off.

Rules not in the code below: output is told by whoever reads it, before the event about that reading is handed in
here.
"""

from collections.abc import Iterable
from typing import Literal

import attrs

from actors.protocol import Stream

__all__ = ["CutOff", "Ended", "Ending", "EndingOutOfTurn", "Exited", "FoundEmpty", "TellClose", "TellExit"]


@attrs.frozen
class Ended:
    """A pipe came to its end: nobody can write to it any more."""

    stream: Stream
    """Which one."""


@attrs.frozen
class FoundEmpty:
    """A pipe has nothing at the moment, or its whole capacity was read since the exit."""

    stream: Stream
    """Which one."""


@attrs.frozen
class CutOff:
    """A pipe was given up at the drain limit, while somebody still held it."""

    stream: Stream
    """Which one."""


@attrs.frozen
class Exited:
    """The leader is dead and reaped."""

    code: int
    """128 + n after a death by signal n."""


@attrs.frozen
class TellExit:
    """The exit may be told now."""

    code: int
    """As it was reported."""


@attrs.frozen
class TellClose:
    """The close may be told now; it is the last thing."""

    drain_limited: bool
    """Whether at least one pipe was given up and not read to its end."""


Event = Ended | FoundEmpty | CutOff | Exited
Effect = TellExit | TellClose


class EndingOutOfTurn(ValueError):
    """An event has no place here; nothing was changed."""

    def __init__(self, event: Event, state: "Ending") -> None:
        super().__init__(
            f"{event!r} cannot follow: open are {sorted(s.value for s in state.open)}, exit code {state.code}"
        )
        self.event = event


@attrs.frozen(kw_only=True)
class Ending:
    """How far the end of one process has come."""

    open: frozenset[Stream]
    """Pipes that may still bring something."""
    owing: frozenset[Stream] = frozenset()
    """Open pipes that may still hold what was written before the exit. Empty before the exit."""
    code: int | None = None
    """The exit code, once known."""
    cut: bool = False
    """Whether a pipe was cut off."""

    @classmethod
    def of(cls, streams: Iterable[Stream]) -> "Ending":
        """Begin with these pipes open."""
        return cls(open=frozenset(streams))

    @property
    def exit_told(self) -> bool:
        """Whether the exit has been told."""
        return self.code is not None and not self.owing

    @property
    def phase(self) -> Literal["running", "draining", "exited", "closed"]:
        """Say where it is."""
        if self.code is None:
            return "running"
        if self.owing:
            return "draining"
        return "exited" if self.open else "closed"

    def handle(self, event: Event) -> tuple["Ending", tuple[Effect, ...]]:
        """Take one event; give the next state and what may be told, in order.

        Raises:
            EndingOutOfTurn: About a pipe that is not open, a cut before the exit, or a second exit.
        """
        self._refuse_out_of_turn(event)
        after = self._after(event)
        return after, after._news_since(self)

    def _after(self, event: Event) -> "Ending":
        match event:
            case Exited(code):
                return attrs.evolve(self, code=code, owing=self.open)
            case FoundEmpty(stream):
                return attrs.evolve(self, owing=self.owing - {stream})
            case Ended(stream):
                return attrs.evolve(self, open=self.open - {stream}, owing=self.owing - {stream})
            case CutOff(stream):
                return attrs.evolve(self, open=self.open - {stream}, owing=self.owing - {stream}, cut=True)

    def _refuse_out_of_turn(self, event: Event) -> None:
        if isinstance(event, Exited):
            refused = self.code is not None
        else:
            too_early = isinstance(event, CutOff) and self.code is None
            refused = event.stream not in self.open or too_early
        if refused:
            raise EndingOutOfTurn(event, self)

    def _news_since(self, before: "Ending") -> tuple[Effect, ...]:
        news: list[Effect] = []
        if self.code is not None and self.exit_told and not before.exit_told:
            news.append(TellExit(self.code))
        if self.phase == "closed" and before.phase != "closed":
            news.append(TellClose(self.cut))
        return tuple(news)
