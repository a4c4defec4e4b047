"""The seat of a state-machine actor: the machine's present value, what is postponed, which timers run.

All of it outlives a crash of the actor that carries out the effects. A step is one breath: it happens whole or not at
all.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import trio

from actors._errors import MailboxFull
from actors._machine import (
    CancelTimer,
    ChangeTimer,
    EventSeen,
    NextEvent,
    Postpone,
    Step,
    Timer,
    TimerOrder,
    Until,
    step,
)
from actors._mailbox import Mailbox
from actors._queue import EMPTY
from actors._seat import Seat, not_made
from supervision import Restart

__all__ = ["Crash", "MachineSeat"]

# What the seat obeys before an effect has its turn.
ORDERS: Final = (Postpone, NextEvent, Timer, CancelTimer, ChangeTimer)


class Crash:
    """A control entry: an error that has no sender to go to ends the generation."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class Running:
    """A running timer, as the sweeper sees it."""

    __slots__ = ("deadline_s", "event", "name", "seat", "task", "until")

    def __init__(self, seat: "MachineSeat", order: Timer) -> None:
        self.seat, self.name, self.event, self.until = seat, order.name, order.event, order.until
        self.deadline_s = 0.0
        # Set as long as it runs, as in every wait of the sweeper; here nobody is parked.
        self.task: object | None = self

    def expire(self) -> None:
        """Deliver the event: the time has come."""
        self.task = None
        self.seat.timers.pop(self.name, None)
        self.seat.deliver_unasked(self.event)


class MachineSeat(Seat):
    """Hold a machine. The inbox holds effects that wait to be carried out."""

    __slots__ = ("machine", "postponed", "special", "timers")

    def __init__(
        self,
        name: str,
        mailbox: Mailbox,
        restart: Restart,
        machine: Any,
        make: Callable[..., Any] = not_made,
        args: Sequence[Any] = (),
    ) -> None:
        super().__init__(name, mailbox, restart, make, args)
        self.machine: Any = machine
        self.postponed: list[Any] = []
        self.timers: dict[str, Running] = {}
        # True while an event may do more than step: something is postponed, or a timer runs.
        self.special: bool = False

    def deliver(self, event: Any) -> None:
        """Step the machine, whatever it orders; raise and change nothing if the event has no place."""
        self.sweeper.check_run(self)
        self.check_open(event)
        self.take(event, self.machine.handle(event))

    def take_plain(self, given: Any) -> bool:
        """Do as `take` where effects are all there is: no order, nothing postponed, no timer, and there is room.

        Returns:
            Whether it was done.
        """
        if type(given) is not tuple or len(given) != 2 or type(given[1]) is not tuple:  # pyright: ignore[reportUnknownArgumentType]  # Looked at here.
            return False
        machine, effects = cast("tuple[Any, tuple[Any, ...]]", given)
        if len(self.inbox) + len(effects) > self.capacity or not hasattr(machine, "handle"):
            return False
        for effect in effects:
            if isinstance(effect, ORDERS):
                return False
        self.machine = machine
        self.queue_effects(effects)
        return True

    def take(self, event: Any, given: Any) -> None:
        """Make true what the machine gave for an event."""
        self.commit(step(self.machine, event, given), event)

    def deliver_unasked(self, event: Any) -> None:
        """Step the machine for an event without a sender: what it raises ends the generation."""
        if self.closed:
            return
        try:
            self.take(event, self.machine.handle(event))
        except Exception as error:  # A timed event has no sender: its error ends the generation.
            self.put_control(Crash(error))
            self.wake()

    def commit(self, done: Step, event: Any) -> None:
        """Make a step true: machine, effects, timers, and what was postponed until now."""
        if len(self.inbox) + len(done.effects) > self.capacity or len(self.postponed) >= self.capacity:
            self.counting().refused += 1
            raise self.no_room(event)
        self.machine = done.machine
        if done.effects:
            self.queue_effects(done.effects)
        for order in done.timers:
            self.obey(order)
        again, self.postponed = (self.postponed, []) if done.new_state else ([], self.postponed)
        self.postponed += done.postponed
        self.special = bool(self.postponed or self.timers)
        if again:
            self.deliver_again(again)

    def deliver_again(self, waiting: list[Any]) -> None:
        """Deliver events that were postponed in an older state; each change of state begins anew with the oldest."""
        while waiting:
            event = waiting.pop(0)
            try:
                done = step(self.machine, event, self.machine.handle(event))
                changed, done.new_state = done.new_state, False
                self.commit(done, event)
            except Exception as error:  # Whoever sent the event has gone on: its error ends the generation.
                self.put_control(Crash(error))
                self.wake()
                continue
            if changed:
                waiting, self.postponed = [*self.postponed, *waiting], []
        self.special = bool(self.postponed or self.timers)

    def no_room(self, event: object) -> MailboxFull:
        """Say that effects or postponed events pile up."""
        return MailboxFull(event, self.label, self.capacity, "its effects are not carried out fast enough")

    def queue_effects(self, effects: Sequence[Any]) -> None:
        """Append effects and wake the actor."""
        if self.inbox is EMPTY:
            self.inbox: deque[Any] = deque()
        self.inbox.extend(effects)
        self.wake()

    def obey(self, order: TimerOrder | EventSeen) -> None:
        """Start, change and end timers."""
        match order:
            case Timer():
                self.end_timer(order.name)
                self.start_timer(order)
            case CancelTimer():
                self.end_timer(order.name)
            case ChangeTimer():
                if order.name in self.timers:
                    self.timers[order.name].event = order.event
            case EventSeen():
                if self.timers:
                    self.end_timers_at(order)

    def end_timers_at(self, seen: EventSeen) -> None:
        """End the timers that run only until an event such as this one."""
        ended = {Until.NEXT_EVENT}
        if seen is EventSeen.NEW_STATE:
            ended.add(Until.STATE_CHANGES)
        for name in [name for name, timer in self.timers.items() if timer.until in ended]:
            self.end_timer(name)

    def start_timer(self, order: Timer) -> None:
        """Let a timer run; infinity is one that does not."""
        after_s = order.after_s if order.at_s is None else max(0.0, order.at_s - trio.current_time())
        if after_s is not None and after_s != float("inf"):
            self.timers[order.name] = running = Running(self, order)
            self.sweeper.watch(running, after_s)

    def end_timer(self, name: str) -> None:
        """End a timer, if it runs."""
        running = self.timers.pop(name, None)
        if running is not None:
            running.task = None

    def end(self, error: BaseException | None) -> None:
        """Be gone: timers end, postponed events and left-over effects are counted as dropped."""
        for name in [*self.timers]:
            self.end_timer(name)
        if self.postponed:
            self.counting().dropped += len(self.postponed)
            self.postponed = []
        super().end(error)
