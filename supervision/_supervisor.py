"""What users hold: a supervisor, a pool, and the block that opens the first of them."""

# pyright: reportPrivateUsage=false
# A handle's private half belongs to its package; users see only its public one.

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Final

import attrs
import trio

from supervision._backoff import Backoff
from supervision._child import Child, ChildStatus
from supervision._engine import Engine
from supervision._errors import InvalidSpec, Shutdown, StartFailed, SupervisorClosed
from supervision._hub import Events, Hub
from supervision._intensity import RestartIntensity
from supervision._news import CloseReason, DeleteAsked, RestartAsked, StopAsked
from supervision._opened import Opened
from supervision._plan import Plan
from supervision._specs import AnySpec, AutoShutdown, ChildSpec, PoolSpec, Restart, Strategy, SupervisorSpec
from supervision._states import Ticket
from supervision._tree import SupervisorNode

__all__ = ["Pool", "Supervisor", "SupervisorStatistics", "open_root"]


@attrs.frozen(kw_only=True)
class SupervisorStatistics:
    """A snapshot of the counters of one generation of a supervisor."""

    children: int
    """Children it knows, stopped ones included."""
    active: int
    """Children with a task."""
    active_peak: int
    """The most there ever were."""
    restarts: int
    """Restarts it ordered, ever."""
    restarts_in_window: int
    """How much of its budget is used."""


class _Overseer:
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
        return self._working().picture(pool_children_max)

    def events(self, *, capacity: int = 1024) -> Events:
        """Open a bounded stream of what happens here and below: ``async with root.events() as events``."""
        return Events(self._hub, self._path, capacity)

    def statistics(self) -> SupervisorStatistics:
        """Return its counters."""
        plan = self._working().plan
        return SupervisorStatistics(
            children=len(plan.entries),
            active=plan.live,
            active_peak=plan.live_peak,
            restarts=plan.restarts,
            restarts_in_window=plan.window.count(trio.current_time()),
        )

    def children(self) -> tuple[Child, ...]:
        """Return handles to its children, in start order."""
        return tuple(entry.handle for entry in self._working().plan.entries)  # type: ignore[misc]

    def _working(self) -> Engine:
        if self._engine is None:
            raise SupervisorClosed(self._path)
        return self._engine


class Supervisor(_Overseer):
    """Keeps named children alive by one strategy and one shared restart budget. Given, never made."""

    async def start_child(self, spec: AnySpec) -> Child:
        """Start a child and wait until it says started.

        Raises:
            StartFailed: It ended before, or its time ran out; nothing of it is kept. Its own exception is the cause.
            AlreadyStarted: The name is that of a living child.
            AlreadyPresent: The name is that of a stopped child.
            InvalidSpec: The spec makes no sense under this supervisor.
            SupervisorClosed: It takes no commands any more.

        Cancelled:
            Before the child said started, it is stopped and forgotten. After, it runs.
        """
        return await self._working().add(spec)

    def start_child_nowait(self, spec: AnySpec) -> Child:
        """Take in a child and schedule its start; it is visible on return.

        Raises:
            AlreadyStarted, AlreadyPresent, InvalidSpec, SupervisorClosed: As in `start_child`.
        """
        return self._working().add_nowait(spec)[0]

    async def stop_child(self, child: str | Child) -> None:
        """Stop a child and wait until it has ended; it is not brought back. A temporary child is forgotten.

        Raises:
            ChildNotFound: There is none of this name.
            ChildWillNotStop: It was asked and killed, and goes on.

        Cancelled:
            Only the wait ends; the child is stopped all the same.
        """
        ticket, target = Ticket(), _target(child)
        await self._working().command(StopAsked(target, ticket), ticket, _name(child))

    async def restart_child(self, child: str | Child) -> Child:
        """Start a stopped child again and wait until it says started.

        Raises:
            StartFailed: It did not come up and stays stopped. Its own exception is the cause.
            ChildNotFound: There is none of this name.
            ChildIsRunning: It is not stopped.
            ChildIsRestarting: Its supervisor is bringing it back already.

        Cancelled:
            Before it said started, it is stopped again. After, it runs.
        """
        engine, ticket = self._working(), Ticket()
        news = RestartAsked(_target(child), ticket)
        await engine.command(news, ticket, _name(child), undo_start=True)
        assert ticket.entry is not None, "a start that went well has a child"
        handle = ticket.entry.handle
        assert isinstance(handle, Child), "a child that is up has its handle"
        return handle

    def delete_child(self, child: str | Child) -> None:
        """Forget a stopped child.

        Raises:
            ChildNotFound: There is none of this name.
            ChildIsRunning: It is not stopped.
            ChildIsRestarting: It is between two attempts.
        """
        ticket = Ticket()
        self._working().command_nowait(DeleteAsked(_target(child), ticket), ticket, _name(child))

    def child(self, name: str) -> Child | None:
        """Return the child of this name, if there is one."""
        entry = self._working().plan.find(name)
        return entry.handle if entry is not None else None  # type: ignore[return-value]

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
        """Start a supervisor below this one; an ordinary child, with a strategy and budget of its own.

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
            intensity=intensity or RestartIntensity(),
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
            intensity=intensity or RestartIntensity(),
            auto_shutdown=auto_shutdown,
            restart=restart,
            significant=significant,
            backoff=backoff,
        )
        child = await self.start_child(spec)
        pool: Pool = child.value
        return pool


class Pool(_Overseer):
    """Keeps many children alive that share no names and no order. Given, never made."""

    def __len__(self) -> int:
        return len(self._engine.plan.entries) if self._engine is not None else 0

    async def start_child(self, spec: AnySpec) -> Child:
        """Start a child and wait until it says started; its name is only a label.

        Raises:
            StartFailed: It ended before, or its time ran out; nothing of it is kept. Its own exception is the cause.
            InvalidSpec: The spec makes no sense in this pool.
            SupervisorClosed: It takes no commands any more.

        Cancelled:
            Before the child said started, it is stopped and forgotten. After, it runs.
        """
        return await self._working().add(spec)

    def start_child_nowait(self, spec: AnySpec) -> Child:
        """Take in a child and schedule its start; it is visible on return.

        Raises:
            InvalidSpec, SupervisorClosed: As in `start_child`.
        """
        return self._working().add_nowait(spec)[0]

    async def stop_child(self, child: Child) -> None:
        """Stop a child and wait until it has ended; it is forgotten. One that is gone already is fine.

        Raises:
            ChildWillNotStop: It was asked and killed, and goes on.

        Cancelled:
            Only the wait ends; the child is stopped all the same.
        """
        ticket = Ticket()
        await self._working().command(StopAsked(child._entry, ticket), ticket, child.name)


def _target(child: str | Child) -> Any:
    return child if isinstance(child, str) else child._entry


def _name(child: str | Child) -> str:
    return child if isinstance(child, str) else child.name


def _engine_for(path: str, spec: SupervisorSpec | PoolSpec, hub: Hub) -> Engine:
    is_pool = isinstance(spec, PoolSpec)
    plan = Plan(
        path,
        strategy=Strategy.ONE_FOR_ONE if isinstance(spec, PoolSpec) else spec.strategy,
        intensity=spec.intensity,
        auto_shutdown=spec.auto_shutdown,
        is_pool=is_pool,
    )
    return Engine(plan, hub, _serve_nested)


async def _serve_nested(parent: Engine, spec: SupervisorSpec | PoolSpec, status: ChildStatus[Any]) -> None:
    """Run one generation of a supervisor that is a child."""
    child, hub = status.child, parent.hub
    engine = _engine_for(child.path, spec, hub)
    if child._owned is None:
        made = Pool if isinstance(spec, PoolSpec) else Supervisor
        child._owned = made(spec.name, child.path, hub)
    child._owned._engine = engine
    # Cancelled means killed: nobody waits for the children's clean-up any more.
    async with Opened(engine, when_cancelled=engine.kill_all, cancel_grace_s=0.0):
        status.on_stop(engine.close)
        try:
            await _start_all(engine, spec)
        except (StartFailed, SupervisorClosed):
            if not status.asked:
                raise
        status.started(child._owned)
        await engine.closed.wait()
    raise Shutdown((engine.plan.closing or CloseReason.ASKED).value)


async def _start_all(engine: Engine, spec: SupervisorSpec | PoolSpec) -> None:
    if isinstance(spec, SupervisorSpec):
        for child in spec.children:
            await engine.add(child)


class _Root(AbstractAsyncContextManager[Supervisor]):
    """The block in which a root supervisor lives."""

    def __init__(self, spec: SupervisorSpec, cancel_grace_s: float) -> None:
        self._spec: Final = spec
        self._cancel_grace_s: Final = cancel_grace_s
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Supervisor:
        spec, hub = self._spec, Hub()
        root = Supervisor(spec.name, spec.name, hub)
        engine = root._engine = _engine_for(spec.name, spec, hub)
        async with AsyncExitStack() as stack:
            opened = Opened(engine, when_cancelled=engine.close, cancel_grace_s=self._cancel_grace_s)
            await stack.enter_async_context(opened)
            await _start_all(engine, spec)
            self._stack = stack.pop_all()
        return root

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)


def open_root(
    name: str = "root",
    *,
    strategy: Strategy = Strategy.ONE_FOR_ONE,
    intensity: RestartIntensity | None = None,
    auto_shutdown: AutoShutdown = AutoShutdown.NEVER,
    children: tuple[ChildSpec | SupervisorSpec | PoolSpec, ...] = (),
    cancel_grace_s: float = 30.0,
) -> AbstractAsyncContextManager[Supervisor]:
    """Open a root supervisor around a block: ``async with open_root() as root``.

    When the block ends, for whatever reason, the children are stopped, last first, and then it is left. What comes
    out is what the block raised, or what the supervisor failed with; both together come as a group of the two.

    Args:
        name: The first part of every path below.
        strategy: Which siblings share the fate of a child that is restarted.
        intensity: The restart budget of its children; None is 3 restarts within 5 seconds.
        auto_shutdown: Whether it ends by itself with its significant children: the block is then cancelled and left
            without an error.
        children: Started in this order before the block is entered.
        cancel_grace_s: How long, when the block is cancelled from outside, the ordered stop may take before every
            child that is left is killed.

    Raises:
        RestartIntensityExceeded: Children ended too often. The block was cancelled, the children were stopped.
        StartFailed: One of ``children`` did not start; those before it were stopped again, last first.
        InvalidSpec: Something makes no sense; the error names the field and the rule.

    Cancelled:
        The children are stopped in order within ``cancel_grace_s``, then killed; nothing is left running.
    """
    if not cancel_grace_s >= 0:
        raise InvalidSpec("open_root.cancel_grace_s", "must be at least 0 seconds")
    spec = SupervisorSpec(
        name=name,
        strategy=strategy,
        intensity=intensity or RestartIntensity(),
        auto_shutdown=auto_shutdown,
        children=children,
    )
    return _Root(spec, cancel_grace_s)
