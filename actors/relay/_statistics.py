"""What an executor end counts."""

import attrs

from actors.relay._admission import Cause

__all__ = ["ExecutorStatistics"]


@attrs.frozen(kw_only=True)
class ExecutorStatistics:
    """What one physical connection carries and has refused, at one moment.

    Attributes:
        streams: Active streams.
        validations: Harness keys being checked.
        held_bytes: All that the streams hold of what came.
        unsent_bytes: All that the streams have queued to send.
        frames_dropped: Frames that were no frames, or broke a rule, or were text.
        resets_refused: Resets of unknown ids that were not sent because too many waited.
        failures_counted: Handshakes that counted against the budget.
        looked_by_lot: Handshakes that were drawn by lot while no more failures were borne.
        refusals: Handshakes and records refused, by their real cause.
    """

    streams: int
    validations: int
    held_bytes: int
    unsent_bytes: int
    frames_dropped: int
    resets_refused: int
    failures_counted: int
    looked_by_lot: int
    refusals: dict[Cause, int]
