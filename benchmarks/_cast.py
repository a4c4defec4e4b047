"""The actor that the benchmarks measure: a typed message, one trivial change of state."""

import attrs

from actors import Actor, Question


@attrs.frozen
class Add:
    number: int


@attrs.frozen
class Total(Question[int]):
    pass


@attrs.frozen
class Boom:
    pass


class Counter(Actor[Add | Total | Boom]):
    def __init__(self) -> None:
        self.total = 0

    async def handle(self, message: Add | Total | Boom) -> int:
        if type(message) is Add:
            self.total += message.number
        elif type(message) is Boom:
            raise RuntimeError("boom")
        return self.total
