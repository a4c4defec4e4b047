"""The plan does what the plainest supervisor does, and keeps its promises in every order of news.

Mutants planted by hand and seen killed by this file (each alone, then taken out again):

1. `_judgement.Judgement._step_sweep` starts last to first (`pop` for `popleft`).
2. `_judgement.Judgement._step_sweep` stops first to last (`pop(0)` for `pop`).
3. `_intensity.Window._slide` forgets what is exactly one period old (`>=` for `>`).
4. `_plan.Plan.stop_asked` leaves the child in the sweep (no `leave_out`).
5. `_plan.Plan.exited` judges an end that was asked for as a crash (STOPPING goes to `_judge`).
6. `_plan.Plan.exited` without the fence of the generation.
7. `_plan.Plan._try_again` does not count the second try (`or True` for the count).
8. `_exits.wants_restart` brings a transient child back after a shutdown.
9. `_judgement.Judgement._ends_with` takes stopped children for running ones.
10. `_judgement.Judgement._step_close` closes first to last.
11. `_strategies.sharing_fate` leaves the fallen child out of REST_FOR_ONE.
12. `_book.Book.rest` keeps temporary children.
13. `_plan.Plan.stop_asked` leaves a timed-out start timed out, so that it is tried again.
14. `_plan.Plan.started` without the fence of the generation.
"""

from collections import Counter, deque
from typing import Any

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import supervision as sv
from supervision._exits import KILLED, OBEYED, RETURNED, Exit
from supervision._news import (
    Add,
    Answer,
    Ask,
    Close,
    CloseAsked,
    DeleteAsked,
    Exited,
    Kill,
    KillAll,
    Order,
    RestartAsked,
    Rested,
    Start,
    Started,
    StopAsked,
    Wake,
    WakeSoon,
    Woke,
)
from supervision._plan import Plan
from supervision._states import WITH_TASK, ChildState, Entry, Ticket, Verdict
from tests.supervision.naive_supervisor import NaiveSupervisor

CRASH = Exit(sv.ExitKind.CRASHED, ValueError())
ENDS = {
    sv.ExitKind.NORMAL: RETURNED,
    sv.ExitKind.SHUTDOWN: OBEYED,
    sv.ExitKind.CRASHED: CRASH,
    sv.ExitKind.KILLED: KILLED,
}
NAMES = st.sampled_from("abcd")
PERIOD_S = 10.0


async def nothing(*, task_status: object) -> None: ...


def spec_of(name: str, restart: sv.Restart, significant: bool, **options: Any) -> sv.ChildSpec:
    return sv.ChildSpec(name, nothing, restart=restart, significant=significant, **options)


RESTARTS = st.sampled_from([*sv.Restart, sv.Restart.PERMANENT])
STEPS_MAX = 10_000
CONFIGURATIONS = st.tuples(
    st.sampled_from([*sv.Strategy, None]),  # None is a pool.
    st.integers(1, 4),
    st.sampled_from(list(sv.AutoShutdown)),
)


KINDS = st.sampled_from([*sv.ExitKind, sv.ExitKind.NORMAL, sv.ExitKind.CRASHED, sv.ExitKind.CRASHED])
END = st.tuples(st.just("end"), st.tuples(st.integers(0, 3), KINDS, st.sampled_from([0.0, PERIOD_S / 2, PERIOD_S])))
ACTS = st.one_of(
    END,
    END,
    END,
    st.tuples(st.just("fail"), st.tuples(NAMES, st.integers(1, 3))),
    st.tuples(st.just("add"), st.tuples(NAMES, RESTARTS, st.booleans())),
    st.tuples(st.sampled_from(["stop", "restart", "delete"]), NAMES),
    st.tuples(st.just("time"), st.sampled_from([PERIOD_S / 2, PERIOD_S, PERIOD_S + 0.5])),
)


class OneThingAtATime(RuleBasedStateMachine):
    """Everything is quiet between two steps, so the naive supervisor knows the exact outcome."""

    @initialize(configuration=CONFIGURATIONS, restarts_of_first=st.tuples(RESTARTS, RESTARTS, RESTARTS))
    def begin(
        self,
        configuration: tuple[sv.Strategy | None, int, sv.AutoShutdown],
        restarts_of_first: tuple[sv.Restart, sv.Restart, sv.Restart],
    ) -> None:
        strategy, restarts, auto_shutdown = configuration
        self.is_pool = strategy is None
        strategy = strategy or sv.Strategy.ONE_FOR_ONE
        intensity = sv.RestartIntensity(restarts, PERIOD_S)
        self.now_s = 0.0
        self.plan = Plan("p", strategy=strategy, intensity=intensity, auto_shutdown=auto_shutdown, is_pool=self.is_pool)
        self.naive = NaiveSupervisor(strategy, restarts, PERIOD_S, auto_shutdown, is_pool=self.is_pool)
        self.failing: Counter[str] = Counter()
        self.log: list[str] = []
        self.ended: str | None = None
        # Begin with a full stage: most runs should meet crashes of groups, not empty supervisors.
        significant = auto_shutdown is not sv.AutoShutdown.NEVER
        for name, restart in zip("abc", restarts_of_first, strict=True):
            if significant and restart is sv.Restart.PERMANENT and name != "c":
                restart = sv.Restart.TRANSIENT
            self.add_one(name, restart, significant and restart is not sv.Restart.PERMANENT)

    def feed(self, news: Any) -> None:
        """Tell the plan, and play the world until it is quiet."""
        orders: deque[Order] = deque(self.plan.handle(news, self.now_s))
        soon: deque[Entry] = deque()
        for _ in range(STEPS_MAX):
            if not orders and not soon:
                return
            if not orders:
                entry = soon.popleft()
                orders.extend(self.plan.handle(Woke(entry, entry.generation), self.now_s))
                continue
            match orders.popleft():
                case Start(entry):
                    orders.extend(self.plan.handle(self.started(entry), self.now_s))
                case Ask(entry) | Kill(entry):
                    self.log.append(f"{entry.name} is stopped")
                    orders.extend(self.plan.handle(Exited(entry, entry.generation, OBEYED), self.now_s))
                case WakeSoon(entry):
                    soon.append(entry)
                case Close(reason):
                    self.ended = reason.value
                case _:
                    pass
        raise AssertionError("the plan never comes to rest")

    def started(self, entry: Entry) -> Any:
        if self.failing[entry.name]:
            self.failing[entry.name] -= 1
            self.log.append(f"{entry.name} fails to start")
            return Exited(entry, entry.generation, CRASH)
        self.log.append(f"{entry.name} starts")
        return Started(entry, entry.generation)

    def agree(self, ticket: Ticket | None, verdict: str | None) -> None:
        if ticket is not None:
            assert ticket.verdict is not None
            assert ticket.verdict.value == verdict
        if self.is_pool and self.ended:
            self.log.sort()
            self.naive.log.sort()
        assert self.log == self.naive.log
        assert self.ended == self.naive.ended
        if not self.ended:
            assert {e.name: e.state is ChildState.RUNNING for e in self.plan.entries} == self.naive.states()
        self.log.clear()
        self.naive.log.clear()

    def add(self, name: str, restart: sv.Restart, significant: bool) -> None:
        if self.is_pool and any(entry.name == name for entry in self.plan.entries):
            return
        decides = restart is not sv.Restart.PERMANENT and self.plan.auto_shutdown is not sv.AutoShutdown.NEVER
        self.add_one(name, restart, significant and decides)

    def add_one(self, name: str, restart: sv.Restart, significant: bool) -> None:
        ticket = Ticket()
        self.feed(Add(Entry(spec_of(name, restart, significant)), ticket))
        self.agree(ticket, self.naive.add(name, restart, significant))

    def let_starts_fail(self, name: str, times: int) -> None:
        self.failing[name] = self.naive.failing[name] = times

    def end_one(self, who: int, kind: sv.ExitKind) -> None:
        up = [entry for entry in self.plan.entries if entry.state is ChildState.RUNNING]
        if not up:
            return
        entry = up[who % len(up)]
        event(f"{kind.value} under {'pool' if self.is_pool else self.plan.strategy.value}")
        self.feed(Exited(entry, entry.generation, ENDS[kind]))
        self.naive.exit(entry.name, kind, self.now_s)
        if self.ended:
            event(f"ended by {self.ended}")
        self.agree(None, None)

    def target(self, name: str) -> Entry | str | None:
        if not self.is_pool:
            return name
        return next((entry for entry in self.plan.entries if entry.name == name), None)

    def stop(self, name: str) -> None:
        target, ticket = self.target(name), Ticket()
        if target is not None:
            self.feed(StopAsked(target, ticket))
            self.agree(ticket, self.naive.stop_by_command(name))

    def restart(self, name: str) -> None:
        ticket = Ticket()
        self.feed(RestartAsked(name, ticket))
        if not self.ended:
            self.agree(ticket, self.naive.restart_by_command(name))

    def delete(self, name: str) -> None:
        ticket = Ticket()
        self.feed(DeleteAsked(name, ticket))
        self.agree(ticket, self.naive.delete(name))

    def let_time_pass(self, seconds: float) -> None:
        self.now_s += seconds

    def close(self) -> None:
        self.feed(CloseAsked())
        self.naive.close("asked")
        self.agree(None, None)

    @rule(act=ACTS)
    def act(self, act: tuple[str, Any]) -> None:
        # One rule for all: Hypothesis switches whole rules off, and without crashes nothing is reached.
        if self.ended:
            return
        match act:
            case ("end", (who, kind, seconds)):
                self.now_s += seconds
                self.end_one(who, kind)
            case ("fail", (name, times)):
                self.let_starts_fail(name, times)
            case ("add", (name, restart, significant)):
                self.add(name, restart, significant)
            case ("stop", name):
                self.stop(name)
            case ("restart", name) if not self.is_pool:
                self.restart(name)
            case ("delete", name) if not self.is_pool:
                self.delete(name)
            case ("time", seconds):
                self.let_time_pass(seconds)

    def teardown(self) -> None:
        if hasattr(self, "plan"):
            self.close()


WHO = st.integers(0, 3)
UP = st.tuples(st.just("up"), st.none())
OBEY = st.tuples(st.just("obey"), st.tuples(WHO, KINDS))
ANY_ACTS = st.one_of(
    UP,
    UP,
    OBEY,
    OBEY,
    st.tuples(st.just("end"), st.tuples(WHO, KINDS)),
    st.tuples(st.just("again"), st.none()),
    st.tuples(
        st.just("add"),
        st.tuples(
            NAMES,
            RESTARTS,
            st.sampled_from([0.0, 1.0, float("inf")]),
            st.sampled_from([None, None, sv.Backoff(first_s=0.5, max_s=0.5, jitter=0)]),
        ),
    ),
    st.tuples(st.just("late"), WHO),
    st.tuples(st.sampled_from(["stop", "stop", "restart", "delete"]), st.tuples(NAMES, st.booleans())),
    st.tuples(st.just("time"), st.sampled_from([0.5, 1.0, 3.0])),
    st.tuples(st.just("close"), st.booleans()),
)


class AnyOrder(RuleBasedStateMachine):
    """Starts, stops, ends and commands interleave freely; what must hold in every order is checked."""

    @initialize(configuration=CONFIGURATIONS)
    def begin(self, configuration: tuple[sv.Strategy | None, int, sv.AutoShutdown]) -> None:
        strategy, restarts, auto_shutdown = configuration
        self.is_pool = strategy is None
        self.restarts = restarts + 3
        self.plan = Plan(
            "p",
            strategy=strategy or sv.Strategy.ONE_FOR_ONE,
            intensity=sv.RestartIntensity(self.restarts, PERIOD_S),
            auto_shutdown=auto_shutdown,
            is_pool=self.is_pool,
        )
        self.now_s = 0.0
        # Generations with a task, those among them that were asked to stop, and pending times.
        self.tasks: dict[tuple[Entry, int], bool] = {}
        self.asked: set[tuple[Entry, int]] = set()
        self.timers: dict[Entry, tuple[float, int]] = {}
        self.soon: list[tuple[Entry, int]] = []
        self.tickets: list[Ticket] = []
        self.old: list[tuple[Entry, int]] = []
        # Children that were stopped on purpose and not asked for since, outside of groups.
        self.on_purpose: set[Entry] = set()
        # Those stopped on purpose while a group restart was in hand: that restart must leave them alone.
        self.left_out: dict[Entry, object] = {}
        self.closed = False
        self.restart_times: list[float] = []
        for name in "abc":
            self.add(name, sv.Restart.PERMANENT, 1.0, None)

    def feed(self, news: Any) -> None:
        before = self.plan.restarts
        for order in self.plan.handle(news, self.now_s):
            self.obey(order)
        self.restart_times += [self.now_s] * (self.plan.restarts - before)

    def obey(self, order: Order) -> None:
        match order:
            case Start(entry, wake_at_s):
                running = [generation for one, generation in self.tasks if one is entry]
                assert not running, f"two generations of {entry.name} at once"
                assert not self.closed
                assert self.plan.closing is None, "a supervisor that closes starts nobody"
                sweep = self.plan._sweep
                assert sweep is None or self.left_out.get(entry) is not sweep, f"{entry.name} was to be left out"
                assert entry not in self.on_purpose, f"{entry.name} was stopped on purpose"
                self.tasks[entry, entry.generation] = False
                self.timers[entry] = (wake_at_s, entry.generation)
            case Ask(entry, wake_at_s) | Kill(entry, wake_at_s):
                assert (entry, entry.generation) in self.tasks, "only what runs can be stopped"
                self.asked.add((entry, entry.generation))
                self.timers[entry] = (wake_at_s, entry.generation)
            case Wake(entry, wake_at_s):
                self.timers[entry] = (wake_at_s, entry.generation)
            case WakeSoon(entry):
                self.soon.append((entry, entry.generation))
            case Rested(entry):
                assert not [1 for one, _ in self.tasks if one is entry], "what rests has no task"
            case Answer(ticket):
                assert ticket.verdict is not None
            case Close():
                assert not self.closed
                assert not self.tasks, "a supervisor ends after its children"
                self.closed = True
            case _:
                pass

    def ticket(self) -> Ticket:
        ticket = Ticket()
        self.tickets.append(ticket)
        return ticket

    def add(self, name: str, restart: sv.Restart, shutdown_s: float, backoff: sv.Backoff | None) -> None:
        if restart is sv.Restart.TEMPORARY:
            backoff = None
        entry = Entry(spec_of(name, restart, False, shutdown_s=shutdown_s, start_timeout_s=3.0, backoff=backoff))
        self.feed(Add(entry, self.ticket()))

    def come_up(self) -> None:
        starting = [key for key, up in self.tasks.items() if not up]
        if starting:
            self.tasks[starting[0]] = True
            self.feed(Started(*starting[0]))

    def end(self, who: int, kind: sv.ExitKind) -> None:
        if self.tasks:
            self.finish(*list(self.tasks)[who % len(self.tasks)], ENDS[kind])

    def obey_the_stop(self, who: int, kind: sv.ExitKind) -> None:
        asked = sorted(self.asked, key=lambda key: (key[0].name, key[1]))
        if asked:
            event("stopped as asked")
            self.finish(*asked[who % len(asked)], ENDS[kind])

    def finish(self, entry: Entry, generation: int, how: Exit) -> None:
        del self.tasks[entry, generation]
        self.asked.discard((entry, generation))
        self.timers.pop(entry, None)
        self.old.append((entry, generation))
        self.feed(Exited(entry, generation, how))

    def hear_late_news(self, who: int) -> None:
        """News of a generation that is over changes nothing and orders nothing."""
        if not self.old:
            return
        entry, generation = self.old[-1 - who % len(self.old)]
        before = (entry.state, entry.generation, self.plan.live, self.plan.moving, self.plan.restarts)
        orders = self.plan.handle(Started(entry, generation), self.now_s)
        orders += self.plan.handle(Exited(entry, generation, CRASH), self.now_s)

        assert orders == []
        assert before == (entry.state, entry.generation, self.plan.live, self.plan.moving, self.plan.restarts)

    def stop(self, name: str, by_handle: bool) -> None:
        entry = next((entry for entry in self.plan.entries if entry.name == name), None)
        if entry is None:
            return
        target = entry if by_handle or self.is_pool else name
        if self.plan.strategy is sv.Strategy.ONE_FOR_ONE:
            self.on_purpose.add(entry)
        if self.plan._sweep is not None:
            event("stopped in a group restart")
            self.left_out[entry] = self.plan._sweep
        begun = entry.generation
        self.feed(StopAsked(target, self.ticket()))

        assert entry.generation == begun, "a stop never starts anything"

    def restart(self, name: str) -> None:
        entry = self.plan.names.get(name)
        if entry is not None:
            self.on_purpose.discard(entry)
        self.feed(RestartAsked(name, self.ticket()))

    def delete(self, name: str) -> None:
        ticket = self.ticket()
        self.feed(DeleteAsked(name, ticket))

        assert ticket.verdict is not None, "a delete is answered at once"

    def let_time_pass(self, seconds: float) -> None:
        self.now_s += seconds
        for entry, (at_s, generation) in list(self.timers.items()):
            if at_s <= self.now_s and self.timers.get(entry) == (at_s, generation):
                del self.timers[entry]
                self.feed(Woke(entry, generation))

    def try_again(self) -> None:
        event("another attempt")
        soon, self.soon = self.soon, []
        for entry, generation in soon:
            self.feed(Woke(entry, generation))

    def close(self, kill: bool) -> None:
        self.feed(KillAll() if kill else CloseAsked())

    @rule(act=ANY_ACTS)
    def act(self, act: tuple[str, Any]) -> None:
        match act:
            case ("add", (name, restart, shutdown_s, backoff)):
                self.add(name, restart, shutdown_s, backoff)
            case ("end", (who, kind)):
                self.end(who, kind)
            case ("obey", (who, kind)):
                self.obey_the_stop(who, kind)
            case ("late", who):
                self.hear_late_news(who)
            case ("stop", (name, by_handle)):
                self.stop(name, by_handle)
            case ("restart", (name, _)) if not self.is_pool:
                self.restart(name)
            case ("delete", (name, _)) if not self.is_pool:
                self.delete(name)
            case ("time", seconds):
                self.let_time_pass(seconds)
            case ("up", _):
                self.come_up()
            case ("again", _):
                self.try_again()
            case ("close", kill) if len(self.old) > 8:
                self.close(kill)

    @invariant()
    def the_books_are_right(self) -> None:
        entries = list(self.plan.entries)
        with_task = [entry for entry in entries if entry.state in WITH_TASK]
        assert sorted((e.name, e.generation) for e in with_task) == sorted((e.name, g) for e, g in self.tasks)
        assert self.plan.live == len(with_task)
        moving = [e for e in with_task if e.state is not ChildState.RUNNING and not e.stuck]
        assert self.plan.moving == len(moving)
        if not self.is_pool:
            assert {entry.name: entry for entry in entries} == self.plan.names
        assert self.plan.unanswered == sum(ticket.verdict is None for ticket in self.tickets)

    @invariant()
    def the_budget_holds(self) -> None:
        recent = [t for t in self.restart_times if self.now_s - t <= PERIOD_S]
        assert len(recent) <= self.restarts
        if self.plan.closing is None and self.plan.strategy is not sv.Strategy.ONE_FOR_ONE:
            starting = [e for e in self.plan.entries if e.state is ChildState.STARTING]
            assert len(starting) <= 1, "a group starts one child at a time"

    @invariant()
    def a_close_goes_last_to_first(self) -> None:
        if self.plan.closing is None or self.is_pool:
            return
        running = [i for i, e in enumerate(self.plan.entries) if e.state in {ChildState.RUNNING, ChildState.STARTING}]
        stopping = [i for i, e in enumerate(self.plan.entries) if (e, e.generation) in self.asked and not e.stuck]
        # Those that were stopping already when the close began may stand anywhere; one at least is the last.
        if running and self.tasks:
            assert stopping or any(entry.stuck for entry in self.plan.entries), "the close stands still"

    def teardown(self) -> None:
        if not hasattr(self, "plan"):
            return
        # Let everything come to its end: every command gets an answer, every child ends, the plan closes.
        for _ in range(500):
            if self.asked:
                for entry, generation in list(self.asked):
                    self.finish(entry, generation, OBEYED)
            elif pending := [key for key, up in self.tasks.items() if not up]:
                self.tasks[pending[0]] = True
                self.feed(Started(*pending[0]))
            elif self.soon:
                self.try_again()
            elif any(ticket.verdict is None for ticket in self.tickets):
                self.let_time_pass(3.0)
            elif self.plan.closing is None:
                self.feed(CloseAsked())
            else:
                break

        assert self.closed
        assert all(ticket.verdict is not None for ticket in self.tickets)
        assert not self.tasks


TestOneThingAtATime = OneThingAtATime.TestCase
TestAnyOrder = AnyOrder.TestCase


def test_the_verdicts_are_those_the_naive_supervisor_knows() -> None:
    assert {"ok", "already started", "already present", "not found", "running", "start failed", "closed"} <= {
        verdict.value for verdict in Verdict
    }
