"""What to supervise: frozen values that are valid because they exist."""

import enum
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, overload

import attrs

from supervision._backoff import Backoff, check_reachable
from supervision._errors import InvalidSpec
from supervision._functions import check_function
from supervision._intensity import RestartIntensity
from supervision._rules import check_kind, check_name, check_seconds, refuse, shown

if TYPE_CHECKING:
    from typing import Unpack

    from supervision._signatures import ChildOptions, Run, RunWithOne, RunWithThree, RunWithTwo

__all__ = ["AutoShutdown", "ChildSpec", "PoolSpec", "Restart", "Strategy", "SupervisorSpec"]

V = TypeVar("V")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Restart(enum.Enum):
    """When a child that ended without being asked comes back.

    Attributes:
        PERMANENT: Always.
        TRANSIENT: Only after a crash.
        TEMPORARY: Never; it is forgotten when it ends.
    """

    # Members are compared by identity; the hash that `Enum` writes in Python costs 0.3 us.
    if not TYPE_CHECKING:  # To whom it is the same.
        __hash__ = object.__hash__

    PERMANENT = "permanent"
    TRANSIENT = "transient"
    TEMPORARY = "temporary"


# By themselves, as in `_states`.
PERMANENT: Final = Restart.PERMANENT
TEMPORARY: Final = Restart.TEMPORARY


class Strategy(enum.Enum):
    """Which siblings share the fate of a child that is restarted.

    Attributes:
        ONE_FOR_ONE: No sibling does: only the child that ended is started again.
        ONE_FOR_ALL: All siblings do: all are stopped, last first, and started again with it.
        REST_FOR_ONE: Those that were started after it do: they are stopped, last first, and started again with it.
    """

    ONE_FOR_ONE = "one_for_one"
    ONE_FOR_ALL = "one_for_all"
    REST_FOR_ONE = "rest_for_one"


class AutoShutdown(enum.Enum):
    """Whether a supervisor ends when its significant children have ended by themselves.

    Attributes:
        NEVER: No; its children can come and go.
        ANY_SIGNIFICANT: As soon as one of them has ended.
        ALL_SIGNIFICANT: When the last of them has ended.
    """

    NEVER = "never"
    ANY_SIGNIFICANT = "any_significant"
    ALL_SIGNIFICANT = "all_significant"


@attrs.frozen(init=False, eq=False)
class ChildSpec(Generic[V]):
    """How to start, restart and stop one child; typed by what the child gives to ``task_status.started()``.

    Type checkers see that for functions of up to three arguments; with more, or with a subject, it is Any.

    Attributes:
        name: Unique in its supervisor, in a pool only a label: 1 to 256 characters that print as themselves, in
            normal form C, without ``/`` and without spaces at the ends.
        run: Async function of the child's subject, if it has one, then ``args``, and ``task_status``. It calls
            ``task_status.started(value)`` when it can serve.
        args: Positional arguments of ``run``, the same for each generation.
        restart: When the child comes back by itself.
        shutdown_s: How long it may take after being asked to stop before it is killed; 0 kills at once, `math.inf`
            waits.
        start_timeout_s: How long it may take until it says started; `math.inf` waits.
        backoff: Delays between restarts; None brings it back at once.
        significant: Whether its own end can end the supervisor; see `AutoShutdown`.
        on_gone: Plain function, called in the step in which the child is down and no restart is due. It gets the
            child's subject, if it has one, and its exception, or None. If it raises, its supervisor fails with that.
        enters_late: Leave it False, unless you count children in the ten thousands. If True, the child starts outside
            of the cancel scope by which it is killed, which saves a third of a start and a fifth of an idle child;
            ``run`` must call `ChildStatus.enter` before it awaits anything other than one sleep from which
            what it gave to `ChildStatus.wake_by` wakes it, and `enter` after that sleep.
    """

    name: str
    run: Callable[..., Awaitable[object]]
    args: tuple[Any, ...]
    restart: Restart
    shutdown_s: float
    start_timeout_s: float
    backoff: Backoff | None
    significant: bool
    on_gone: Callable[..., object] | None
    enters_late: bool

    @overload
    def __init__(self, name: str, run: "Run[V]", /, **options: "Unpack[ChildOptions]") -> None: ...
    @overload
    def __init__(self, name: str, run: "RunWithOne[A, V]", a: A, /, **options: "Unpack[ChildOptions]") -> None: ...
    @overload
    def __init__(
        self, name: str, run: "RunWithTwo[A, B, V]", a: A, b: B, /, **options: "Unpack[ChildOptions]"
    ) -> None: ...
    @overload
    def __init__(
        self, name: str, run: "RunWithThree[A, B, C, V]", a: A, b: B, c: C, /, **options: "Unpack[ChildOptions]"
    ) -> None: ...
    @overload
    def __init__(
        self: "ChildSpec[Any]",
        name: str,
        run: Callable[..., Awaitable[object]],
        *args: Any,
        **options: "Unpack[ChildOptions]",
    ) -> None: ...
    def __init__(
        self,
        name: str,
        run: Callable[..., Awaitable[object]],
        *args: Any,
        restart: Restart = Restart.PERMANENT,
        shutdown_s: float = 5.0,
        start_timeout_s: float = 30.0,
        backoff: Backoff | None = None,
        significant: bool = False,
        on_gone: Callable[..., object] | None = None,
        enters_late: bool = False,
    ) -> None:
        check_function(run)
        _check_common("ChildSpec", name, restart, shutdown_s, start_timeout_s, backoff, significant)
        check_kind("ChildSpec.enters_late", enters_late, bool)
        if on_gone is not None and not callable(on_gone):
            refuse("ChildSpec.on_gone", "must be a plain function or None", on_gone)
        if backoff is not None and restart is Restart.TEMPORARY:
            raise InvalidSpec("ChildSpec.backoff", "a temporary child never comes back, so nothing can be delayed")
        set_field = object.__setattr__
        set_field(self, "name", name)
        set_field(self, "run", run)
        set_field(self, "args", args)
        set_field(self, "restart", restart)
        set_field(self, "shutdown_s", shutdown_s)
        set_field(self, "start_timeout_s", start_timeout_s)
        set_field(self, "backoff", backoff)
        set_field(self, "significant", significant)
        set_field(self, "on_gone", on_gone)
        set_field(self, "enters_late", enters_late)

    def __repr__(self) -> str:
        # Arguments may hold secrets, so they are never shown.
        return f"ChildSpec({self.name!r}, {getattr(self.run, '__qualname__', self.run)}, restart={self.restart.value})"


def _children(children: Iterable["AnySpec"]) -> tuple["AnySpec", ...]:
    try:
        return tuple(children)
    except TypeError:
        refuse("SupervisorSpec.children", "must be specs, in the order in which to start them", children)


@attrs.frozen(kw_only=True, eq=False)
class SupervisorSpec:
    """A supervisor as a child of another: its own strategy and intensity, and the children it is born with.

    Attributes:
        name: Unique in its supervisor; as in `ChildSpec`.
        strategy: Which siblings share a restarted child's fate.
        intensity: The restart intensity that its children share.
        auto_shutdown: Whether the end of significant children ends it.
        children: Started in this order before it says started; started anew with each of its generations.
        restart: When it comes back by itself.
        shutdown_s: How long its whole tree may take to stop before it is killed.
        start_timeout_s: How long its children may take to start; each has a bound of its own.
        backoff: Delays between its restarts.
        significant: Whether its own end can end its supervisor.
    """

    name: str
    strategy: Strategy = Strategy.ONE_FOR_ONE
    intensity: RestartIntensity = attrs.field(default=RestartIntensity())
    auto_shutdown: AutoShutdown = AutoShutdown.NEVER
    children: tuple["AnySpec", ...] = attrs.field(default=(), converter=_children)
    restart: Restart = Restart.PERMANENT
    shutdown_s: float = math.inf
    start_timeout_s: float = math.inf
    backoff: Backoff | None = None
    significant: bool = False
    enters_late: ClassVar[bool] = False

    def __attrs_post_init__(self) -> None:
        kind = "SupervisorSpec"
        _check_common(
            kind, self.name, self.restart, self.shutdown_s, self.start_timeout_s, self.backoff, self.significant
        )
        check_kind(f"{kind}.strategy", self.strategy, Strategy)
        check_kind(f"{kind}.intensity", self.intensity, RestartIntensity)
        check_kind(f"{kind}.auto_shutdown", self.auto_shutdown, AutoShutdown)
        names: set[str] = set()
        for index, child in enumerate(self.children):
            check_spec(f"{kind}.children[{index}]", child)
            if child.name in names:
                raise InvalidSpec("children", f"the name {child.name!r} stands twice")
            names.add(child.name)
            check_fits(child, self.intensity, self.auto_shutdown)


@attrs.frozen(kw_only=True, eq=False)
class PoolSpec:
    """A pool as a child: many children of one kind, added at run time and stopped all at once.

    Attributes:
        name: Unique in its supervisor; as in `ChildSpec`.
        intensity: The restart intensity that its children share.
        auto_shutdown: Whether the end of significant children ends it.
        restart: When it comes back by itself; it comes back empty.
        shutdown_s: How long all its children together may take to stop before it is killed.
        start_timeout_s: Not used up: a pool starts at once.
        backoff: Delays between its restarts.
        significant: Whether its own end can end its supervisor.
    """

    name: str
    intensity: RestartIntensity = attrs.field(default=RestartIntensity())
    auto_shutdown: AutoShutdown = AutoShutdown.NEVER
    restart: Restart = Restart.PERMANENT
    shutdown_s: float = math.inf
    start_timeout_s: float = math.inf
    backoff: Backoff | None = None
    significant: bool = False
    enters_late: ClassVar[bool] = False

    def __attrs_post_init__(self) -> None:
        kind = "PoolSpec"
        _check_common(
            kind, self.name, self.restart, self.shutdown_s, self.start_timeout_s, self.backoff, self.significant
        )
        check_kind(f"{kind}.intensity", self.intensity, RestartIntensity)
        check_kind(f"{kind}.auto_shutdown", self.auto_shutdown, AutoShutdown)


class NoSubject:
    """Stands for the subject of a child that has none, since None could be one."""

    __slots__ = ()


NO_SUBJECT: Final = NoSubject()

AnySpec = ChildSpec[Any] | SupervisorSpec | PoolSpec
"""Whatever a supervisor can have as a child."""

SPEC_KINDS: Final[frozenset[type]] = frozenset({ChildSpec, SupervisorSpec, PoolSpec})


def check_spec(field: str, spec: object) -> None:
    """Refuse what is no spec."""
    if not isinstance(spec, ChildSpec | SupervisorSpec | PoolSpec):
        hint = "; write ChildSpec(name, function, *args)" if callable(spec) else ""
        raise InvalidSpec(field, f"must be a ChildSpec, SupervisorSpec or PoolSpec, not {shown(spec)}{hint}")


def _check_common(
    kind: str,
    name: str,
    restart: Restart,
    shutdown_s: float,
    start_timeout_s: float,
    backoff: Backoff | None,
    significant: bool,
) -> None:
    check_name(f"{kind}.name", name)
    check_kind(f"{kind}.restart", restart, Restart)
    check_seconds(f"{kind}.shutdown_s", shutdown_s, zero="kills at once", infinite="waits")
    check_seconds(f"{kind}.start_timeout_s", start_timeout_s, infinite="waits")
    check_kind(f"{kind}.backoff", backoff, Backoff, optional=True)
    check_kind(f"{kind}.significant", significant, bool)
    if significant and restart is Restart.PERMANENT:
        raise InvalidSpec(f"{kind}.significant", "a permanent child always comes back, so its end can decide nothing")


def check_fits(spec: AnySpec, intensity: RestartIntensity, auto_shutdown: AutoShutdown) -> None:
    """Refuse a spec that is sound in itself but makes no sense under this supervisor."""
    if spec.significant and auto_shutdown is AutoShutdown.NEVER:
        raise InvalidSpec("significant", f"{spec.name!r} is significant under a supervisor with AutoShutdown.NEVER")
    if spec.backoff is not None:
        check_reachable(spec.backoff, intensity.restarts, intensity.period_s)
