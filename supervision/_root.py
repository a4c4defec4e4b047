"""The block that opens a tree of supervisors, and the task of each supervisor further down."""

# pyright: reportPrivateUsage=false
# A handle's private half belongs to its package; users see only its public one.

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Final, NoReturn

from supervision._child import ChildStatus
from supervision._engine import Engine
from supervision._errors import Shutdown, StartFailed, SupervisorClosed
from supervision._hub import Hub
from supervision._intensity import RestartIntensity
from supervision._news import CloseReason
from supervision._opened import Opened
from supervision._plan import Plan
from supervision._rules import check_seconds
from supervision._specs import AutoShutdown, ChildSpec, PoolSpec, Strategy, SupervisorSpec
from supervision._supervisor import Pool, Supervisor

__all__ = ["open_root"]


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
            await _start_all(child._owned, spec)
        except (StartFailed, SupervisorClosed):
            if not status._asked:
                raise
        status.started(child._owned)
        await engine.closed.wait()
    raise Shutdown((engine.plan.closing or CloseReason.ASKED).value)


async def _start_all(supervisor: Supervisor | Pool, spec: SupervisorSpec | PoolSpec) -> None:
    if isinstance(spec, SupervisorSpec):
        for child in spec.children:
            await supervisor.start_child(child)


class _Root(AbstractAsyncContextManager[Supervisor]):
    """The block in which a root supervisor lives."""

    def __init__(self, spec: SupervisorSpec, cancel_grace_s: float) -> None:
        self._spec: Final = spec
        self._cancel_grace_s: Final = cancel_grace_s
        self._stack = AsyncExitStack()

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_not_entered(f"so there is no {name!r} yet"), name=name, obj=self)

    # Python looks these up in the class. No type checker sees them: `open_root` promises to be entered, and no more.

    def __await__(self) -> NoReturn:
        raise TypeError(_not_entered("and there is nothing to await"))

    def __aiter__(self) -> NoReturn:
        raise TypeError(_not_entered("so there is nothing to iterate"))

    def __enter__(self) -> NoReturn:
        raise TypeError(_not_entered("and `with` alone cannot"))

    def __exit__(self, *_: object) -> None:
        """Never reached: `with` looks for it before it enters."""

    async def __aenter__(self) -> Supervisor:
        spec, hub = self._spec, Hub()
        root = Supervisor(spec.name, spec.name, hub)
        engine = root._engine = _engine_for(spec.name, spec, hub)
        async with AsyncExitStack() as stack:
            opened = Opened(engine, when_cancelled=engine.close, cancel_grace_s=self._cancel_grace_s)
            await stack.enter_async_context(opened)
            await _start_all(root, spec)
            self._stack = stack.pop_all()
        return root

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)


def _not_entered(what: str) -> str:
    return f"open_root() was not entered, {what}: write `async with open_root() as root:`"


def open_root(
    name: str = "root",
    *,
    strategy: Strategy = Strategy.ONE_FOR_ONE,
    intensity: RestartIntensity | None = None,
    auto_shutdown: AutoShutdown = AutoShutdown.NEVER,
    children: tuple[ChildSpec[Any] | SupervisorSpec | PoolSpec, ...] = (),
    cancel_grace_s: float = 30.0,
) -> AbstractAsyncContextManager[Supervisor]:
    """Open a root supervisor around a block: ``async with open_root() as root``.

    When the block ends, for whatever reason, the children are stopped, last first, and then it is left. What comes
    out is what the block raised, or what the supervisor failed with; both together come as a group of the two.

    Args:
        name: The first part of every path below.
        strategy: Which siblings share the fate of a child that is restarted.
        intensity: The restart intensity of its children; None is 3 restarts within 5 seconds.
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
    check_seconds("open_root.cancel_grace_s", cancel_grace_s, zero="kills at once", infinite="waits")
    spec = SupervisorSpec(
        name=name,
        strategy=strategy,
        intensity=RestartIntensity() if intensity is None else intensity,
        auto_shutdown=auto_shutdown,
        children=children,
    )
    return _Root(spec, cancel_grace_s)
