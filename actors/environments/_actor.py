"""The actor of one environment: it carries out what its life decided, in order, and never decides.

To begin an attempt is to hold the link that it leads to, for as long as that lives. What ends one is never carried out
here, since the actor is busy then: the body does it in the same breath (`Body.close`, `Body.turn_to`).
"""

from actors import StateMachineActor
from actors.environments._body import Body
from actors.environments._lifecycle import BeginAttempt, Effect, EndActor, EndLink, Event
from actors.environments._link import hold_link


class EnvironmentActor(StateMachineActor[Event, Effect]):
    """Carry out the effects of one life."""

    def __init__(self, body: Body) -> None:
        self._body = body

    async def carry_out(self, effect: Effect) -> None:
        """Do one thing.

        Cancelled:
            The life knows that the attempt has failed or the link has ended.
        """
        match effect:
            case BeginAttempt(attempt, ticket):
                await hold_link(self._body, attempt, ticket)
            case EndLink() | EndActor():
                self._body.end(effect)
