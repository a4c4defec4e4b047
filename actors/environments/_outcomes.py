"""What a life says to those who wait for it or want to use it.

Each caller is given an error of its own with the shared cause, so that one caller's traceback never grows by another's.
"""

import enum
from typing import Final

from actors import ActorsError
from actors.environments._connection import CONNECTED, NOT_STARTED, START_REFUSED, Phase
from actors.environments._errors import ConnectFailed, EnvironmentClosed, EnvironmentUnavailable
from actors.environments._gate import ABANDONED, ENDED_TOO_EARLY, FAILED
from actors.environments._lifecycle import Lifecycle
from actors.environments._printable import shown
from actors.environments._status import EnvironmentStatus, StatusDisconnected, StatusPending, StatusReady

SAID_CHARS_MAX: Final = 4096
"""The longest text of somebody else's exception in a sentence of ours; the exception itself stays whole beside it."""


class NotYet(enum.Enum):
    """There is no outcome yet."""

    WAIT = "wait"
    ASK_AGAIN = "ask again"


# By themselves, as in `_gate`.
WAIT: Final = NotYet.WAIT
ASK_AGAIN: Final = NotYet.ASK_AGAIN


def refusal(life: Lifecycle) -> ActorsError | None:
    """Why the environment cannot be used, when no wait could change that."""
    if life.is_closed:
        reason = life.connection.reason or "closed"
        return EnvironmentClosed(life.environment_id, life.generation, reason)
    gate = life.gate
    if gate is FAILED or gate is ABANDONED:
        message, abandoned = life.provisioning.message or "", gate is ABANDONED
        unavailable = EnvironmentUnavailable(life.environment_id, life.generation, message, abandoned=abandoned)
        unavailable.__cause__ = life.provisioning.cause
        if message == ENDED_TOO_EARLY:
            unavailable.add_note(_let_go(life))
        return unavailable
    if life.connection.phase is START_REFUSED:
        return connect_failed(life, retryable=False)
    return None


def _let_go(life: Lifecycle) -> str:
    return (
        f"The registration of environment `{life.environment_id}` generation {life.generation} was let go before it "
        f"was completed or failed. Write `with manager.register_deferred({shown(life.environment_id)}, provider) as "
        "registration:`, and in this block registration.complete(info) or registration.fail(message)."
    )


def start_outcome(life: Lifecycle, joined: int) -> ActorsError | NotYet | None:
    """How the start ended for one who joined the attempt with this number: an error, not yet, or (None) well."""
    if life.connection.was_connected and not life.is_closed:
        return None
    if error := refusal(life) or _failure_since(life, joined):
        return error
    return ASK_AGAIN if life.connection.phase is NOT_STARTED else WAIT


def use_outcome(life: Lifecycle, joined: int) -> ActorsError | NotYet | None:
    """Whether the link can be used by one who joined the attempt with this number: an error, not yet, or (None) now."""
    if life.connection.phase is CONNECTED:
        return None
    if error := refusal(life) or _failure_since(life, joined):
        return error
    return NotYet.ASK_AGAIN if life.connection.phase in (Phase.LOST, Phase.NOT_STARTED) else NotYet.WAIT


def joined_attempt(life: Lifecycle) -> int:
    """The number of the attempt that one who asks now waits for; before the gate opens it is the first one."""
    return max(life.connection.attempt, 1)


def connect_failed(life: Lifecycle, *, retryable: bool) -> ConnectFailed:
    """The last failed attempt as an error of its own; its cause is what was raised."""
    cause = life.connection.error
    error = ConnectFailed(
        said_by(cause),
        retryable=retryable,
        environment_id=life.environment_id,
        generation=life.generation,
        attempt=life.connection.failed_attempt,
    )
    error.__cause__ = cause
    return error


def said_by(cause: BaseException | None) -> str:
    """What an exception says, within bounds, or at least what it is; a failed attempt is not wrapped in itself."""
    said = words_of(cause)
    if len(said) <= SAID_CHARS_MAX:
        return said
    return f"{said[:SAID_CHARS_MAX]} and {len(said) - SAID_CHARS_MAX} more characters"


def words_of(cause: BaseException | None) -> str:
    """All that an exception says, for those who cut it themselves."""
    if isinstance(cause, ConnectFailed):
        return cause.inner
    try:
        said = str(cause)
    except Exception:  # It is somebody else's, and what it says is asked for wherever it goes: all it says is its name.
        said = ""
    return said or type(cause).__name__


def _failure_since(life: Lifecycle, joined: int) -> ActorsError | None:
    failed = life.connection.error is not None and life.connection.failed_attempt >= joined
    return connect_failed(life, retryable=True) if failed else None


def known_status(life: Lifecycle) -> EnvironmentStatus:
    """What can be said of an environment without asking it."""
    connection = life.connection
    if error := refusal(life):
        # The gate's own sentence: peers compare it whole.
        if isinstance(error, EnvironmentUnavailable):
            return StatusDisconnected(f"environment unavailable: {error.message}")
        return StatusDisconnected(str(error))
    match connection.phase:
        case Phase.CONNECTED:
            return StatusReady()
        case Phase.START_FAILED:
            return StatusDisconnected(str(connect_failed(life, retryable=True)))
        case Phase.RECOVERING | Phase.LOST | Phase.RECONNECTING:
            return StatusDisconnected(connection.reason or "the link is gone")
        case Phase.NOT_STARTED | Phase.STARTING | Phase.START_REFUSED | Phase.CLOSED:
            return StatusPending()
