"""How a child ended, and what that means for its restart. Knows exceptions; does not know tasks."""

import enum
from typing import Final, cast

import attrs

from supervision._errors import RestartIntensityExceeded, Shutdown
from supervision._specs import PERMANENT, TEMPORARY, Restart

__all__ = ["Exit", "ExitKind"]


class ExitKind(enum.Enum):
    """The four ways a child can end.

    Attributes:
        NORMAL: It returned.
        SHUTDOWN: It obeyed a stop, raised `Shutdown`, or is a supervisor that gave up or shut itself down.
        CRASHED: It raised anything else.
        KILLED: It was cancelled without being asked, or after it had been asked in vain.
    """

    NORMAL = "normal"
    SHUTDOWN = "shutdown"
    CRASHED = "crashed"
    KILLED = "killed"


@attrs.frozen
class Exit:
    """One end of one generation of a child.

    Attributes:
        kind: Which of the four ways.
        cause: What it raised, if it raised.
    """

    kind: ExitKind
    cause: BaseException | None = attrs.field(default=None, eq=False)


RETURNED = Exit(ExitKind.NORMAL)
OBEYED = Exit(ExitKind.SHUTDOWN)
KILLED = Exit(ExitKind.KILLED)


# Read once: see `_states`.
_SHUTDOWN: Final = ExitKind.SHUTDOWN
_CRASHED: Final = ExitKind.CRASHED

# A tuple, and once: a union in its place is made anew, and costs as much as all the rest, each time.
_ENDS_ON_PURPOSE: Final = (Shutdown, RestartIntensityExceeded)


def exit_of(error: BaseException) -> Exit:
    """Tell a shutdown from a crash. A group is a shutdown when each of its leaves is one."""
    return Exit(_SHUTDOWN if _on_purpose(error) else _CRASHED, error)


def _on_purpose(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(_on_purpose(inner) for inner in group.exceptions)
    return isinstance(error, _ENDS_ON_PURPOSE)


def wants_restart(restart: Restart, kind: ExitKind) -> bool:
    """Say whether a child of this restart kind comes back after an end of this kind that nobody asked for."""
    if restart is PERMANENT:
        return True
    return restart is not TEMPORARY and (kind is _CRASHED or kind is ExitKind.KILLED)
