"""The waiting half of one generation of a supervisor: it tells the plan the news and obeys its orders.

It decides nothing. Its children live in a nursery that outside cancellation does not reach: being cancelled is news
like any other, and the plan answers it with an ordered stop that has a bound.
"""

# pyright: reportPrivateUsage=false
# A handle's private half belongs to its package; users see only its public one.

import random
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Final

import trio
from trio.lowlevel import current_task, reschedule

from supervision._child import Child, ChildStatus
from supervision._errors import SupervisorClosed
from supervision._exits import Exit
from supervision._hub import Hub
from supervision._life import live
from supervision._news import (
    Add,
    Answer,
    Ask,
    Close,
    CloseAsked,
    CloseReason,
    Exited,
    Kill,
    KillAll,
    News,
    Order,
    Report,
    Rested,
    Start,
    Started,
    StopAsked,
    Wake,
    WakeSoon,
    Woke,
)
from supervision._parking import AWAKE, park
from supervision._plan import Plan
from supervision._refusals import raise_refused
from supervision._specs import (
    NO_SUBJECT,
    SPEC_KINDS,
    TEMPORARY,
    AnySpec,
    ChildSpec,
    PoolSpec,
    SupervisorSpec,
    check_fits,
    check_spec,
)
from supervision._states import GONE, RUNNING, STARTING, Entry, Ticket, Verdict
from supervision._timers import Timers

__all__: list[str] = []


async def _raise(error: BaseException) -> None:
    raise error


class Engine:
    """One generation of a supervisor at work."""

    def __init__(self, plan: Plan, hub: Hub, serve_nested: "ServeNested") -> None:
        self.plan: Final = plan
        self.path: Final = plan.path
        self.hub: Final = hub
        self.timers: Final = Timers(self._woke, plan.activity)
        self.closed: Final = trio.Event()
        # Called once, when the supervisor begins to end for whatever reason.
        self.on_closing: Callable[[CloseReason], object] | None = None
        self._serve_nested = serve_nested
        self._nursery: trio.Nursery | None = None
        self._backlog: deque[Order] = deque()
        self._obeying = False
        # The clock of the run by itself: `trio.current_time` looks it up each time.
        self._now_s = trio.lowlevel.current_clock().current_time
        # While the end of a generation is judged whose task can go on: its child, and what it goes on with.
        self._leaving: Child[Any] | None = None
        self._following: ChildStatus[Any] | None = None

    # --- Telling and obeying ---

    def feed(self, news: News) -> None:
        """Tell the plan and carry out what it orders, before anything else happens."""
        plan = self.plan
        was_closing = plan.closing
        orders = plan.handle(news, self._now_s())
        if self._obeying:
            # An `on_stop` of the user called us back: what was ordered before goes first.
            self._backlog.extend(orders)
        else:
            self._obeying = True
            try:
                for order in orders:
                    _OBEY[type(order)](self, order)
                while self._backlog:
                    order = self._backlog.popleft()
                    _OBEY[type(order)](self, order)
            finally:
                self._obeying = False
        if plan.closing is not None and was_closing is None and self.on_closing is not None:
            self.on_closing(plan.closing)

    def _start(self, order: Start) -> None:
        entry = order.entry
        child: Child[Any] = entry.handle
        status: ChildStatus[Any] = ChildStatus(child, entry.generation)
        child._status = status
        nursery, context = self._nursery, child._context
        assert nursery is not None, "orders come only while the supervisor is open"
        if child is self._leaving:
            self._leaving, self._following = None, status
        elif context is None:
            nursery.start_soon(live, child, status, name=entry.spec.name)
        else:
            start_soon: Any = nursery.start_soon  # Its keyword is lost on the way through `run`, for type checkers.
            context.run(start_soon, live, child, status, name=entry.spec.name)
        self.timers.set_start(entry, order.wake_at_s)

    def _ask(self, order: Ask) -> None:
        self.timers.set(order.entry, order.wake_at_s)
        child: Child[Any] = order.entry.handle
        if child._status is not None:
            child._status._ask()

    def _kill(self, order: Kill) -> None:
        self.timers.set(order.entry, order.wake_at_s)
        child: Child[Any] = order.entry.handle
        if child._status is not None:
            child._status._kill()

    def _wake(self, order: Wake) -> None:
        self.timers.set(order.entry, order.wake_at_s)

    def _wake_soon(self, order: WakeSoon) -> None:
        self.timers.soon(order.entry)

    def _rested(self, order: Rested) -> None:
        entry = order.entry
        if entry.timer is not None:
            self.timers.clear(entry)
        child: Child[Any] = entry.handle
        child._status = None
        if isinstance(entry.spec, ChildSpec) and entry.spec.on_gone is not None:
            cause = entry.last_exit.cause if entry.last_exit is not None else None
            try:
                if child._subject is NO_SUBJECT:
                    entry.spec.on_gone(cause)
                else:
                    entry.spec.on_gone(child._subject, cause)
            except BaseException as error:  # Not through this step, which is nobody's and must be done whole.
                self._break(error)
        child._changed()
        if entry.state is GONE:
            # Without this the two would hold each other until a collection.
            entry.handle = None

    def _break(self, error: BaseException) -> None:
        """End this supervisor by what a function of its user's raised where there was no child to blame."""
        if self._nursery is None:
            raise error
        self._nursery.start_soon(_raise, error)
        self.feed(KillAll())

    def _answer(self, order: Answer) -> None:
        ticket = order.ticket
        if ticket.task is not None:
            task: trio.lowlevel.Task = ticket.task
            ticket.task = None
            # Not if it was cancelled in this same turn: trio clears this when it wakes or cancels a task.
            if task.custom_sleep_data is ticket:
                reschedule(task, AWAKE)

    def _close(self, order: Close) -> None:
        self.hub.leave(self.path, self.plan)
        self.closed.set()

    def _report(self, order: Report) -> None:
        self.hub.emit(order.event)

    # --- News from children ---

    def child_started(self, child: Child[Any], generation: int, value: object) -> None:
        """Pass on that a child said started."""
        self.hub.check_run(self.path)
        entry = child._entry
        if entry.generation != generation:
            return
        if entry.state is STARTING:
            child._value = value
            if entry.timer is not None:
                self.timers.clear(entry)
            self.feed(Started(entry, generation))
            if child._waiters is not None:
                child._changed()
        elif entry.state is RUNNING:
            raise RuntimeError(f"{child.path} said started twice")

    def child_exited(
        self, child: Child[Any], generation: int, how: Exit, *, clean: bool, goes_on: bool
    ) -> ChildStatus[Any] | None:
        """Pass on that a generation of a child has ended; give the one that its task shall go on with, if it can."""
        entry = child._entry
        if entry.timer is not None:
            self.timers.clear(entry)
        if not clean:
            self.feed(KillAll())
        chance = random.random() if entry.spec.backoff is not None else 0.5  # noqa: S311  # Jitter is no secret.
        if goes_on:
            self._leaving = child
        try:
            self.feed(Exited(entry, generation, how, chance))
            return self._following
        finally:
            self._leaving = self._following = None

    def _woke(self, entry: Entry, generation: int) -> None:
        self.feed(Woke(entry, generation))
        if entry.stuck:
            child: Child[Any] = entry.handle
            child._changed()

    async def serve_nested(self, spec: SupervisorSpec | PoolSpec, status: ChildStatus[Any]) -> None:
        """Run a supervisor that is a child of this one."""
        await self._serve_nested(self, spec, status)

    # --- Commands ---

    def add_nowait(self, spec: AnySpec, subject: object = NO_SUBJECT) -> tuple[Child[Any], Ticket]:
        """Take in a child and schedule its start."""
        if type(spec) not in SPEC_KINDS:
            check_spec("spec", spec)
        if spec.significant or spec.backoff is not None:
            check_fits(spec, self.plan.intensity, self.plan.auto_shutdown)
        if self._nursery is None:
            raise SupervisorClosed(self.path)
        # The only generation of a temporary child in a pool starts right here, in the context of whoever adds it.
        once = self.plan.is_pool and spec.restart is TEMPORARY and not self._obeying
        child: Child[Any] = Child(self, spec, None if once else copy_context(), subject)
        ticket = Ticket()
        self.feed(Add(child._entry, ticket))
        if ticket.verdict is not None and ticket.verdict is not Verdict.START_FAILED:
            raise_refused(self.path, ticket, spec.name)
        return child, ticket

    def command_nowait(self, news: News, ticket: Ticket, name: str) -> None:
        """Give a command that is answered at once."""
        if self._nursery is None:
            raise SupervisorClosed(self.path)
        self.feed(news)
        if ticket.verdict is not Verdict.OK:
            raise_refused(self.path, ticket, name)

    async def command(self, news: News, ticket: Ticket, name: str, *, undo_start: bool = False) -> None:
        """Give a command and wait for its answer."""
        if self._nursery is None:
            raise SupervisorClosed(self.path)
        self.feed(news)
        undo = self.plan.find(name) if undo_start and ticket.verdict is None else None
        await self.answered(ticket, undo)
        if ticket.verdict is not Verdict.OK:
            raise_refused(self.path, ticket, name)

    async def answered(self, ticket: Ticket, undo: Entry | None = None) -> None:
        """Wait for an answer; when cancelled, stop what was to be started."""
        if ticket.verdict is not None:
            await trio.lowlevel.checkpoint()
            return
        ticket.task = task = current_task()
        task.custom_sleep_data = ticket
        try:
            await park()
        except BaseException:  # A cancel or Ctrl-C; answers raise nothing here.
            # Also when the answer came in the same turn: whoever was cancelled never learns of it.
            if undo is not None:
                self.request_stop(undo)
            raise

    def request_stop(self, entry: Entry) -> None:
        """Stop a child without waiting."""
        if self._nursery is not None:
            self.feed(StopAsked(entry, Ticket()))

    def close(self) -> None:
        """Begin the ordered stop of everything."""
        if self._nursery is not None:
            self.feed(CloseAsked())

    def kill_all(self) -> None:
        """Begin the immediate stop of everything."""
        if self._nursery is not None:
            self.feed(KillAll())

    # --- The nursery ---

    async def hold_children(self, task_status: trio.TaskStatus[None]) -> None:
        """Own the children's nursery until the plan has closed."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery(strict_exception_groups=True) as nursery:
                self._nursery = nursery
                self.hub.join(self.plan)
                nursery.start_soon(self.timers.run, name=f"timers of {self.path}")
                task_status.started()
                await self.closed.wait()
                self._nursery = None
                nursery.cancel_scope.cancel()


ServeNested = Callable[[Engine, SupervisorSpec | PoolSpec, ChildStatus[Any]], Any]

_OBEY: Final[dict[type[Any], Callable[[Engine, Any], None]]] = {
    Start: Engine._start,
    Ask: Engine._ask,
    Kill: Engine._kill,
    Wake: Engine._wake,
    WakeSoon: Engine._wake_soon,
    Rested: Engine._rested,
    Answer: Engine._answer,
    Close: Engine._close,
    Report: Engine._report,
}
