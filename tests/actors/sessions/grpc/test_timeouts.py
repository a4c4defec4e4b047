import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.sessions.grpc import MalformedCall
from actors.sessions.grpc._timeouts import decode_timeout, encode_timeout


@given(st.floats(min_value=1e-9, max_value=3e11))
def test_a_timeout_is_never_shortened_and_hardly_lengthened(seconds: float) -> None:
    """Seen to fail with: rounding down, in either place; nine digits; a minute counted as a millisecond."""
    wire = encode_timeout(seconds)

    assert re.fullmatch(rb"[0-9]{1,8}[numSMH]", wire), "point 9: at most eight digits"
    assert seconds * (1 - 1e-12) <= decode_timeout(wire) <= seconds * (1 + 1e-5) + 1e-9


def test_a_timeout_that_has_passed_is_the_smallest_one() -> None:
    assert encode_timeout(0) == encode_timeout(-5) == b"1n"


def test_a_timeout_beyond_all_digits_is_the_largest_one() -> None:
    assert encode_timeout(1e300) == encode_timeout(math.inf) == b"99999999H"


@pytest.mark.parametrize("wire", [b"", b"1", b"S", b"123456789n", b"-1S", b"1.5S", b"1s", b" 1S", b"\xd9\xa1S"])
def test_what_is_no_timeout_is_refused(wire: bytes) -> None:
    with pytest.raises(MalformedCall, match="eight digits"):
        decode_timeout(wire)


def test_each_unit_means_what_it_says() -> None:
    """Without it a wrong unit goes unseen, since both directions use one table."""
    units = {b"7n": 7e-9, b"7u": 7e-6, b"7m": 7e-3, b"7S": 7, b"7M": 420, b"7H": 25_200}

    assert {wire: decode_timeout(wire) for wire in units} == units
