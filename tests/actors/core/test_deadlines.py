"""The book of deadlines against sorting by hand."""

import math

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given

from actors import InvalidOption
from actors._deadlines import ASK_TIMEOUT_S, SWEEP_FLOOR, Deadlines, check_timeout


@attrs.define(eq=False)
class Patience:
    """A wait that can be ended."""

    deadline_s: float = 0.0
    task: object | None = "somebody"

    def expire(self) -> None:
        self.task = None


timeouts = st.sampled_from([ASK_TIMEOUT_S, 0.0, 1.0, 2.5, 60.0])
acts = st.lists(
    st.one_of(
        st.tuples(st.just("add"), timeouts),
        st.tuples(st.just("end"), st.integers(0, 20)),
        st.tuples(st.just("pass"), st.sampled_from([0.5, 1.0, 3.0, 10.0])),
    ),
    max_size=60,
)


@given(acts=acts)
def test_every_wait_is_due_once_at_its_time_and_not_before(acts: list[tuple[str, float]]) -> None:
    """Also: one that has ended is never due.

    Mutants killed: `take_due` compares with `<`; `add` puts every timeout in the queue of the usual one (a short one
    waits behind a long one); `next_s` looks only at the heap; a sweep that keeps what has ended.
    """
    book, now_s, waiting = Deadlines(), 0.0, list[Patience]()

    for what, number in acts:
        match what:
            case "add":
                waiting.append(Patience())
                assert book.add(waiting[-1], now_s, number) == now_s + number
            case "end" if waiting:
                waiting[int(number) % len(waiting)].task = None
            case "pass":
                now_s += number
        alive = [wait for wait in waiting if wait.task is not None]
        assert book.next_s() <= min((wait.deadline_s for wait in alive), default=math.inf)
        due = book.take_due(now_s)
        assert set(map(id, due)) == {id(wait) for wait in alive if wait.deadline_s <= now_s}
        for wait in due:
            wait.expire()  # type: ignore[attr-defined]


def test_one_long_wait_does_not_let_the_book_grow() -> None:
    """Mutant killed: `_sweep` does nothing."""
    book = Deadlines()
    long = Patience()
    book.add(long, 0.0, ASK_TIMEOUT_S)

    for _ in range(20 * SWEEP_FLOOR):
        wait = Patience()
        book.add(wait, 0.0, ASK_TIMEOUT_S)
        wait.task = None

    assert len(book) <= SWEEP_FLOOR + 1
    assert book.take_due(ASK_TIMEOUT_S) == [long]


def test_waits_that_all_last_are_all_kept() -> None:
    book = Deadlines()

    waits = [Patience() for _ in range(3 * SWEEP_FLOOR)]
    for number, wait in enumerate(waits):
        book.add(wait, 0.0, ASK_TIMEOUT_S if number % 2 else 1.0)

    assert len(book) == len(waits)
    assert len(book.take_due(ASK_TIMEOUT_S)) == len(waits)


@pytest.mark.parametrize("timeout_s", [-1, -0.001, math.nan])
def test_a_timeout_that_is_no_time_is_refused(timeout_s: float) -> None:
    with pytest.raises(InvalidOption) as refused:
        check_timeout(timeout_s)

    assert refused.value.field == "timeout_s"
