"""What happens to the connection of an environment, as values."""

from typing import Any

import attrs


@attrs.frozen
class Peer:
    """Who is at the far end of a link: one registration of one executor."""

    executor_public_key: Any
    """By which key it is known."""
    executor_registration_id: str
    """By which registration it can be met."""


@attrs.frozen
class StartAsked:
    """Begin in the background, if that was never done."""

    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class OperationAsked:
    """Somebody needs the link now."""

    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class AttemptSucceeded:
    """The link is up and answers."""

    attempt: int
    """Which attempt."""
    now_s: float
    """When, on the run's clock."""
    peer: Peer | None = None
    """Whom it leads to; nobody that could be told apart when it is not encrypted."""


@attrs.frozen
class AttemptFailed:
    """The attempt failed in a way that another one may not."""

    attempt: int
    """Which attempt."""
    error: BaseException
    """What went wrong, as the provider or the transport raised it."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class AttemptRefused:
    """The attempt failed in a way that every other one would."""

    attempt: int
    """Which attempt."""
    error: BaseException
    """What went wrong, as the provider or the transport raised it."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class LinkInterrupted:
    """The connection is gone; the same session may come back."""

    attempt: int
    """Whose link."""
    reason: str
    """What was seen."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class LinkResumed:
    """The same session is back on a new connection."""

    attempt: int
    """Whose link."""
    now_s: float
    """When, on the run's clock."""
    peer: Peer | None = None
    """Whom the new connection leads to, if it took another bundle."""


@attrs.frozen
class LinkEnded:
    """The link is gone for good."""

    attempt: int
    """Whose link."""
    reason: str
    """What was seen."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class BundleLookedUp:
    """A refresh asked how to reach the environment now, and was given a bundle."""

    ticket: int
    """Which look-up, counted from 1 in the order in which they were begun."""
    peer: Peer
    """Whom the bundle leads to."""
    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class GateShut:
    """The gate failed or was abandoned: there is nothing to connect to."""

    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class GateReopened:
    """The gate was recovered: starting may be asked for again."""

    now_s: float
    """When, on the run's clock."""


@attrs.frozen
class Closed:
    """The environment ends."""

    reason: str
    """By whom or what."""
    now_s: float
    """When, on the run's clock."""


News = AttemptSucceeded | AttemptFailed | AttemptRefused | LinkInterrupted | LinkResumed | LinkEnded
ConnectionEvent = StartAsked | OperationAsked | BundleLookedUp | News | GateShut | GateReopened | Closed
