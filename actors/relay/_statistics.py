"""What an executor end counts."""

import attrs

from actors.relay._admission import Cause

__all__ = ["ExecutorStatistics"]


@attrs.frozen(kw_only=True)
class ExecutorStatistics:
    """What one physical connection carries and has refused, at one moment."""

    streams: int
    """Active streams."""
    validations: int
    """Harness keys being checked."""
    held_bytes: int
    """All that the streams hold of what came."""
    unsent_bytes: int
    """All that the streams have queued to send."""
    frames_dropped: int
    """Frames that were no frames, or broke a rule, or were text."""
    resets_refused: int
    """Resets of unknown ids that were not sent because too many waited."""
    failures_counted: int
    """Handshakes that counted against the budget."""
    refusals: dict[Cause, int]
    """Handshakes and records refused, by their real cause."""
