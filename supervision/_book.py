"""The books of one supervisor: its children, its intensity, and the single steps a plan is made of.

Each method here does one step to one child and writes the orders that go with it. Which steps, and in which order,
is decided in `_plan`.
"""

from collections import deque
from typing import Final

from supervision._errors import Death
from supervision._events import (
    ChildAsked,
    ChildExited,
    ChildKilled,
    ChildRestarting,
    ChildStarted,
    ChildStartFailed,
    ChildStuck,
    Event,
)
from supervision._exits import Exit
from supervision._intensity import RestartIntensity, Window
from supervision._news import Answer, Ask, CloseReason, Kill, Order, Report, Rested, Start, WakeSoon
from supervision._specs import TEMPORARY
from supervision._states import (
    ADDED,
    ASK,
    BEGIN,
    FORGET,
    NO_PAST,
    NOT_PRESSED,
    OK,
    RUNNING,
    SERVE,
    STOPPED,
    WITH_TASK,
    Change,
    ChildState,
    Entry,
    Past,
    Pressed,
    Purpose,
    Ticket,
    Verdict,
)

__all__: list[str] = []

DEATHS_MAX: Final = 16
"""How many of the last deaths a supervisor remembers with their causes."""

KILL_WAIT_S: Final = 5.0
"""How long after the kill a child that still runs is called stuck."""


class Book:
    """What a plan knows. Mutable: one supervisor owns it, one step at a time."""

    def __init__(self, path: str, intensity: RestartIntensity, *, is_pool: bool) -> None:
        self.path: Final = path
        self.is_pool: Final = is_pool
        self.intensity: Final = intensity
        self.window: Final = Window(intensity)
        # Told by `last_deaths`, once at the end; each is a plain tuple, since they are made on the way to a restart.
        self.deaths: Final[deque[tuple[str, int, float, Exit | None]]] = deque(maxlen=DEATHS_MAX)
        # Events cost their making, so they are only made while somebody listens.
        self.reporting: bool = False
        self.closing: CloseReason | None = None
        self.closed: bool = False
        self.restarts: int = 0
        # In start order. A dict, since 100,000 children leave it from the middle.
        self.entries: Final[dict[Entry, None]] = {}
        # Every name here is that of exactly one entry. A pool has no names.
        self.names: Final[dict[str, Entry]] = {}
        # How many entries have a task, and how many of these are between two states (STARTING or STOPPING).
        self.live: int = 0
        self.live_peak: int = 0
        self.moving: int = 0
        # Commands without an answer yet, and the attempts that stand back for them.
        self.commands: int = 0
        self.unanswered: int = 0
        self._polite: list[Entry] = []
        self.now_s: float = 0.0
        self.orders: list[Order] = []

    # --- Steps of one child ---

    def begin(self, entry: Entry, purpose: Purpose) -> None:
        """Start a new generation."""
        entry.change(BEGIN)
        entry.generation += 1
        entry.purpose = purpose
        entry.timed_out = False
        entry.pressed = NOT_PRESSED
        self.live += 1
        self.moving += 1
        if self.live > self.live_peak:
            self.live_peak = self.live
        self.orders.append(Start(entry, self.now_s + entry.spec.start_timeout_s))

    def serve(self, entry: Entry) -> None:
        """Take note that it is up."""
        entry.change(SERVE)
        entry.since_s = self.now_s
        if entry.past is not NO_PAST:
            entry.past.counted = False
            entry.past.held = 0
        self.moving -= 1
        if entry.ups is not None:
            self.answer_ups(entry, OK)
        if self.reporting:
            self.report(ChildStarted(path=self.path_of(entry), at_s=self.now_s, generation=entry.generation))

    def stop(self, entry: Entry, *, at_once: bool = False) -> None:
        """Ask it to stop, or kill it when it is owed no time. It has a task, and none of this was done yet."""
        if entry.state is RUNNING:
            self.moving += 1
        entry.change(ASK)
        shutdown_s = entry.spec.shutdown_s
        if at_once or shutdown_s == 0:
            self.kill(entry)
            return
        if self.reporting:
            path = self.path_of(entry)
            self.report(ChildAsked(path=path, at_s=self.now_s, generation=entry.generation, shutdown_s=shutdown_s))
        self.orders.append(Ask(entry, self.now_s + shutdown_s))

    def kill(self, entry: Entry) -> None:
        """End the task of one that is STOPPING."""
        entry.pressed = Pressed.KILLED
        if self.reporting:
            self.report(ChildKilled(path=self.path_of(entry), at_s=self.now_s, generation=entry.generation))
        self.orders.append(Kill(entry, self.now_s + KILL_WAIT_S))

    def call_stuck(self, entry: Entry) -> None:
        """Say that it outlived its kill; whoever waits for it need not wait any longer."""
        entry.pressed = Pressed.IN_VAIN
        # Nothing waits for it any more, so it no longer holds up its group.
        self.moving -= 1
        self.answer_downs(entry, Verdict.WILL_NOT_STOP)
        self.answer_ups(entry, Verdict.START_ABORTED)
        if self.reporting:
            path = self.path_of(entry)
            self.report(ChildStuck(path=path, at_s=self.now_s, generation=entry.generation, waited_s=KILL_WAIT_S))

    def task_ended(self, entry: Entry, how: Exit) -> None:
        """Take note that its task is gone; its state is still to be changed."""
        self.live -= 1
        if entry.state is not RUNNING and not entry.stuck:
            self.moving -= 1
        if entry.past is NO_PAST:
            entry.past = Past()
        entry.past.last_exit = how
        if self.reporting:
            self._report_end(entry, how)

    def rest(self, entry: Entry) -> None:
        """Leave it down: forgotten if nothing of it is to be kept, else stopped."""
        never_up = entry.since_s is None and entry.purpose is ADDED
        forget = self.is_pool or never_up or entry.spec.restart is TEMPORARY
        if forget:
            self.forget(entry)
        elif entry.state is not STOPPED:
            entry.change(Change.REST)
        if entry.past is not NO_PAST:
            entry.past.attempts = 0
        self.answer_downs(entry, OK)
        self.answer_ups(entry, Verdict.START_ABORTED)
        self.orders.append(Rested(entry))

    def forget(self, entry: Entry) -> None:
        """Keep nothing of it."""
        entry.change(FORGET)
        del self.entries[entry]
        if not self.is_pool:
            del self.names[entry.name]

    # --- Answers and reports ---

    def take_command(self) -> None:
        """Count a command that came in."""
        self.commands += 1
        self.unanswered += 1

    def activity(self) -> int:
        """Return a number that grows with each command that comes in and each that is answered."""
        return 2 * self.commands - self.unanswered

    def answer(self, ticket: Ticket, verdict: Verdict, entry: Entry | None = None) -> None:
        """Answer one command."""
        assert ticket.verdict is None, "a command is answered once"
        ticket.verdict = verdict
        if entry is not None:
            ticket.entry = entry
            ticket.exit = entry.past.last_exit
        self.orders.append(Answer(ticket))
        self.unanswered -= 1
        if self._polite:
            self.orders.extend(WakeSoon(polite) for polite in self._polite)
            self._polite.clear()

    def answer_ups(self, entry: Entry, verdict: Verdict) -> None:
        """Answer whoever waits for it to be up."""
        tickets, entry.ups = entry.ups, None
        for ticket in tickets or ():
            self.answer(ticket, verdict, entry)

    def answer_downs(self, entry: Entry, verdict: Verdict) -> None:
        """Answer whoever waits for it to be down."""
        tickets, entry.downs = entry.downs, None
        for ticket in tickets or ():
            self.answer(ticket, verdict, entry)

    def stand_back(self, entry: Entry) -> None:
        """Let the commands in hand be answered before its next attempt."""
        entry.past.held += 1
        self._polite.append(entry)

    def path_of(self, entry: Entry) -> str:
        """Return its address from the root down."""
        return f"{self.path}/{entry.name}"

    def report(self, event: Event) -> None:
        """Order an event to be shown."""
        self.orders.append(Report(event))

    def report_restart(self, entry: Entry, delay_s: float) -> None:
        """Tell that it will be brought back, and on what grounds."""
        how = entry.last_exit
        self.report(
            ChildRestarting(
                path=self.path_of(entry),
                at_s=self.now_s,
                generation=entry.generation,
                delay_s=delay_s,
                restarts_in_window=self.window.count(self.now_s),
                cause=how.cause if how else None,
            )
        )

    def _report_end(self, entry: Entry, how: Exit) -> None:
        path, asked = self.path_of(entry), entry.state is ChildState.STOPPING
        if entry.state is ChildState.STARTING or entry.timed_out:
            failed = ChildStartFailed(path=path, at_s=self.now_s, generation=entry.generation, cause=how.cause)
            self.report(failed)
            return
        self.report(
            ChildExited(
                path=path,
                at_s=self.now_s,
                generation=entry.generation,
                kind=how.kind,
                asked=asked,
                cause=how.cause,
            )
        )

    # --- Looking ---

    def last_deaths(self) -> tuple[Death, ...]:
        """Return the last ends that called for a restart, oldest first."""
        return tuple(
            Death(child=name, generation=generation, at_s=at_s, cause=how.cause if how is not None else None)
            for name, generation, at_s, how in self.deaths
        )

    def has_task(self, entry: Entry) -> bool:
        """Say whether a task of it is running."""
        return entry.state in WITH_TASK

    def find(self, target: Entry | str) -> Entry | None:
        """Return the entry meant: by name, or itself while it is known here."""
        if isinstance(target, str):
            return self.names.get(target)
        return target if target in self.entries else None
