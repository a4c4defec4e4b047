from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RelayMessageFrame(_message.Message):
    __slots__ = ("version", "stream_id", "ack", "ack_bits", "data", "ack_frame", "resume", "reset", "heartbeat", "handshake", "traceparent", "tracestate")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    ACK_BITS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ACK_FRAME_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    HANDSHAKE_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    version: int
    stream_id: str
    ack: int
    ack_bits: int
    data: RelayData
    ack_frame: RelayAck
    resume: RelayResume
    reset: RelayReset
    heartbeat: RelayHeartbeat
    handshake: RelayHandshake
    traceparent: str
    tracestate: str
    def __init__(self, version: _Optional[int] = ..., stream_id: _Optional[str] = ..., ack: _Optional[int] = ..., ack_bits: _Optional[int] = ..., data: _Optional[_Union[RelayData, _Mapping]] = ..., ack_frame: _Optional[_Union[RelayAck, _Mapping]] = ..., resume: _Optional[_Union[RelayResume, _Mapping]] = ..., reset: _Optional[_Union[RelayReset, _Mapping]] = ..., heartbeat: _Optional[_Union[RelayHeartbeat, _Mapping]] = ..., handshake: _Optional[_Union[RelayHandshake, _Mapping]] = ..., traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ...) -> None: ...

class RelayData(_message.Message):
    __slots__ = ("seq", "segment_index", "segment_count", "payload")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    seq: int
    segment_index: int
    segment_count: int
    payload: bytes
    def __init__(self, seq: _Optional[int] = ..., segment_index: _Optional[int] = ..., segment_count: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class RelayAck(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RelayResume(_message.Message):
    __slots__ = ("next_seq",)
    NEXT_SEQ_FIELD_NUMBER: _ClassVar[int]
    next_seq: int
    def __init__(self, next_seq: _Optional[int] = ...) -> None: ...

class RelayReset(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class RelayHeartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RelayHandshake(_message.Message):
    __slots__ = ("payload",)
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    def __init__(self, payload: _Optional[bytes] = ...) -> None: ...
