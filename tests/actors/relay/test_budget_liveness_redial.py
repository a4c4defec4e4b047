"""Small rules about time: forgiveness, signs of life, and when to dial again (cases P12 and P13)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.relay import FailureBudget, Liveness, LivenessAction, Redial


def test_seven_failures_and_a_pause_and_one_more_are_forgiven() -> None:
    budget = FailureBudget.full(8, 1.25)
    for _ in range(7):
        budget = budget.spend(0.0)
    budget = budget.spend(12.0)

    assert not budget.is_spent(12.0)


def test_eight_failures_at_once_spend_the_budget_until_one_is_forgiven() -> None:
    budget = FailureBudget.full(8, 1.25)
    for _ in range(8):
        budget = budget.spend(5.0)

    assert budget.is_spent(6.0)
    assert not budget.is_spent(6.25)


@given(st.lists(st.floats(0, 3), max_size=60), st.integers(1, 9), st.floats(0.1, 5))
def test_the_budget_agrees_with_a_plain_bucket(gaps: list[float], burst: int, refill_s: float) -> None:
    """Mutant: `spend` forgets to move `since_s`, so that the same time forgives twice."""
    budget, plain, now_s = FailureBudget.full(burst, refill_s), float(burst), 0.0
    for gap in gaps:
        now_s += gap
        plain = min(float(burst), plain + gap / refill_s)
        assert budget.left_at(now_s) == pytest.approx(plain, abs=1e-6)
        budget = budget.spend(now_s)
        plain = max(0.0, plain - 1)
        assert 0 <= budget.left_at(now_s) <= burst


def test_pings_are_due_every_interval_and_not_while_one_is_out() -> None:
    liveness = Liveness.begin(30, 60, 100.0)

    assert liveness.action(129.9) is LivenessAction.WAIT
    assert liveness.action(130.0) is LivenessAction.PING
    liveness = liveness.pinged(130.0)
    assert liveness.action(189.9) is LivenessAction.WAIT
    assert liveness.action(190.0) is LivenessAction.CUT
    liveness = liveness.ponged(131.0)
    assert liveness.deadline_s == 160.0


def test_missed_ticks_are_skipped() -> None:
    liveness = Liveness.begin(30, 60, 0.0).pinged(95.0).ponged(96.0)

    assert liveness.deadline_s == 120.0


@given(st.lists(st.tuples(st.floats(0, 40), st.booleans()), max_size=60))
def test_p13_a_peer_that_says_anything_within_the_limit_is_never_cut(steps: list[tuple[float, bool]]) -> None:
    """Mutant: `deadline_s` counts from the ping alone, so that only a pong is life."""
    liveness, now_s, heard_s, pinged_s = Liveness.begin(30, 60, 0.0), 0.0, 0.0, None
    for gap, speaks in steps:
        now_s += gap
        action = liveness.action(now_s)
        if action is LivenessAction.CUT:
            assert pinged_s is not None
            assert now_s - max(heard_s, pinged_s) >= 60
            return
        if action is LivenessAction.PING:
            liveness, pinged_s = liveness.pinged(now_s), now_s
        if speaks:
            liveness, heard_s = liveness.heard(now_s), now_s
    assert now_s - heard_s < 30 + 60 + 40, "silence is noticed within interval, limit and one look"


def test_who_was_stopped_itself_gives_its_peer_the_whole_limit_again() -> None:
    """A paused machine wakes with everything its peers said still unread. Mutant: `looked` changes nothing."""
    liveness = Liveness.begin(30, 60, 0.0).pinged(30.0)

    assert liveness.looked(90.0).action(90.0) is LivenessAction.CUT
    woken = liveness.looked(4000.0)
    assert woken.action(4000.0) is LivenessAction.WAIT
    assert woken.action(4060.0) is LivenessAction.CUT


def test_delays_double_to_the_cap_and_are_spread_over_its_upper_half() -> None:
    redial = Redial(first_s=1, cap_s=30, quick_tries=0)
    delays = []
    for _ in range(8):
        delays.append((redial.delay_s(0.0), redial.delay_s(1.0)))
        redial = redial.failed()

    assert delays == [(0.5, 1), (1, 2), (2, 4), (4, 8), (8, 16), (15, 30), (15, 30), (15, 30)]


def test_the_first_tries_are_quick_and_the_very_first_is_spread_from_nothing() -> None:
    redial = Redial(quick_tries=3, quick_s=0.2, first_s=1)
    delays = []
    for _ in range(5):
        delays.append((redial.delay_s(0.0), redial.delay_s(1.0)))
        redial = redial.failed()

    assert delays == [(0, 0.2), (0.1, 0.2), (0.1, 0.2), (0.5, 1), (1, 2)]


def test_a_relay_that_accepts_and_drops_sees_no_tight_loop() -> None:
    """Mutant: `after_connection` resets after any connection."""
    redial, now_s, dials = Redial(), 0.0, 0
    while now_s < 60:
        redial = redial.after_connection(0.01)
        now_s += redial.delay_s(0.0)
        redial, dials = redial.failed(), dials + 1

    assert dials <= 24


def test_only_a_connection_that_lasted_resets_the_delays() -> None:
    redial = Redial(stable_s=10, failures=5)

    assert redial.after_connection(9.9).failures == 5
    assert redial.after_connection(10.0).failures == 0


def test_try_again_after_n_is_obeyed_and_spread() -> None:
    redial = Redial(first_s=1, cap_s=30, quick_tries=0, failures=3)

    assert redial.delay_s(0.0, retry_after_s=20) == 20
    assert redial.delay_s(1.0, retry_after_s=20) == 30
    assert redial.delay_s(1.0, retry_after_s=1) == 8
    assert redial.delay_s(0.0, retry_after_s=1e9) == 300, "nobody is sent away for ever"


@given(st.integers(0, 100), st.floats(0, 1), st.floats(0.1, 5), st.floats(5, 100))
def test_p12_the_spread_is_at_least_half_the_delay_also_at_the_cap(
    failures: int, spread: float, first_s: float, cap_s: float
) -> None:
    """Mutant: the cap is applied after the spread, so that at the cap everybody waits alike."""
    redial = Redial(first_s=first_s, cap_s=cap_s, quick_tries=0, failures=failures)

    assert redial.delay_s(0.0) <= redial.delay_s(spread) <= redial.delay_s(1.0) <= cap_s
    assert redial.delay_s(1.0) == pytest.approx(2 * redial.delay_s(0.0))


def test_p12_a_thousand_clients_come_back_spread_and_all_get_in() -> None:
    """1,000 clients, a relay away for half an hour and then taking 20 a second, a cap of 60 s; seeded."""
    entropy = random.Random(12)
    plans = [Redial(first_s=1, cap_s=60, quick_tries=0, failures=6) for _ in range(1000)]
    due = sorted((entropy.uniform(1740, 1800) + 1 * entropy.random() * 60, n) for n in range(1000))
    attempts: dict[int, int] = {}
    tokens, at_s, connected, last_s = 50.0, 1800.0, 0, 0.0
    while due:
        now_s, n = due.pop(0)
        if now_s >= 1800:
            attempts[int(now_s)] = attempts.get(int(now_s), 0) + 1
            tokens, at_s = min(50.0, tokens + (now_s - at_s) * 20), now_s
            if tokens >= 1:
                tokens, connected, last_s = tokens - 1, connected + 1, now_s
                continue
        wait_s = plans[n].delay_s(entropy.random(), retry_after_s=5 if now_s >= 1800 else None)
        assert wait_s >= plans[n].delay_s(0.0)
        plans[n] = plans[n].failed()
        due.append((now_s + wait_s, n))
        due.sort()

    assert connected == 1000
    assert max(attempts.values()) <= 100, "no second sees more than a tenth of them"
    assert last_s <= 1800 + 3 * 60
