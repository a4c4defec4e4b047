"""The shape of a request id."""

RequestId = int | str
"""A signed 64-bit integer or a string."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def is_request_id(value: object) -> bool:
    """Tell whether ``value`` may identify a request."""
    if isinstance(value, bool):
        return False
    return isinstance(value, str) or (isinstance(value, int) and INT64_MIN <= value <= INT64_MAX)
