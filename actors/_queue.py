"""The two lanes of a mailbox, and what its policy does when the user lane is full. Pure: nothing here waits.

Control entries are never refused, dropped or delayed by user mail. The user lane is first in, first out; who waits
for room stands in line behind it and never loses the place to someone who came later.

The senders and the actor's loop do the two commonest steps in line (append to `inbox` below `room`, pop from
`inbox`), because a call costs as much as the step. That both ways agree is the property in
`tests/actors/core/test_queue.py`.
"""

import enum
from collections import OrderedDict, deque
from typing import Final, Protocol

from actors._mailbox import WhenFull

__all__ = ["EMPTY", "NOTHING", "Fate", "InLine", "Queue", "Tally"]

# Stands in for the inbox of an actor nobody has written to yet: an empty deque weighs 760 bytes
# (`benchmarks/memory.py`). Nothing is ever put in, since `room` is 0 as long as it is there.
EMPTY: Final[deque[object]] = deque(maxlen=0)


class InLine(Protocol):
    """Whoever waits for room in a full mailbox."""

    @property
    def entry(self) -> object:
        """Say what goes into the mailbox once there is room."""
        ...


class Fate(enum.Enum):
    """What became of one user message."""

    QUEUED = "queued"
    FULL = "full"
    DISPLACED = "displaced"
    DROPPED = "dropped"


class Tally:
    """Counts of what seldom happens; most actors never have one of their own."""

    __slots__ = ("control_peak", "dropped", "late", "refused", "unheard", "withdrawn")

    def __init__(self) -> None:
        self.control_peak: int = 0
        self.dropped: int = 0
        self.late: int = 0
        self.refused: int = 0
        self.unheard: int = 0
        self.withdrawn: int = 0


# Shared by all who have nothing to count. Never written to.
NOTHING: Final = Tally()


class Queue:
    """Hold waiting mail in two lanes, bounded by `capacity` and `when_full`, and count."""

    __slots__ = (
        "alert", "capacity", "closed", "control", "inbox", "line", "peak", "room", "stop_now", "tally", "when_full",
    )  # fmt: skip

    def __init__(self, capacity: int, when_full: WhenFull) -> None:
        self.capacity: int = capacity
        self.when_full: WhenFull = when_full
        self.inbox: deque[object] = EMPTY
        # Below this length a sender may append to `inbox` without asking: the capacity, or 0 when the
        # inbox is not made yet, somebody stands in line, or the mailbox is closed.
        self.room: int = 0
        self.control: deque[object] | None = None
        self.line: OrderedDict[InLine, None] | None = None
        self.stop_now: bool = False
        self.closed: bool = False
        # True while the loop must look at more than the inbox: control entries, a stop, someone in line.
        self.alert: bool = False
        self.peak: int = 0
        # To be read; whoever counts calls `counting`.
        self.tally: Tally = NOTHING

    def counting(self) -> Tally:
        """Give a tally of its own, to be written to."""
        if self.tally is NOTHING:
            self.tally = Tally()
        return self.tally

    def put(self, entry: object) -> tuple[Fate, object]:
        """Put a user message in the inbox, or say what the policy did. The second value is a displaced entry."""
        assert not self.closed, "a closed mailbox takes no user mail"
        if not self.line and len(self.inbox) < self.capacity:
            if self.inbox is EMPTY:
                self.inbox = deque()
            self.room = self.capacity
            self.inbox.append(entry)
            return Fate.QUEUED, None
        match self.when_full:
            case WhenFull.WAIT | WhenFull.FAIL:
                return Fate.FULL, None
            case WhenFull.DROP_NEWEST:
                self.counting().dropped += 1
                return Fate.DROPPED, None
            case WhenFull.DROP_OLDEST:
                self.note_depth()
                displaced = self.inbox.popleft()
                self.counting().dropped += 1
                self.inbox.append(entry)
                return Fate.DISPLACED, displaced

    def put_control(self, entry: object) -> None:
        """Put an entry in the control lane. It is never refused."""
        if self.control is None:
            self.control = deque()
        self.control.append(entry)
        tally = self.counting()
        tally.control_peak = max(tally.control_peak, len(self.control))
        self.alert = True

    def post_stop(self) -> None:
        """Ask the loop to end once the control entries that came before are handled."""
        self.stop_now = True
        self.alert = True

    def stand_in_line(self, sender: InLine) -> None:
        """Wait behind everyone who came before for room in the inbox."""
        if self.line is None:
            self.line = OrderedDict()
        self.line[sender] = None
        self.room = 0
        self.alert = True

    def leave_line(self, sender: InLine) -> bool:
        """Give up the place in line; say whether there was one."""
        if not self.line or sender not in self.line:
            return False
        del self.line[sender]
        self.settle()
        return True

    def admit(self) -> list[InLine]:
        """Move those who stand in line into the inbox as far as there is room, first come first served."""
        admitted: list[InLine] = []
        while self.line and len(self.inbox) < self.capacity:
            sender, _ = self.line.popitem(last=False)
            self.inbox.append(sender.entry)
            admitted.append(sender)
        self.settle()
        return admitted

    def take_control(self) -> object:
        """Take the oldest control entry; there must be one."""
        assert self.control, "the control lane was empty"
        entry = self.control.popleft()
        self.settle()
        return entry

    def settle(self) -> None:
        """Bring `room` and `alert` in step with what waits."""
        self.alert = bool(self.control or self.line or self.stop_now)
        self.room = 0 if self.closed or self.line or self.inbox is EMPTY else self.capacity

    def note_depth(self) -> int:
        """Remember the largest number of waiting messages; the length only shrinks after such a note."""
        depth = len(self.inbox)
        self.peak = max(self.peak, depth)
        return depth

    def close(self) -> None:
        """Take no more user mail. The control lane stays open."""
        self.closed = True
        self.room = 0

    def clear(self) -> list[object]:
        """Take out all user mail, also of those who stand in line, in order."""
        self.note_depth()
        left = [*self.inbox, *(sender.entry for sender in self.line or ())]
        self.inbox.clear()  # In place: the loop may hold it, with a handler under way.
        self.line = None
        self.settle()
        return left
