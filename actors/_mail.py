"""The mail of a seat: who may send, who must wait, who gets a message back, and who learns of an error.

The quick path of a message that finds room is in line in `Reference`; this is the whole truth. Nothing here awaits.
"""

from typing import Final

from trio.lowlevel import Task

from actors._ask import Ask, Part, Sender
from actors._endings import gone_text, without_cancellation
from actors._errors import ActorGone, LeftBehind, MailboxFull, WaitsForItself
from actors._line import check_no_ring
from actors._mailbox import WhenFull
from actors._messages import Ending
from actors._parking import PARKED, wake_parked
from actors._queue import Fate, Queue
from actors._sweeper import Sweeper
from supervision import Shutdown

__all__ = ["NO_END", "Mail"]

NO_END: Final = (Ending.STOPPED, None)


class Mail(Queue):
    """Take mail for one actor, over all its generations."""

    # Filled in by `Seat`, in one step with its own: a call more for each actor is a part of its start.
    __slots__ = ("end_seen", "generation", "gone", "name", "sweeper", "task", "waiter")

    name: str
    sweeper: Sweeper
    # The actor's task of the present generation, and the same while it is parked on an empty mailbox.
    task: Task | None
    waiter: Task | None
    generation: int
    # Gone: no more generations.
    gone: bool
    # How the latest generation ended, and the cause, which is kept only once the actor is gone.
    end_seen: tuple[Ending, BaseException | None]

    @property
    def label(self) -> str:
        """How errors name the actor."""
        return f"actor {self.name!r}"

    def sleeps(self) -> None:
        """Take note that the actor parks in this same step."""
        self.waiter = self.task
        if self.waiter is not None:
            self.waiter.custom_sleep_data = PARKED

    def wake(self) -> None:
        """Wake the actor if it is parked on an empty mailbox."""
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            self.sweeper.wakes += 1
            wake_parked(waiter)

    def accept(self, message: object) -> None:
        """Queue a told message, or raise what the policy says."""
        self.sweeper.check_run(self)
        self.check_open(message)
        fate, displaced = self.put(message)
        if fate is Fate.FULL:
            self.counting().refused += 1
            raise self.full(message)
        if fate is Fate.DISPLACED:
            self.give_back(displaced)
        self.wake()

    def accept_ask(self, ask: Ask | Part) -> None:
        """Queue a question, put it in line, or raise what the policy says."""
        self.sweeper.check_run(self)
        self.check_open(ask.message)
        if self.task is ask.task:
            raise WaitsForItself(self.label, "asks itself", "call the method that answers, or tell instead of asking")
        fate, displaced = self.put(ask)
        if fate is Fate.FULL and self.may_wait():
            check_no_ring(self, ask.message)
            self.stand_in_line(ask)
        elif fate in {Fate.FULL, Fate.DROPPED}:
            self.counting().refused += 1
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
            what = gone_text(*self.end_seen) if self.gone else "is stopping"
            raise LeftBehind(message, self.label, self.generation, what) from self.end_seen[1]

    def full(self, message: object) -> MailboxFull:
        """Say that there is no room."""
        # Under the policy to wait only `tell_nowait` comes here.
        policy = "tell_nowait() waits for no room" if self.may_wait() else f"its policy is {self.when_full.value}"
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

    def admit_senders(self) -> None:
        """Give those in line the room there is."""
        for sender in self.admit():
            if isinstance(sender, Sender):
                sender.admitted()

    def answer_error(self, ask: Ask | Part, error: BaseException) -> None:
        """Let the asker learn, in this same step, that the handler of its question raised."""
        if isinstance(error, Exception) and not isinstance(error, Shutdown):
            answer: BaseException = error
        else:
            answer = ActorGone(ask.message, self.label, self.generation, "ended while it worked on the question")
            answer.__cause__ = without_cancellation(error)
        if not ask.fail(answer):
            self.counting().late += 1

    def fail_mail(self, what: str, cause: BaseException | None = None) -> None:
        """Give all waiting user mail back to those who still wait for it, and count the rest as dropped."""
        line = [*self.line] if self.line else []
        cause = without_cancellation(cause)
        for entry in self.clear():
            if not isinstance(entry, Ask | Part):
                self.counting().dropped += 1
            elif entry.task is not None:
                entry.fail(self.left_behind(entry.message, what, cause))
        for sender in line:
            if isinstance(sender, Sender):
                self.counting().dropped -= 1  # Its sender gets it back.
                sender.fail(self.left_behind(sender.message, what, cause))

    def left_behind(self, message: object, what: str, cause: BaseException | None) -> LeftBehind:
        """Say to one sender that its message was never seen."""
        error = LeftBehind(message, self.label, self.generation, what)
        error.__cause__ = cause
        return error
