"""Whether and when to try again (spec 7.13, cases 93 to 95)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.harness import (
    RELAY_RECOVERY,
    AnswerLost,
    CallNotSent,
    Disconnected,
    HarnessError,
    InitializeTimedOut,
    ProtocolBroken,
    RecoveryPolicy,
    RequestRejected,
    TransportClosed,
    WebSocketConnectFailed,
    WebSocketConnectTimedOut,
    is_worth_retrying,
)

RELAYED = RecoveryPolicy(first_delay_s=0.5, delay_max_s=5.0, jitter=0.5)


@given(st.text(), st.integers(0, 60))
def test_93_delays_double_up_to_their_bound_and_stay_within_the_jitter(session_id: str, attempt: int) -> None:
    """Kills: two doublings; jitter below the base."""
    base_s = [0.5, 1.0, 2.0, 4.0, 5.0][min(attempt, 4)]

    delay_s = RELAYED.delay_s(session_id, attempt)

    assert base_s <= delay_s <= 1.5 * base_s
    assert RELAYED.delay_s(session_id, attempt) == delay_s


def test_quick_tries_come_first_and_then_the_delays_grow_as_ever() -> None:
    for attempt in range(20):
        assert 0.06 <= RELAY_RECOVERY.delay_s("s", attempt) <= 0.09
    for attempt, base_s in enumerate([0.5, 1.0, 2.0, 4.0, 5.0, 5.0], start=20):
        assert base_s <= RELAY_RECOVERY.delay_s("s", attempt) <= 1.5 * base_s


def test_p12_what_the_other_side_asks_for_is_obeyed_and_spread_upwards() -> None:
    """Kills: the jitter taken of our own delay only, so that all who were told the same come back together."""
    delays = sorted(RELAY_RECOVERY.delay_s(f"session-{n}", 0, 2.0) for n in range(200))

    assert delays[0] >= 2.0
    assert delays[-1] > 2.9
    assert max(b - a for a, b in pairwise(delays)) < 0.1


def test_a_crowd_is_spread_over_the_whole_jitter() -> None:
    delays = sorted(RELAYED.delay_s(f"session-{n}", 0) for n in range(200))

    assert delays[0] < 0.52
    assert delays[-1] > 0.73
    assert max(b - a for a, b in pairwise(delays)) < 0.02


def test_a_plain_websocket_is_tried_every_tenth_of_a_second() -> None:
    assert [RecoveryPolicy().delay_s("s", attempt) for attempt in range(30)] == [0.1] * 30


@pytest.mark.parametrize(
    "error",
    [
        Disconnected("reset"),
        TransportClosed(),
        CallNotSent("initialize", Disconnected()),
        AnswerLost("initialize", Disconnected()),
        WebSocketConnectFailed("ws://h", "refused"),
        WebSocketConnectFailed("ws://h", "busy", status=503),
        WebSocketConnectTimedOut("ws://h", 10),
        InitializeTimedOut(10),
        RequestRejected(-32010, "session s is already attached to another connection"),
        RequestRejected(-32000, "JSON-RPC transport closed"),
    ],
    ids=str,
)
def test_what_may_pass_is_tried_again(error: HarnessError) -> None:
    assert is_worth_retrying(error)


@pytest.mark.parametrize(
    "error",
    [
        RequestRejected(-32600, "unknown session id s"),
        RequestRejected(-32000, "something else"),
        ProtocolBroken("exec-server initialized an unexpected session t"),
        WebSocketConnectFailed("ws://h", "unauthorized", status=401),
        WebSocketConnectFailed("ws://h", "forbidden", status=403),
        CallNotSent("initialize", ProtocolBroken("x")),
    ],
    ids=str,
)
def test_what_will_not_pass_is_not_tried_again(error: HarnessError) -> None:
    assert not is_worth_retrying(error)


@pytest.mark.parametrize(
    "options",
    [
        {"budget_s": 0},
        {"first_delay_s": -1},
        {"delay_max_s": 0},
        {"jitter": 1.5},
        {"quick_tries": -1},
        {"quick_delay_s": 0},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_when_made(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        RecoveryPolicy(**options)
