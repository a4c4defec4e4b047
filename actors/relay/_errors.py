"""What can go wrong on a relay stream. The sentences are compared by tests and by peers: they stay word for word."""

import enum
from typing import Any

__all__ = [
    "AckBeyondSent",
    "CiphertextBufferFull",
    "ConnectionLost",
    "DialFailed",
    "DialRefused",
    "DisconnectReason",
    "FrameInvalid",
    "FrameUndecodable",
    "FramingError",
    "GapNotFilled",
    "HandshakeFailed",
    "MessageLengthInvalid",
    "MessageTooLarge",
    "OrderingError",
    "ReassemblyFull",
    "RecordTooLarge",
    "RelayError",
    "ReorderWindowExceeded",
    "SequenceExhausted",
    "StreamClosed",
    "StreamFailed",
    "StreamReset",
]


class RelayError(Exception):
    """Root of all errors of this package. `actors.relay` knows nothing above it, so callers translate."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Born again without `__init__`, which would be given the finished sentence.
        return type(self).__new__, (type(self),), {**self.__dict__, "args": self.args}


class FrameUndecodable(RelayError):
    """Bytes that are no relay frame at all."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"invalid relay message frame: {detail}")
        self.detail = detail


class FrameInvalid(RelayError):
    """A frame that breaks a rule of its own kind."""


class OrderingError(RelayError):
    """Records that cannot be put in order any more. Fatal for their stream."""


class ReorderWindowExceeded(OrderingError):
    """A record too far ahead of the next one expected."""

    def __init__(self, seq: int, expected: int) -> None:
        super().__init__("Noise relay ciphertext exceeds reorder window")
        self.seq: int = seq
        self.expected: int = expected


class CiphertextBufferFull(OrderingError):
    """Too much waits behind a record that has not come."""

    def __init__(self, frames: int, held_bytes: int) -> None:
        super().__init__("Noise relay pending ciphertext buffer is full")
        self.frames: int = frames
        self.held_bytes: int = held_bytes


class GapNotFilled(OrderingError):
    """A record never came, and nothing on this wire sends it again."""

    def __init__(self, expected: int, after_s: float) -> None:
        super().__init__(f"Noise relay record {expected} did not arrive within {after_s:g} s")
        self.expected: int = expected
        self.after_s: float = after_s


class SequenceExhausted(OrderingError):
    """The stream has carried as many records as its counter can name."""

    def __init__(self) -> None:
        super().__init__("Noise relay sequence number exhausted")


class AckBeyondSent(OrderingError):
    """The peer acknowledged a record that was never sent."""

    def __init__(self, ack: int, sent: int) -> None:
        super().__init__(f"Noise relay acknowledgement {ack} is beyond the {sent} records sent")
        self.ack: int = ack
        self.sent: int = sent


class FramingError(RelayError):
    """Plaintext that cannot be cut into messages. Fatal for its stream, except for a message refused before sending."""


class RecordTooLarge(FramingError):
    """A plaintext record above the limit."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__("Noise relay plaintext record exceeds maximum length")
        self.size_bytes = size_bytes


class MessageLengthInvalid(FramingError):
    """A declared length that no message can have."""

    def __init__(self, declared_bytes: int) -> None:
        super().__init__("Noise relay JSON-RPC message has invalid length")
        self.declared_bytes = declared_bytes


class MessageTooLarge(FramingError):
    """A message that may not be sent. Nothing of it went out, and the stream is as it was."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__("Noise relay JSON-RPC message exceeds maximum length")
        self.size_bytes: int = size_bytes
        self.limit_bytes: int = limit_bytes


class ReassemblyFull(FramingError):
    """The connection has no room for what this stream is still putting together."""

    def __init__(self, held_bytes: int, limit_bytes: int) -> None:
        super().__init__("Noise relay JSON-RPC reassembly buffer exceeds maximum length")
        self.held_bytes: int = held_bytes
        self.limit_bytes: int = limit_bytes


class DisconnectReason(enum.Enum):
    """Why a physical connection ended.

    Attributes:
        LOCAL_SHUTDOWN: This side ended it.
        PEER_CLOSE: The other side ended it.
        READ_ERROR: Reading failed.
        WRITE_ERROR: Writing failed.
        PONG_TIMEOUT: A ping was not answered in time.
    """

    LOCAL_SHUTDOWN = "local_shutdown"
    PEER_CLOSE = "peer_close"
    READ_ERROR = "read_error"
    WRITE_ERROR = "write_error"
    PONG_TIMEOUT = "pong_timeout"


class ConnectionLost(RelayError):
    """The physical connection is gone, and every stream on it."""

    def __init__(self, reason: DisconnectReason, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason: DisconnectReason = reason
        self.detail: str = detail


class DialFailed(RelayError):
    """No physical connection came about. `target` is cut where a secret could begin.

    `request_id` is the `x-request-id` that the handshake bore, if it bore one: the other side may have it in its logs.
    """

    def __init__(self, target: str, detail: str) -> None:
        super().__init__(f"failed to connect to exec-server websocket `{target}`: {detail}")
        self.target: str = target
        self.detail: str = detail
        self.retry_after_s: float | None = None
        self.request_id: str | None = None


class AddressUnusable(DialFailed):
    """The address is none that can be dialled, now or later: whoever gave it must give another."""


class DialRefused(DialFailed):
    """The other side answered the WebSocket handshake with a plain HTTP status."""

    def __init__(self, target: str, status: int, retry_after_s: float | None) -> None:
        super().__init__(target, f"HTTP status {status}")
        self.status: int = status
        self.retry_after_s: float | None = retry_after_s


class HandshakeFailed(RelayError):
    """The stream was never opened. `retryable` tells whether a fresh bundle may help."""

    def __init__(self, text: str, *, retryable: bool = False) -> None:
        super().__init__(text)
        self.retryable = retryable


class StreamReset(RelayError):
    """The peer, or the router in its name, gave the stream up. Its text is not shown: nobody vouches for it."""

    def __init__(self) -> None:
        super().__init__("Noise relay stream reset")


class StreamFailed(RelayError):
    """The stream broke a rule and was ended from this side. The cause says which."""


class StreamClosed(RelayError):
    """The stream was closed on this side before."""

    def __init__(self) -> None:
        super().__init__("the relay stream is closed")
