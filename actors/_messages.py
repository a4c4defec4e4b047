"""What travels besides the user's own messages: questions that know their answer's type, and notices of an end."""

import enum
from typing import Generic, TypeVar

import attrs

__all__ = ["Down", "Ending", "Question", "Terminal"]

R_co = TypeVar("R_co", covariant=True)


class Question(Generic[R_co]):
    """Be a message that is answered with an `R`: `class Total(Question[int])`, made with `@attrs.frozen`.

    What `handle` returns is the answer. None is one like any other, since what `R` allows is for the type checker
    to say: a `handle` that forgets its `return` answers None.
    """

    __slots__ = ()


class Ending(enum.Enum):
    """Say how an actor came to its end.

    Attributes:
        STOPPED: It was asked to stop, or returned by itself.
        CRASHED: An exception ended it, and no further generation follows.
        KILLED: It was cancelled: it did not stop in time, or everything around it was cancelled.
    """

    STOPPED = "stopped"
    CRASHED = "crashed"
    KILLED = "killed"


@attrs.frozen(kw_only=True)
class Down:
    """Tell that an actor is gone for good. Each watcher gets exactly one.

    Attributes:
        name: The actor's name.
        generation: Its last generation; 0 if none was ever up.
        ending: How it ended.
        cause: The exception that ended it.
        undelivered: How many waiting user messages no handler ever saw.
    """

    name: str
    generation: int
    ending: Ending
    cause: BaseException | None
    undelivered: int


class Terminal:
    """A user message on its way through the control lane."""

    __slots__ = ("message",)

    def __init__(self, message: object) -> None:
        self.message = message
