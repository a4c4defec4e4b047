"""What a pure state machine may give back besides the author's own effects, and one step of it. Pure.

A machine is a value: `handle(event)` gives the next value and the effects; an event that has no place raises.
Orders are effects that the seat itself obeys: they never reach `carry_out`.
"""

import enum
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import attrs

from actors._deadlines import is_time
from actors._errors import InvalidEffect, InvalidOption

__all__ = [
    "CancelTimer",
    "ChangeTimer",
    "Machine",
    "NextEvent",
    "Order",
    "Postpone",
    "Step",
    "StopActor",
    "Timer",
    "Until",
    "step",
]

E_contra = TypeVar("E_contra", contravariant=True)
F_co = TypeVar("F_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)

# An event that inserts an event that inserts an event … is a loop in the machine, not work.
INSERTED_MAX: Final = 1_000


class Until(enum.Enum):
    """Say what ends a timer besides its time, its cancellation and one of the same name.

    Attributes:
        CANCELLED: Nothing else.
        STATE_CHANGES: A change of the machine's state.
        NEXT_EVENT: Any event, also an inserted or redelivered one.
    """

    CANCELLED = "cancelled"
    STATE_CHANGES = "state_changes"
    NEXT_EVENT = "next_event"


@attrs.frozen
class Postpone:
    """Order: keep this event, and deliver it again right after the state changes, in the order of arrival."""


@attrs.frozen
class NextEvent:
    """Order: handle this event next, before any other; part of the same step.

    Attributes:
        event: What the machine sends itself.
    """

    event: Any


@attrs.frozen(kw_only=True)
class Timer:
    """Order: deliver an event at a time, unless something ends the timer before. One of the same name is replaced.

    Attributes:
        name: Under which it is replaced, changed and cancelled.
        event: What is delivered. It should hold the time it stands for, since the machine has no clock.
        after_s: Seconds from the step; 0 is as soon as the run turns; infinity cancels.
        at_s: Or a point on trio's clock; one that has passed is as soon as the run turns.
        until: What else ends it.
    """

    name: str
    event: Any
    after_s: float | None = None
    at_s: float | None = None
    until: Until = Until.CANCELLED

    def __attrs_post_init__(self) -> None:
        if (self.after_s is None) == (self.at_s is None):
            raise InvalidOption("after_s", self.after_s, "a timer has either after_s or at_s")
        if not is_time(self.at_s if self.after_s is None else self.after_s) or (self.after_s or 0) < 0:
            raise InvalidOption("after_s", self.after_s, "it must be 0 or more seconds")


@attrs.frozen
class CancelTimer:
    """Order: end a timer, if it runs.

    Attributes:
        name: Its name.
    """

    name: str


@attrs.frozen
class ChangeTimer:
    """Order: let a running timer deliver another event, at the same time; nothing if it does not run.

    Attributes:
        name: Its name.
        event: What it delivers instead.
    """

    name: str
    event: Any


@attrs.frozen
class StopActor:
    """Order: stop the actor for good, once the effects before this one are carried out."""


Order = Postpone | NextEvent | Timer | CancelTimer | ChangeTimer | StopActor
"""An effect that the seat obeys itself."""

TimerOrder = Timer | CancelTimer | ChangeTimer


class Machine(Protocol[E_contra, F_co, S_co]):
    """A value with one method. If it has an attribute `state`, a change of that is a change of state; else any is."""

    def handle(self, event: E_contra, /) -> tuple[S_co, Sequence[F_co | Order]]:
        """Give the next value and the effects, or raise if the event has no place."""
        ...


class EventSeen(enum.Enum):
    """Marks in the list of timer orders that an event was handled, and whether the state changed with it."""

    SAME_STATE = 0
    NEW_STATE = 1


class Step:
    """What one event led to, with those it inserted."""

    __slots__ = ("effects", "machine", "new_state", "postponed", "timers")

    def __init__(self, machine: Any) -> None:
        # The next value.
        self.machine: Any = machine
        # What the actor must carry out, in order; may hold `StopActor`.
        self.effects: list[Any] = []
        # What happens to timers, in order.
        self.timers: list[TimerOrder | EventSeen] = []
        # Events to keep for another state.
        self.postponed: list[Any] = []
        # Whether the state changed.
        self.new_state: bool = False


def step(machine: Any, event: Any, given: Any) -> Step:
    """Sort what a machine gave for one event, and let it handle the events it inserts; raise what it raises.

    Args:
        machine: The value before the event.
        event: What it handled.
        given: What its `handle` gave back, whatever that is.
    """
    done = Step(machine)
    waiting = sort(done, event, given)
    for _ in range(INSERTED_MAX):
        if not waiting:
            return done
        inserted = waiting.pop(0)
        waiting[:0] = sort(done, inserted, done.machine.handle(inserted))
    raise InvalidEffect(f"a chain of more than {INSERTED_MAX} inserted events", event)


def sort(done: Step, event: Any, given: Any) -> list[Any]:
    """Add to a step what the machine gave for one event, and give the events it inserts."""
    machine, effects = checked(given, event)
    changed = has_new_state(done.machine, machine)
    done.machine = machine
    done.new_state |= changed
    done.timers.append(EventSeen.NEW_STATE if changed else EventSeen.SAME_STATE)
    inserted: list[Any] = []
    for effect in effects:
        match effect:
            case NextEvent():
                inserted.append(effect.event)
            case Postpone():
                done.postponed.append(event)
            case Timer() | CancelTimer() | ChangeTimer():
                done.timers.append(effect)
            case _:
                done.effects.append(effect)
    return inserted


def checked(given: Any, event: object) -> tuple[Any, Sequence[Any]]:
    """Refuse what is not `(machine, effects)`."""
    match given:
        case (machine, [*_] as effects) if type(given) is tuple:
            if not hasattr(machine, "handle"):
                raise InvalidEffect(machine, event)
            return machine, effects
        case _:
            raise InvalidEffect(given, event)


def has_new_state(old: Any, new: Any) -> bool:
    """Say whether the state changed: the attribute `state` if the machine has one, else the whole value."""
    if old is new:
        return False
    return bool(getattr(old, "state", old) != getattr(new, "state", new))
