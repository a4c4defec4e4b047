"""What happens to environments, as values. Each generation enters one terminal gate state, save for a recovery."""

import attrs

from actors.environments._connection import Phase
from actors.environments._gate import Gate
from actors.environments._lifecycle import Kind


@attrs.frozen(kw_only=True)
class _Event:
    environment_id: str
    """Whose event this is."""
    generation: int
    """Which generation's."""
    at_s: float
    """When, on the run's clock."""
    position: int = 0
    """Counts the events of the manager while somebody listens; a jump is a gap."""


@attrs.frozen(kw_only=True)
class EnvironmentRegistered(_Event):
    """An id was given to a new generation."""

    kind: Kind
    """How it is provisioned."""


@attrs.frozen(kw_only=True)
class EnvironmentSuperseded(_Event):
    """A generation lost its id to a newer one. It lives on for those who hold it."""

    by_generation: int
    """Who has it now."""


@attrs.frozen(kw_only=True)
class EnvironmentRemoved(_Event):
    """An id was taken away. Who had it lives on for those who hold it."""


@attrs.frozen(kw_only=True)
class GateMoved(_Event):
    """The gate of an environment moved."""

    gate: Gate
    """Where it stands now."""
    message: str | None
    """Why it failed or was abandoned."""
    superseded: bool
    """Whether the id belonged to another generation already: a late completion."""
    recovered: bool
    """Whether it had been terminal before, and was brought back by name."""


@attrs.frozen(kw_only=True)
class ReadyInfoReplaced(_Event):
    """The information of an environment was replaced while its gate stayed where it was."""

    replaced: int
    """How often it has been replaced."""


@attrs.frozen(kw_only=True)
class ConnectionMoved(_Event):
    """The connection of an environment went into another phase."""

    phase: Phase
    """Where it stands now."""
    attempt: int
    """The number of the latest attempt."""
    reason: str | None
    """Why, as far as there is a reason to tell."""


@attrs.frozen(kw_only=True)
class CompletionRefused(_Event):
    """A registration was used again, or after its environment had gone. The first outcome stands."""

    operation: str
    """What was tried."""
    outcome: str
    """What stands."""


@attrs.frozen(kw_only=True)
class EnvironmentEnded(_Event):
    """An environment was closed, by name or because nobody held it any more."""

    reason: str
    """By whom or what."""


@attrs.frozen(kw_only=True)
class EventsMissed:
    """A listener was too slow: so many events came and went between the last one it took and the next."""

    missed: int
    """How many."""
    position: int
    """The position of the next one."""


EnvironmentEvent = (
    EnvironmentRegistered
    | EnvironmentSuperseded
    | EnvironmentRemoved
    | GateMoved
    | ReadyInfoReplaced
    | ConnectionMoved
    | CompletionRefused
    | EnvironmentEnded
)
"""Everything that the event stream of a manager tells."""
