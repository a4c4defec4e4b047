"""A child as its supervisor's users hold it, and what each of its generations is given."""

# pyright: reportPrivateUsage=false
# A handle's private half belongs to its package; users see only its public one.

from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar, cast, overload

import trio

from supervision._book import KILL_WAIT_S
from supervision._errors import ChildWillNotStop
from supervision._exits import KILLED, OBEYED, Exit, exit_of
from supervision._refusals import raise_start_failed
from supervision._rules import refuse
from supervision._specs import AnySpec
from supervision._states import ChildState, Entry

if TYPE_CHECKING:
    from supervision._engine import Engine

__all__ = ["Child", "ChildStatus"]

T_contra = TypeVar("T_contra", contravariant=True)
V_co = TypeVar("V_co", covariant=True)

_DOWN = frozenset({ChildState.STOPPED, ChildState.GONE})


class Sleeper(Protocol):
    """Whatever can wake a child that sleeps outside of its cancel scope."""

    def wake(self) -> None:
        """Wake the child if it sleeps."""
        ...


if TYPE_CHECKING:
    # To checkers it is one of trio's, so that functions written for `nursery.start` keep the type of their value.
    # At run time that base would bring a dict for each child.
    from trio import TaskStatus as _TaskStatus
else:
    _TaskStatus = Generic


class ChildStatus(_TaskStatus[T_contra]):
    """What one generation of a child is given as ``task_status``: how it speaks to its supervisor."""

    __slots__ = ("_child", "_fault", "_inside", "_on_stop", "_pressed", "_scope", "_sleeper", "generation")

    def __init__(self, child: "Child[Any]", generation: int) -> None:
        self._child = child
        self._on_stop: Callable[[], object] | None = None
        self._scope: trio.CancelScope | None = None
        self._inside = False
        self._sleeper: Sleeper | None = None
        self.generation: int = generation
        """Which life of the child this is; the first is 1."""
        # How hard it was pressed to stop: not at all, asked, killed.
        self._pressed = 0
        # What its `on_stop` function raised.
        self._fault: BaseException | None = None

    @property
    def _asked(self) -> bool:
        """Whether it was asked to stop."""
        return self._pressed > 0

    @property
    def _killed(self) -> bool:
        """Whether it was cancelled for good."""
        return self._pressed > 1

    @property
    def path(self) -> str:
        """The child's address, from the root down."""
        return self._child.path

    @property
    def child(self) -> "Child[Any]":
        """The child this is a generation of."""
        return self._child

    @overload
    def started(self: "ChildStatus[None]", value: None = None) -> None: ...
    @overload
    def started(self, value: T_contra) -> None: ...
    def started(self, value: T_contra | None = None) -> None:
        """Say that the child can serve; ``value`` becomes `Child.value`. Once only."""
        self._child._engine.child_started(self._child, self.generation, value)

    def on_stop(self, callback: Callable[[], object]) -> None:
        """Be asked to stop by a call of this plain function instead of by cancellation.

        Cancellation still follows after ``shutdown_s``. If the function raises, the child is cancelled at once, and
        what it raised counts as what the child raised.
        """
        if not callable(callback):
            refuse("on_stop", "must be a plain function without arguments", callback)
        self._child._engine.hub.check_run(self._child.path)
        self._on_stop = callback
        if self._asked:
            self._ask()

    def _ask(self) -> None:
        """Ask politely: call what was registered, else cancel."""
        self._pressed = self._pressed or 1
        if self._on_stop is None:
            self._cancel()
            return
        try:
            self._on_stop()
        except BaseException as error:  # It concerns the child, not whoever asked for the stop: they may be anyone.
            self._fault = error
            self._cancel()

    def _kill(self) -> None:
        """Cancel it."""
        self._pressed = 2
        self._cancel()

    def _cancel(self) -> None:
        if self._scope is None:
            self._scope = trio.CancelScope()
        self._scope.cancel()
        if self._sleeper is not None and not self._inside:
            self._sleeper.wake()

    def wake_by(self, sleeper: Sleeper, on_stop: Callable[[], object] | None = None) -> None:
        """Say how to wake a child of `ChildSpec.enters_late` that sleeps outside of its cancel scope.

        It is woken to be cancelled: it calls `enter`, and its next wait raises. What is given as ``on_stop`` is called
        like that of `on_stop`; to say both at once is cheaper.
        """
        self._sleeper = sleeper
        if on_stop is not None:
            self._on_stop = on_stop
            if self._pressed:
                self._ask()

    def enter(self) -> None:
        """Enter the child's cancel scope, in its own task and outside of every other scope; again is quiet.

        Only a child of `ChildSpec.enters_late` does so itself. What the scope has to do at the end is done for it.
        """
        if not self._inside:
            self._inside = True
            if self._scope is None:
                self._scope = trio.CancelScope()
            self._scope.__enter__()

    def _leave(self, error: BaseException | None) -> bool:
        """Leave the scope with what came out of the child; say whether it was the cancellation of the scope."""
        if not self._inside or self._scope is None:
            return False
        return (
            self._scope.__exit__(type(error), error, error.__traceback__)
            if error is not None
            else (self._scope.__exit__(None, None, None))
        )

    def _end(self, how: Exit) -> Exit:
        """Say how this generation ended, from how its function did; raise what ends more than a child."""
        if isinstance(self._fault, Exception):
            return exit_of(self._fault)
        if self._fault is not None:
            raise self._fault
        if self._scope is not None and self._scope.cancelled_caught:
            return KILLED if self._killed else OBEYED
        return how


class Child(Generic[V_co]):
    """A handle to one child over all its generations, typed by its value. Given by a supervisor, never made."""

    __slots__ = ("_context", "_engine", "_entry", "_owned", "_status", "_subject", "_value", "_waiters")

    def __init__(self, engine: "Engine", spec: AnySpec, context: Context | None, subject: object) -> None:
        self._engine = engine
        self._entry = Entry(spec, self)
        # Each generation starts from the context in which the child was added, not from what the last one left. None
        # where there is only one, which starts before the adder goes on.
        self._context = context
        # What tells this child from others of the same spec.
        self._subject = subject
        self._status: ChildStatus[Any] | None = None
        self._value: Any = None
        self._waiters: list[trio.lowlevel.Task] | None = None
        # The handle of a nested supervisor or pool, which outlives its generations.
        self._owned: Any = None

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the handle of {self.path} belongs to its run, and to no pickle: send its path instead")

    def __repr__(self) -> str:
        return f"<Child {self.path} generation {self.generation} {self.state.value}>"

    @property
    def name(self) -> str:
        """Its name in its supervisor."""
        return self._entry.name

    @property
    def path(self) -> str:
        """Its address, from the root down."""
        return f"{self._engine.path}/{self._entry.name}"

    @property
    def spec(self) -> AnySpec:
        """What it is started from."""
        return self._entry.spec

    @property
    def state(self) -> ChildState:
        """What it is doing now."""
        return self._entry.state

    @property
    def generation(self) -> int:
        """Which life it is in; 0 before the first."""
        return self._entry.generation

    @property
    def value(self) -> V_co:
        """What its latest generation gave to ``task_status.started()``; None before the first one has said started."""
        return cast("V_co", self._value)

    async def wait_started(self) -> None:
        """Wait until it is up.

        Raises:
            StartFailed: It ended, or was stopped, without coming up; the cause is its own exception.

        Cancelled:
            Only the wait ends; the child goes on.
        """
        await trio.lowlevel.checkpoint()
        while self._entry.state is not ChildState.RUNNING:
            if self._entry.state in _DOWN:
                raise_start_failed(self._engine.path, self._entry)
            await self._next_change()

    async def wait_stopped(self) -> None:
        """Wait until it is down and no restart is due: stopped, or forgotten.

        Raises:
            ChildWillNotStop: It was killed and goes on.

        Cancelled:
            Only the wait ends.
        """
        await trio.lowlevel.checkpoint()
        while self._entry.state not in _DOWN:
            if self._entry.stuck:
                raise ChildWillNotStop(self.path, self.generation, KILL_WAIT_S)
            await self._next_change()

    def request_stop(self) -> None:
        """Ask it to stop, in the way and with the time its spec says; not brought back. Does not wait."""
        self._engine.hub.check_run(self.path)
        self._engine.request_stop(self._entry)

    async def _next_change(self) -> None:
        task = trio.lowlevel.current_task()
        waiters = self._waiters = self._waiters or []
        waiters.append(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            if task in waiters:
                waiters.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _changed(self) -> None:
        """Wake whoever waits for it to be up or down."""
        waiters, self._waiters = self._waiters, None
        for task in waiters or ():
            trio.lowlevel.reschedule(task)
