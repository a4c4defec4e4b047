"""Meter what one token does over time. Knows amounts and the time it is told."""

__all__ = ["RateMeter"]


class RateMeter:
    """A bucket that fills at a steady rate. It may be overdrawn, and then says how long to wait."""

    __slots__ = ("_balance", "_burst", "_per_s", "_since_s")

    def __init__(self, per_s: float, burst: float, now_s: float) -> None:
        self._per_s, self._burst = per_s, burst
        self._balance, self._since_s = burst, now_s

    def _fill(self, now_s: float) -> None:
        if now_s > self._since_s:
            self._balance = min(self._burst, self._balance + (now_s - self._since_s) * self._per_s)
            self._since_s = now_s

    def try_take(self, now_s: float) -> bool:
        """Take one, if there is one."""
        self._fill(now_s)
        if self._balance < 1.0:
            return False
        self._balance -= 1.0
        return True

    def take(self, amount: float, now_s: float) -> float:
        """Take an amount that has been used already; tell how long to wait before the next."""
        self._fill(now_s)
        self._balance -= amount
        return max(0.0, -self._balance / self._per_s)

    def wait_s(self, now_s: float) -> float:
        """Tell in how long there will be one to take."""
        self._fill(now_s)
        return max(0.0, (1.0 - self._balance) / self._per_s)
