"""What references and the actor of each generation share: the mailbox, who is parked, how it all ends.

An actor takes the seat for one generation and leaves it; mail, counters and the line of senders stay with the seat.
A seat never holds an actor: what it holds of a live one is its parked task, given up at each end of a generation.

Rules that hold this together:
1. Whoever wakes a parked task clears the field that holds it first, in the same breath.
2. A seat that is gone stays gone: its mail was failed and its watchers told in one step, exactly once.
3. Nothing here awaits.
"""

import traceback
from collections.abc import Callable
from typing import Protocol, cast

import trio
from trio.lowlevel import Abort, RaiseCancelT, Task, current_task, reschedule

from actors._ask import Ask, Part, Sender
from actors._errors import ActorGone, LeftBehind, MailboxDeadlock, MailboxFull, WaitsForItself
from actors._mailbox import Mailbox, OnRestart, WhenFull
from actors._messages import Down, Ending
from actors._queue import EMPTY, Fate, Queue
from actors._statistics import Statistics
from actors._sweeper import Sweeper, sweeper_of_this_run
from supervision import Restart, Shutdown

__all__ = ["Seat", "Stoppable"]

# Who stands in line where. It only holds tasks that are parked right now, and is how rings are found.
_standing: trio.lowlevel.RunVar[dict[Task, "Seat"]] = trio.lowlevel.RunVar("actors senders in line")


class Stoppable(Protocol):
    """What a seat wants of the child that runs its actor."""

    def request_stop(self) -> None:
        """Ask the child to stop for good."""
        ...


class Seat(Queue):
    """Hold all that outlives a generation of one actor."""

    __slots__ = (
        "cause", "child", "ending", "generation", "gone", "handled", "late", "name", "on_restart", "restart",
        "stop_asked", "sweeper", "task", "unheard", "up", "waiter", "watchers", "watching",
        "withdrawn",
    )  # fmt: skip

    def __init__(self, name: str, mailbox: Mailbox, restart: Restart) -> None:
        super().__init__(mailbox.capacity, mailbox.when_full)
        self.name = name
        self.on_restart = mailbox.on_restart
        self.restart = restart
        self.child: Stoppable | None = None
        self.sweeper: Sweeper = sweeper_of_this_run()
        # The actor's task of the present generation, and the same while it is parked on an empty mailbox.
        self.task: Task | None = None
        self.waiter: Task | None = None
        self.generation = 0
        # Up: started, and not yet left. Stop asked: for good, by a holder of a reference. Gone: no more generations.
        self.up = self.stop_asked = self.gone = False
        self.ending = Ending.STOPPED
        self.cause: BaseException | None = None
        # Whom to tell of the end, and whose end this actor wants to hear of.
        self.watchers: dict[Callable[[Down], None], None] | None = None
        self.watching: dict[Seat, Callable[[Down], None]] | None = None
        self.handled = self.late = self.withdrawn = self.unheard = 0

    @property
    def label(self) -> str:
        """How errors name the actor."""
        return f"actor {self.name!r}"

    # --- waking -------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Wake the actor if it is parked on an empty mailbox."""
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            reschedule(waiter)

    def abort_park(self, _raise_cancel: RaiseCancelT) -> Abort:
        """Let go of the parked actor: it is cancelled."""
        self.waiter = None
        return Abort.SUCCEEDED

    # --- user mail, off the quick path --------------------------------------------------------------------------

    def accept(self, message: object) -> None:
        """Queue a told message, or raise what the policy says."""
        self.check_open(message)
        fate, displaced = self.put(message)
        if fate is Fate.FULL:
            self.refused += 1
            raise self.full(message)
        if fate is Fate.DISPLACED:
            self.give_back(displaced)
        self.wake()

    def accept_ask(self, ask: Ask | Part) -> None:
        """Queue a question, put it in line, or raise what the policy says."""
        self.check_open(ask.message)
        if self.task is ask.task:
            raise WaitsForItself(self.label, "asks itself", "call the method that answers, or tell instead of asking")
        fate, displaced = self.put(ask)
        if fate is Fate.FULL and self.may_wait():
            self.check_no_ring(ask.message)
            self.stand_in_line(ask)
        elif fate in {Fate.FULL, Fate.DROPPED}:
            self.refused += 1
            raise self.full(ask.message)
        if fate is Fate.DISPLACED:
            self.give_back(displaced)
        self.wake()

    def may_wait(self) -> bool:
        """Say whether a full mailbox lets its senders wait."""
        return self.when_full is WhenFull.WAIT

    def check_open(self, message: object) -> None:
        """Raise when no handler will ever see a message sent now."""
        if self.closed:
            what = "is gone" if self.gone else "is stopping"
            raise LeftBehind(message, self.label, self.generation, what) from self.cause

    def full(self, message: object) -> MailboxFull:
        """Say that there is no room."""
        policy = f"its policy is {self.when_full.value}"
        return MailboxFull(message, self.label, self.capacity, policy)

    def give_back(self, entry: object) -> None:
        """Tell the asker of a displaced question; a displaced plain message is counted already."""
        if isinstance(entry, Ask | Part):
            entry.fail(self.full(entry.message))

    def must_wait(self, message: object) -> bool:
        """Say whether a sender who may wait has to."""
        if len(self.inbox) < self.room:
            return False
        self.check_open(message)
        return self.may_wait() and (bool(self.line) or len(self.inbox) >= self.capacity)

    async def wait_in_line(self, message: object) -> None:
        """Wait until there is room for `message` and it is queued."""
        self.check_no_ring(message)
        standing = senders_in_line()
        sender = Sender(message, self, current_task())
        standing[current_task()] = self
        self.stand_in_line(sender)
        self.wake()
        try:
            await trio.lowlevel.wait_task_rescheduled(sender.abort)
        finally:
            del standing[current_task()]

    def check_no_ring(self, message: object) -> None:
        """Raise when every actor on the way from here is full and waits for the next, back to the current task."""
        standing, ring, seat = senders_in_line(), [self.label], self
        me = current_task()
        while seat.task is not None and seat.task is not me and seat.task in standing:
            seat = standing[seat.task]
            ring.append(seat.label)
        if seat.task is me:
            raise MailboxDeadlock(message, ring)

    def admit_senders(self) -> None:
        """Give those in line the room there is."""
        for sender in self.admit():
            if isinstance(sender, Sender):
                sender.admitted()

    # --- the end of a message, a generation, the seat -----------------------------------------------------------

    def answer_error(self, ask: Ask | Part, error: BaseException) -> None:
        """Let the asker learn, in this same step, that the handler of its question raised."""
        if isinstance(error, Exception) and not isinstance(error, Shutdown):
            answer: BaseException = error
        else:
            answer = ActorGone(ask.message, self.label, self.generation, "ended while it worked on the question")
            answer.__cause__ = without_cancellation(error)
        if not ask.fail(answer):
            self.late += 1

    def ask_to_stop(self) -> None:
        """Stop for good: no more mail, what waits comes back, and the current message is the last."""
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

    def begin(self, child: Stoppable, generation: int) -> None:
        """Take the seat for one generation."""
        if self.gone:
            instead = (
                "was stopped for good, and its references say so; spawn a new actor instead of restarting its child"
            )
            raise ActorGone(None, self.label, self.generation, instead)
        self.task = current_task()
        self.generation = generation
        self.has_child(child)
        self.settle()

    def leave(self, error: BaseException | None) -> None:
        """Give up the seat at the end of one generation."""
        was_stopped = self.stop_now
        self.task = self.waiter = None
        self.up = False
        self.stop_now = self.stop_asked
        self.ending = ending = ending_of(error)
        if self.stop_asked or self.restart is Restart.TEMPORARY or (
            self.restart is Restart.TRANSIENT and ending is Ending.STOPPED and not was_stopped
        ):  # fmt: skip
            # No supervisor brings it back from here, so those who wait need not wait for the supervisor.
            self.end(error)
        elif error is not None and self.on_restart is OnRestart.FAIL:
            self.fail_mail("ended, and its mailbox fails what waits", error)

    def end(self, error: BaseException | None) -> None:
        """Be gone for good: fail what waits and tell the watchers, in one step and once."""
        if self.gone:
            return
        self.gone = True
        if error is not None:
            self.ending = ending_of(error)
        self.cause = without_cancellation(error)
        forget_locals(self.cause)
        self.close()
        before = self.dropped
        self.fail_mail("is gone", self.cause)
        self.control = self.child = None
        self.inbox = EMPTY
        self.settle()
        for other, notify in (self.watching or {}).items():
            other.unwatch(notify)
        watchers, self.watchers = self.watchers, None
        if watchers:
            notice = self.down_notice(self.dropped - before)
            for notify in watchers:
                notify(notice)

    def down_notice(self, undelivered: int = 0) -> Down:
        """Tell of the end."""
        return Down(
            name=self.name,
            generation=self.generation,
            ending=self.ending,
            cause=self.cause,
            undelivered=undelivered,
        )

    def fail_mail(self, what: str, cause: BaseException | None = None) -> None:
        """Give all waiting user mail back to those who still wait for it, and count the rest as dropped."""
        line = [*self.line] if self.line else []
        cause = without_cancellation(cause)
        for entry in self.clear():
            if not isinstance(entry, Ask | Part):
                self.dropped += 1
            elif entry.task is not None:
                entry.fail(self.left_behind(entry.message, what, cause))
        for sender in line:
            if isinstance(sender, Sender):
                self.dropped -= 1  # Its sender gets it back.
                sender.fail(self.left_behind(sender.message, what, cause))

    def left_behind(self, message: object, what: str, cause: BaseException | None) -> LeftBehind:
        """Say to one sender that its message was never seen."""
        error = LeftBehind(message, self.label, self.generation, what)
        error.__cause__ = cause
        return error

    # --- watching -----------------------------------------------------------------------------------------------

    def watch(self, notify: Callable[[Down], None]) -> None:
        """Call `notify` once, at the end; at once if that has come."""
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
            control_peak=self.control_peak,
            handled=self.handled,
            dropped=self.dropped,
            refused=self.refused,
            withdrawn=self.withdrawn,
            late_replies=self.late,
            refusals_unheard=self.unheard,
        )


def senders_in_line() -> dict[Task, Seat]:
    """Give the senders of this run that stand in a line now."""
    try:
        return _standing.get()
    except LookupError:
        _standing.set({})
        return _standing.get()


def ending_of(error: BaseException | None) -> Ending:
    """Say how a generation ended, from what came out of it."""
    if error is None or isinstance(error, Shutdown):
        return Ending.STOPPED
    return Ending.KILLED if without_cancellation(error) is None else Ending.CRASHED


def without_cancellation(error: BaseException | None) -> BaseException | None:
    """Keep what failed; a cancellation belongs to its own task and is not passed on."""
    if isinstance(error, trio.Cancelled):
        return None
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        cancelled, rest = group.split(trio.Cancelled)
        return group if cancelled is None else rest
    return error


def forget_locals(error: BaseException | None) -> None:
    """Drop the variables of finished frames: an error that is kept must not keep the actor it ended."""
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        left += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            left += cast("BaseExceptionGroup[BaseException]", one).exceptions
