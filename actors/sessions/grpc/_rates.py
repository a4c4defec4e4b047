"""Count what comes too often: a bucket of tokens that refills with time."""

import attrs


@attrs.define
class TokenBucket:
    """Allows `burst` at once and `per_s` in the long run. Time is an argument."""

    per_s: float
    burst: float
    _tokens: float = attrs.field(init=False)
    _since_s: float | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._tokens = self.burst

    def take(self, now_s: float) -> bool:
        """Take one token; False when there is none."""
        if self._since_s is not None:
            gained = max(0.0, now_s - self._since_s) * self.per_s
            self._tokens = min(self.burst, self._tokens + gained)
        self._since_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
