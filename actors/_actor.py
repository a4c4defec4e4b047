"""What an author writes: one async method for messages, and two hooks for the beginning and the end of a generation."""

import inspect
from types import FunctionType
from typing import Any, ClassVar, Final, Generic, TypeVar

from actors._errors import InvalidOption, NotOnStage
from actors._messages import Down
from actors._reference import Address, Reference, seat_behind
from actors._seat import Seat

__all__ = ["Actor", "Performer", "check_performer", "take_seat"]

M = TypeVar("M")


class Performer:
    """The part that all kinds of actors share; made anew for each generation."""

    _seat: Seat | None = None
    # The method that an author has to write.
    _part: ClassVar[str] = ""
    # The class itself, once it was looked at; a subclass finds that of its base here.
    _sound: ClassVar[type[Any] | None] = None

    async def started(self) -> None:
        """Make ready, awaited once before the first message; an error here is a failed start.

        Cancelled:
            The start took longer than `start_timeout_s`, or the actor is stopped before it was up.
        """

    async def stopping(self, cause: Exception | None) -> None:
        """Clean up, awaited once after the last message of this generation.

        Not awaited when the actor is killed: then cancellation unwinds what it was doing. Askers of a crashed
        actor know already when this begins. What it raises after a crash comes out in a group with the crash.

        Args:
            cause: What ended the generation; None when it was asked to stop.

        Cancelled:
            The supervisor's patience (`shutdown_s`) has ended.
        """

    async def down(self, notice: Down) -> None:
        """Learn that an actor given to `watch` is gone. Comes through the control lane, ahead of user mail.

        Cancelled:
            The actor is being killed.
        """

    def watch(self, other: Address) -> None:
        """Have `down` awaited exactly once when `other` is gone for good; also if it is gone already.

        The wish outlives a crash of this actor. To watch again what is watched already changes nothing.

        Raises:
            InvalidOption: It is not a reference.
        """
        if not isinstance(other, Address):  # pyright: ignore[reportUnnecessaryIsInstance]  # Types can be evaded.
            raise InvalidOption("other", other, "it must be a reference to an actor, which spawn() gives")
        seat_of(self).watch_for(seat_behind(other))


# How to start what would have been right elsewhere, by the method that its author wrote.
_STARTED_BY: Final = {
    "handle": "; this one handles messages, and is started by spawn()",
    "carry_out": "; this one carries out what a machine orders, and is started by spawn_machine()",
}


class Actor(Performer, Generic[M]):
    """Handle messages of type `M`, one at a time, in the order they came.

    Write `handle`. What it returns answers an ask. What it raises goes to the asker, if there is one, and ends this
    generation, so that the supervisor decides; except `Refusal`, which only answers.
    """

    _part = "handle"

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


def check_performer(made: type[Any], base: type[Performer]) -> None:
    """Refuse a class of actors that could not handle its first message.

    Raises:
        InvalidOption: It is not a `base`, does not write the method that it is there for, or one of its methods that
            are awaited is a plain function.
    """
    if getattr(made, "_sound", None) is made and issubclass(made, base):
        return
    role = next((parent for parent in made.__mro__ if "_part" in vars(parent)), Performer)
    part: str = vars(role)["_part"]
    if not issubclass(made, base) or role is Performer:
        kinds = "Actor or StateMachineActor" if base is Performer else base.__name__
        rule = f"it must be a subclass of {kinds}, or a function that makes one"
        raise InvalidOption("make", made, rule + _STARTED_BY.get(part, ""))
    if getattr(made, part) is vars(role)[part]:
        raise InvalidOption("make", made, f"its class must write `async def {part}(self, ...)`")
    for method in (part, "started", "stopping", "down"):
        written = getattr(made, method)
        if isinstance(written, FunctionType) and is_plain(written):
            raise InvalidOption("make", made, f"its method `{method}` must be `async def`, since it is awaited")
    made._sound = made  # pyright: ignore[reportPrivateUsage]  # As above.


def is_plain(function: FunctionType) -> bool:
    """Say whether a call surely gives nothing that can be awaited. A wrapper around another function may."""
    awaitable = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE
    return not function.__code__.co_flags & awaitable and not hasattr(function, "__wrapped__")


def take_seat(performer: Performer, seat: Seat) -> None:
    """Put a new performer on the seat."""
    performer._seat = seat  # pyright: ignore[reportPrivateUsage]  # As above.
