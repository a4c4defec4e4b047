"""How long to wait before a child is brought back. Randomness is an argument."""

import attrs

from supervision._errors import InvalidSpec
from supervision._rules import check_seconds, is_number

__all__ = ["Backoff"]


@attrs.frozen(kw_only=True)
class Backoff:
    """Growing delays between the restarts of one child; waiting itself counts as no restart.

    Attributes:
        first_s: Delay before the first restart, in seconds; more than 0.
        factor: What the delay is multiplied by from one restart to the next; at least 1, and finite.
        max_s: The longest delay, in seconds, before jitter; at least ``first_s``, and finite.
        jitter: The delay is scaled by a random factor between ``1 - jitter`` and ``1 + jitter``; from 0, below 1.
        healthy_s: A child up for at least this long starts again from ``first_s``; less does not clear its history.
            In seconds, more than 0; `math.inf` forgets nothing.
    """

    first_s: float = 0.1
    factor: float = 2.0
    max_s: float = 30.0
    jitter: float = 0.1
    healthy_s: float = 60.0

    def __attrs_post_init__(self) -> None:
        check_seconds("Backoff.first_s", self.first_s)
        check_seconds("Backoff.max_s", self.max_s)
        check_seconds("Backoff.healthy_s", self.healthy_s, infinite="forgets nothing")
        _check(is_number(self.factor) and 1 <= self.factor < float("inf"), "factor", "must be at least 1, and finite")
        _check(self.first_s <= self.max_s, "max_s", "must be at least first_s")
        _check(is_number(self.jitter) and 0 <= self.jitter < 1, "jitter", "must be at least 0 and less than 1")

    def delay_s(self, attempt: int, chance: float) -> float:
        """Return the delay before restart number ``attempt`` (from 1), for a ``chance`` in [0, 1)."""
        try:
            plain = min(self.max_s, self.first_s * float(self.factor) ** (attempt - 1))
        except OverflowError:  # No float can hold it, and max_s was reached long before.
            plain = self.max_s
        return plain * (1 + self.jitter * (2 * chance - 1))

    def fastest_s(self, restarts: int) -> float:
        """Return the shortest time in which ``restarts`` restarts can follow one another."""
        total = 0.0
        for attempt in range(1, restarts + 1):
            delay = self.delay_s(attempt, 0.0)
            if delay >= self.max_s * (1 - self.jitter):
                return total + delay * (restarts - attempt + 1)
            total += delay
        return total


def _check(holds: bool, field: str, rule: str) -> None:
    if not holds:
        raise InvalidSpec(f"Backoff.{field}", rule)


def check_reachable(backoff: Backoff, restarts: int, period_s: float) -> None:
    """Refuse a backoff so slow that its child could crash for ever and never exceed the intensity."""
    fastest_s = backoff.fastest_s(restarts)
    if fastest_s > period_s:
        raise InvalidSpec(
            "backoff",
            f"{restarts} restarts take at least {fastest_s:g} s with these delays, so the supervisor's limit of "
            f"{restarts} within {period_s:g} s could never be reached: shorten the delays or lengthen period_s",
        )
