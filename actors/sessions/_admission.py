"""Decide when an opening that failed is tried again. Only openings are: nothing that could run code twice."""

from typing import Final

from actors.sessions.grpc import StatusCode

ATTEMPTS_MAX: Final = 5
SPREAD: Final = 0.1
"""Pauses are multiplied by a factor between 1 - SPREAD and 1 + SPREAD, so that clients do not come in step."""

_PAUSES_S: Final = (0.0, 0.05, 0.1, 0.2)
_RETRIED: Final = frozenset({StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED})


def pause_before_next_s(attempts_made: int, code: StatusCode, *, chance: float) -> float | None:
    """Say how long to wait before the next attempt, or None to give up.

    Args:
        attempts_made: At least 1.
        code: How the last one ended. A lease that ends before its first event counts as UNAVAILABLE.
        chance: Drawn from 0 to 1 for this pause.
    """
    if code not in _RETRIED or attempts_made >= ATTEMPTS_MAX:
        return None
    return _PAUSES_S[attempts_made - 1] * (1 - SPREAD + 2 * SPREAD * chance)
