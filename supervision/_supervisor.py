"""What users hold: a supervisor or a pool. The block that opens the first of them is in `_root`."""

# pyright: reportPrivateUsage=false
# A handle's private half belongs to its package; users see only its public one.

from typing import Any, NoReturn, Self, TypeVar, cast, overload

import attrs
import trio

from supervision._backoff import Backoff
from supervision._child import Child
from supervision._engine import Engine
from supervision._errors import SupervisorClosed
from supervision._hub import Events, Hub
from supervision._intensity import RestartIntensity
from supervision._news import DeleteAsked, RestartAsked, StopAsked
from supervision._parking import park
from supervision._picture import picture
from supervision._refusals import raise_start_failed
from supervision._rules import check_kind, check_whole, refuse
from supervision._specs import NO_SUBJECT, AnySpec, AutoShutdown, ChildSpec, PoolSpec, Restart, Strategy, SupervisorSpec
from supervision._states import OK, Ticket
from supervision._tree import SupervisorNode

__all__ = ["Pool", "Supervisor", "SupervisorStatistics"]

V = TypeVar("V")


@attrs.frozen(kw_only=True)
class SupervisorStatistics:
    """A snapshot of the counters of one generation of a supervisor.

    Attributes:
        children: Children it knows, stopped ones included.
        active: Children with a task.
        active_peak: The most there ever were.
        restarts: Restarts it ordered, ever.
        restarts_in_window: How many restarts count at present, of those its intensity allows.
    """

    children: int
    active: int
    active_peak: int
    restarts: int
    restarts_in_window: int


class Overseer:
    """What a supervisor and a pool have in common."""

    def __init__(self, name: str, path: str, hub: Hub) -> None:
        self._name, self._path, self._hub = name, path, hub
        # One per generation; the handle outlives them.
        self._engine: Engine | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._path}>"

    @property
    def name(self) -> str:
        """Its name in its own supervisor."""
        return self._name

    @property
    def path(self) -> str:
        """Its address, from the root down."""
        return self._path

    def tree(self, *, pool_children_max: int = 20) -> SupervisorNode:
        """Return a frozen picture of everything below; of each pool at most so many children."""
        check_whole("tree.pool_children_max", pool_children_max, low=0)
        return picture(self._here(), pool_children_max)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the handle of {self._path} belongs to its run, and to no pickle: send its path instead")

    def events(self, *, capacity: int = 1024) -> Events:
        """Open a bounded stream of what happens here and below: ``async with root.events() as events``."""
        return Events(self._hub, self._path, capacity)

    def statistics(self) -> SupervisorStatistics:
        """Return its counters."""
        plan = self._here().plan
        return SupervisorStatistics(
            children=len(plan.entries),
            active=plan.live,
            active_peak=plan.live_peak,
            restarts=plan.restarts,
            restarts_in_window=plan.window.count(trio.current_time()),
        )

    def children(self) -> tuple[Child[Any], ...]:
        """Return handles to its children, in start order."""
        return tuple(entry.handle for entry in self._working().plan.entries)

    @overload
    async def start_child(self, spec: ChildSpec[V], subject: object = NO_SUBJECT) -> Child[V]: ...
    @overload
    async def start_child(self, spec: AnySpec, subject: object = NO_SUBJECT) -> Child[Any]: ...
    async def start_child(self, spec: AnySpec, subject: object = NO_SUBJECT) -> Child[Any]:
        """Start a child and wait until it says started. In a pool its name is only a label.

        Args:
            spec: How to start, restart and stop it.
            subject: Put before the arguments of `ChildSpec.run` and `ChildSpec.on_gone`. So children that differ
                in one thing can share one spec, also 100,000 of them.

        Raises:
            StartFailed: It ended before, or its time ran out; nothing of it is kept. Its own exception is the cause.
            AlreadyStarted: The name is that of a living child.
            AlreadyPresent: The name is that of a stopped child.
            InvalidSpec: The spec makes no sense under this supervisor, or in this pool.
            SupervisorClosed: It takes no commands any more.

        Cancelled:
            Before the child said started, it is stopped and forgotten. After, it runs.
        """
        engine = self._here()
        child, ticket = engine.add_nowait(spec, subject)
        if ticket.verdict is None:
            # As `Engine.answered`, in line: a coroutine more is a hundredth of a start.
            ticket.task = task = trio.lowlevel.current_task()
            task.custom_sleep_data = ticket
            try:
                await park()
            except BaseException:  # A cancel or Ctrl-C. The child is stopped, though it may have come up in this turn.
                engine.request_stop(child._entry)
                raise
        else:
            await trio.lowlevel.checkpoint()
        if ticket.verdict is not OK:
            raise_start_failed(self._path, child._entry)
        return child

    @overload
    def start_child_nowait(self, spec: ChildSpec[V], subject: object = NO_SUBJECT) -> Child[V]: ...
    @overload
    def start_child_nowait(self, spec: AnySpec, subject: object = NO_SUBJECT) -> Child[Any]: ...
    def start_child_nowait(self, spec: AnySpec, subject: object = NO_SUBJECT) -> Child[Any]:
        """Take in a child and schedule its start; it is visible on return.

        Raises:
            AlreadyStarted, AlreadyPresent, InvalidSpec, SupervisorClosed: As in `start_child`.
        """
        return self._here().add_nowait(spec, subject)[0]

    def _here(self) -> Engine:
        """Give the engine to whoever changes something, or needs the clock: only within the run."""
        self._hub.check_run(self._path)
        return self._engine or self._working()

    def _working(self) -> Engine:
        if self._engine is None:
            raise SupervisorClosed(self._path)
        return self._engine


class Supervisor(Overseer):
    """Keeps named children alive by one strategy and one intensity for all. Given, never made."""

    async def stop_child(self, child: str | Child[Any]) -> None:
        """Stop a child and wait until it has ended; it is not brought back. A temporary child is forgotten.

        Raises:
            ChildNotFound: There is none of this name.
            ChildWillNotStop: It was asked and killed, and goes on.

        Cancelled:
            Only the wait ends; the child is stopped all the same.
        """
        ticket, target = Ticket(), _target(child)
        await self._here().command(StopAsked(target, ticket), ticket, _name(child))

    async def restart_child(self, child: str | Child[Any]) -> Child[Any]:
        """Start a stopped child again and wait until it says started.

        Raises:
            StartFailed: It did not come up and stays stopped. Its own exception is the cause.
            ChildNotFound: There is none of this name.
            ChildIsRunning: It is not stopped.
            ChildIsRestarting: Its supervisor is bringing it back already.

        Cancelled:
            Before it said started, it is stopped again. After, it runs.
        """
        engine, ticket = self._here(), Ticket()
        news = RestartAsked(_target(child), ticket)
        await engine.command(news, ticket, _name(child), undo_start=True)
        assert ticket.entry is not None, "a start that went well has a child"
        handle: Child[Any] = ticket.entry.handle
        return handle

    def delete_child(self, child: str | Child[Any]) -> None:
        """Forget a stopped child.

        Raises:
            ChildNotFound: There is none of this name.
            ChildIsRunning: It is not stopped.
            ChildIsRestarting: It is between two attempts.
        """
        ticket = Ticket()
        self._here().command_nowait(DeleteAsked(_target(child), ticket), ticket, _name(child))

    def child(self, name: str) -> Child[Any] | None:
        """Return the child of this name, if there is one."""
        check_kind("child.name", name, str)
        entry = self._working().plan.find(name)
        if entry is None:
            return None
        child: Child[Any] = entry.handle
        return child

    async def start_supervisor(
        self,
        name: str,
        *,
        strategy: Strategy = Strategy.ONE_FOR_ONE,
        intensity: RestartIntensity | None = None,
        auto_shutdown: AutoShutdown = AutoShutdown.NEVER,
        children: tuple[AnySpec, ...] = (),
        restart: Restart = Restart.PERMANENT,
        significant: bool = False,
        backoff: Backoff | None = None,
    ) -> "Supervisor":
        """Start a supervisor below this one; an ordinary child, with a strategy and an intensity of its own.

        The handle stays valid over its restarts. With each one, ``children`` are started anew and all others are gone.

        Raises:
            StartFailed: One of ``children`` did not start; those before it were stopped again.
            AlreadyStarted, AlreadyPresent, InvalidSpec, SupervisorClosed: As in `start_child`.

        Cancelled:
            As in `start_child`.
        """
        spec = SupervisorSpec(
            name=name,
            strategy=strategy,
            intensity=RestartIntensity() if intensity is None else intensity,
            auto_shutdown=auto_shutdown,
            children=children,
            restart=restart,
            significant=significant,
            backoff=backoff,
        )
        child = await self.start_child(spec)
        supervisor: Supervisor = child.value
        return supervisor

    async def start_pool(
        self,
        name: str,
        *,
        intensity: RestartIntensity | None = None,
        auto_shutdown: AutoShutdown = AutoShutdown.NEVER,
        restart: Restart = Restart.PERMANENT,
        significant: bool = False,
        backoff: Backoff | None = None,
    ) -> "Pool":
        """Start a pool below this supervisor: many children, added at run time and stopped all at once.

        The handle stays valid over restarts of the pool, which comes back empty.

        Raises:
            AlreadyStarted, AlreadyPresent, InvalidSpec, SupervisorClosed: As in `start_child`.

        Cancelled:
            As in `start_child`.
        """
        spec = PoolSpec(
            name=name,
            intensity=RestartIntensity() if intensity is None else intensity,
            auto_shutdown=auto_shutdown,
            restart=restart,
            significant=significant,
            backoff=backoff,
        )
        child = await self.start_child(spec)
        pool: Pool = child.value
        return pool


class Pool(Overseer):
    """Keeps many children alive that share no names and no order. Given, never made."""

    def __len__(self) -> int:
        return len(self._engine.plan.entries) if self._engine is not None else 0

    async def stop_child(self, child: Child[Any]) -> None:
        """Stop a child and wait until it has ended; it is forgotten. One that is gone already is fine.

        Raises:
            ChildWillNotStop: It was asked and killed, and goes on.

        Cancelled:
            Only the wait ends; the child is stopped all the same.
        """
        check_kind("child", child, Child)  # Names are only labels here.
        ticket = Ticket()
        await self._here().command(StopAsked(child._entry, ticket), ticket, child.name)


def _target(child: str | Child[Any]) -> Any:
    if isinstance(child, Child):
        return child._entry
    if not isinstance(cast("object", child), str):
        refuse("child", "must be the name of a child or its Child", child)
    return child


def _name(child: str | Child[Any]) -> str:
    return child if isinstance(child, str) else child.name
