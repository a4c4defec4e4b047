"""The judgement of a supervisor: news goes in, orders come out, nothing waits.

One plan serves all supervisors: the three strategies and the pool. How it works:

- A child whose start or stop is in hand is *moving*. Under ONE_FOR_ONE and in a pool, children move independently.
  Under a group strategy one thing moves at a time, as in OTP: what comes meanwhile lines up in `_later`.
- A group restart is a `_Sweep`: stop those concerned, last first and one at a time; then start them in order.
- A start that fails in a restart is tried again, and each try counts. Between two tries the plan is free: commands
  that came meanwhile are answered first.
- A stop asked for on purpose takes the child to STOPPING, and no way leads from there to a restart, whatever its exit
  looks like. That is the whole cure for taking a requested stop for a crash.
- News of an older generation, or of a state the child has left, is late. It means nothing and changes nothing.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

import attrs

from supervision._book import Book
from supervision._errors import Death
from supervision._events import SupervisorStopped, SupervisorStopping
from supervision._exits import wants_restart
from supervision._intensity import RestartIntensity
from supervision._news import (
    Add,
    Close,
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
    Wake,
    WakeSoon,
    Woke,
)
from supervision._specs import AutoShutdown, Restart, Strategy
from supervision._states import CHILD_TRANSITIONS as CHILD_TRANSITIONS
from supervision._states import Change, ChildState, Entry, Purpose, Verdict
from supervision._strategies import sharing_fate

__all__: list[str] = []

_HELD_MAX: Final = 64
"""How often an attempt stands back for commands; without a bound, steady traffic could starve it."""


@attrs.define(eq=False)
class _Sweep:
    """A group restart in hand."""

    stops: list[Entry]
    """Still to be stopped; the last is next."""
    starts: deque[Entry]
    """Still to be started; the first is next."""
    delayed: tuple[Entry, float] | None
    """When the start is to wait: for whom and how long, once the stops are done."""

    def leave_out(self, entry: Entry) -> None:
        """Do not start this one again."""
        if entry in self.starts:
            self.starts.remove(entry)


class Plan(Book):
    """All decisions of one supervisor."""

    def __init__(
        self,
        path: str,
        *,
        strategy: Strategy = Strategy.ONE_FOR_ONE,
        intensity: RestartIntensity,
        auto_shutdown: AutoShutdown = AutoShutdown.NEVER,
        is_pool: bool = False,
    ) -> None:
        super().__init__(path, intensity, is_pool=is_pool)
        self.strategy: Final = strategy
        self.auto_shutdown: Final = auto_shutdown
        self._in_group: Final = strategy is not Strategy.ONE_FOR_ONE
        self._sweep: _Sweep | None = None
        # Commands and ends that came while their turn had not come.
        self._later: deque[News] = deque()
        # While closing: those still to be stopped; the last is next.
        self._to_close: list[Entry] = []

    def handle(self, news: News, now_s: float) -> list[Order]:
        """Take in one piece of news and return what is to be done, in order."""
        self.now_s = now_s
        self.orders = orders = []
        _HANDLERS[type(news)](self, news)
        if self._in_group or self._later or self.closing is not None:
            self._step()
        return orders

    # --- Commands ---

    def _add(self, news: Add) -> None:
        entry, ticket = news.entry, news.ticket
        self.take_command()
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
        return self.begin(entry, Purpose.ADDED)

    def _stop_asked(self, news: StopAsked) -> None:
        # Never lines up: from here on no generation of it may begin, in no order of events (case P05).
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

    def _restart_asked(self, news: RestartAsked) -> None:
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

    def _delete_asked(self, news: DeleteAsked) -> None:
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

    def _started(self, news: Started) -> None:
        entry = news.entry
        if entry.generation != news.generation or entry.state is not ChildState.STARTING:
            return
        self.serve(entry)

    def _exited(self, news: Exited) -> None:
        entry = news.entry
        if entry.generation != news.generation or not self.has_task(entry):
            return
        self.task_ended(entry, news.exit)
        if entry.state is ChildState.STARTING or (entry.timed_out and self.closing is None):
            self._start_failed(entry, news)
        elif entry.state is ChildState.STOPPING and self._sweep is not None and entry in self._sweep.starts:
            self._stopped_in_sweep(entry)
        elif entry.state is ChildState.STOPPING or self.closing is not None:
            self.rest(entry)
        elif self._in_group and self.moving:
            entry.change(Change.END)
            self._later.append(news)
        else:
            self._judge(entry, news)

    def _judge(self, entry: Entry, news: Exited) -> None:
        """Decide about a child that ended by itself."""
        if wants_restart(entry.spec.restart, news.exit.kind):
            self._restart(entry, news.chance)
            return
        self.rest(entry)
        if entry.spec.significant and self._ends_with(entry):
            self._close(CloseReason.AUTO_SHUTDOWN)

    def _ends_with(self, entry: Entry) -> bool:
        """Say whether the supervisor ends because this significant child has."""
        if self.auto_shutdown is AutoShutdown.ALL_SIGNIFICANT:
            others = (e for e in self.entries if e.spec.significant and e.state is not ChildState.STOPPED)
            return next(others, None) is None
        return self.auto_shutdown is AutoShutdown.ANY_SIGNIFICANT

    def _restart(self, entry: Entry, chance: float) -> None:
        """Bring back a child that was up."""
        backoff = entry.spec.backoff
        if backoff is not None and entry.since_s is not None and self.now_s - entry.since_s >= backoff.healthy_s:
            entry.attempts = 0
        if not self._count(entry):
            return
        delay_s = self._next_delay_s(entry, chance)
        if self._in_group:
            if entry.state is not ChildState.RESTARTING:
                entry.change(Change.DELAY)
            self._begin_sweep(entry, delay_s)
        elif delay_s:
            self._delay(entry, delay_s)
        else:
            self.begin(entry, Purpose.RESTART)

    def _start_failed(self, entry: Entry, news: Exited) -> None:
        self._break_off_sweep()
        if entry.purpose is not Purpose.RESTART or self.closing is not None:
            self.answer_ups(entry, Verdict.START_FAILED)
            self.rest(entry)
            return
        if entry.spec.backoff is None:
            # Counted when it is tried, so that whoever stops it before has spent nothing of the budget.
            entry.counted = False
            entry.change(Change.DELAY)
            if self.reporting:
                self.report_restart(entry, 0.0)
            self.orders.append(WakeSoon(entry))
        elif self._count(entry):
            self._delay(entry, self._next_delay_s(entry, news.chance))

    def _woke(self, news: Woke) -> None:
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
        elif self.unanswered and entry.held < _HELD_MAX and entry.spec.backoff is None:
            self.stand_back(entry)
        elif entry.counted or self._count(entry):
            if self._in_group:
                self._begin_sweep(entry, 0.0)
            else:
                self.begin(entry, Purpose.RESTART)

    # --- The budget ---

    def _count(self, entry: Entry) -> bool:
        """Count one restart; when it is one too many, give up and say no."""
        how = entry.last_exit
        cause = how.cause if how is not None else None
        self.deaths.append(Death(child=entry.name, generation=entry.generation, at_s=self.now_s, cause=cause))
        entry.counted = True
        if self.window.record(self.now_s):
            entry.attempts += 1
            entry.restarts += 1
            self.restarts += 1
            return True
        self.rest(entry)
        self._close(CloseReason.INTENSITY)
        return False

    def _next_delay_s(self, entry: Entry, chance: float) -> float:
        backoff = entry.spec.backoff
        delay_s = backoff.delay_s(entry.attempts, chance) if backoff is not None else 0.0
        if self.reporting:
            self.report_restart(entry, delay_s)
        return delay_s

    def _delay(self, entry: Entry, delay_s: float) -> None:
        if entry.state is not ChildState.RESTARTING:
            entry.change(Change.DELAY)
        self.orders.append(Wake(entry, self.now_s + delay_s))

    # --- Group restarts ---

    def _begin_sweep(self, fallen: Entry, delay_s: float) -> None:
        concerned = sharing_fate(self.strategy, list(self.entries), fallen)
        delayed = (fallen, delay_s) if delay_s else None
        self._sweep = _Sweep(concerned, deque(() if delayed else concerned), delayed)

    def _stopped_in_sweep(self, entry: Entry) -> None:
        if entry.spec.restart is Restart.TEMPORARY:
            self.rest(entry)
        else:
            entry.change(Change.DELAY)

    def _step_sweep(self, sweep: _Sweep) -> None:
        while sweep.stops and not self.moving:
            entry = sweep.stops.pop()
            if entry.state is ChildState.RUNNING:
                self.stop(entry)
            elif entry.state is ChildState.ENDED:
                self._stopped_in_sweep(entry)
        if sweep.delayed is not None and not self.moving:
            self._sweep = None
            self._delay(*sweep.delayed)
            return
        while sweep.starts and not self.moving:
            entry = sweep.starts.popleft()
            # One that is stuck still has its old task, and a temporary one was forgotten.
            if entry.state in {ChildState.STOPPED, ChildState.RESTARTING}:
                self.begin(entry, Purpose.RESTART)
        if not self.moving:
            self._sweep = None

    def _break_off_sweep(self) -> None:
        """Leave down what this sweep has not started yet; the one that failed will bring it back."""
        sweep, self._sweep = self._sweep, None
        for entry in sweep.starts if sweep is not None else ():
            if entry.state is ChildState.RESTARTING:
                self.rest(entry)

    # --- What is in hand ---

    def _step(self) -> None:
        """Go on with what is in hand, then with what has lined up."""
        for _ in range(len(self._later) + 1):
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
                self._woke(news)
            case Exited() if news.entry.generation == news.generation and news.entry.state is ChildState.ENDED:
                self._judge(news.entry, news)
            case _:
                pass  # It was stopped since, by a command or in a sweep.

    # --- The end ---

    def _close_asked(self, news: CloseAsked) -> None:
        self._close(CloseReason.ASKED)

    def _kill_all(self, news: KillAll) -> None:
        self._close(CloseReason.ASKED)
        for entry in self.entries:
            if entry.state is ChildState.STOPPING:
                if not entry.killed:
                    self.kill(entry)
            elif self.has_task(entry):
                self.stop(entry, at_once=True)

    def _close(self, reason: CloseReason) -> None:
        if self.closing is not None:
            return
        self.closing = reason
        self._sweep = None
        if self.reporting:
            self.report(SupervisorStopping(path=self.path, at_s=self.now_s, why=reason.value))
        for news in self._later:
            if isinstance(news, RestartAsked):
                self.answer(news.ticket, Verdict.CLOSED)
        self._later.clear()
        self._to_close = list(self.entries)
        if self.is_pool:
            for entry in self._to_close:
                if self.has_task(entry) and entry.state is not ChildState.STOPPING:
                    self.stop(entry)

    def _step_close(self) -> None:
        while self._to_close:
            entry = self._to_close[-1]
            if self.has_task(entry) and not entry.stuck:
                if entry.state is ChildState.STOPPING:
                    if not self.is_pool:
                        return
                else:
                    self.stop(entry)
                    continue
            elif entry.state not in {ChildState.STOPPED, ChildState.STOPPING, ChildState.GONE}:
                self.rest(entry)
            self._to_close.pop()
        if not self.live and not self.closed:
            self.closed = True
            assert self.closing is not None, "only what is closing can be closed"
            if self.reporting:
                self.report(SupervisorStopped(path=self.path, at_s=self.now_s, why=self.closing.value))
            self.orders.append(Close(self.closing))


_HANDLERS: Final[dict[type[Any], Callable[[Plan, Any], None]]] = {
    Add: Plan._add,
    StopAsked: Plan._stop_asked,
    RestartAsked: Plan._restart_asked,
    DeleteAsked: Plan._delete_asked,
    CloseAsked: Plan._close_asked,
    KillAll: Plan._kill_all,
    Started: Plan._started,
    Exited: Plan._exited,
    Woke: Plan._woke,
}
