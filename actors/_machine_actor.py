"""Actors around a pure state machine: delivery steps the machine at once, the actor's task carries out the effects."""

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from trio.lowlevel import checkpoint

from actors._actor import Performer, seat_of
from actors._errors import InvalidEffect
from actors._generation import begin, clean_up, cleans_up, ends_unheard, finish, make_ready
from actors._loop import BATCH, SLICE_S, SMALL_BATCH, awake_for
from actors._machine import StopActor
from actors._machine_seat import Crash, MachineSeat
from actors._messages import Down
from actors._parking import park
from actors._reference import Address, Elsewhere
from supervision import ChildStatus

__all__ = ["MachineReference", "StateMachineActor", "run_machine_actor"]

E = TypeVar("E")
F = TypeVar("F")
E_contra = TypeVar("E_contra", contravariant=True)
S = TypeVar("S")


_DELIVER: Final = "deliver() gives the machine an event, and `machine` shows what it has come to"


class MachineReference(Address, Generic[E_contra, S]):
    """Deliver events `E` to a machine `S`, and look at it."""

    __slots__ = ("_stage",)

    if not TYPE_CHECKING:
        ask = Elsewhere(_DELIVER)
        tell = Elsewhere(_DELIVER)
        tell_nowait = Elsewhere(_DELIVER)
        tell_terminal = Elsewhere(_DELIVER)

    def __init__(self, seat: MachineSeat) -> None:
        super().__init__(seat)
        # The same seat, by its own type: looked up on every delivery.
        self._stage = seat

    @property
    def machine(self) -> S:
        """The machine's present value; after the end, its last one."""
        machine: S = self._stage.machine
        return machine

    def deliver(self, event: E_contra) -> None:
        """Step the machine at once; its effects are carried out later, in order, by the actor's own task.

        May be called as soon as the reference is there, from any task of the run.

        Raises:
            LeftBehind: The actor is gone or stopping (an `ActorGone`).
            MailboxFull: So many effects wait that those of one more event have no room.
            Exception: What `handle` raised. Then nothing has changed.
            InvalidEffect: What `handle` gave is not `(machine, effects)`. Then nothing has changed either.
            NotInThisRun: Called from a thread, or from another run.
        """
        # The quick path in line: no order, nothing postponed, no timer. `MachineSeat.deliver` is the whole truth.
        seat = self._stage
        if seat.special or seat.closed:
            seat.deliver(event)
            return
        given = seat.machine.handle(event)
        if type(given) is tuple and len(given) == 2 and given[1] == () and hasattr(given[0], "handle"):  # pyright: ignore[reportUnknownArgumentType]  # Looked at here.
            seat.machine = given[0]
        else:
            seat.sweeper.check_run(seat)
            if not seat.take_plain(given):
                seat.take(event, given)

    def replace_machine(self, change: Callable[[S], S]) -> None:
        """Put another value in the machine's place, between two events; if `change` raises, nothing has changed.

        Raises:
            LeftBehind: The actor is gone or stopping (an `ActorGone`).
            InvalidEffect: What `change` gave has no `handle`.
            NotInThisRun: Called from a thread, or from another run.
        """
        seat = self._stage
        seat.sweeper.check_run(seat)
        seat.check_open(change)
        machine = change(seat.machine)
        if not hasattr(machine, "handle"):
            raise InvalidEffect(machine, change)
        seat.machine = machine


class StateMachineActor(Performer, Generic[E, F]):
    """Carry out the effects of a pure machine, one at a time, in order. Write `carry_out`.

    The machine lives on the seat, so it outlives this actor: an error out of `carry_out` ends the generation, the
    effect it came from is not tried again, and those behind it wait for the next generation (`OnRestart.KEEP`) or
    are dropped and counted (`OnRestart.FAIL`).
    """

    _part = "carry_out"

    @property
    def reference(self) -> MachineReference[E, Any]:
        """The reference to this actor: deliver to it what an effect led to."""
        seat = seat_of(self)
        assert isinstance(seat, MachineSeat), "a state-machine actor sits on a machine's seat"
        return MachineReference(seat)

    async def carry_out(self, effect: F) -> None:
        """Do what the machine wants done.

        Cancelled:
            The actor is being killed; this effect is not tried again.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to carry out {effect!r}")


async def run_machine_actor(  # noqa: C901, PLR0915 - kept like the loop of other actors
    seat: MachineSeat, *, task_status: ChildStatus[None]
) -> None:
    """Run one generation of a state-machine actor: carry out effects until it ends; control entries before effects."""
    actor: StateMachineActor[Any, Any] = begin(seat, task_status)
    if not seat.up:
        await make_ready(seat, actor, task_status)
    error: BaseException | None = None
    try:
        if not seat.inbox and not seat.alert:
            # The first sleep is outside of the cancel scope, which weighs 700 bytes (`benchmarks/memory.py`).
            seat.sleeps()
            await park()
            if ends_unheard(seat, actor):
                return
        task_status.enter()
        del task_status
        others_awake = 0
        while True:
            left = SMALL_BATCH if others_awake else BATCH
            # Not the run's clock: a slice bounds real work, also where time is virtual.
            ends = perf_counter() + SLICE_S
            while left and perf_counter() < ends:
                left -= 1
                if seat.alert:
                    if seat.control:
                        await attend(seat, actor)
                        continue
                    if seat.stop_now:
                        await finish(seat, actor)
                        return
                if not seat.note_depth():
                    break
                effect = seat.inbox.popleft()
                if isinstance(effect, StopActor):
                    seat.ask_to_stop()
                else:
                    await actor.carry_out(effect)
                    seat.handled += 1
            effect = None  # An idle actor does not keep its last effect.
            if seat.inbox or seat.alert:
                wakes = seat.sweeper.wakes
                await checkpoint()
                others_awake = awake_for(others_awake, wakes, seat)
            else:
                seat.sleeps()
                await park()
    except BaseException as failure:  # Every end passes here and goes on, with what the clean-up added.
        error = await clean_up(actor, failure) if cleans_up(seat, actor, failure) else failure
        if error is not failure:
            raise error from failure
        raise
    finally:
        # The frames of a traceback outlive the task; they must not keep the actor.
        del actor
        effect = None
        seat.leave(error)
        error = None


async def attend(seat: MachineSeat, actor: Performer) -> None:
    """Handle the oldest control entry."""
    entry = seat.take_control()
    if isinstance(entry, Crash):
        raise entry.error
    if isinstance(entry, Down):
        await actor.down(entry)
