"""Forgive failures over time: a bucket of tokens that fills again. Knows numbers and the time it is told.

What is done when none is borne any more is by lot, so that nobody can time his failures to shut the others out.
"""

import attrs

__all__ = ["FailureBudget", "Lots"]


@attrs.frozen
class FailureBudget:
    """How many more failures are borne. One that is full stays full; one that is empty says until when.

    Attributes:
        burst: Failures borne at once.
        refill_s: Time in which one failure is forgiven.
        left: Failures still borne, at ``since_s``.
        since_s: When ``left`` was true.
    """

    burst: int
    refill_s: float
    left: float
    since_s: float = 0.0

    @classmethod
    def full(cls, burst: int, refill_s: float) -> "FailureBudget":
        """Begin with nothing to forgive."""
        return cls(burst, refill_s, float(burst))

    def left_at(self, now_s: float) -> float:
        """Tell how many failures are borne at a time. Time that runs backwards forgives nothing and takes nothing."""
        return min(float(self.burst), self.left + max(0.0, now_s - self.since_s) / self.refill_s)

    def is_spent(self, now_s: float) -> bool:
        """Whether not even one more failure is borne."""
        return self.left_at(now_s) < 1.0

    def spend(self, now_s: float) -> "FailureBudget":
        """Count a failure. Below nothing the budget does not go."""
        return attrs.evolve(self, left=max(0.0, self.left_at(now_s) - 1.0), since_s=max(now_s, self.since_s))


@attrs.frozen
class Lots:
    """How likely one more is looked at. It grows with the time since the last look, and each look costs the same.

    Whoever comes ``n`` times as often is looked at ``n`` times as often, and everybody together once in ``refill_s``.

    Attributes:
        refill_s: The time that one look costs.
        most: Looks that can be saved up, while few come.
        left: Looks that are saved up, at ``since_s``; below 0 right after one that was only partly paid for.
        since_s: When ``left`` was true.
    """

    refill_s: float
    most: int = 4
    left: float = 4.0
    since_s: float = 0.0

    def chance_at(self, now_s: float) -> float:
        """Tell the chance of one who comes now, from 0 to 1."""
        return min(1.0, max(0.0, self._left_at(now_s)))

    def _left_at(self, now_s: float) -> float:
        return min(float(self.most), self.left + max(0.0, now_s - self.since_s) / self.refill_s)

    def looked(self, now_s: float) -> "Lots":
        """Pay for a look, whether a lot decided on it or not."""
        return attrs.evolve(self, left=max(-1.0, self._left_at(now_s) - 1.0), since_s=max(now_s, self.since_s))
