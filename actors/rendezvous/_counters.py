"""What a rendezvous counts: one number for each thing it forwards, holds or refuses."""

import attrs

__all__ = ["Counters", "RendezvousStatistics"]


@attrs.define(kw_only=True)
class Counters:
    """The running numbers. Only ever grow, except where a line says otherwise.

    Attributes:
        connections: TCP connections open now.
        connections_refused: TCP connections closed unread: there were too many.
        connections_failed: Connections that ended by an error of ours; the last one is kept in `last_failure`.
        requests: HTTP requests answered.
        requests_refused: HTTP requests answered with an error.
        requests_rate_limited: Of these, those of a token in too great a hurry.
        dials_refused: WebSocket handshakes answered with an error.
        dials_rate_limited: Of these, those that came too fast or while draining.
        streams_refused: Streams whose id was taken, or that came to a full executor.
        streams_reset_slow: Streams reset because too much waited for their harness.
        executors_replaced: Executor connections that a newer one of the same registration took the place of.
        frames_to_executors: Frames forwarded.
        frames_to_harnesses: Frames forwarded.
        bytes_to_executors: Their size.
        bytes_to_harnesses: Their size.
        frames_dropped: Frames that were none, were text, or named a stream that is not theirs.
        frames_without_stream: Frames of an executor for a harness that is gone.
        pongs_merged: Pings answered only together with a later one: their peer did not read.
        validations_passed: Harness keys found good.
        validations_failed: Harness keys found bad, expired or used.
    """

    connections: int = 0
    connections_refused: int = 0
    connections_failed: int = 0
    requests: int = 0
    requests_refused: int = 0
    requests_rate_limited: int = 0
    dials_refused: int = 0
    dials_rate_limited: int = 0
    streams_refused: int = 0
    streams_reset_slow: int = 0
    executors_replaced: int = 0
    frames_to_executors: int = 0
    frames_to_harnesses: int = 0
    bytes_to_executors: int = 0
    bytes_to_harnesses: int = 0
    frames_dropped: int = 0
    frames_without_stream: int = 0
    pongs_merged: int = 0
    validations_passed: int = 0
    validations_failed: int = 0


@attrs.frozen(kw_only=True)
class RendezvousStatistics:
    """Everything at one moment.

    Attributes:
        counters: The running numbers, copied.
        executors: Executors connected.
        streams: Harnesses with a stream.
        registrations: Registrations kept.
        authorizations: Authorizations not used up.
        buffered_bytes: What waits for slow harnesses.
        streams_by_grant: Harness connections of each token, by the grant's name.
        draining: Whether new work is refused.
        last_failure: The kind of the last error of ours that ended a connection.
    """

    counters: Counters
    executors: int
    streams: int
    registrations: int
    authorizations: int
    buffered_bytes: int
    streams_by_grant: dict[str, int]
    draining: bool
    last_failure: str | None
