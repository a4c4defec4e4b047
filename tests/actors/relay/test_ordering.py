"""Ordered ciphertext: the window, the budget, the first copy, the gap."""

from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from actors.relay import (
    CiphertextBufferFull,
    GapNotFilled,
    OrderingError,
    RelayLimits,
    ReorderWindowExceeded,
    SequenceExhausted,
)
from actors.relay._ordering import OrderedCiphertext, SequenceCounter

LIMITS = RelayLimits()
MIB = 1024 * 1024


def new(limits: RelayLimits = LIMITS) -> OrderedCiphertext:
    return OrderedCiphertext(limits)


def test_59_an_early_record_waits_for_the_first() -> None:
    ordered = new()

    assert ordered.push(1, b"one", 0) == []
    assert ordered.push(0, b"zero", 0) == [b"zero", b"one"]


def test_60_the_first_copy_wins_and_old_records_are_ignored() -> None:
    ordered = new()

    assert ordered.push(1, b"a", 0) == []
    assert ordered.push(1, b"b", 0) == []
    assert ordered.push(0, b"zero", 0) == [b"zero", b"a"]
    assert ordered.push(0, b"zero", 0) == []


def test_61_too_far_ahead_and_too_much_at_once_are_errors() -> None:
    with pytest.raises(ReorderWindowExceeded, match=r"^Noise relay ciphertext exceeds reorder window$"):
        new().push(65, b"x", 0)
    with pytest.raises(CiphertextBufferFull, match=r"^Noise relay pending ciphertext buffer is full$"):
        new().push(1, bytes(MIB + 1), 0)


def test_62_the_byte_budget_is_given_back_on_release() -> None:
    ordered = new()
    ordered.push(1, bytes(MIB // 2), 0)
    ordered.push(2, bytes(MIB // 2), 0)

    with pytest.raises(CiphertextBufferFull):
        ordered.push(3, b"x", 0)
    assert len(ordered.push(0, b"x", 0)) == 3
    assert ordered.push(4, bytes(MIB), 0) == []


def test_63_the_furthest_record_of_the_window_waits_until_all_before_it_are_there() -> None:
    ordered = new()
    assert ordered.push(64, b"last", 0) == []

    for seq in range(63):
        assert ordered.push(seq, b"x", 0) == [b"x"]
    assert ordered.push(63, b"x", 0) == [b"x", b"last"]


def test_64_the_gap_deadline_is_absolute() -> None:
    ordered = new(RelayLimits(gap_s=10.0))
    ordered.push(2, b"x", 5.0)
    assert ordered.gap_deadline_s == 15.0
    ordered.push(4, b"x", 9.0)
    ordered.push(2, b"again", 11.0)
    assert ordered.gap_deadline_s == 15.0
    ordered.push(0, b"x", 12.0)
    ordered.push(1, b"x", 13.0)

    assert ordered.gap_deadline_s == 15.0, "record 3 is still missing"
    ordered.check_gap(14.9)
    with pytest.raises(GapNotFilled) as caught:
        ordered.check_gap(15.0)
    assert caught.value.expected == 3
    ordered.push(3, b"x", 15.0)
    assert ordered.gap_deadline_s is None
    ordered.check_gap(100.0)


def test_17_large_records_are_held_and_the_18th_is_too_much() -> None:
    ordered = new()
    record = bytes(60 * 1024)
    for seq in range(1, 18):
        assert ordered.push(seq, record, 0) == []

    with pytest.raises(CiphertextBufferFull):
        ordered.push(18, record, 0)


def test_numbers_begin_at_zero_and_end_before_the_last_of_32_bits() -> None:
    counter = SequenceCounter()
    assert [counter.take(), counter.take()] == [0, 1]
    counter.issued = 2**32 - 2

    assert counter.take() == 2**32 - 2
    with pytest.raises(SequenceExhausted, match=r"^Noise relay sequence number exhausted$"):
        counter.take()


@st.composite
def deliveries(draw: st.DrawFn) -> list[int]:
    """Records 0 to n in an order in which none is more than the window ahead, with some twice."""
    count = draw(st.integers(1, 60))
    keys = [number + draw(st.integers(0, 30)) for number in range(count)]
    order = sorted(range(count), key=lambda number: keys[number])
    for again in draw(st.lists(st.integers(0, count - 1), max_size=10)):
        order.insert(draw(st.integers(order.index(again) + 1, len(order))), again)
    return order


@given(deliveries())
def test_any_order_within_the_window_comes_out_in_order_once(order: list[int]) -> None:
    """Mutant: `push` overwrites a record that is held already (seen with a different second copy)."""
    ordered = new()
    out: list[bytes] = []
    seen: set[int] = set()
    for seq in order:
        copy = b"first" if seq not in seen else b"again"
        seen.add(seq)
        out += ordered.push(seq, b"%d %s" % (seq, copy), 0)

    event(f"held out of order: {sum(a > b for a, b in pairwise(order)) > 0}")
    assert out == [b"%d first" % seq for seq in range(len(seen))]
    assert ordered.held_bytes == 0
    assert ordered.gap_deadline_s is None


@given(st.lists(st.tuples(st.integers(0, 140), st.integers(1, 200_000)), max_size=60))
def test_what_is_held_never_passes_its_bounds_and_a_refusal_changes_nothing(pushes: list[tuple[int, int]]) -> None:
    """Mutant: `_hold` adds to `held_bytes` before it checks the budget."""
    ordered = new()
    released = 0
    for seq, size in pushes:
        before = ordered.held_bytes, ordered.expected, ordered.gap_deadline_s
        try:
            released += len(ordered.push(seq, bytes(size), 1.0))
        except OrderingError:
            assert (ordered.held_bytes, ordered.expected, ordered.gap_deadline_s) == before

        assert ordered.held_bytes <= LIMITS.reorder_bytes
        assert ordered.expected == released
        assert (ordered.gap_deadline_s is None) == (ordered.held_bytes == 0)
