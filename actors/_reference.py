"""What callers hold: tell, ask, stop and look at an actor, over all its generations."""

import math
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Self, TypeVar

from outcome import Value
from trio.lowlevel import (
    Abort,
    RaiseCancelT,
    cancel_shielded_checkpoint,
    checkpoint,
    checkpoint_if_cancelled,
    current_task,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)

from actors._ask import Ask
from actors._deadlines import ASK_TIMEOUT_S, check_timeout
from actors._errors import NotAQuestion, WaitsForItself
from actors._line import wait_in_line
from actors._messages import Down, Question, Terminal
from actors._parking import AWAKE, PARKED, park, park_abortably
from actors._seat import Seat
from actors._statistics import Statistics

__all__ = ["Address", "Elsewhere", "Reference", "seat_behind"]

M_contra = TypeVar("M_contra", contravariant=True)
R = TypeVar("R")


class Address:
    """What every reference can do, whatever its actor understands. Not made by hand: `spawn` gives one."""

    __slots__ = ("__weakref__", "_seat")

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    @property
    def name(self) -> str:
        """The name the actor was spawned under."""
        return self._seat.name

    @property
    def generation(self) -> int:
        """Which generation has the seat: 1 at first, one more after each restart, 0 before the first."""
        return self._seat.generation

    @property
    def gone(self) -> bool:
        """Whether the actor has ended for good."""
        return self._seat.gone

    def statistics(self) -> Statistics:
        """Take a snapshot of what the mailbox has seen."""
        return self._seat.statistics()

    def stop(self) -> None:
        """Stop the actor for good, whatever its restart kind; again is quiet.

        From now on senders get `LeftBehind`, as do those whose mail waits. The message under way is finished first;
        after `shutdown_s` the actor is killed.
        """
        self._seat.ask_to_stop()

    @enable_ki_protection
    async def wait_stopped(self) -> Down:
        """Wait until the actor is gone for good, and learn how it ended.

        Raises:
            WaitsForItself: The actor itself waits here, which could never end.

        Cancelled:
            Only the wait ends.
        """
        seat = self._seat
        task = current_task()
        if seat.task is task:
            raise WaitsForItself(seat.label, "waits for its own end", "call stop() and return")
        if seat.gone:
            await checkpoint()
            return seat.down_notice()

        def notify(notice: Down) -> None:
            reschedule(task, Value(notice))

        def abort(_raise_cancel: RaiseCancelT) -> Abort:
            seat.unwatch(notify)
            return Abort.SUCCEEDED

        seat.watch(notify)
        notice: Down = await wait_task_rescheduled(abort)
        return notice

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a reference to {self._seat.label} belongs to its run, and to no pickle: send its name instead"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and other._seat is self._seat

    def __hash__(self) -> int:
        return id(self._seat)

    def __repr__(self) -> str:
        seat = self._seat
        state = "gone" if seat.gone else "stopping" if seat.closed else "up" if seat.up else "not up"
        return f"<{type(self).__name__} {seat.name!r} generation {seat.generation}, {state}>"


_NO_MACHINE: Final = "tell() or ask() this actor; it is spawn_machine() that starts one around a machine"


class Elsewhere:
    """Stands where users look for what another kind of reference has, and says what this one has instead.

    A `__getattr__` would do as well, and before Python 3.12 slow down every other attribute. No type checker sees this.
    """

    __slots__ = ("_instead", "_name")

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __set_name__(self, _owner: type[object], name: str) -> None:
        self._name = name

    def __get__(self, _held: object, owner: type[object]) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self._name!r}: {self._instead}", name=self._name)


class Reference(Address, Generic[M_contra]):
    """Talk to an actor that understands `M`. Valid across restarts; never holds the actor."""

    __slots__ = ()

    if not TYPE_CHECKING:
        deliver = Elsewhere(_NO_MACHINE)
        machine = Elsewhere(_NO_MACHINE)
        replace_machine = Elsewhere(_NO_MACHINE)

    def tell_nowait(self, message: M_contra) -> None:
        """Put a message in the mailbox, or raise.

        Raises:
            MailboxFull: There is no room and the policy is `WAIT` or `FAIL`. The error holds the message.
            LeftBehind: The actor is gone or stopping. The error holds the message.
            NotInThisRun: The actor sleeps, and this thread is not in its run: use `trio.from_thread.run_sync`.
        """
        # The quick path in line; `Seat.accept` is the whole truth. See `actors/_queue.py` on `room`.
        seat = self._seat
        inbox = seat.inbox
        if len(inbox) < seat.room:
            waiter = seat.waiter
            if waiter is None:
                inbox.append(message)
            else:
                sweeper = seat.sweeper
                sweeper.check_run(seat)
                inbox.append(message)
                seat.waiter = None
                sweeper.wakes += 1
                if waiter.custom_sleep_data is PARKED:
                    reschedule(waiter, AWAKE)
        else:
            seat.accept(message)

    @enable_ki_protection
    async def tell(self, message: M_contra) -> None:
        """Put a message in the mailbox, waiting for room if its policy is `WAIT`.

        Raises:
            MailboxFull: There is no room and the policy is `FAIL`.
            MailboxDeadlock: Waiting would close a ring of actors that wait for each other's mailboxes.
            LeftBehind: The actor is gone or stopping, or ended while the sender stood in line.

        Cancelled:
            Nothing was sent.
        """
        await checkpoint_if_cancelled()
        seat = self._seat
        if seat.must_wait(message):
            await wait_in_line(seat, message)
        else:
            self.tell_nowait(message)
            await cancel_shielded_checkpoint()

    def tell_terminal(self, message: M_contra) -> None:
        """Put a message that must not be lost in the control lane.

        It is handled before all user mail, whatever the mailbox holds, and is never refused while the actor is not
        gone. The lane has no bound: use it for last words (a result, an end), not for a flow.

        Raises:
            LeftBehind: The actor is gone or stopping.
        """
        seat = self._seat
        seat.sweeper.check_run(seat)
        seat.check_open(message)
        seat.put_control(Terminal(message))
        seat.wake()

    @enable_ki_protection
    async def ask(  # noqa: PLR0915 - each call saved is a tenth of an ask
        self, question: Question[R], *, timeout_s: float = ASK_TIMEOUT_S
    ) -> R:
        """Send a question and wait for its answer.

        Args:
            question: One of the messages the actor understands. (That it is one cannot be said in types.)
                What its handler returns is the answer, and None is one like any other.
            timeout_s: How long to wait in all, in the mailbox and for the handler. `math.inf` waits while the
                actor lives.

        Raises:
            NotAQuestion: It is not of a class made from `Question`.
            AskTimedOut: No answer in time. A question that was not taken is withdrawn and never handled.
            LeftBehind: The actor is gone, or ended before it took the question.
            ActorGone: The actor was killed or shut down while it worked on the question.
            MailboxFull: There is no room and the policy is not `WAIT`.
            WaitsForItself: The actor asked itself.
            Exception: What the handler raised.

        Cancelled:
            A question that was not taken is withdrawn and never handled. One that was taken is finished, and its
            answer counted as late.
        """
        if timeout_s != ASK_TIMEOUT_S:
            check_timeout(timeout_s)
        if not isinstance(question, Question):  # pyright: ignore[reportUnnecessaryIsInstance]  # Types can be evaded.
            raise NotAQuestion(question)
        # Made, queued and parked without a step between; see `actors/_ask.py`.
        seat = self._seat
        ask = Ask()
        ask.message = question
        ask.seat = seat
        ask.taken = False
        ask.timeout_s = timeout_s
        ask.task = task = current_task()
        inbox = seat.inbox
        if len(inbox) < seat.room and seat.task is not task:
            waiter = seat.waiter
            if waiter is None:
                inbox.append(ask)
            else:
                sweeper = seat.sweeper
                sweeper.check_run(seat)
                inbox.append(ask)
                seat.waiter = None
                sweeper.wakes += 1
                if waiter.custom_sleep_data is PARKED:
                    reschedule(waiter, AWAKE)
            parking = park()
        else:
            seat.accept_ask(ask)
            parking = park_abortably(ask.abort)
        if timeout_s != math.inf:
            seat.sweeper.watch(ask, timeout_s)
        task.custom_sleep_data = ask
        try:
            await parking
        except BaseException:  # A cancel, or an error that has come as the answer.
            ask.task = None
            raise
        answer: R = ask.value
        ask.value = None  # The sweeper may hold the ask for a while yet.
        return answer


def seat_behind(address: Address) -> Seat:
    """Give the seat an address leads to; for the core only."""
    return address._seat  # pyright: ignore[reportPrivateUsage]  # Callers should not see it; this module may.
