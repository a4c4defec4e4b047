"""Which failures are worth another try, and how long to wait before it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import ActorsError, InvalidOption
from actors.environments import AttemptRules, ConnectFailed, ProtocolError, is_retryable_answer
from actors.environments._retry import is_retryable, retry_after_s


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (500, None, True), (502, None, True), (503, None, True), (599, None, True), (408, None, True),
        (429, None, True),
        (409, "environment_offline", True), (409, "registration_conflict", False), (409, None, False),
        (400, None, False), (401, None, False), (403, None, False), (404, None, False), (499, None, False),
    ],
)  # fmt: skip
def test_a_registry_is_asked_again_after_exactly_these_answers(status: int, code: str | None, retryable: bool) -> None:
    assert is_retryable_answer(status, code) is retryable


def test_only_our_own_errors_can_say_that_another_attempt_makes_sense() -> None:
    class Liar(Exception):
        retryable = True

    class Vague(ActorsError):
        retryable = "perhaps"

    assert is_retryable(ConnectFailed("x", retryable=True))
    assert not is_retryable(ConnectFailed("x"))
    assert not is_retryable(ProtocolError("x"))
    assert not is_retryable(Liar())
    assert not is_retryable(Vague())


@pytest.mark.parametrize(
    ("asked", "heard_s"),
    [(7, 7.0), (0.5, 0.5), (0, None), (-1, None), (math.nan, None), (None, None), ("soon", None), ([9], None)],
)
def test_only_a_time_to_come_says_when_to_ask_again(asked: object, heard_s: float | None) -> None:
    """Killed: `or` for the `and` between what is a number and what is yet to come."""

    class Told(ActorsError):
        retry_after_s = asked

    class Foreign(Exception):
        retry_after_s = 7.0

    assert retry_after_s(Told()) == heard_s
    assert retry_after_s(Foreign()) is None


def test_pauses_double_up_to_the_longest_and_stop_after_the_last_retry() -> None:
    rules = AttemptRules(retries=6, budget_s=1000.0)

    pauses = [rules.pause_s(tries, 0.0, "key") for tries in range(1, 8)]

    assert pauses[6] is None
    for pause_s, base_s in zip(pauses, [0.5, 1, 2, 4, 5, 5], strict=False):
        assert pause_s is not None
        assert base_s <= pause_s < 1.5 * base_s


def test_a_pause_that_would_end_after_the_budget_is_not_begun() -> None:
    assert AttemptRules().pause_s(1, 13.6, "key") is None
    assert AttemptRules().pause_s(1, 13.0, "key") is not None


@given(st.text(), st.integers(1, 4))
def test_the_same_key_has_the_same_jitter(key: str, tries: int) -> None:
    assert AttemptRules().pause_s(tries, 0.0, key) == AttemptRules().pause_s(tries, 0.0, key)


def test_keys_that_fail_together_are_spread_over_the_whole_jitter() -> None:
    pauses = [AttemptRules().pause_s(1, 0.0, f"env-{number}") or 0.0 for number in range(1000)]

    assert min(pauses) < 0.51
    assert max(pauses) > 0.74
    assert len({round(pause_s, 3) for pause_s in pauses}) > 200


@pytest.mark.parametrize("field", ["provider_call_s", "budget_s", "first_pause_s", "longest_pause_s", "connect_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rule_that_cannot_be_kept_is_refused_by_its_name(field: str, value: float) -> None:
    with pytest.raises(InvalidOption, match=field):
        AttemptRules(**{field: value})


def test_a_negative_number_of_retries_is_refused() -> None:
    with pytest.raises(InvalidOption, match="retries"):
        AttemptRules(retries=-1)
