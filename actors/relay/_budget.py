"""Forgive failures over time: a bucket of tokens that fills again. Knows numbers and the time it is told."""

import attrs

__all__ = ["FailureBudget"]


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
