"""The actor of one environment: it carries out what its life decided, in order, and never decides."""

from actors import StateMachineActor
from actors.environments._body import Body
from actors.environments._lifecycle import Effect, Event


class EnvironmentActor(StateMachineActor[Event, Effect]):
    """Carry out the effects of one life; none of them waits."""

    def __init__(self, body: Body) -> None:
        self._body = body

    async def carry_out(self, effect: Effect) -> None:
        """Do one thing."""
        self._body.carry_out(effect)
