"""Byte strings as they travel."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol import InvalidParams, decode_bytes, encode_bytes


@given(st.binary(max_size=100))
def test_bytes_come_back_as_they_were(data: bytes) -> None:
    """Kills: the URL-safe alphabet."""
    assert encode_bytes(data) == base64.b64encode(data).decode()
    assert decode_bytes(encode_bytes(data)) == data


@given(st.text("AQg/+=!_é\n", max_size=10) | st.text(max_size=10))
def test_each_byte_string_has_one_spelling(text: str) -> None:
    """Kills: letting unused bits, spaces or missing padding pass."""
    try:
        data = decode_bytes(text)
    except InvalidParams:
        return

    assert encode_bytes(data) == text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("!!", "Invalid symbol 33, offset 0."),
        ("aGk", "Invalid padding"),
        ("_-8=", "Invalid symbol 95, offset 0."),
        ("aGl=", "Invalid last symbol 108, offset 2."),
        ("a", "Invalid input length: 1"),
        ("é===", "Invalid symbol 195, offset 0."),
        ("aGk=aGk=", "Invalid symbol 61, offset 3."),
    ],
)
def test_a_refusal_says_what_is_wrong_and_where(text: str, rule: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        decode_bytes(text)

    assert caught.value.rule == rule
