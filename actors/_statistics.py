"""A snapshot of what a mailbox has seen."""

import attrs

__all__ = ["Statistics"]


@attrs.frozen(kw_only=True)
class Statistics:
    """Count what happened to the mail of one actor, over all its generations.

    Attributes:
        capacity: How many user messages may wait.
        queued: How many wait now.
        queued_peak: The most that ever waited.
        in_line: How many stand in line for room: senders and askers of a full mailbox.
        control_queued: How many control entries wait.
        control_peak: The most control entries that ever waited; they have no bound of their own.
        handled: Messages whose handler has returned.
        dropped: Told messages that no handler saw: displaced, dropped as the newest, or left at an end.
        refused: Messages that came back to their sender because the mailbox was full.
        withdrawn: Questions whose asker left before they were taken; they were not handled.
        late_replies: Answers that came after their asker had left.
        refusals_unheard: Refusals of messages that were only told, so that nobody heard them.
    """

    capacity: int
    queued: int
    queued_peak: int
    in_line: int
    control_queued: int
    control_peak: int
    handled: int
    dropped: int
    refused: int
    withdrawn: int
    late_replies: int
    refusals_unheard: int
