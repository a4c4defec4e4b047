"""A snapshot of what a mailbox has seen."""

import attrs

__all__ = ["Statistics"]


@attrs.frozen(kw_only=True)
class Statistics:
    """Count what happened to the mail of one actor, over all its generations."""

    capacity: int
    """How many user messages may wait."""
    queued: int
    """How many wait now."""
    queued_peak: int
    """The most that ever waited."""
    in_line: int
    """How many stand in line for room: senders and askers of a full mailbox."""
    control_queued: int
    """How many control entries wait."""
    control_peak: int
    """The most control entries that ever waited; they have no bound of their own."""
    handled: int
    """Messages whose handler has returned."""
    dropped: int
    """Told messages that no handler saw: displaced, dropped as the newest, or left at an end."""
    refused: int
    """Messages that came back to their sender because the mailbox was full."""
    withdrawn: int
    """Questions whose asker left before they were taken; they were not handled."""
    late_replies: int
    """Answers that came after their asker had left."""
    refusals_unheard: int
    """Refusals of messages that were only told, so that nobody heard them."""
