"""The judgement of a supervisor: news goes in, orders come out, nothing waits.

One plan serves all supervisors: the three strategies and the pool. How it works:

- A child whose start or stop is in hand is *moving*. Under ONE_FOR_ONE and in a pool, children move independently.
  Under a group strategy one thing moves at a time, as in OTP: what comes meanwhile lines up in `_later`.
- A group restart is a `Sweep`: stop those concerned, last first and one at a time; then start them in order.
- A start that fails in a restart is tried again, and each try counts. Between two tries the plan is free: commands
  that came meanwhile are answered first.
- A stop asked for on purpose takes the child to STOPPING, and no way leads from there to a restart, whatever its exit
  looks like. That is the whole cure for taking a requested stop for a crash.
- News of an older generation, or of a state the child has left, is late. It means nothing and changes nothing.
"""

from collections.abc import Callable
from typing import Any, Final

from supervision._judgement import Judgement
from supervision._news import (
    Add,
    CloseAsked,
    CloseReason,
    DeleteAsked,
    Exited,
    KillAll,
    News,
    Order,
    RestartAsked,
    Started,
    StopAsked,
    WakeSoon,
    Woke,
)
from supervision._states import ADDED, STARTING, STOPPING, Change, ChildState, Entry, Purpose, Verdict
from supervision._states import CHILD_TRANSITIONS as CHILD_TRANSITIONS

__all__: list[str] = []

_HELD_MAX: Final = 64
"""How often an attempt stands back for commands; without a bound, steady traffic could starve it."""


class Plan(Judgement):
    """All decisions of one supervisor."""

    orders: list[Order]
    commands: int
    unanswered: int

    def handle(self, news: News, now_s: float) -> list[Order]:
        """Take in one piece of news and return what is to be done, in order."""
        self.now_s = now_s
        orders: list[Order] = []
        self.orders = orders
        _HANDLERS[type(news)](self, news)
        if self._in_group or self._later or self.closing is not None:
            self._step()
        # What was ordered last must not keep a child that is gone.
        self.orders = []
        return orders

    # --- Commands ---

    def add(self, news: Add) -> None:
        """Take a new child in; its start may have to wait for its group."""
        entry, ticket = news.entry, news.ticket
        self.commands += 1
        self.unanswered += 1
        if self.closing is not None:
            return self.answer(ticket, Verdict.CLOSED)
        if not self.is_pool:
            held = self.names.get(entry.name)
            if held is not None:
                present = held.state in {ChildState.STOPPED, ChildState.RESTARTING}
                return self.answer(ticket, Verdict.ALREADY_PRESENT if present else Verdict.ALREADY_STARTED, held)
            self.names[entry.name] = entry
        self.entries[entry] = None
        entry.ups = [ticket]
        if self._in_group and self.moving:
            self._later.append(Woke(entry, entry.generation))
            return None
        return self.begin(entry, ADDED)

    def stop_asked(self, news: StopAsked) -> None:
        """Stop a child for good."""
        # Never lines up: from here on no generation of it may begin, in no order of events.
        self.take_command()
        entry = self.find(news.target)
        if entry is None:
            gone = Verdict.NOT_FOUND if isinstance(news.target, str) else Verdict.OK
            return self.answer(news.ticket, gone)
        if self._sweep is not None:
            self._sweep.leave_out(entry)
        match entry.state:
            case ChildState.STOPPED | ChildState.GONE:
                return self.answer(news.ticket, Verdict.OK, entry)
            case ChildState.STOPPING if entry.stuck:
                return self.answer(news.ticket, Verdict.WILL_NOT_STOP, entry)
            case ChildState.STARTING | ChildState.RUNNING:
                self.stop(entry)
            case ChildState.STOPPING:
                entry.timed_out = False
            case ChildState.WAITING | ChildState.ENDED | ChildState.RESTARTING:
                entry.downs = [news.ticket]
                return self.rest(entry)
        entry.downs = [*(entry.downs or ()), news.ticket]
        return None

    def restart_asked(self, news: RestartAsked) -> None:
        """Start a stopped child again."""
        self.take_command()
        self._restart_by_command(news)

    def _restart_by_command(self, news: RestartAsked) -> None:
        entry, ticket = self.find(news.target), news.ticket
        if entry is None:
            return self.answer(ticket, Verdict.NOT_FOUND)
        if self.closing is not None:
            return self.answer(ticket, Verdict.CLOSED)
        if entry.state is ChildState.STOPPING and entry.stuck:
            return self.answer(ticket, Verdict.WILL_NOT_STOP, entry)
        if (self._in_group and self.moving) or entry.state is ChildState.STOPPING:
            self._later.append(news)
            return None
        if entry.state is ChildState.STOPPED:
            entry.ups = [ticket]
            return self.begin(entry, Purpose.BY_HAND)
        restarting = entry.state is ChildState.RESTARTING
        return self.answer(ticket, Verdict.RESTARTING if restarting else Verdict.RUNNING, entry)

    def delete_asked(self, news: DeleteAsked) -> None:
        """Forget a stopped child."""
        # Never lines up: it is a plain function to its caller, so it is answered now.
        self.take_command()
        entry, ticket = self.find(news.target), news.ticket
        if entry is None:
            return self.answer(ticket, Verdict.NOT_FOUND)
        if entry.state is ChildState.STOPPED and not (self._sweep and entry in self._sweep.starts):
            self.forget(entry)
            return self.answer(ticket, Verdict.OK, entry)
        restarting = entry.state in {ChildState.RESTARTING, ChildState.STOPPED}
        return self.answer(ticket, Verdict.RESTARTING if restarting else Verdict.RUNNING, entry)

    # --- What happened ---

    def started(self, news: Started) -> None:
        """Take note that a child is up."""
        entry = news.entry
        if entry.generation != news.generation or entry.state is not STARTING:
            return
        self.serve(entry)

    def exited(self, news: Exited) -> None:
        """Judge the end of a child's task."""
        entry = news.entry
        if entry.generation != news.generation or not self.has_task(entry):
            return
        self.task_ended(entry, news.exit)
        if entry.state is STARTING or (entry.timed_out and self.closing is None):
            self._start_failed(entry, news)
        elif entry.state is STOPPING and self._sweep is not None:
            self._down_in_sweep(entry, self._sweep)
        elif entry.state is STOPPING or self.closing is not None:
            self.rest(entry)
        elif self._in_group and self.moving:
            entry.change(Change.END)
            self._later.append(news)
        else:
            self._judge(entry, news)

    def _start_failed(self, entry: Entry, news: Exited) -> None:
        self._break_off_sweep()
        if entry.purpose is not Purpose.RESTART or self.closing is not None:
            self.answer_ups(entry, Verdict.START_FAILED)
            self.rest(entry)
            return
        if entry.spec.backoff is None:
            # Counted when it is tried, so that whoever stops it before has used up no restart.
            entry.past.counted = False
            entry.change(Change.DELAY)
            if self.reporting:
                self.report_restart(entry, 0.0)
            self.orders.append(WakeSoon(entry))
        elif self._count(entry):
            self._delay(entry, self._next_delay_s(entry, news.chance))

    def woke(self, news: Woke) -> None:
        """Do what the time was ordered for."""
        entry = news.entry
        if entry.generation != news.generation:
            return
        match entry.state:
            case ChildState.STARTING:
                entry.timed_out = True
                self.stop(entry)
            case ChildState.STOPPING if not entry.killed:
                self.kill(entry)
            case ChildState.STOPPING:
                self.call_stuck(entry)
            case ChildState.WAITING if self._in_group and self.moving:
                self._later.append(news)
            case ChildState.WAITING:
                self.begin(entry, Purpose.ADDED)
            case ChildState.RESTARTING:
                self._try_again(entry, news)
            case _:
                pass  # Late: it has gone on, or down, since this was ordered.

    def _try_again(self, entry: Entry, news: Woke) -> None:
        if self._sweep is not None:
            return  # The sweep starts it anyway, or wakes it again when that fails.
        if self._in_group and self.moving:
            self._later.append(news)
        elif self.unanswered and entry.past.held < _HELD_MAX and entry.spec.backoff is None:
            self.stand_back(entry)
        elif entry.past.counted or self._count(entry):
            if self._in_group:
                self._begin_sweep(entry, 0.0)
            else:
                self.begin(entry, Purpose.RESTART)

    # --- What is in hand ---

    def _step(self) -> None:
        """Go on with what is in hand, then with what has lined up."""
        for _ in range(len(self._later) + 1):
            if self._owed and self._sweep is None:
                self._settle_owed()
            if self.closing is not None:
                self._step_close()
                return
            if self._sweep is not None:
                self._step_sweep(self._sweep)
            if not self._later or (self._in_group and self.moving):
                return
            self._take_up(self._later.popleft())

    def _take_up(self, news: News) -> None:
        match news:
            case RestartAsked():
                self._restart_by_command(news)
            case Woke():
                self.woke(news)
            case Exited() if news.entry.generation == news.generation and news.entry.state is ChildState.ENDED:
                self._judge(news.entry, news)
            case _:
                pass  # It was stopped since, by a command or in a sweep.

    # --- The end ---

    def close_asked(self, news: CloseAsked) -> None:
        """Begin the ordered end."""
        self._close(CloseReason.ASKED)

    def kill_all(self, news: KillAll) -> None:
        """Begin the immediate end."""
        self._close(CloseReason.ASKED)
        for entry in self.entries:
            if entry.state is ChildState.STOPPING:
                if not entry.killed:
                    self.kill(entry)
            elif self.has_task(entry):
                self.stop(entry, at_once=True)


_HANDLERS: Final[dict[type[Any], Callable[[Plan, Any], None]]] = {
    Add: Plan.add,
    StopAsked: Plan.stop_asked,
    RestartAsked: Plan.restart_asked,
    DeleteAsked: Plan.delete_asked,
    CloseAsked: Plan.close_asked,
    KillAll: Plan.kill_all,
    Started: Plan.started,
    Exited: Plan.exited,
    Woke: Plan.woke,
}
