"""Decide when to dial again, so that a thousand clients of one relay do not all come back in the same second.

The first tries are quick, because most relays that are lost are back in a moment. Then the delay doubles to a cap, and
is spread over its upper half *after* the cap was applied, so there is spread at the cap too. All of it starts again
only after a connection has lasted: a relay that accepts and drops sees no tight loop.
"""

import attrs
from attrs.validators import ge, gt

__all__ = ["Redial"]


@attrs.frozen(kw_only=True)
class Redial:
    """One client's place in its schedule.

    Attributes:
        quick_tries: How many tries come before the delays begin to double: about a second and a half of them.
        quick_s: The delay between those, before it is spread; never above the first one that follows.
        first_s: The first delay after the quick ones, before it is spread; each further one is twice as long.
        cap_s: The longest delay, before it is spread.
        stable_s: How long a connection must have lasted for the delays to start again.
        failures: Attempts and short connections since the last one that lasted.
    """

    quick_tries: int = attrs.field(default=16, validator=ge(0))
    quick_s: float = attrs.field(default=0.12, validator=gt(0))
    first_s: float = attrs.field(default=1.0, validator=gt(0))
    cap_s: float = attrs.field(default=30.0, validator=gt(0))
    stable_s: float = attrs.field(default=5.0, validator=gt(0))
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
            retry_after_s: What the other side asked for. It is obeyed up to ten caps, and spread upwards by half of
                it or of the delay: everybody was told the same.
        """
        base = self._base_s()
        # The very first is spread from nothing: a crowd that lost its relay together has no history to be spread by.
        own = base * spread if self.failures == 0 < self.quick_tries else base * (0.5 + 0.5 * spread)
        if retry_after_s is None:
            return own
        asked = min(max(0.0, retry_after_s), 10 * self.cap_s)
        return max(own, asked + max(base, asked) * 0.5 * spread)

    def _base_s(self) -> float:
        doublings = self.failures - self.quick_tries
        if doublings < 0:
            return min(self.cap_s, self.first_s, self.quick_s)
        return min(self.cap_s, self.first_s * 2.0 ** min(doublings, 30))
