"""Actors that many tests hire."""

from typing import Any

import attrs
import trio

from actors import Actor, Question, Refusal


@attrs.frozen
class Add:
    number: int


@attrs.frozen
class Total(Question[int]):
    pass


@attrs.frozen
class Boom(Question[int]):
    error: BaseException = attrs.field(factory=lambda: ValueError("boom"))


@attrs.frozen
class Hold(Question[str]):
    """Keep the actor busy until the event is set; `begun` says that it is."""

    until: trio.Event = attrs.field(factory=trio.Event)
    begun: trio.Event = attrs.field(factory=trio.Event)


@attrs.frozen
class Decline(Question[int]):
    pass


class Declined(Refusal):
    pass


Understood = Add | Total | Boom | Hold | Decline


class Counter(Actor[Understood]):
    """Adds up, and does what it is told to go wrong with."""

    def __init__(self, start: int = 0, log: list[Any] | None = None) -> None:
        self.total = start
        self.log = [] if log is None else log

    async def handle(self, message: Understood) -> int | str | None:
        self.log.append(message)
        match message:
            case Add(number):
                self.total += number
                return None
            case Total():
                return self.total
            case Boom(error):
                raise error
            case Hold(until, begun):
                begun.set()
                await until.wait()
                return "held"
            case Decline():
                raise Declined("not today")


class Hooked(Actor[Understood]):
    """Tells a list what happens to it."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log
        log.append("made")

    async def started(self) -> None:
        self.log.append(("started", self.reference.generation))

    async def stopping(self, cause: Exception | None) -> None:
        self.log.append(("stopping", cause))

    async def down(self, notice: Any) -> None:
        self.log.append(notice)

    async def handle(self, message: Understood) -> None:
        match message:
            case Boom(error):
                raise error
            case Hold(until, begun):
                begun.set()
                await until.wait()
            case _:
                self.log.append(message)
