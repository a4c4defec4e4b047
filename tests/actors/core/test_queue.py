"""The mailbox queue against a model that is too plain to be wrong."""

from collections import deque

import hypothesis.strategies as st
import pytest
from hypothesis import event, given

from actors import InvalidOption, Mailbox, OnRestart, WhenFull
from actors._queue import EMPTY, Fate, Queue


class Waiting:
    """Stands in line with a number."""

    def __init__(self, entry: int) -> None:
        self.entry = entry


class PlainMailbox:
    """Two lists and a line, each rule in one sentence."""

    def __init__(self, capacity: int, when_full: WhenFull) -> None:
        self.capacity, self.when_full = capacity, when_full
        self.user: list[int] = []
        self.control: list[int] = []
        self.line: list[int] = []
        self.dropped: list[int] = []
        self.peak = 0

    def put(self, number: int) -> str:
        if len(self.user) < self.capacity and not self.line:
            self.user.append(number)
            self.peak = max(self.peak, len(self.user))
            return "queued"
        if self.when_full is WhenFull.WAIT:
            self.line.append(number)
            return "in line"
        if self.when_full is WhenFull.FAIL:
            return "full"
        if self.when_full is WhenFull.DROP_NEWEST:
            self.dropped.append(number)
            return "dropped"
        self.dropped.append(self.user.pop(0))
        self.user.append(number)
        return "displaced"

    def take(self) -> int | None:
        if self.control:
            return self.control.pop(0)
        while self.line and len(self.user) < self.capacity:
            self.user.append(self.line.pop(0))
        return self.user.pop(0) if self.user else None


class RealMailbox:
    """The queue, driven as a sender and the loop drive it: the two commonest steps in line."""

    def __init__(self, capacity: int, when_full: WhenFull) -> None:
        self.queue = Queue(capacity, when_full)
        self.waiting: dict[int, Waiting] = {}

    def put(self, number: int, *, quickly: bool) -> str:
        queue = self.queue
        if quickly and len(queue.inbox) < queue.room:
            queue.inbox.append(number)
            return "queued"
        fate, displaced = queue.put(number)
        assert (displaced is not None) == (fate is Fate.DISPLACED)
        if fate is Fate.FULL and queue.when_full is WhenFull.WAIT:
            self.waiting[number] = Waiting(number)
            queue.stand_in_line(self.waiting[number])
            return "in line"
        return fate.value

    def take(self) -> object:
        queue = self.queue
        if queue.alert:
            if queue.control:
                return queue.take_control()
            queue.admit()
        if not queue.note_depth():
            return None
        return queue.inbox.popleft()


# More comes than goes, so that mailboxes are full most of the time.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.booleans()),
        st.tuples(st.just("put"), st.booleans()),
        st.tuples(st.sampled_from(["take", "take", "control"]), st.none()),
        st.tuples(st.just("leave line"), st.integers(0, 3)),
    ),
    min_size=10,
    max_size=60,
)
# Only one policy has a line, and the line is where most can go wrong.
policies = st.sampled_from([WhenFull.WAIT, WhenFull.WAIT, WhenFull.WAIT, *WhenFull])


@given(capacity=st.integers(1, 4), when_full=policies, steps=steps)
def test_the_queue_does_what_two_plain_lists_do(
    capacity: int, when_full: WhenFull, steps: list[tuple[str, object]]
) -> None:
    """Order, control first, the bound, the line, each policy, the peak, and that the quick path is the same.

    Mutants killed: `admit` takes the newest in line; `settle` leaves `room` open while somebody stands in line (a
    newcomer overtakes); `put` drops the newest for DROP_OLDEST; `put_control` appends to the left; `note_depth`
    keeps the last depth instead of the largest; `leave_line` forgets to settle; `put` overlooks the line.
    """
    plain, real = PlainMailbox(capacity, when_full), RealMailbox(capacity, when_full)

    for number, (what, detail) in enumerate(steps):
        match what:
            case "put":
                outcome = plain.put(number)
                event(outcome)
                assert real.put(number, quickly=bool(detail)) == outcome
            case "control":
                plain.control.append(number)
                real.queue.put_control(number)
            case "take":
                assert real.take() == plain.take()
            case _ if isinstance(detail, int) and detail < len(plain.line):
                gone = plain.line.pop(detail)
                assert real.queue.leave_line(real.waiting[gone])
                assert not real.queue.leave_line(real.waiting[gone])
        real.queue.note_depth()
        assert [*real.queue.inbox] == plain.user
        assert [waiting.entry for waiting in real.queue.line or ()] == plain.line
        assert [*(real.queue.control or ())] == plain.control
        assert real.queue.dropped == len(plain.dropped)
        assert real.queue.peak == plain.peak
        assert real.queue.alert == bool(plain.control or plain.line)
        assert len(real.queue.inbox) <= capacity
    assert real.queue.clear() == plain.user + plain.line


def test_a_queue_nobody_wrote_to_shares_one_empty_inbox() -> None:
    queues = [Queue(8, WhenFull.WAIT) for _ in range(2)]

    queues[0].put("mail")

    assert queues[0].inbox is not EMPTY
    assert queues[1].inbox is EMPTY
    assert deque() == EMPTY


def test_a_closed_queue_has_no_room_and_keeps_its_control_lane() -> None:
    queue = Queue(8, WhenFull.WAIT)
    queue.put("mail")

    queue.close()
    queue.settle()
    queue.put_control("down")

    assert queue.room == 0
    assert queue.take_control() == "down"


def test_clearing_empties_the_very_inbox_the_loop_may_hold() -> None:
    queue = Queue(8, WhenFull.WAIT)
    queue.put("mail")
    held = queue.inbox

    assert queue.clear() == ["mail"]
    assert not held


@pytest.mark.parametrize("capacity", [0, -1, 1.5, "8", None, True, float("inf")])
def test_a_capacity_that_cannot_be_served_is_refused_at_birth(capacity: object) -> None:
    with pytest.raises(InvalidOption) as refused:
        Mailbox(capacity=capacity)  # type: ignore[arg-type]

    assert refused.value.field == "capacity"
    assert repr(capacity) in str(refused.value)


@pytest.mark.parametrize(("option", "value"), [("when_full", "wait"), ("on_restart", OnRestart)])
def test_a_policy_that_does_not_exist_is_refused_at_birth(option: str, value: object) -> None:
    with pytest.raises(InvalidOption) as refused:
        Mailbox(**{option: value})  # type: ignore[arg-type]

    assert refused.value.field == option
