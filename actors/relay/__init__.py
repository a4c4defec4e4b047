"""Message streams between a harness and an executor, over a router that sees ids, sizes and ciphertext.

`open_harness_stream` is the harness end: one stream on one physical connection. `serve_executor` is the other: many
streams on one. Both take a connection from a `Dialer`, normally a `WebSocketDialer`, and give a `RelayStream` that
sends and receives whole messages. What a message says is not known here.
"""

from actors.relay._admission import Cause as Cause
from actors.relay._admission import Verdict as Verdict
from actors.relay._budget import FailureBudget as FailureBudget
from actors.relay._budget import Lots as Lots
from actors.relay._connection import Dialer as Dialer
from actors.relay._connection import PhysicalConnection as PhysicalConnection
from actors.relay._dialing import WebSocketDialer as WebSocketDialer
from actors.relay._dialing import cut_url as cut_url
from actors.relay._dialing import new_request_id as new_request_id
from actors.relay._dialing import retry_after_s as retry_after_s
from actors.relay._errors import AckBeyondSent as AckBeyondSent
from actors.relay._errors import AddressUnusable as AddressUnusable
from actors.relay._errors import CiphertextBufferFull as CiphertextBufferFull
from actors.relay._errors import ConnectionLost as ConnectionLost
from actors.relay._errors import DialFailed as DialFailed
from actors.relay._errors import DialRefused as DialRefused
from actors.relay._errors import DisconnectReason as DisconnectReason
from actors.relay._errors import FrameInvalid as FrameInvalid
from actors.relay._errors import FrameUndecodable as FrameUndecodable
from actors.relay._errors import FramingError as FramingError
from actors.relay._errors import GapNotFilled as GapNotFilled
from actors.relay._errors import HandshakeFailed as HandshakeFailed
from actors.relay._errors import MessageLengthInvalid as MessageLengthInvalid
from actors.relay._errors import MessageTooLarge as MessageTooLarge
from actors.relay._errors import OrderingError as OrderingError
from actors.relay._errors import ReassemblyFull as ReassemblyFull
from actors.relay._errors import RecordTooLarge as RecordTooLarge
from actors.relay._errors import RelayError as RelayError
from actors.relay._errors import ReorderWindowExceeded as ReorderWindowExceeded
from actors.relay._errors import SequenceExhausted as SequenceExhausted
from actors.relay._errors import StreamClosed as StreamClosed
from actors.relay._errors import StreamFailed as StreamFailed
from actors.relay._errors import StreamReset as StreamReset
from actors.relay._executor_end import ExecutorEnd as ExecutorEnd
from actors.relay._executor_end import ExecutorStream as ExecutorStream
from actors.relay._executor_end import Handler as Handler
from actors.relay._executor_end import Validator as Validator
from actors.relay._executor_end import serve_executor as serve_executor
from actors.relay._frames import Ack as Ack
from actors.relay._frames import Data as Data
from actors.relay._frames import Frame as Frame
from actors.relay._frames import Handshake as Handshake
from actors.relay._frames import Heartbeat as Heartbeat
from actors.relay._frames import Reset as Reset
from actors.relay._frames import Resume as Resume
from actors.relay._frames import TraceContext as TraceContext
from actors.relay._frames import UncheckedFrame as UncheckedFrame
from actors.relay._frames import decode as decode
from actors.relay._frames import encode as encode
from actors.relay._frames import encode_reset as encode_reset
from actors.relay._frames import parse as parse
from actors.relay._harness_end import StreamBundle as StreamBundle
from actors.relay._harness_end import open_harness_stream as open_harness_stream
from actors.relay._limits import RelayLimits as RelayLimits
from actors.relay._liveness import Liveness as Liveness
from actors.relay._liveness import LivenessAction as LivenessAction
from actors.relay._redial import Redial as Redial
from actors.relay._statistics import ExecutorStatistics as ExecutorStatistics
from actors.relay._stream import RelayStream as RelayStream
from actors.relay._stream import StreamStatistics as StreamStatistics
from actors.relay._unreachable import place_of as place_of
from actors.relay._unreachable import silence_hint as silence_hint
from actors.relay._unreachable import why_unreachable as why_unreachable
from actors.relay._upkeep import ExecutorRegistration as ExecutorRegistration
from actors.relay._upkeep import RegistrarFailed as RegistrarFailed
from actors.relay._upkeep import UpkeepEvent as UpkeepEvent
from actors.relay._upkeep import keep_executor_connected as keep_executor_connected
from actors.relay._websocket import WebSocketConnection as WebSocketConnection

__all__ = [
    "Ack",
    "AckBeyondSent",
    "AddressUnusable",
    "Cause",
    "CiphertextBufferFull",
    "ConnectionLost",
    "Data",
    "DialFailed",
    "DialRefused",
    "Dialer",
    "DisconnectReason",
    "ExecutorEnd",
    "ExecutorRegistration",
    "ExecutorStatistics",
    "ExecutorStream",
    "FailureBudget",
    "Frame",
    "FrameInvalid",
    "FrameUndecodable",
    "FramingError",
    "GapNotFilled",
    "Handler",
    "Handshake",
    "HandshakeFailed",
    "Heartbeat",
    "Liveness",
    "LivenessAction",
    "Lots",
    "MessageLengthInvalid",
    "MessageTooLarge",
    "OrderingError",
    "PhysicalConnection",
    "ReassemblyFull",
    "RecordTooLarge",
    "Redial",
    "RegistrarFailed",
    "RelayError",
    "RelayLimits",
    "RelayStream",
    "ReorderWindowExceeded",
    "Reset",
    "Resume",
    "SequenceExhausted",
    "StreamBundle",
    "StreamClosed",
    "StreamFailed",
    "StreamReset",
    "StreamStatistics",
    "TraceContext",
    "UncheckedFrame",
    "UpkeepEvent",
    "Validator",
    "Verdict",
    "WebSocketConnection",
    "WebSocketDialer",
    "cut_url",
    "decode",
    "encode",
    "encode_reset",
    "keep_executor_connected",
    "new_request_id",
    "open_harness_stream",
    "parse",
    "place_of",
    "retry_after_s",
    "serve_executor",
    "silence_hint",
    "why_unreachable",
]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
