"""Turn relay frames into values and back. Knows routing data and sizes; payloads are bytes without meaning.

Decoding has two steps because a harness must know whose frame it is before it judges it: `parse` reads the bytes,
`validate` holds the frame against the rules of its kind.
"""

import attrs
from google.protobuf.message import DecodeError

from actors.relay import _relay_v1_pb2 as pb
from actors.relay._errors import FrameInvalid, FrameUndecodable

__all__ = [
    "RESET_REASON",
    "Ack",
    "Body",
    "Data",
    "Frame",
    "Handshake",
    "Heartbeat",
    "Reset",
    "Resume",
    "TraceContext",
    "UncheckedFrame",
    "decode",
    "encode",
    "encode_ack",
    "encode_data",
    "encode_handshake",
    "encode_reset",
    "encode_resume",
    "parse",
]

_VERSION = 1
RESET_REASON = "noise_relay_protocol_error"
"""The one reason ever sent: a reset is not authenticated, and the real cause is nobody's business on the way."""


@attrs.frozen
class Data:
    """One encrypted record.

    Attributes:
        seq: Position in its direction, from 0. Equals the record counter of the channel.
        payload: Ciphertext with its tag.
    """

    seq: int
    payload: bytes = attrs.field(repr=lambda payload: f"<{len(payload)} bytes>")


@attrs.frozen
class Ack:
    """Records consumed so far (`Frame.ack` holds the number). Peers in the field ignore it."""


@attrs.frozen
class Resume:
    """Claims the stream id at the router.

    Attributes:
        next_seq: Always 0: nothing is retransmitted.
    """

    next_seq: int = 0


@attrs.frozen
class Reset:
    """Ends the stream.

    Attributes:
        reason: Unauthenticated text. Never shown.
    """

    reason: str


@attrs.frozen
class Heartbeat:
    """Says nothing. Never sent, always accepted."""


@attrs.frozen
class Handshake:
    """One message of the key exchange.

    Attributes:
        payload: Opaque to everybody but the two ends.
    """

    payload: bytes = attrs.field(repr=lambda payload: f"<{len(payload)} bytes>")


Body = Data | Ack | Resume | Reset | Heartbeat | Handshake


@attrs.frozen
class TraceContext:
    """W3C trace context that travels in clear beside the first record of a request.

    Attributes:
        traceparent: The `traceparent` value.
        tracestate: The `tracestate` value, or nothing.
    """

    traceparent: str
    tracestate: str = ""


@attrs.frozen
class Frame:
    """One valid relay frame.

    Attributes:
        stream_id: Whose frame it is.
        body: What it carries.
        ack: Records consumed by the sender of this frame, counted from the first. 0 says nothing.
        trace: Trace context, on the first record of a request only.
    """

    stream_id: str
    body: Body
    ack: int = 0
    trace: TraceContext | None = None


class UncheckedFrame:
    """A frame that could be read and has not been held against the rules yet."""

    __slots__ = ("_message",)

    def __init__(self, message: pb.RelayMessageFrame) -> None:
        self._message = message

    @property
    def stream_id(self) -> str:
        """Whose frame it claims to be; may be blank."""
        return self._message.stream_id

    @property
    def is_reset(self) -> bool:
        """Whether it claims to end its stream."""
        return self._message.HasField("reset")

    def record(self) -> tuple[str, int, bytes] | None:
        """Give stream id, position and ciphertext of a valid record; None for all else.

        The hot path: no value is built on the way. What is given here is what `validate` would find.
        """
        message = self._message
        if message.version != _VERSION or not message.HasField("data") or not (stream_id := message.stream_id).strip():
            return None
        data = message.data
        if data.segment_index != 0 or data.segment_count != 1 or not (payload := data.payload):
            return None
        return stream_id, data.seq, payload

    def validate(self) -> Frame:
        """Hold the frame against the rules of its kind.

        Raises:
            FrameInvalid: It breaks one; the text says which.
        """
        message = self._message
        if message.version != _VERSION:
            raise FrameInvalid(f"unsupported relay message frame version {message.version}")
        if not message.stream_id.strip():
            raise FrameInvalid("relay message frame is missing stream_id")
        trace = TraceContext(message.traceparent, message.tracestate) if message.traceparent else None
        return Frame(message.stream_id, _body_of(message), message.ack, trace)


def _body_of(message: pb.RelayMessageFrame) -> Body:
    kind = message.WhichOneof("body")
    match kind:
        case "data":
            return _data_of(message.data)
        case "ack_frame":
            return Ack()
        case "resume":
            return Resume(message.resume.next_seq)
        case "reset":
            return _reset_of(message.reset)
        case "heartbeat":
            return Heartbeat()
        case "handshake":
            return _handshake_of(message.handshake)
        case _:
            assert kind is None, f"the schema knows a body that this table does not: {kind}"
            raise FrameInvalid("relay message frame is missing body")


def _data_of(data: pb.RelayData) -> Data:
    payload = data.payload
    if data.segment_index != 0 or data.segment_count != 1 or not payload:
        raise FrameInvalid("relay data message frame is missing required fields")
    return Data(data.seq, payload)


def _reset_of(reset: pb.RelayReset) -> Reset:
    if not reset.reason:
        raise FrameInvalid("relay reset message frame is missing reason")
    return Reset(reset.reason)


def _handshake_of(handshake: pb.RelayHandshake) -> Handshake:
    if not handshake.payload:
        raise FrameInvalid("relay handshake message frame is missing payload")
    return Handshake(handshake.payload)


def parse(data: bytes) -> UncheckedFrame:
    """Read a frame without judging it.

    Raises:
        FrameUndecodable: The bytes are no relay frame.
    """
    try:
        return UncheckedFrame(pb.RelayMessageFrame.FromString(data))
    except DecodeError as error:
        raise FrameUndecodable(str(error)) from None


def decode(data: bytes) -> Frame:
    """Read and validate a frame.

    Raises:
        FrameUndecodable: The bytes are no relay frame.
        FrameInvalid: The frame breaks a rule of its kind.
    """
    return parse(data).validate()


def encode(frame: Frame) -> bytes:
    """Write any frame."""
    match frame.body:
        case Data(seq, payload):
            return encode_data(frame.stream_id, seq, payload, ack=frame.ack, trace=frame.trace)
        case Ack():
            return encode_ack(frame.stream_id, frame.ack)
        case Resume(next_seq):
            resume = pb.RelayResume(next_seq=next_seq)
            return _message(frame.stream_id, resume=resume, ack=frame.ack)
        case Reset(reason):
            return _message(frame.stream_id, reset=pb.RelayReset(reason=reason), ack=frame.ack)
        case Heartbeat():
            return _message(frame.stream_id, heartbeat=pb.RelayHeartbeat(), ack=frame.ack)
        case Handshake(payload):
            return _message(frame.stream_id, handshake=pb.RelayHandshake(payload=payload), ack=frame.ack)


def _message(
    stream_id: str,
    *,
    ack: int = 0,
    resume: pb.RelayResume | None = None,
    reset: pb.RelayReset | None = None,
    heartbeat: pb.RelayHeartbeat | None = None,
    handshake: pb.RelayHandshake | None = None,
) -> bytes:
    return pb.RelayMessageFrame(
        version=_VERSION,
        stream_id=stream_id,
        ack=ack,
        resume=resume,
        reset=reset,
        heartbeat=heartbeat,
        handshake=handshake,
    ).SerializeToString()


def encode_data(stream_id: str, seq: int, payload: bytes, *, ack: int = 0, trace: TraceContext | None = None) -> bytes:
    """Write one record. The hot path: no value is built on the way."""
    message = pb.RelayMessageFrame(
        version=_VERSION,
        stream_id=stream_id,
        ack=ack,
        data=pb.RelayData(seq=seq, segment_count=1, payload=payload),
    )
    if trace is not None:
        message.traceparent, message.tracestate = trace.traceparent, trace.tracestate
    return message.SerializeToString()


def encode_ack(stream_id: str, ack: int) -> bytes:
    """Write an acknowledgement of the first ``ack`` records."""
    return pb.RelayMessageFrame(
        version=_VERSION, stream_id=stream_id, ack=ack, ack_frame=pb.RelayAck()
    ).SerializeToString()


def encode_resume(stream_id: str) -> bytes:
    """Write the claim of a stream id."""
    return _message(stream_id, resume=pb.RelayResume())


def encode_reset(stream_id: str) -> bytes:
    """Write the end of a stream, with the one reason that is ever sent."""
    return _message(stream_id, reset=pb.RelayReset(reason=RESET_REASON))


def encode_handshake(stream_id: str, payload: bytes) -> bytes:
    """Write one message of the key exchange."""
    return _message(stream_id, handshake=pb.RelayHandshake(payload=payload))
