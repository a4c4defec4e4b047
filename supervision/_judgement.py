"""What becomes of children: who comes back, with whom and when, and when it is all over.

Group restarts are a `Sweep`: stop those concerned, last first and one at a time; then start them in order. When one
fails to start, the sweep is broken off and that child alone is due for another attempt, which sweeps again.
"""

from collections import deque
from typing import Final

import attrs

from supervision._book import Book
from supervision._events import SupervisorStopped, SupervisorStopping
from supervision._exits import wants_restart
from supervision._intensity import RestartIntensity
from supervision._news import Close, CloseReason, Exited, News, RestartAsked, Rested, Wake
from supervision._specs import AutoShutdown, Restart, Strategy
from supervision._states import RESTARTED, Change, ChildState, Entry, Purpose, Verdict
from supervision._strategies import sharing_fate

__all__: list[str] = []


@attrs.define(eq=False)
class Sweep:
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
        if self.delayed is not None and self.delayed[0] is entry:
            self.delayed = None


class Judgement(Book):
    """Decisions about children that ended, and about the end of the supervisor itself."""

    closing: CloseReason | None
    restarts: int

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
        self._sweep: Sweep | None = None
        # Commands and ends that came while their turn had not come.
        self._later: deque[News] = deque()
        # Stopped in a group restart that is due again: down, but not for good, so nobody is told so yet.
        self._owed: dict[Entry, None] = {}
        # While closing: those still to be stopped; the last is next.
        self._to_close: list[Entry] = []

    # --- A child ended by itself ---

    def _judge(self, entry: Entry, news: Exited) -> None:
        """Decide about a child that ended by itself."""
        if wants_restart(entry.spec.restart, news.exit.kind):
            self._restart(entry, news.chance)
            return
        self.rest(entry)
        if entry.spec.significant and self._ends_now():
            self._close(CloseReason.AUTO_SHUTDOWN)

    def _ends_now(self) -> bool:
        """Say whether the supervisor ends because a significant child has."""
        if self.auto_shutdown is AutoShutdown.ALL_SIGNIFICANT:
            others = (e for e in self.entries if e.spec.significant and e.state is not ChildState.STOPPED)
            return next(others, None) is None
        return self.auto_shutdown is AutoShutdown.ANY_SIGNIFICANT

    def _restart(self, entry: Entry, chance: float) -> None:
        """Bring back a child that was up."""
        backoff = entry.spec.backoff
        if backoff is not None and entry.since_s is not None and self.now_s - entry.since_s >= backoff.healthy_s:
            entry.past.attempts = 0
        if not self._count(entry):
            return
        delay_s = self._next_delay_s(entry, chance) if backoff is not None or self.reporting else 0.0
        if self._in_group:
            if entry.state is not ChildState.RESTARTING:
                entry.change(Change.DELAY)
            self._begin_sweep(entry, delay_s)
        elif delay_s:
            self._delay(entry, delay_s)
        else:
            self.begin(entry, RESTARTED)

    # --- The intensity ---

    def _count(self, entry: Entry) -> bool:
        """Count one restart; when it is one too many, give up and say no."""
        past = entry.past
        self.deaths.append((entry.spec.name, entry.generation, self.now_s, past.last_exit))
        past.counted = True
        if self.window.record(self.now_s):
            past.attempts += 1
            past.restarts += 1
            self.restarts += 1
            return True
        self.rest(entry)
        self._close(CloseReason.INTENSITY)
        return False

    def _next_delay_s(self, entry: Entry, chance: float) -> float:
        backoff = entry.spec.backoff
        delay_s = backoff.delay_s(entry.past.attempts, chance) if backoff is not None else 0.0
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
        self._sweep = Sweep(concerned, deque(() if delayed else concerned), delayed)

    def _down_in_sweep(self, entry: Entry, sweep: Sweep) -> None:
        """Leave one that is down as its sweep needs it: to be started again, or to rest."""
        if entry in sweep.starts and entry.spec.restart is not Restart.TEMPORARY:
            entry.change(Change.DELAY)
        elif sweep.delayed is not None and entry.downs is None:
            self._owe(entry)
        else:
            self.rest(entry)

    def _owe(self, entry: Entry) -> None:
        """Let it rest until its group is started again."""
        if entry.spec.restart is Restart.TEMPORARY:
            self.rest(entry)
        else:
            entry.change(Change.REST)
            self._owed[entry] = None

    def _settle_owed(self) -> None:
        """When no attempt is due any more, those that would have come back with it are down for good."""
        if any(entry.state is ChildState.RESTARTING for entry in self.entries):
            return
        owed, self._owed = self._owed, {}
        for entry in owed:
            if entry.state is ChildState.STOPPED:
                self.orders.append(Rested(entry))

    def _step_sweep(self, sweep: Sweep) -> None:
        while sweep.stops and not self.moving:
            entry = sweep.stops.pop()
            if entry.state is ChildState.RUNNING:
                self.stop(entry)
            elif entry.state is ChildState.ENDED:
                self._down_in_sweep(entry, sweep)
        if sweep.delayed is not None and not self.moving:
            self._sweep = None
            self._delay(*sweep.delayed)
            return
        while sweep.starts and not self.moving:
            entry = sweep.starts.popleft()
            # One that is stuck still has its old task, and a temporary one was forgotten.
            if entry.state in {ChildState.STOPPED, ChildState.RESTARTING}:
                self._owed.pop(entry, None)
                self.begin(entry, Purpose.RESTART)
        if not self.moving:
            self._sweep = None

    def _break_off_sweep(self) -> None:
        """Leave down what this sweep has not started yet; the one that failed will bring it back."""
        sweep, self._sweep = self._sweep, None
        for entry in sweep.starts if sweep is not None else ():
            if entry.state is ChildState.RESTARTING:
                self._owe(entry)

    # --- The end ---

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

    def _step_close(self) -> None:
        while self._to_close and self._closes(self._to_close[-1]):
            self._to_close.pop()
        if self._owed:
            self._settle_owed()
        if not self.live and not self.closed:
            self.closed = True
            assert self.closing is not None, "only what is closing can be closed"
            if self.reporting:
                self.report(SupervisorStopped(path=self.path, at_s=self.now_s, why=self.closing.value))
            self.orders.append(Close(self.closing))

    def _closes(self, entry: Entry) -> bool:
        """Go on with the close of one child; say whether the next may follow. In a pool it always may."""
        if not self.has_task(entry) or entry.stuck:
            if entry.state not in {ChildState.STOPPED, ChildState.STOPPING, ChildState.GONE}:
                self.rest(entry)
            return True
        if entry.state is not ChildState.STOPPING:
            self.stop(entry)
        return self.is_pool
