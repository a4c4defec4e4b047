"""Who writes next: resets first and never lost, then the streams in turn, one record each."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from actors.relay import Data, Handshake, RelayLimits, Reset, decode
from actors.relay._frames import encode_handshake
from actors.relay._schedule import Lane, LaneFailed, OutgoingSchedule

LIMITS = RelayLimits(max_record_bytes=10, max_message_bytes=1000, window_bytes=100, max_control_frames=16)


def lane(stream_id: str) -> Lane:
    return Lane(stream_id, lambda plaintext: plaintext, LIMITS)


def names(schedule: OutgoingSchedule, count: int) -> list[str]:
    out = []
    for _ in range(count):
        turn = schedule.next()
        assert turn is not None
        out.append(decode(turn[0]).stream_id)
    return out


def test_a_large_message_delays_another_stream_by_one_record() -> None:
    schedule = OutgoingSchedule(LIMITS)
    large, small = lane("large"), lane("small")
    schedule.open_lane(large)
    schedule.open_lane(small)
    schedule.put_message(large, bytes(500))
    assert names(schedule, 3) == ["large"] * 3

    schedule.put_message(small, b"hi")
    assert names(schedule, 3) == ["large", "small", "large"]


def test_a_reset_overtakes_data_and_drops_what_its_own_stream_had_queued() -> None:
    schedule = OutgoingSchedule(LIMITS)
    one, two = lane("one"), lane("two")
    for each in (one, two):
        schedule.open_lane(each)
        schedule.put_message(each, b"hello")
    schedule.put_reset("two", was_known=True)

    turns = [schedule.next() for _ in range(3)]
    assert isinstance(decode(turns[0][0]).body, Reset)  # type: ignore[index]
    assert decode(turns[1][0]).stream_id == "one"  # type: ignore[index]
    assert turns[2] is None
    assert schedule.queued_bytes == 0


def test_a_shut_window_gives_its_turn_away_and_an_ack_brings_it_back() -> None:
    schedule = OutgoingSchedule(LIMITS)
    stuck = lane("stuck")
    schedule.open_lane(stuck)
    stuck.window.acknowledge(0)
    schedule.put_message(stuck, bytes(500))
    assert names(schedule, 10) == ["stuck"] * 10
    assert schedule.next() is None

    stuck.window.acknowledge(5)
    schedule.wake(stuck)
    assert names(schedule, 5) == ["stuck"] * 5
    assert schedule.next() is None


def test_only_the_newest_acknowledgement_of_a_stream_is_written() -> None:
    schedule = OutgoingSchedule(LIMITS)
    schedule.open_lane(lane("s"))
    schedule.put_ack("s", 1)
    schedule.put_ack("s", 2)

    assert decode(schedule.next()[0]).ack == 2  # type: ignore[index]
    assert schedule.next() is None


def test_resets_of_unknown_ids_are_bounded_and_those_of_known_ones_are_not_lost() -> None:
    schedule = OutgoingSchedule(LIMITS)
    for number in range(100):
        schedule.put_reset(f"unknown-{number}", was_known=False)
    assert schedule.put_reset("known", was_known=True)

    resets = names(schedule, schedule.control_frames)
    assert len(resets) == 9
    assert resets[-1] == "known"
    assert schedule.resets_refused == 92


def test_a_reply_goes_before_the_reset_that_may_follow_it_is_dropped_by_it() -> None:
    schedule = OutgoingSchedule(LIMITS)
    schedule.put_reply("s", encode_handshake("s", b"x"))
    schedule.put_reset("s", was_known=True)

    assert isinstance(decode(schedule.next()[0]).body, Reset)  # type: ignore[index]
    assert schedule.next() is None


def test_a_lane_that_cannot_seal_is_named_and_the_others_go_on() -> None:
    def fail(plaintext: bytes) -> bytes:
        raise ValueError("broken")

    schedule = OutgoingSchedule(LIMITS)
    broken, fine = Lane("broken", fail, LIMITS), lane("fine")
    for each in (broken, fine):
        schedule.open_lane(each)
        schedule.put_message(each, b"hello")

    with pytest.raises(LaneFailed) as caught:
        schedule.next()
    assert caught.value.lane is broken
    schedule.close_lane("broken")
    assert names(schedule, 1) == ["fine"]
    assert schedule.queued_bytes == 0


class Scheduling(RuleBasedStateMachine):
    """Any mixture of streams, messages, acknowledgements and resets."""

    @initialize()
    def begin(self) -> None:
        self.schedule = OutgoingSchedule(LIMITS)
        self.lanes: dict[str, Lane] = {}
        self.owed: dict[str, bytes] = {}
        self.got: dict[str, bytes] = {}
        self.resets: set[str] = set()
        self.last: str | None = None
        # Who was ready when the last frame was written, and has been so since.
        self.passed_over: set[str] = set()

    @rule(stream_id=st.sampled_from("abc"), size=st.sampled_from([1, 6, 40, 90, 150]))
    def put(self, stream_id: str, size: int) -> None:
        if stream_id not in self.lanes:
            self.lanes[stream_id] = lane(stream_id)
            self.schedule.open_lane(self.lanes[stream_id])
            self.owed[stream_id] = self.got[stream_id] = b""
        message = bytes(range(size))
        self.schedule.put_message(self.lanes[stream_id], message)
        self.owed[stream_id] += len(message).to_bytes(4, "big") + message

    @rule(stream_id=st.sampled_from("abc"), share=st.floats(0, 1))
    def acknowledge(self, stream_id: str, share: float) -> None:
        if (known := self.lanes.get(stream_id)) is not None:
            known.window.acknowledge(round(share * known.window.sent))
            self.schedule.wake(known)

    @rule(stream_id=st.sampled_from("abc"))
    def reset(self, stream_id: str) -> None:
        if self.lanes.pop(stream_id, None) is not None:
            self.schedule.put_reset(stream_id, was_known=True)
            self.resets.add(stream_id)
            self.passed_over.discard(stream_id)

    @rule(times=st.integers(1, 5))
    def write(self, times: int) -> None:
        for _ in range(times):
            if (turn := self.schedule.next()) is None:
                return
            frame = decode(turn[0])
            if isinstance(frame.body, Reset):
                self.resets.discard(frame.stream_id)
                continue
            assert not self.resets, "resets go first"
            assert isinstance(frame.body, Data)
            self.got[frame.stream_id] += frame.body.payload
            others = {s for s, each in self.lanes.items() if each.is_ready and s != frame.stream_id}
            passed_over = others & self.passed_over if self.last == frame.stream_id else set[str]()
            assert not passed_over, "the same stream twice, and another was ready all the time"
            self.last, self.passed_over = frame.stream_id, others

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        for stream_id, known in self.lanes.items():
            assert self.owed[stream_id].startswith(self.got[stream_id])
            waiting = len(self.owed[stream_id]) - len(self.got[stream_id])
            assert known.packer.queued_bytes == waiting

    @invariant()
    def the_sum_is_right(self) -> None:
        assert self.schedule.queued_bytes == sum(each.packer.queued_bytes for each in self.lanes.values())

    def teardown(self) -> None:
        """All that may be written is written in the end."""
        if hasattr(self, "schedule"):
            while self.schedule.next() is not None:
                pass
            assert not any(each.is_ready for each in self.lanes.values())


class TestScheduling(Scheduling.TestCase):
    """Mutants: `next` puts a lane back in front; `put_reset` forgets `close_lane`; `wake` forgets `_in_turn`."""

    settings = settings(stateful_step_count=40)


def test_the_control_lane_keeps_room_for_every_stream_it_admits() -> None:
    schedule = OutgoingSchedule(LIMITS)
    admitted = 0
    while schedule.has_room_for_handshake:
        schedule.open_lane(lane(str(admitted)))
        admitted += 1

    for number in range(admitted):
        schedule.put_reply(str(number), encode_handshake(str(number), b"x"))
        schedule.put_ack(str(number), 0)
    assert schedule.control_frames <= LIMITS.max_control_frames
    assert isinstance(decode(schedule.next()[0]).body, Handshake)  # type: ignore[index]
