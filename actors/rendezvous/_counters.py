"""What a rendezvous counts: one number for each thing it forwards, holds or refuses."""

import attrs

__all__ = ["Counters", "RendezvousStatistics"]


@attrs.define(kw_only=True)
class Counters:
    """The running numbers. Only ever grow, except where a line says otherwise."""

    connections: int = 0
    """TCP connections open now."""
    connections_refused: int = 0
    """TCP connections closed unread: there were too many."""
    connections_failed: int = 0
    """Connections that ended by an error of ours; the last one is kept in `last_failure`."""
    requests: int = 0
    """HTTP requests answered."""
    requests_refused: int = 0
    """HTTP requests answered with an error."""
    requests_rate_limited: int = 0
    """Of these, those of a token in too great a hurry."""
    dials_refused: int = 0
    """WebSocket handshakes answered with an error."""
    dials_rate_limited: int = 0
    """Of these, those that came too fast or while draining."""
    streams_refused: int = 0
    """Streams whose id was taken, or that came to a full executor."""
    streams_reset_slow: int = 0
    """Streams reset because too much waited for their harness."""
    executors_replaced: int = 0
    """Executor connections that a newer one of the same registration took the place of."""
    frames_to_executors: int = 0
    """Frames forwarded."""
    frames_to_harnesses: int = 0
    """Frames forwarded."""
    bytes_to_executors: int = 0
    """Their size."""
    bytes_to_harnesses: int = 0
    """Their size."""
    frames_dropped: int = 0
    """Frames that were none, were text, or named a stream that is not theirs."""
    frames_without_stream: int = 0
    """Frames of an executor for a harness that is gone."""
    validations_passed: int = 0
    """Harness keys found good."""
    validations_failed: int = 0
    """Harness keys found bad, expired or used."""


@attrs.frozen(kw_only=True)
class RendezvousStatistics:
    """Everything at one moment."""

    counters: Counters
    """The running numbers, copied."""
    executors: int
    """Executors connected."""
    streams: int
    """Harnesses with a stream."""
    registrations: int
    """Registrations kept."""
    authorizations: int
    """Authorizations not used up."""
    buffered_bytes: int
    """What waits for slow harnesses."""
    streams_by_grant: dict[str, int]
    """Harness connections of each token, by the grant's name."""
    draining: bool
    """Whether new work is refused."""
    last_failure: str | None
    """The kind of the last error of ours that ended a connection."""
