"""Flow control by acknowledgements: optional for the peer, and bounded for both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.relay import AckBeyondSent, RelayLimits
from actors.relay._window import ReceiveWindow, SendWindow

LIMITS = RelayLimits(window_bytes=1000)


def test_a_peer_that_never_acknowledges_never_closes_the_window() -> None:
    window = SendWindow(LIMITS)
    for _ in range(1000):
        window.record_sent(100)

    assert window.is_open


def test_92_a_full_window_says_no_until_something_is_acknowledged() -> None:
    window = SendWindow(LIMITS)
    window.acknowledge(0)
    for _ in range(10):
        assert window.is_open
        window.record_sent(100)

    assert not window.is_open
    window.acknowledge(1)
    assert window.is_open


def test_87_an_ack_of_nothing_releases_nothing_and_ack_n_releases_the_first_n_with_their_bytes() -> None:
    window = SendWindow(LIMITS)
    window.acknowledge(0)
    for size in (10, 20, 30):
        window.record_sent(size)

    window.acknowledge(0)
    assert window.flying_bytes == 60
    window.acknowledge(2)
    assert window.flying_bytes == 30
    window.acknowledge(1)
    assert (window.flying_bytes, window.acked) == (30, 2)


def test_88_an_ack_beyond_what_was_sent_is_an_error_and_releases_nothing() -> None:
    window = SendWindow(LIMITS)
    window.acknowledge(0)
    window.record_sent(10)

    with pytest.raises(AckBeyondSent):
        window.acknowledge(2)
    assert (window.flying_bytes, window.acked) == (10, 0)


def test_what_flew_before_the_first_ack_is_not_waited_for() -> None:
    window = SendWindow(LIMITS)
    window.record_sent(5000)
    window.acknowledge(0)

    assert window.is_open
    window.record_sent(10)
    window.acknowledge(1)
    assert window.flying_bytes == 10


@given(st.lists(st.one_of(st.integers(1, 400), st.floats(0, 1)), max_size=80))
def test_the_window_agrees_with_counting_by_hand(steps: list[float]) -> None:
    """Mutant: `acknowledge` takes the sizes from the wrong end."""
    window = SendWindow(LIMITS)
    window.acknowledge(0)
    sizes: list[int] = []
    acked = 0
    for step in steps:
        if isinstance(step, int):
            window.record_sent(step)
            sizes.append(step)
        else:
            ack = round(step * len(sizes))
            window.acknowledge(ack)
            acked = max(acked, ack)

        assert window.flying_bytes == sum(sizes[acked:])
        assert window.is_open == (sum(sizes[acked:]) < 1000)


@given(st.lists(st.integers(1, 700), min_size=1, max_size=300))
def test_a_receiver_that_acks_when_it_is_due_never_stops_a_sender_for_good(sizes: list[int]) -> None:
    """Mutant: `is_due` waits for twice the window."""
    sender, receiver = SendWindow(LIMITS), ReceiveWindow(LIMITS)
    sender.acknowledge(0)
    for size in sizes:
        assert sender.is_open, "everything that is due has been acknowledged"
        sender.record_sent(size)
        receiver.record_received(size)
        if receiver.is_due:
            sender.acknowledge(receiver.take_ack())
