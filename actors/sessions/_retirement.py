"""Decide whether a failed call means that the host session is gone.

A session that is given up too early loses its values; one kept too long fails every call. So the list is closed:
what is not on it keeps the session.
"""

from typing import Final

from actors.sessions._wording import Operation
from actors.sessions.grpc import StatusCode

# Here NOT_FOUND means "no such session" and nothing else: a missing cell is a normal answer.
_NAMES_THE_SESSION: Final = frozenset({Operation.EXECUTION, Operation.WAIT, Operation.TERMINATION})

# A lost answer here would leave the host with a call or an observer nobody speaks for.
_MUST_SUCCEED: Final = frozenset({Operation.TOOL_INVOCATION_COMPLETION, Operation.WAIT_CANCELLATION})

_NEVER: Final = frozenset({Operation.YIELD_OBSERVATION})


def failure_retires(operation: Operation, code: StatusCode, *, route_lost: bool, routed: bool) -> bool:
    """Say whether a session is over after a call of it ended with a status.

    Args:
        operation: What was asked.
        code: The status, not OK.
        route_lost: Whether the status came marked with `x-code-mode-route-lost: true`.
        routed: Whether the host gave the session a route token: one without has no route to lose.
    """
    if operation in _NEVER:
        return False
    if operation in _MUST_SUCCEED:
        return True
    if code is StatusCode.NOT_FOUND:
        return operation in _NAMES_THE_SESSION
    return code is StatusCode.UNAVAILABLE and route_lost and routed


def silence_retires(operation: Operation) -> bool:
    """Say whether a session is over after a call of it ran into its deadline."""
    return operation not in _NEVER
