"""The gate of one environment: whether it has been provisioned.

*Pending* means somebody still has the right to say how it went. *Ready*, *failed* and *abandoned* are terminal: they
stay what they are, save for `Recovered`, which is delivered only by an operation that says so by name. The first
failure is kept. An environment that needs no provisioning is born ready.

The table says where each event leads; that information has been checked before it comes here is the caller's part.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from actors.environments._errors import OutOfPlace, without_frames
from actors.environments._ready_info import ReadyInfo

ENDED_TOO_EARLY: Final = "environment registration ended before completion"
"""What is said of a registration that was let go, word for word."""


class Gate(enum.Enum):
    """Whether an environment has been provisioned; see `GATE_TRANSITIONS`.

    Attributes:
        PENDING: Not provisioned yet; operations wait.
        READY: Provisioned.
        FAILED: Its provisioning failed; operations raise what was reported.
        ABANDONED: Its registration ended without an outcome.
    """

    # Members are compared by identity; the hash that `Enum` writes in Python costs more than a look into a table.
    if not TYPE_CHECKING:  # To whom it is the same.
        __hash__ = object.__hash__

    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"
    ABANDONED = "abandoned"


# Members by themselves, for each step of a life: before Python 3.12, to read one from its enum costs as much as a call.
PENDING: Final = Gate.PENDING
READY: Final = Gate.READY
FAILED: Final = Gate.FAILED
ABANDONED: Final = Gate.ABANDONED


@attrs.frozen
class ReadyReported:
    """It is provisioned; stored before the gate opens, and replaced when it was open already."""

    info: ReadyInfo
    """Already checked against this environment."""
    now_s: float
    """When it was said, on the run's clock."""


@attrs.frozen
class InfoPublished:
    """Its information changes; its gate does not."""

    info: ReadyInfo
    """Already checked against this environment."""
    now_s: float
    """When it was said, on the run's clock."""


def reason_given(message: str) -> str:
    """What was said of a failure, or that nothing was."""
    return message if message.strip() else "no reason was given"


@attrs.frozen
class FailureReported:
    """It could not be provisioned. A second such report changes nothing."""

    message: str = attrs.field(converter=reason_given)
    """What the one who provisions it says."""
    now_s: float
    """When it was said, on the run's clock."""


@attrs.frozen
class ProvisioningAbandoned:
    """Nobody is left who could say how it went."""

    message: str
    """By which road that came about."""
    now_s: float
    """When it was noticed, on the run's clock."""
    cause: Exception | None = None
    """What was raised while it was to be provisioned."""


@attrs.frozen
class DeadlinePassed:
    """The time given for provisioning is over."""

    message: str
    """How long it was given."""
    now_s: float
    """When it was noticed, on the run's clock."""


@attrs.frozen
class Recovered:
    """It is provisioned after all: the one way out of a terminal gate."""

    info: ReadyInfo
    """Already checked against this environment."""
    now_s: float
    """When it was said, on the run's clock."""


NO_INFO: Final = ReadyInfo()

GateEvent = ReadyReported | InfoPublished | FailureReported | ProvisioningAbandoned | DeadlinePassed | Recovered

GATE_TRANSITIONS: Final[Mapping[tuple[Gate, type[GateEvent]], Gate]] = MappingProxyType(
    {
        (Gate.PENDING, ReadyReported): Gate.READY,
        (Gate.PENDING, FailureReported): Gate.FAILED,
        (Gate.PENDING, DeadlinePassed): Gate.FAILED,
        (Gate.PENDING, ProvisioningAbandoned): Gate.ABANDONED,
        (Gate.PENDING, InfoPublished): Gate.PENDING,
        (Gate.READY, ReadyReported): Gate.READY,
        (Gate.READY, InfoPublished): Gate.READY,
        (Gate.FAILED, FailureReported): Gate.FAILED,
        (Gate.FAILED, InfoPublished): Gate.FAILED,
        (Gate.FAILED, Recovered): Gate.READY,
        (Gate.ABANDONED, InfoPublished): Gate.ABANDONED,
        (Gate.ABANDONED, Recovered): Gate.READY,
    }
)
"""Where each event leads from each gate; what is not here raises and changes nothing."""


class Provisioning(NamedTuple):
    """The gate of one environment with what was said at it."""

    gate: Gate
    """Where it stands."""
    since_s: float
    """When it came to stand there."""
    message: str | None = None
    """Why it failed or was abandoned: the first thing said."""
    info: ReadyInfo = NO_INFO
    """What users see now."""
    accepted: ReadyInfo | None = None
    """The last information that came with a report of readiness; absent until there was one."""
    position: int = 0
    """How often the information was replaced."""
    cause: Exception | None = None
    """What was raised while it was to be provisioned, if that is how it was abandoned."""

    def handle(self, event: GateEvent) -> "Provisioning":
        """The gate after an event.

        Raises:
            OutOfPlace: The event has no place at this gate.
        """
        target = GATE_TRANSITIONS.get((self.gate, type(event)))
        if target is None:
            raise OutOfPlace(self.gate.value, type(event).__name__)
        since_s = self.since_s if target is self.gate else event.now_s
        match event:
            case ReadyReported(info) | Recovered(info):
                return Provisioning(target, since_s, None, info, info, self.position + 1)
            case InfoPublished(info):
                return self._replace(info=info, position=self.position + 1)
            case ProvisioningAbandoned(message, _, cause):
                return self._replace(gate=target, since_s=since_s, message=message, cause=cause)
            case FailureReported(message) | DeadlinePassed(message):
                kept = message if self.message is None else self.message
                return self._replace(gate=target, since_s=since_s, message=kept)

    def without_frames(self) -> "Provisioning":
        """The same, with a cause that keeps nothing alive."""
        return self if self.cause is None else self._replace(cause=without_frames(self.cause))
