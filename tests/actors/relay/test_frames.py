"""Frames: the bytes on the wire, the rules of each kind with their texts, and any bytes at all."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from actors.relay import (
    Ack,
    Data,
    Frame,
    FrameInvalid,
    FrameUndecodable,
    Handshake,
    Heartbeat,
    RelayError,
    Reset,
    Resume,
    TraceContext,
    decode,
    encode,
    encode_reset,
    parse,
)
from actors.relay import _relay_v1_pb2 as pb

UINT32 = st.integers(0, 2**32 - 1)
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(str.strip)
BODIES = st.one_of(
    st.builds(Data, UINT32, st.binary(min_size=1, max_size=60)),
    st.builds(Ack),
    st.builds(Resume, UINT32),
    st.builds(Reset, WORDS),
    st.builds(Heartbeat),
    st.builds(Handshake, st.binary(min_size=1, max_size=60)),
)
FRAMES = st.builds(Frame, WORDS, BODIES, UINT32)


@given(FRAMES)
def test_every_valid_frame_comes_back_as_it_was(frame: Frame) -> None:
    """Mutant: `encode` writes an `Ack` with `ack=0`."""
    assert decode(encode(frame)) == frame


@given(st.binary(max_size=200))
def test_any_bytes_are_a_valid_frame_or_a_typed_refusal(data: bytes) -> None:
    """Mutant: `parse` lets protobuf's own `DecodeError` through."""
    try:
        frame = decode(data)
    except (FrameUndecodable, FrameInvalid):
        assert issubclass(FrameUndecodable, RelayError)
    except DecodeError:
        pytest.fail("another library's error came through the door")
    else:
        assert frame.stream_id.strip()


@given(FRAMES)
def test_one_flipped_bit_anywhere_never_yields_a_frame_that_breaks_its_rules(frame: Frame) -> None:
    """Mutant: `_data_of` accepts a segment count other than 1."""
    whole = encode(frame)
    for bit in range(8 * len(whole)):
        encoded = bytearray(whole)
        encoded[bit // 8] ^= 1 << bit % 8
        try:
            decode(bytes(encoded))
        except (FrameUndecodable, FrameInvalid):
            continue
        message = pb.RelayMessageFrame.FromString(bytes(encoded))
        assert message.version == 1
        assert message.WhichOneof("body")
        if message.HasField("data"):
            assert (message.data.segment_index, message.data.segment_count) == (0, 1)


@given(
    st.builds(
        pb.RelayMessageFrame,
        version=st.sampled_from([0, 1, 2]),
        stream_id=st.sampled_from(["", " ", "s"]),
        ack=st.sampled_from([0, 7]),
        data=st.builds(
            pb.RelayData,
            seq=UINT32,
            segment_index=st.sampled_from([0, 1]),
            segment_count=st.sampled_from([0, 1, 2]),
            payload=st.binary(max_size=3),
        ),
    ).map(pb.RelayMessageFrame.SerializeToString)
    | FRAMES.map(encode)
)
def test_a_record_is_read_the_short_way_exactly_when_the_long_way_finds_one(data: bytes) -> None:
    """Mutants: `record` does not look at the version, at a blank stream id, at segments, or at an empty payload."""
    try:
        frame = decode(data)
    except FrameInvalid:
        assert parse(data).record() is None
        return
    expected = (frame.stream_id, frame.body.seq, frame.body.payload) if isinstance(frame.body, Data) else None

    assert parse(data).record() == expected


def test_defaults_are_left_out_and_a_resume_is_an_empty_message() -> None:
    assert encode(Frame("s", Resume())) == b"\x08\x01\x12\x01s\x3a\x00"
    assert encode(Frame("s", Data(0, b"x"))) == b"\x08\x01\x12\x01s\x2a\x05\x18\x01\x22\x01x"


def test_the_one_reason_ever_sent_is_the_constant() -> None:
    assert decode(encode_reset("s")).body == Reset("noise_relay_protocol_error")


def test_trace_context_travels_in_fields_11_and_12() -> None:
    frame = Frame("s", Data(1, b"x"), trace=TraceContext("00-aa", "k=v"))

    assert encode(frame).endswith(b"\x5a\x0500-aa\x62\x03k=v")
    assert decode(encode(frame)) == frame


def test_fields_of_a_later_version_are_skipped() -> None:
    assert decode(encode(Frame("s", Heartbeat())) + b"\x6a\x01z") == Frame("s", Heartbeat())


@pytest.mark.parametrize("tail", [b"\x5a\x02\xff\xfe", b"\x58\x01"], ids=["bad UTF-8", "wrong wire type"])
def test_a_broken_trace_field_spoils_the_whole_frame_or_is_skipped_but_never_shown(tail: bytes) -> None:
    try:
        frame = decode(encode(Frame("s", Heartbeat())) + tail)
    except FrameUndecodable:
        return
    assert frame.trace is None


def message(**fields: object) -> bytes:
    return pb.RelayMessageFrame(**{"version": 1, "stream_id": "s", **fields}).SerializeToString()  # type: ignore[arg-type]


MISSING_DATA = "relay data message frame is missing required fields"
BROKEN = [
    (message(version=0, heartbeat=pb.RelayHeartbeat()), "unsupported relay message frame version 0"),
    (message(version=7, heartbeat=pb.RelayHeartbeat()), "unsupported relay message frame version 7"),
    (message(stream_id="", heartbeat=pb.RelayHeartbeat()), "relay message frame is missing stream_id"),
    (message(stream_id=" \t", heartbeat=pb.RelayHeartbeat()), "relay message frame is missing stream_id"),
    (message(), "relay message frame is missing body"),
    (message(data=pb.RelayData(segment_count=1)), MISSING_DATA),
    (message(data=pb.RelayData(payload=b"x")), MISSING_DATA),
    (message(data=pb.RelayData(segment_count=2, payload=b"x")), MISSING_DATA),
    (message(data=pb.RelayData(segment_index=1, segment_count=1, payload=b"x")), MISSING_DATA),
    (message(reset=pb.RelayReset()), "relay reset message frame is missing reason"),
    (message(handshake=pb.RelayHandshake()), "relay handshake message frame is missing payload"),
]


@pytest.mark.parametrize(("data", "text"), BROKEN, ids=[text[:50] for _, text in BROKEN])
def test_each_broken_rule_has_its_text(data: bytes, text: str) -> None:
    with pytest.raises(FrameInvalid) as caught:
        decode(data)

    assert str(caught.value) == text


def test_bytes_that_are_no_frame_say_so() -> None:
    with pytest.raises(FrameUndecodable, match=r"^invalid relay message frame: "):
        decode(b"\xff\xff\xff")


def test_a_frame_tells_whose_it_is_before_it_is_judged() -> None:
    assert parse(message(stream_id="mine")).stream_id == "mine"


def test_no_frame_shows_its_payload() -> None:
    shown = repr(Frame("s", Data(0, b"attack at dawn"))) + repr(Frame("s", Handshake(b"attack at dawn")))

    assert "attack" not in shown
    assert "<14 bytes>" in shown
