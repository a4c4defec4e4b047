"""What a mailbox can be told to do: how much it holds, and what happens when it is full or its actor restarts."""

import enum

import attrs

from actors._errors import InvalidOption

__all__ = ["Mailbox", "OnRestart", "WhenFull"]


class WhenFull(enum.Enum):
    """Say what a full mailbox does with one more user message. The control lane is never full.

    Attributes:
        WAIT: `tell` and `ask` wait for room, first come first served; `tell_nowait` raises `MailboxFull`.
        FAIL: Every sender gets `MailboxFull`, which holds the message.
        DROP_OLDEST: The oldest waiting message makes room and is counted; if it was a question, its asker gets
            `MailboxFull`.
        DROP_NEWEST: The new message is dropped and counted; if it is a question, its asker gets `MailboxFull`.
    """

    WAIT = "wait"
    FAIL = "fail"
    DROP_OLDEST = "drop_oldest"
    DROP_NEWEST = "drop_newest"


class OnRestart(enum.Enum):
    """Say what happens to waiting mail when the actor crashes and a next generation follows.

    Attributes:
        KEEP: It waits for the next generation. The message that was being handled is not handled again.
        FAIL: Waiting askers get `LeftBehind` at once, told messages are dropped and counted.
    """

    KEEP = "keep"
    FAIL = "fail"


def _serves(_instance: object, _attribute: object, value: object) -> None:
    # A bool is an int in Python; a mailbox of True is a mistake.
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidOption("capacity", value, "it must be a whole number of messages")
    if value < 1:
        raise InvalidOption("capacity", value, "a mailbox must hold at least 1 message, or nothing ever arrives")


def _is_when_full(_instance: object, _attribute: object, value: object) -> None:
    if not isinstance(value, WhenFull):
        raise InvalidOption("when_full", value, f"it must be one of {', '.join(map(str, WhenFull))}")


def _is_on_restart(_instance: object, _attribute: object, value: object) -> None:
    if not isinstance(value, OnRestart):
        raise InvalidOption("on_restart", value, f"it must be one of {', '.join(map(str, OnRestart))}")


@attrs.frozen(kw_only=True)
class Mailbox:
    """Describe a mailbox. A description that exists can be served.

    Attributes:
        capacity: How many user messages may wait; at least 1.
        when_full: What happens to one more.
        on_restart: What happens to waiting mail when the actor crashes and comes back.
    """

    capacity: int = attrs.field(default=1024, validator=_serves)
    when_full: WhenFull = attrs.field(default=WhenFull.WAIT, validator=_is_when_full)
    on_restart: OnRestart = attrs.field(default=OnRestart.KEEP, validator=_is_on_restart)
