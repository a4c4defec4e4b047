"""The actor of one environment: it carries out what its life decided, in order, and never decides."""

from actors import StateMachineActor
from actors.environments._cell import Cell
from actors.environments._lifecycle import Effect, Event


class EnvironmentActor(StateMachineActor[Event, Effect]):
    """Carry out the effects of one life; none of them waits."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    async def carry_out(self, effect: Effect) -> None:
        """Do one thing."""
        self._cell.carry_out(effect)
