"""What an author writes: one async method for messages, and two hooks for the beginning and the end of a generation."""

from typing import Any, Generic, TypeVar

from actors._errors import NotOnStage
from actors._messages import Down
from actors._reference import Address, Reference, seat_behind
from actors._seat import Seat

__all__ = ["Actor", "Performer", "take_seat"]

M = TypeVar("M")


class Performer:
    """The part that all kinds of actors share; made anew for each generation."""

    _seat: Seat | None = None

    async def started(self) -> None:
        """Make ready, awaited once before the first message; an error here is a failed start.

        Cancelled:
            The start took longer than `start_timeout_s`, or the actor is stopped before it was up.
        """

    async def stopping(self, cause: Exception | None) -> None:
        """Clean up, awaited once after the last message of this generation.

        Not awaited when the actor is killed: then cancellation unwinds what it was doing. Askers of a crashed
        actor know already when this begins.

        Args:
            cause: What ended the generation; None when it was asked to stop.

        Cancelled:
            The supervisor's patience (`shutdown_s`) has ended.
        """

    async def down(self, notice: Down) -> None:
        """Learn that an actor given to `watch` is gone. Comes through the control lane, ahead of user mail."""

    def watch(self, other: Address) -> None:
        """Have `down` awaited exactly once when `other` is gone for good; also if it is gone already.

        The wish outlives a crash of this actor. To watch again what is watched already changes nothing.
        """
        seat_of(self).watch_for(seat_behind(other))


class Actor(Performer, Generic[M]):
    """Handle messages of type `M`, one at a time, in the order they came.

    Write `handle`. What it returns answers an ask. What it raises goes to the asker, if there is one, and ends this
    generation, so that the supervisor decides; except `Refusal`, which only answers.
    """

    @property
    def reference(self) -> Reference[M]:
        """The reference to this actor; valid across its restarts. Not yet there in `__init__`."""
        return Reference(seat_of(self))

    async def handle(self, message: M) -> Any:
        """Handle one message, and return the answer if it is a question.

        Cancelled:
            The actor is being killed; its asker gets `ActorGone`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to handle {message!r}")


def seat_of(performer: Performer) -> Seat:
    """Give the seat of a performer that is on stage."""
    seat = performer._seat  # pyright: ignore[reportPrivateUsage]  # Authors should not see it; this module may.
    if seat is None:
        raise NotOnStage(
            f"{type(performer).__name__} was not spawned, or is still in __init__; its reference is there from "
            "started() on"
        )
    return seat


def take_seat(performer: Performer, seat: Seat) -> None:
    """Put a new performer on the seat."""
    performer._seat = seat  # pyright: ignore[reportPrivateUsage]  # As above.
