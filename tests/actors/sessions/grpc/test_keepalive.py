from hypothesis import event, given
from hypothesis import strategies as st

from actors.sessions.grpc import KeepalivePolicy
from actors.sessions.grpc._keepalive import Act, Keepalive

POLICY = KeepalivePolicy(interval_s=10, timeout_s=4)


@given(st.lists(st.sampled_from([*["tick"] * 12, "hear", "open", "close"]), max_size=80), st.booleans())
def test_a_peer_is_given_up_only_after_a_full_timeout_of_silence_that_followed_a_ping(
    steps: list[str], without_calls: bool
) -> None:
    """One step is one second. Seen to fail with: the answer not resetting the question; giving up after the
    interval; asking while no call is open; hearing in the second of the ping not counted as an answer."""
    policy = KeepalivePolicy(interval_s=10, timeout_s=4, without_calls=without_calls)
    machine, heard_s, calls_open, pinged_s = Keepalive(policy), 0.0, False, None
    for now_s, step in enumerate(steps):
        if step == "hear":
            heard_s, pinged_s = float(now_s), None
        calls_open = {"open": True, "close": False}.get(step, calls_open)
        machine, act, again_s = machine.decide(now_s=float(now_s), heard_at_s=heard_s, calls_open=calls_open)
        event(act.value)

        if act is Act.PING:
            assert pinged_s is None
            assert now_s - heard_s >= 10
            assert calls_open or without_calls
            pinged_s = float(now_s)
        elif act is Act.GIVE_UP:
            assert pinged_s is not None
            assert now_s - pinged_s >= 4
            return
        elif pinged_s is not None:
            assert now_s - pinged_s < 4, "a silent peer is given up in time"
        elif calls_open or without_calls:
            assert now_s - heard_s < 10, "a silent peer is asked in time"
        assert again_s > now_s


def test_an_answer_in_the_very_moment_of_the_ping_counts() -> None:
    machine, act, _ = Keepalive(POLICY).decide(now_s=10, heard_at_s=0, calls_open=True)
    assert act is Act.PING

    _, act, again_s = machine.decide(now_s=14, heard_at_s=10, calls_open=True)

    assert (act, again_s) == (Act.WAIT, 20)
