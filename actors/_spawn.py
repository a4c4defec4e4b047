"""Put actors under a supervisor or into a pool."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from inspect import CO_COROUTINE
from types import CodeType
from typing import Any, Final, TypeVar, TypeVarTuple

from actors._actor import Actor, Performer, check_performer
from actors._errors import InvalidOption
from actors._loop import run_actor
from actors._machine import Machine
from actors._machine_actor import MachineReference, StateMachineActor, run_machine_actor
from actors._machine_seat import MachineSeat
from actors._mailbox import Mailbox
from actors._reference import Reference
from actors._seat import Seat
from supervision import Backoff, ChildSpec, Pool, Restart, Supervisor

__all__ = [
    "DEFAULT_MAILBOX",
    "name_of",
    "place_nowait",
    "spawn",
    "spawn_machine",
    "spawn_machine_nowait",
    "spawn_nowait",
]

M = TypeVar("M")
E = TypeVar("E")
F = TypeVar("F")
S = TypeVar("S")
Args = TypeVarTuple("Args")

DEFAULT_MAILBOX: Final = Mailbox()
OVERSEERS: Final = (Supervisor, Pool)


async def spawn(
    supervisor: Supervisor | Pool,
    make: Callable[[*Args], Actor[M]],
    *args: *Args,
    name: str | None = None,
    mailbox: Mailbox = DEFAULT_MAILBOX,
    restart: Restart = Restart.PERMANENT,
    shutdown_s: float = 5.0,
    start_timeout_s: float = 30.0,
    backoff: Backoff | None = None,
    significant: bool = False,
) -> Reference[M]:
    """Start an actor as a supervised child, and wait until it is up.

    Args:
        supervisor: Who keeps it alive.
        make: The actor's class, or any function that makes one; called with `args` for each generation.
        args: What every generation is made of.
        name: Unique under a supervisor; by default the class's name.
        mailbox: How much mail may wait, and what happens then.
        restart: When it comes back by itself.
        shutdown_s: How long it may take to stop before it is killed.
        start_timeout_s: How long `__init__` and `started` may take.
        backoff: Delays between restarts.
        significant: Whether its own end can end the supervisor.

    Raises:
        InvalidOption: The class could not handle a message, or an option is none; nothing was started.
        supervision.StartFailed: Its start raised (that error is the cause) or took too long. Nothing is left.

    Cancelled:
        The half-started actor is stopped and nothing is left.
    """
    name = check_cast(supervisor, make, Actor, name, mailbox)
    seat = Seat(name, mailbox, restart, make, args)
    spec = spec_for(run_actor, name, restart, shutdown_s, start_timeout_s, backoff, significant)
    try:  # As `place`, in line: a coroutine more for each that is started costs a fiftieth.
        child = await supervisor.start_child(spec, seat)
    except BaseException as error:  # Whatever ended the start, who wrote to the actor meanwhile must learn it.
        seat.end(error.__cause__ or error)
        raise
    seat.has_child(child)
    return Reference(seat)


def spawn_nowait(
    supervisor: Supervisor | Pool,
    make: Callable[[*Args], Actor[M]],
    *args: *Args,
    name: str | None = None,
    mailbox: Mailbox = DEFAULT_MAILBOX,
    restart: Restart = Restart.PERMANENT,
    shutdown_s: float = 5.0,
    start_timeout_s: float = 30.0,
    backoff: Backoff | None = None,
    significant: bool = False,
) -> Reference[M]:
    """Start an actor as a supervised child without waiting: it is registered on return, and may be written to.

    Mail sent before it is up is handled after its start, in order; if the start fails, askers get `LeftBehind` and
    told messages are dropped and counted. The options are those of `spawn`.
    """
    name = check_cast(supervisor, make, Actor, name, mailbox)
    seat = Seat(name, mailbox, restart, make, args)
    spec = spec_for(run_actor, name, restart, shutdown_s, start_timeout_s, backoff, significant)
    place_nowait(supervisor, spec, seat)
    return Reference(seat)


async def spawn_machine(
    supervisor: Supervisor | Pool,
    make: Callable[[*Args], StateMachineActor[E, F]],
    machine: Machine[E, F, S],
    *args: *Args,
    name: str | None = None,
    mailbox: Mailbox = DEFAULT_MAILBOX,
    restart: Restart = Restart.PERMANENT,
    shutdown_s: float = 5.0,
    start_timeout_s: float = 30.0,
    backoff: Backoff | None = None,
    significant: bool = False,
) -> MachineReference[E, S]:
    """Start an actor around a pure machine as a supervised child, and wait until it is up.

    Args:
        supervisor: Who keeps it alive.
        make: The actor's class, or any function that makes one; called with `args` for each generation.
        machine: The first value of the machine; it outlives every generation.
        args: What every generation is made of.
        name: Unique under a supervisor; by default the class's name.
        mailbox: How many effects may wait (`capacity`), and whether they outlive a crash (`on_restart`).
        restart: When it comes back by itself.
        shutdown_s: How long it may take to stop before it is killed.
        start_timeout_s: How long `__init__` and `started` may take.
        backoff: Delays between restarts.
        significant: Whether its own end can end the supervisor.

    Raises:
        InvalidOption: The class could not handle a message, or an option is none; nothing was started.
        supervision.StartFailed: Its start raised (that error is the cause) or took too long. Nothing is left.

    Cancelled:
        The half-started actor is stopped and nothing is left.
    """
    name = check_cast(supervisor, make, StateMachineActor, name, mailbox)
    check_machine(machine)
    seat = MachineSeat(name, mailbox, restart, machine, make, args)
    spec = spec_for(run_machine_actor, name, restart, shutdown_s, start_timeout_s, backoff, significant)
    await place(supervisor, spec, seat)
    return MachineReference(seat)


def spawn_machine_nowait(
    supervisor: Supervisor | Pool,
    make: Callable[[*Args], StateMachineActor[E, F]],
    machine: Machine[E, F, S],
    *args: *Args,
    name: str | None = None,
    mailbox: Mailbox = DEFAULT_MAILBOX,
    restart: Restart = Restart.PERMANENT,
    shutdown_s: float = 5.0,
    start_timeout_s: float = 30.0,
    backoff: Backoff | None = None,
    significant: bool = False,
) -> MachineReference[E, S]:
    """Start an actor around a pure machine without waiting: events may be delivered on return.

    Effects of events delivered before it is up are carried out after its start, in order; if the start fails they
    are dropped and counted, and the machine keeps its value. The options are those of `spawn_machine`.
    """
    name = check_cast(supervisor, make, StateMachineActor, name, mailbox)
    check_machine(machine)
    seat = MachineSeat(name, mailbox, restart, machine, make, args)
    spec = spec_for(run_machine_actor, name, restart, shutdown_s, start_timeout_s, backoff, significant)
    place_nowait(supervisor, spec, seat)
    return MachineReference(seat)


def spec_for(*options: Any) -> ChildSpec[Any]:
    """Give the spec that all actors with these options share; what tells them apart is their seat."""
    try:
        return _spec_for(*options)
    except TypeError:  # What cannot be looked up is no option: let the spec say so.
        return _spec_for.__wrapped__(*options)


@lru_cache(maxsize=64, typed=True)
def _spec_for(
    run: Callable[..., Awaitable[object]],
    name: str,
    restart: Restart,
    shutdown_s: float,
    start_timeout_s: float,
    backoff: Backoff | None,
    significant: bool,
) -> ChildSpec[Any]:
    return ChildSpec(
        name, run,
        restart=restart, shutdown_s=shutdown_s, start_timeout_s=start_timeout_s, backoff=backoff,
        significant=significant, on_gone=end_seat, enters_late=True,
    )  # fmt: skip


def end_seat(seat: Seat, error: BaseException | None) -> None:
    """Let the seat of a child that is gone for good end."""
    seat.end(error)


def check_cast(
    supervisor: Supervisor | Pool,
    make: Callable[..., Any],
    base: type[Performer],
    name: str | None,
    mailbox: Mailbox,
) -> str:
    """Refuse what could not play a part, and give the name to play it under."""
    if not isinstance(supervisor, OVERSEERS):  # pyright: ignore[reportUnnecessaryIsInstance]  # Types can be evaded.
        raise InvalidOption("supervisor", supervisor, "it must be a Supervisor, such as open_root() gives, or a Pool")
    if not callable(make):
        rule = f"give what makes {base.__name__}s, such as their class, and not one that was made"
        raise InvalidOption("make", make, rule)
    if isinstance(make, type):  # What a function makes is looked at when it has made it.
        check_performer(make, base)
    if type(mailbox) is not Mailbox:
        raise InvalidOption("mailbox", mailbox, "it must be a Mailbox, such as Mailbox(capacity=5)")
    return name_of(make) if name is None else name


def check_machine(machine: object) -> None:
    """Refuse what is no machine, such as the class of one."""
    if isinstance(machine, type):
        raise InvalidOption("machine", machine, f"it must be a machine, and not a class: {machine.__name__}(...)")
    if not callable(getattr(machine, "handle", None)):
        raise InvalidOption("machine", machine, "it must be a machine: a value with a method `handle(event)`")
    code = getattr(getattr(machine, "handle", None), "__code__", None)
    if isinstance(code, CodeType) and code.co_flags & CO_COROUTINE:
        rule = "its `handle` must be `def` and not `async def`: it only says what to do"
        raise InvalidOption("machine", machine, rule)


async def place(supervisor: Supervisor | Pool, spec: ChildSpec[Any], seat: Seat) -> None:
    """Start the child behind a seat, and wait until it is up."""
    try:
        child = await supervisor.start_child(spec, seat)
    except BaseException as error:  # Whatever ended the start, who wrote to the actor meanwhile must learn it.
        seat.end(error.__cause__ or error)
        raise
    seat.has_child(child)


def place_nowait(supervisor: Supervisor | Pool, spec: ChildSpec[Any], seat: Seat) -> None:
    """Register the child behind a seat."""
    seat.has_child(supervisor.start_child_nowait(spec, seat))


def name_of(make: Callable[..., Any]) -> str:
    """Name an actor by its class."""
    return getattr(make, "__name__", type(make).__name__)
