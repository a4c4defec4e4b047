"""Write and read `grpc-timeout`: at most eight digits and a unit, rounded up: nobody gives up early."""

import math
import re
from typing import Final

from actors.sessions.grpc._errors import MalformedCall

_NS_PER_UNIT: Final = {
    b"n": 1,
    b"u": 1_000,
    b"m": 1_000_000,
    b"S": 1_000_000_000,
    b"M": 60_000_000_000,
    b"H": 3_600_000_000_000,
}
_DIGITS_MAX: Final = 99_999_999
_SHAPE: Final = re.compile(rb"([0-9]{1,8})([numSMH])")


def encode_timeout(seconds: float) -> bytes:
    """Write a timeout in the finest unit that holds it; what is over is rounded up, and never below 1 ns."""
    ns = max(1, math.ceil(min(seconds, 1e15) * 1e9))
    for unit, size in _NS_PER_UNIT.items():
        count = -(-ns // size)
        if count <= _DIGITS_MAX:
            return b"%d%b" % (count, unit)
    return b"%dH" % _DIGITS_MAX


def decode_timeout(value: bytes) -> float:
    """Read a timeout in seconds.

    Raises:
        MalformedCall: It is not one to eight digits and a unit.
    """
    found = _SHAPE.fullmatch(value)
    if found is None:
        raise MalformedCall(f"the timeout {value!r} is not one to eight digits and a unit of n, u, m, S, M, H")
    return int(found[1]) * _NS_PER_UNIT[found[2]] / 1e9
