"""Decide when to dial again, so that a thousand clients of one relay do not all come back in the same second.

The delay doubles to a cap and is spread over its upper half *after* the cap was applied, so there is spread at the
cap too. It starts again only after a connection has lasted: a relay that accepts and drops sees no tight loop.
"""

import attrs
from attrs.validators import gt

__all__ = ["Redial"]


@attrs.frozen(kw_only=True)
class Redial:
    """One client's place in its schedule.

    Attributes:
        first_s: The first delay, before it is spread.
        cap_s: The longest delay, before it is spread.
        stable_s: How long a connection must have lasted for the delays to start again.
        failures: Attempts and short connections since the last one that lasted.
    """

    first_s: float = attrs.field(default=1.0, validator=gt(0))
    cap_s: float = attrs.field(default=30.0, validator=gt(0))
    stable_s: float = attrs.field(default=10.0, validator=gt(0))
    failures: int = 0

    def after_connection(self, lived_s: float) -> "Redial":
        """Note that a connection ended."""
        return attrs.evolve(self, failures=0 if lived_s >= self.stable_s else self.failures)

    def failed(self) -> "Redial":
        """Note that a delay was taken."""
        return attrs.evolve(self, failures=self.failures + 1)

    def delay_s(self, spread: float, retry_after_s: float | None = None) -> float:
        """Tell how long to wait now.

        Args:
            spread: A random number from 0 to 1.
            retry_after_s: What the other side asked for. It is obeyed up to ten caps, and spread upwards by half a
                delay: everybody was told the same.
        """
        base = min(self.cap_s, self.first_s * 2.0 ** min(self.failures, 30))
        own = base * (0.5 + 0.5 * spread)
        if retry_after_s is None:
            return own
        return max(own, min(max(0.0, retry_after_s), 10 * self.cap_s) + base * 0.5 * spread)
