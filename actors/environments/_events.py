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
    """An id was given to a new generation.

    Attributes:
        kind: How it is provisioned.
        environment_id, generation, at_s, position: Whose event and of which generation, when on the run's clock, and
            its number (a jump is a gap).
    """

    kind: Kind


@attrs.frozen(kw_only=True)
class EnvironmentSuperseded(_Event):
    """A generation lost its id to a newer one. It lives on for those who hold it.

    Attributes:
        by_generation: Who has it now.
        environment_id, generation, at_s, position: Whose event and of which generation, when on the run's clock, and
            its number (a jump is a gap).
    """

    by_generation: int


@attrs.frozen(kw_only=True)
class EnvironmentRemoved(_Event):
    """An id was taken away. Who had it lives on for those who hold it.

    Attributes:
        environment_id, generation, at_s, position: Whose event and of which generation, when on the run's clock, and
            its number (a jump is a gap).
    """


@attrs.frozen(kw_only=True)
class GateMoved(_Event):
    """The gate of an environment moved.

    Attributes:
        gate: Where it stands now.
        message: Why it failed or was abandoned.
        superseded: Whether the id belonged to another generation already: a late completion.
        recovered: Whether it had been terminal before, and was brought back by name.
        environment_id, generation, at_s, position: Whose event and of which generation, when on the run's clock, and
            its number (a jump is a gap).
    """

    gate: Gate
    message: str | None
    superseded: bool
    recovered: bool


@attrs.frozen(kw_only=True)
class ReadyInfoReplaced(_Event):
    """The information of an environment was replaced while its gate stayed where it was.

    Attributes:
        replaced: How often it has been replaced.
        environment_id, generation, at_s, position: Whose event and of which generation, when on the run's clock, and
            its number (a jump is a gap).
    """

    replaced: int


@attrs.frozen(kw_only=True)
class ConnectionMoved(_Event):
    """The connection of an environment went into another phase.

    Attributes:
        phase: Where it stands now.
        attempt: The number of the latest attempt.
        reason: Why, as far as there is a reason to tell.
        environment_id, generation, at_s, position: Whose event and of which generation, when on the run's clock, and
            its number (a jump is a gap).
    """

    phase: Phase
    attempt: int
    reason: str | None


@attrs.frozen(kw_only=True)
class CompletionRefused(_Event):
    """A registration was used again, or after its environment had gone. The first outcome stands.

    Attributes:
        operation: What was tried.
        outcome: What stands.
        environment_id, generation, at_s, position: Whose event and of which generation, when on the run's clock, and
            its number (a jump is a gap).
    """

    operation: str
    outcome: str


@attrs.frozen(kw_only=True)
class EnvironmentEnded(_Event):
    """An environment was closed, by name or because nobody held it any more.

    Attributes:
        reason: By whom or what.
        environment_id, generation, at_s, position: Whose event and of which generation, when on the run's clock, and
            its number (a jump is a gap).
    """

    reason: str


@attrs.frozen(kw_only=True)
class EventsMissed:
    """A listener was too slow: so many events came and went between the last one it took and the next.

    Attributes:
        missed: How many.
        position: The position of the next one.
    """

    missed: int
    position: int


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
