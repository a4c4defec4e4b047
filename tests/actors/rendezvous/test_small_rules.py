"""Tokens, rates and lanes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.rendezvous import Grant
from actors.rendezvous._lanes import FairLanes
from actors.rendezvous._rates import RateMeter
from actors.rendezvous._tokens import TokenBook

ONE = Grant(token="token-number-one-xyz", name="one")


def test_a_known_token_finds_its_grant_and_nothing_else_does() -> None:
    book = TokenBook([ONE])

    assert book.find("Bearer token-number-one-xyz") is ONE
    assert book.find("bearer token-number-one-xyz") is ONE
    for header in (None, "", "Bearer", "Bearer ", "Basic token-number-one-xyz", "Bearer token-number-one-xy", "x"):
        assert book.find(header) is None


def test_a_token_given_twice_or_too_weak_is_refused_without_showing_it() -> None:
    with pytest.raises(ValueError, match="given to somebody else") as caught:
        TokenBook([ONE, Grant(token="token-number-one-xyz", name="two")])
    assert "token-number" not in str(caught.value)
    for weak in ("short", "with a space in it!", "line\nbreak-in-the-token", "ümlaut-in-the-token-"):
        with pytest.raises(ValueError, match="at least 16 printable") as refused:
            Grant(token=weak, name="x")
        assert weak not in str(refused.value)


def test_no_token_is_in_a_repr() -> None:
    assert "token-number" not in repr(ONE) + repr(TokenBook([ONE])) + str(vars(TokenBook([ONE])))


@given(st.lists(st.floats(0, 5), max_size=100), st.floats(0.1, 50), st.integers(1, 20))
def test_never_more_is_taken_than_burst_and_rate_allow(gaps: list[float], per_s: float, burst: int) -> None:
    """Mutant: `_fill` does not stop at the burst."""
    meter, now_s, taken = RateMeter(per_s, burst, 0.0), 0.0, [0.0]
    for gap in gaps:
        now_s += gap
        if meter.try_take(now_s):
            taken.append(now_s)
        else:
            assert meter.wait_s(now_s) > 0
    for first in range(1, len(taken)):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + (taken[last] - taken[first]) * per_s + 1e-6


def test_an_overdrawn_meter_says_how_long_to_wait() -> None:
    meter = RateMeter(100.0, 100.0, 0.0)

    assert meter.take(50, 0.0) == 0
    assert meter.take(150, 0.0) == 1.0
    assert meter.take(0, 0.5) == 0.5
    assert meter.take(0, 1.0) == 0


LANES = st.sampled_from(["", "a", "b", "c"])
PUTS = st.tuples(LANES, st.binary(min_size=1, max_size=9))
# Mostly puts and takes: a lane that is dropped or drained at once has no turn to give away.
STEPS = st.one_of(PUTS, PUTS, st.none(), PUTS, PUTS, st.none(), st.none(), st.sampled_from("abc"))


@given(st.lists(STEPS, min_size=30, max_size=80))
def test_lanes_keep_order_take_turns_and_lose_nothing(steps: list[object]) -> None:
    """Mutants: `next` puts a lane back in front; `drop` leaves the lane's turn behind."""
    lanes, queued, last = FairLanes(), {name: [] for name in ["", "a", "b", "c"]}, None  # type: ignore[var-annotated]
    passed_over: set[str] = set()
    for step in steps:
        if isinstance(step, tuple):
            lanes.put(*step)
            queued[step[0]].append(step[1])
        elif isinstance(step, str):
            assert lanes.drop(step) == sum(map(len, queued[step]))
            queued[step].clear()
            passed_over.discard(step)
        elif (turn := lanes.next()) is None:
            assert not any(queued.values())
        else:
            name, frame = turn
            assert queued[name].pop(0) == frame
            assert name == "" or not queued[""], "the own lane goes first"
            others = {other for other, frames in queued.items() if frames and other not in ("", name)}
            if name:
                again = others & passed_over if name == last else set[str]()
                assert not again, "the same lane twice, and another had something all the time"
                last, passed_over = name, others
        assert lanes.queued_bytes == sum(len(frame) for frames in queued.values() for frame in frames)
        assert all(lanes.lane_bytes(name) == sum(map(len, queued[name])) for name in "abc")
