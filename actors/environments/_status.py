"""How an environment does, as a value for people and programs."""

import attrs


@attrs.frozen
class StatusReady:
    """It answered a moment ago, or is this machine."""


@attrs.frozen
class StatusPending:
    """Its start is not over."""


@attrs.frozen
class StatusDisconnected:
    """It cannot be used as it is now.

    Attributes:
        reason: Why; the text that a caller of an operation would see.
    """

    reason: str


EnvironmentStatus = StatusReady | StatusPending | StatusDisconnected
"""What `Environment.status` says."""
