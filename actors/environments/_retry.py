"""Whether a failed try is worth another one, and how long to wait before it.

An attempt to connect asks the provider, and may ask again within its budget; each try is given a fresh bundle.
"""

import hashlib
from typing import Final

import attrs

from actors import ActorsError
from actors.environments._demands import a_count, must_be_count, seconds
from actors.harness import HarnessError, is_worth_retrying

_RETRYABLE_STATUS: Final = frozenset({408, 429})
_JITTER_STEPS: Final = 2**32


def is_retryable(error: BaseException) -> bool:
    """Whether another attempt makes sense: only one of our own errors can say so."""
    if isinstance(error, HarnessError):
        return is_worth_retrying(error)
    try:
        return isinstance(error, ActorsError) and getattr(error, "retryable", False) is True
    except Exception:  # Whose own error cannot say so does not say so; the attempt must end all the same.
        return False


def retry_after_s(error: BaseException) -> float | None:
    """When whoever was asked wishes to be asked again: only one of our own errors can say so."""
    try:
        asked = getattr(error, "retry_after_s", None) if isinstance(error, ActorsError) else None
    except Exception:  # As above.
        return None
    return float(asked) if isinstance(asked, int | float) and asked > 0 else None


def is_retryable_answer(status: int, code: str | None = None) -> bool:
    """Whether a registry that answered with this HTTP status, and perhaps a code, may be asked again."""
    must_be_count("status", status)
    if status == 409:
        return code == "environment_offline"
    return status >= 500 or status in _RETRYABLE_STATUS


@attrs.frozen(kw_only=True)
class AttemptRules:
    """How long one attempt to connect may take, and how often it may ask its provider.

    Attributes:
        provider_call_s: The longest one call of the provider may take.
        retries: How often the provider is asked again after a retryable failure.
        budget_s: How long all calls of the provider and the pauses between them may take together.
        first_pause_s: The pause before the first retry, before jitter; it doubles each time.
        longest_pause_s: What the pause never grows beyond, before jitter.
        connect_s: The longest it may take from the provider's answer to a link that can be used.
    """

    provider_call_s: float = attrs.field(default=6.0, validator=seconds)
    retries: int = attrs.field(default=4, validator=a_count)
    budget_s: float = attrs.field(default=14.0, validator=seconds)
    first_pause_s: float = attrs.field(default=0.5, validator=seconds)
    longest_pause_s: float = attrs.field(default=5.0, validator=seconds)
    connect_s: float = attrs.field(default=30.0, validator=seconds)

    def pause_s(self, tries: int, elapsed_s: float, key: str, *, at_least_s: float = 0.0) -> float | None:
        """How long to wait before the next try, or None when there may be no other.

        Args:
            tries: How many tries were made, at least 1.
            elapsed_s: How long ago the first one began.
            key: Spreads those who fail together: the same key and number always give the same jitter.
            at_least_s: What the other side asked for. The jitter comes on top, because all were told the same.
        """
        if tries > self.retries:
            return None
        base_s = min(self.first_pause_s * 2 ** min(tries - 1, 30), self.longest_pause_s)
        digest = hashlib.blake2b(f"{key}/{tries}".encode(), digest_size=4).digest()
        pause_s = max(base_s, at_least_s) + base_s / 2 * int.from_bytes(digest, "big") / _JITTER_STEPS
        return pause_s if elapsed_s + pause_s < self.budget_s else None
