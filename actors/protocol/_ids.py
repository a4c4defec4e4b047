"""The shape of a request id."""

from typing import Final

RequestId = int | str
"""A signed 64-bit integer or a string of at most 1,024 characters."""

# It comes back in the answer, so one without a bound would make answers that cannot be sent.
_CHARACTERS_MAX: Final = 1024

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def is_request_id(value: object) -> bool:
    """Tell whether ``value`` may identify a request."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return len(value) <= _CHARACTERS_MAX
    return isinstance(value, int) and INT64_MIN <= value <= INT64_MAX
