"""What can go wrong between an actor and those who talk to it.

Each error holds facts and writes its own sentence: what happened, to which actor and generation, why, what to do.
"""

import pickle
from collections.abc import Sequence
from inspect import iscoroutine
from typing import Any, Final, Self

from supervision import NotInThisRun as NotInRunOfTree

__all__ = [
    "ActorGone",
    "ActorsError",
    "AskTimedOut",
    "AsksFailed",
    "InvalidEffect",
    "InvalidOption",
    "LeftBehind",
    "MailboxDeadlock",
    "MailboxFull",
    "NotAQuestion",
    "NotAwaited",
    "NotInThisRun",
    "NotOnStage",
    "Refusal",
    "Undelivered",
    "WaitsForItself",
]


TEXT_CHARS_MAX: Final = 400
"""The longest text of a user's value in a sentence of ours; the value itself stays whole beside it."""


class ActorsError(Exception):
    """Be the root of all errors under `actors`. A copy or a pickle keeps sentence and facts; the cause stays behind.

    A fact that cannot be pickled, such as a message that holds a lock, is replaced by what it was.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Born again without `__init__`, which would be given the finished sentence.
        facts = {name: kept(fact) for name, fact in self.__dict__.items()}
        return type(self).__new__, (type(self),), {**facts, "args": self.args}

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        for name, fact in {**self.__dict__, "args": self.args}.items():
            setattr(twin, name, fact)
        return twin


def kept(fact: Any) -> Any:
    """Give what a pickle can hold of a fact: itself, or which kind of thing it was."""
    try:
        pickle.loads(pickle.dumps(fact))  # noqa: S301  # Our own bytes: many a value fails only when it is read.
    except Exception:  # It is the user's, and may raise anything.
        # Not its text, which may hold a secret; an exception's text was made to be read.
        return ActorsError(_text(fact)) if isinstance(fact, Exception) else f"<{type(fact).__qualname__}>"
    return fact


def _text(value: object) -> str:
    """The repr of a user's value: bounded, and never a failure of its own."""
    try:
        text = repr(value)
    except Exception:  # It is the user's, and may raise anything.
        return f"<{type(value).__qualname__}, whose repr raised>"
    return (
        text
        if len(text) <= TEXT_CHARS_MAX
        else f"{text[:TEXT_CHARS_MAX]} and {len(text) - TEXT_CHARS_MAX} more characters"
    )


class InvalidOption(ActorsError, ValueError):
    """Say which option was refused, and by which rule."""

    def __init__(self, field: str, value: object, rule: str) -> None:
        super().__init__(f"{field}={_text(value)} is refused: {rule}")
        self.field: str = field
        self.value: object = value
        self.rule: str = rule


class Undelivered(ActorsError):
    """Give back a message that no handler ever saw: it is safe to send it elsewhere."""

    def __init__(self, message: object, because: str) -> None:
        super().__init__(f"{type(message).__name__} was not delivered: {because}")
        self.message = message


class MailboxFull(Undelivered):
    """Say that a bounded mailbox had no room, and that its policy forbids to wait."""

    def __init__(self, message: object, actor: str, capacity: int, policy: str) -> None:
        super().__init__(
            message,
            f"the mailbox of {actor} holds {capacity} (its capacity) and {policy}; "
            "send less often, await tell(), or give it a larger Mailbox(capacity=...)",
        )
        self.actor: str = actor
        self.capacity: int = capacity


class MailboxDeadlock(Undelivered):
    """Say that waiting for room would close a ring of actors that wait for each other, for ever."""

    def __init__(self, message: object, ring: Sequence[str]) -> None:
        super().__init__(
            message,
            f"every mailbox in the ring {' -> '.join(ring)} is full and each actor would wait for the next; "
            "use tell_nowait() and handle MailboxFull, or WhenFull.FAIL on one of them",
        )
        self.ring: tuple[str, ...] = tuple(ring)


class ActorGone(ActorsError):
    """Say that the actor has ended for good, or ended while it worked on the message.

    The error of its end, if there was one, is the cause (`__cause__`).
    """

    def __init__(self, message: object, actor: str, generation: int, what: str) -> None:
        Exception.__init__(self, f"{actor} (generation {generation}) {what}")
        self.message: object = message
        self.actor: str = actor
        self.generation: int = generation


class LeftBehind(ActorGone, Undelivered):
    """Say that the actor is gone and never saw the message: it is safe to send it elsewhere."""

    def __init__(self, message: object, actor: str, generation: int, what: str) -> None:
        ActorGone.__init__(self, message, actor, generation, f"{what}; {type(message).__name__} was not delivered")


class AskTimedOut(ActorsError, TimeoutError):
    """Say that no answer came in time, and whether the actor had taken the question.

    A question that was not taken is withdrawn: it will never be handled. One that was taken may still be worked
    on; its answer is counted as late.
    """

    def __init__(self, message: object, actor: str, generation: int, timeout_s: float, *, taken: bool) -> None:
        where = "was being worked on" if taken else "was still waiting in the mailbox and has been withdrawn"
        super().__init__(
            f"{actor} (generation {generation}) did not answer {type(message).__name__} "
            f"within {timeout_s:g} s (ask's timeout_s); it {where}"
        )
        self.message: object = message
        self.actor: str = actor
        self.generation: int = generation
        self.timeout_s: float = timeout_s
        self.taken: bool = taken


class WaitsForItself(ActorsError):
    """Say that an actor would wait for something that only itself can do."""

    def __init__(self, actor: str, what: str, instead: str) -> None:
        super().__init__(f"{actor} {what} from its own handler, which it can only do after the handler ends; {instead}")
        self.actor = actor


class Refusal(ActorsError):
    """Answer a question with an error and live on: raise a subclass of it from `handle`.

    Any other exception out of `handle` ends the generation. A refusal of a message that was only told has no one
    to reach; it is counted in `statistics().refusals_unheard`.
    """


class MonitorNotOpen(ActorsError):
    """A down notice was waited for outside of the block that would have brought it."""

    def __init__(self, label: str) -> None:
        super().__init__(f"the monitor of {label} is not open, no notice can come: `async with monitor(...) as down`")
        self.label = label


class NotAQuestion(ActorsError, TypeError):
    """Something was asked that has no answer: it is not of a class made from `Question`. It was not sent."""

    def __init__(self, message: object) -> None:
        if isinstance(message, type):
            text = f"the class {message.__qualname__} was asked; make one: ask({message.__qualname__}(...))"
        else:
            name = type(message).__qualname__
            text = f"{name} is no Question; send it with tell(), or write `class {name}(Question[int])` with its answer"
        super().__init__(f"{text}. Nothing was sent")
        self.message: object = message


class NotAwaited(ActorsError, TypeError):
    """An actor's handler gave a coroutine as the answer, so what was to find the answer never ran.

    It ends the generation, as does any other error out of `handle`.
    """

    def __init__(self, message: object, handler: str, coroutine: str) -> None:
        super().__init__(
            f"{handler} answered {type(message).__name__} with the coroutine {coroutine}(...), which never ran: "
            f"write `return await {coroutine}(...)`"
        )
        self.message: object = message
        self.handler: str = handler


class NotInThisRun(ActorsError, NotInRunOfTree):
    """An actor was used from outside of the run of trio that it belongs to. Nothing was changed."""


class NotOnStage(ActorsError):
    """Say that a reference or an actor was used where there is no running actor behind it."""


class InvalidEffect(ActorsError, TypeError):
    """Say that a machine's `handle` gave back something other than `(machine, effects)`."""

    def __init__(self, culprit: object, event: object) -> None:
        instead = "write `def handle`, which awaits nothing" if iscoroutine(culprit) else "effects being a sequence"
        super().__init__(
            f"handle({type(event).__name__}) gave {_text(culprit)}; expected (machine, effects), {instead}"
        )
        if iscoroutine(culprit):
            culprit.close()  # It never runs, and Python need not warn of that as well.
        self.culprit: object = culprit
        self.event: object = event


class AsksFailed(ActorsError, ExceptionGroup[Exception]):
    """Hold what `ask_all` got when some questions failed: the errors, and every answer that came."""

    outcomes: tuple[object, ...]
    """One a question, in order: its answer, or its exception."""

    def __new__(cls, outcomes: Sequence[object], errors: Sequence[Exception]) -> Self:
        """Make the group from the errors among the outcomes."""
        group = super().__new__(cls, f"{len(errors)} of {len(outcomes)} questions failed", errors)
        group.outcomes = tuple(outcomes)
        return group

    def __init__(self, outcomes: Sequence[object], errors: Sequence[Exception]) -> None:
        """Hold the outcomes beside the errors."""

    def __reduce__(self) -> tuple[Any, ...]:
        outcomes = tuple(kept(outcome) for outcome in self.outcomes)
        errors = [kept(error) for error in self.exceptions]
        return type(self).__new__, (type(self), outcomes, errors), self.__dict__ | {"outcomes": outcomes}

    def __copy__(self) -> Self:
        twin = type(self)(self.outcomes, list(self.exceptions))
        twin.__dict__.update(self.__dict__)
        return twin

    def derive(self, excs: Sequence[Exception], /) -> "AsksFailed":  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # Only errors come out of asks.
        """Split into a part that holds some of the errors and still all outcomes."""
        return AsksFailed(self.outcomes, excs)
