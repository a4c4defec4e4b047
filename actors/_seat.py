"""What references and the actor of each generation share: the mailbox (`_mail`), who is parked, how it all ends.

An actor takes the seat for one generation and leaves it; mail, counters and the line of senders stay with the seat.
A seat never holds an actor: what it holds of a live one is its parked task, given up at each end of a generation.

Rules that hold this together:
1. Whoever wakes a parked task clears the field that holds it first, in the same breath.
2. A seat that is gone stays gone: its mail was failed and its watchers told in one step, exactly once.
3. Nothing here awaits.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, Protocol

from trio.lowlevel import Task, current_task

from actors._endings import ending_of, forget_locals, gone_text, without_cancellation
from actors._errors import ActorGone
from actors._mail import NO_END, Mail
from actors._mailbox import Mailbox, OnRestart
from actors._messages import Down, Ending
from actors._queue import EMPTY
from actors._statistics import Statistics
from actors._sweeper import Sweeper, sweeper_of_this_run
from supervision import Restart

__all__ = ["Seat", "Stoppable"]


class Stoppable(Protocol):
    """What a seat wants of the child that runs its actor."""

    def request_stop(self) -> None:
        """Ask the child to stop for good."""
        ...


def not_made() -> NoReturn:
    """Stand where nothing is made any more."""
    raise AssertionError("a seat without a maker makes nothing")


# Members by themselves: before Python 3.12, to read one from its enum costs as much as a call.
TEMPORARY: Final = Restart.TEMPORARY
TRANSIENT: Final = Restart.TRANSIENT
FAIL: Final = OnRestart.FAIL


class Seat(Mail):
    """Hold all that outlives a generation of one actor."""

    __slots__ = (
        "args", "child", "handled", "make", "on_restart", "restart", "stop_asked", "up", "watchers", "watching",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        mailbox: Mailbox,
        restart: Restart,
        make: Callable[..., Any] = not_made,
        args: Sequence[Any] = (),
    ) -> None:
        super().__init__(mailbox.capacity, mailbox.when_full)
        self.name: str = name
        # What every generation is made with, and of.
        self.make: Callable[..., Any] = make
        self.args: Sequence[Any] = args
        self.on_restart: OnRestart = mailbox.on_restart
        self.restart: Restart = restart
        self.child: Stoppable | None = None
        self.sweeper: Sweeper = sweeper_of_this_run()
        self.task: Task | None = None
        self.waiter: Task | None = None
        self.generation: int = 0
        # Up: started, and not yet left. Stop asked: for good, by a holder of a reference.
        self.up: bool = False
        self.stop_asked: bool = False
        self.gone: bool = False
        self.end_seen: tuple[Ending, BaseException | None] = NO_END
        # Whom to tell of the end, and whose end this actor wants to hear of.
        self.watchers: dict[Callable[[Down], None], None] | None = None
        self.watching: dict[Seat, Callable[[Down], None]] | None = None
        self.handled: int = 0

    # --- the end of a message, a generation, the seat -----------------------------------------------------------

    def ask_to_stop(self) -> None:
        """Stop for good: no more mail, what waits comes back, and the current message is the last."""
        self.sweeper.check_run(self)
        if self.stop_asked or self.gone:
            return
        self.stop_asked = True
        self.close()
        self.fail_mail("is stopping")
        self.stop_generation()
        if self.child is not None:
            self.child.request_stop()

    def has_child(self, child: Stoppable) -> None:
        """Learn who runs the actor. A stop asked for while that was not known is passed on."""
        if not self.gone:
            self.child = child
            if self.stop_asked:
                child.request_stop()

    def stop_generation(self) -> None:
        """End the present generation after the current message. Whether another follows is the supervisor's to say."""
        self.post_stop()
        self.wake()

    def __call__(self) -> None:
        """Be the polite stop request of the supervisor: a bound method would weigh 64 bytes for each idle actor."""
        self.stop_generation()

    def begin(self, child: Stoppable, generation: int) -> None:
        """Take the seat for one generation."""
        if self.gone:
            instead = (
                "was stopped for good, and its references say so; spawn a new actor instead of restarting its child"
            )
            raise ActorGone(None, self.label, self.generation, instead)
        self.task = current_task()
        self.generation = generation
        self.child = child
        if self.stop_asked:
            child.request_stop()

    def leave(self, error: BaseException | None) -> None:
        """Give up the seat at the end of one generation."""
        was_stopped = self.stop_now
        self.task = self.waiter = None
        self.up = False
        self.stop_now: bool = self.stop_asked
        ending = ending_of(error)
        self.end_seen = (ending, None)
        restart = self.restart
        if self.stop_asked or restart is TEMPORARY or (
            restart is TRANSIENT and ending is Ending.STOPPED and not was_stopped
        ):  # fmt: skip
            # No supervisor brings it back from here, so those who wait need not wait for the supervisor.
            self.end(error)
            return
        if was_stopped:
            self.settle()  # The stop was for this generation alone.
        if error is not None and self.on_restart is FAIL:
            self.fail_mail("ended, and its mailbox fails what waits", error)

    def end(self, error: BaseException | None) -> None:
        """Be gone for good: fail what waits and tell the watchers, in one step and once."""
        if self.gone:
            return
        self.gone = True
        cause = without_cancellation(error)
        self.end_seen = (ending_of(error) if error is not None else self.end_seen[0], cause)
        forget_locals(cause)
        self.close()
        before = self.tally.dropped
        self.fail_mail(gone_text(*self.end_seen), cause)
        self.control: deque[object] | None = None
        self.child = None
        self.make, self.args = not_made, ()
        self.inbox = EMPTY
        self.settle()
        for other, notify in (self.watching or {}).items():
            other.unwatch(notify)
        watchers, self.watchers = self.watchers, None
        if watchers:
            notice = self.down_notice(self.tally.dropped - before)
            for notify in watchers:
                notify(notice)

    def down_notice(self, undelivered: int = 0) -> Down:
        """Tell of the end."""
        return Down(
            name=self.name,
            generation=self.generation,
            ending=self.end_seen[0],
            cause=self.end_seen[1],
            undelivered=undelivered,
        )

    # --- watching -----------------------------------------------------------------------------------------------

    def watch(self, notify: Callable[[Down], None]) -> None:
        """Call `notify` once, at the end; at once if that has come."""
        self.sweeper.check_run(self)
        if self.gone:
            notify(self.down_notice())
            return
        if self.watchers is None:
            self.watchers = {}
        self.watchers[notify] = None

    def unwatch(self, notify: Callable[[Down], None]) -> None:
        """Call `notify` no more."""
        if self.watchers is not None:
            self.watchers.pop(notify, None)

    def watch_for(self, other: "Seat") -> None:
        """Put the down notice of another actor in the control lane, once; a second wish changes nothing."""
        self.sweeper.check_run(self)
        if self.watching is None:
            self.watching = {}
        watching = self.watching
        if other in watching:
            return

        def notify(notice: Down) -> None:
            watching.pop(other, None)
            if not self.gone:
                self.put_control(notice)
                self.wake()

        watching[other] = notify
        other.watch(notify)

    def statistics(self) -> Statistics:
        """Take a snapshot."""
        queued = self.note_depth()
        return Statistics(
            capacity=self.capacity,
            queued=queued,
            queued_peak=self.peak,
            in_line=len(self.line or ()),
            control_queued=len(self.control or ()),
            control_peak=self.tally.control_peak,
            handled=self.handled,
            dropped=self.tally.dropped,
            refused=self.tally.refused,
            withdrawn=self.tally.withdrawn,
            late_replies=self.tally.late,
            refusals_unheard=self.tally.unheard,
        )
