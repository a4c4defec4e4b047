"""Decide how long a stream that should carry heartbeats may be silent."""

from typing import Final

MISSED_MAX: Final = 3
"""Intervals without anything before the host counts as lost."""


def silence_allowed_s(interval_s: int | None, *, heard: bool) -> float:
    """Say how long to wait for the next event.

    Args:
        interval_s: What the host was asked for; None or 0: nothing.
        heard: Whether it has sent one heartbeat: an older host ignores the wish, and its silence means nothing.
    """
    return MISSED_MAX * interval_s if interval_s and heard else float("inf")
