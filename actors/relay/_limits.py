"""Every bound of a relay connection, in one value. What a peer in the field enforces is marked; the rest is ours."""

import attrs
from attrs.validators import gt

__all__ = ["RelayLimits"]

_KIB = 1024
_MIB = 1024 * 1024


@attrs.frozen(kw_only=True)
class RelayLimits:
    """Bounds of both ends of a relay stream. The defaults are those peers in the field keep to.

    Attributes:
        max_frame_bytes: Largest WebSocket message, checked before decoding. Peers drop the connection above it.
        max_record_bytes: Most plaintext in one record. Peers reset the stream above it.
        max_message_bytes: Largest message of the layer above. Peers reset the stream above it.
        max_messages_per_record: Most messages packed into one record. An executor in the field dies of more than 128 at
            once.
        reorder_window: How far ahead of the next record another may be, and how many may wait.
        reorder_bytes: How much ciphertext may wait behind a gap.
        gap_s: How long a gap may stay open, counted from its first waiting record.
        window_bytes: Most ciphertext on its way at once, once the peer has shown that it acknowledges.
        queue_bytes: Backlog of received messages at which a stream whose peer does not heed acknowledgements is reset.
        lane_bytes: Backlog of messages to send at which a stream's senders wait.
        connection_bytes: Most bytes all streams of one physical connection may hold in each direction.
        max_streams: Active streams on one physical connection.
        max_validations: Harness keys being checked at once.
        max_control_frames: Resets, replies and acknowledgements waiting to be written.
        max_authorization_bytes: Longest authorization that is shown to the registry.
        validation_s: How long the check of a harness key may take, repeats included.
        failure_burst: Failed handshakes at once before new ones are refused unread, but for those drawn by lot.
        failure_refill_s: Time in which one failed handshake is forgiven.
        strained_look_s: Time that one handshake costs which is drawn by lot: so many are looked at together, at most.
        handshake_s: How long a harness waits for the reply to its handshake.
        ping_interval_s: Time between keepalive pings.
        silence_s: How long a peer may be silent after a ping, and how long one write or one delivery may take.
        close_s: How long a polite close may take before the connection is cut.
    """

    max_frame_bytes: int = attrs.field(default=256 * _KIB, validator=gt(0))
    max_record_bytes: int = attrs.field(default=60 * _KIB, validator=gt(0))
    max_message_bytes: int = attrs.field(default=64 * _MIB, validator=gt(0))
    max_messages_per_record: int = attrs.field(default=32, validator=gt(0))
    reorder_window: int = attrs.field(default=64, validator=gt(0))
    reorder_bytes: int = attrs.field(default=_MIB, validator=gt(0))
    gap_s: float = attrs.field(default=10.0, validator=gt(0))
    window_bytes: int = attrs.field(default=2 * _MIB, validator=gt(0))
    queue_bytes: int = attrs.field(default=8 * _MIB, validator=gt(0))
    lane_bytes: int = attrs.field(default=256 * _KIB, validator=gt(0))
    connection_bytes: int = attrs.field(default=256 * _MIB, validator=gt(0))
    max_streams: int = attrs.field(default=128, validator=gt(0))
    max_validations: int = attrs.field(default=32, validator=gt(0))
    max_control_frames: int = attrs.field(default=1024, validator=gt(0))
    max_authorization_bytes: int = attrs.field(default=4096, validator=gt(0))
    validation_s: float = attrs.field(default=10.0, validator=gt(0))
    failure_burst: int = attrs.field(default=8, validator=gt(0))
    failure_refill_s: float = attrs.field(default=1.25, validator=gt(0))
    strained_look_s: float = attrs.field(default=0.1, validator=gt(0))
    handshake_s: float = attrs.field(default=20.0, validator=gt(0))
    ping_interval_s: float = attrs.field(default=30.0, validator=gt(0))
    silence_s: float = attrs.field(default=60.0, validator=gt(0))
    close_s: float = attrs.field(default=2.0, validator=gt(0))
