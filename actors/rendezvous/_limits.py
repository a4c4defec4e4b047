"""Every bound of a rendezvous, in one value. Each has a policy, and a counter in `RendezvousStatistics`."""

import attrs
from attrs.validators import gt

__all__ = ["RendezvousLimits"]

_MIB = 1024 * 1024


@attrs.frozen(kw_only=True)
class RendezvousLimits:
    """Bounds of one rendezvous.

    Attributes:
        max_connections: TCP connections at once. One more is closed unread.
        max_environments: Registrations kept. One more is refused with 503.
        max_authorizations_per_token: Authorizations of one token that are not used up. One more is refused with 429.
        max_streams_per_executor: Harnesses on one executor. One more is reset and its connection closed.
        max_streams_per_token: Harness connections of one token. One more is refused with 503.
        max_frame_bytes: Largest WebSocket message. One above it closes the connection.
        stream_bytes: What may wait for a slow harness before its stream is reset. Senders that heed acks stay far
            below.
        lane_bytes: What may wait of one harness for the executor before the harness is no longer read from.
        buffered_bytes: What may wait in all streams together. The stream that goes above it is reset.
        requests_per_s: HTTP requests of one token, with bursts of twice as many. More are refused with 429 or 503.
        dials_per_s: WebSocket handshakes of all, with bursts of twice as many. More are refused with 503 and
            `Retry-After`.
        bytes_per_s: Forwarded bytes of one harness token and direction. More wait their turn.
        authorization_s: How long an authorization, and the address that goes with it, may be used.
        registration_idle_s: How long a registration is kept whose executor is away. It registers again by itself
            afterwards.
        claim_s: How long a harness may be connected without naming its stream.
        head_s: How long one HTTP request may take to arrive, and its answer to leave.
        idle_s: How long an HTTP connection may be without a request.
        max_body_bytes: Largest body of an HTTP request.
        ping_interval_s: Time between keepalive pings.
        silence_s: How long a peer may be silent after a ping, and how long one write may take.
        close_s: How long a polite close may take before the connection is cut.
    """

    max_connections: int = attrs.field(default=4096, validator=gt(0))
    max_environments: int = attrs.field(default=10_000, validator=gt(0))
    max_authorizations_per_token: int = attrs.field(default=2000, validator=gt(0))
    max_streams_per_executor: int = attrs.field(default=128, validator=gt(0))
    max_streams_per_token: int = attrs.field(default=2000, validator=gt(0))
    max_frame_bytes: int = attrs.field(default=256 * 1024, validator=gt(0))
    stream_bytes: int = attrs.field(default=16 * _MIB, validator=gt(0))
    lane_bytes: int = attrs.field(default=512 * 1024, validator=gt(0))
    buffered_bytes: int = attrs.field(default=512 * _MIB, validator=gt(0))
    requests_per_s: float = attrs.field(default=200.0, validator=gt(0))
    dials_per_s: float = attrs.field(default=200.0, validator=gt(0))
    bytes_per_s: float = attrs.field(default=1024.0 * _MIB, validator=gt(0))
    authorization_s: float = attrs.field(default=60.0, validator=gt(0))
    registration_idle_s: float = attrs.field(default=3600.0, validator=gt(0))
    claim_s: float = attrs.field(default=10.0, validator=gt(0))
    head_s: float = attrs.field(default=10.0, validator=gt(0))
    idle_s: float = attrs.field(default=75.0, validator=gt(0))
    max_body_bytes: int = attrs.field(default=64 * 1024, validator=gt(0))
    ping_interval_s: float = attrs.field(default=30.0, validator=gt(0))
    silence_s: float = attrs.field(default=60.0, validator=gt(0))
    close_s: float = attrs.field(default=2.0, validator=gt(0))
