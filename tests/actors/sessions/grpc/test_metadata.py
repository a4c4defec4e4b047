from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.sessions.grpc import InvalidMetadata, MalformedCall, Metadata
from actors.sessions.grpc._metadata import metadata_from_headers, metadata_to_headers

keys = st.from_regex(r"x-[0-9a-z_.-]{1,8}", fullmatch=True).filter(lambda key: not key.endswith("-bin"))
text = st.from_regex(r"([\x21-\x7e]([\x20-\x7e]{0,8}[\x21-\x7e])?)?", fullmatch=True)
pairs = st.lists(
    st.one_of(st.tuples(keys, text), st.tuples(keys.map(lambda key: key + "-bin"), st.binary(max_size=12)))
)


@given(pairs)
def test_metadata_survives_the_wire(sent: list[tuple[str, str | bytes]]) -> None:
    """Seen to fail with: padding kept; binary keys read as text; the last pair of a repeated key only."""
    headers = metadata_to_headers(sent)

    assert metadata_from_headers(headers).pairs == tuple(sent)
    assert not [value for name, value in headers if name.endswith(b"-bin") and value.endswith(b"=")]


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=4), st.booleans())
def test_binary_values_joined_by_commas_with_or_without_padding_are_read(values: list[bytes], padded: bool) -> None:
    """Seen to fail with: no split at commas; padding always added; padding never added."""
    parts = [b64encode(value) if padded else b64encode(value).rstrip(b"=") for value in values]

    assert metadata_from_headers([(b"k-bin", b",".join(parts))]).get_all("k-bin") == values


def test_a_binary_value_that_is_no_base64_is_refused() -> None:
    with pytest.raises(MalformedCall, match="k-bin"):
        metadata_from_headers([(b"k-bin", b"!!!!")])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Upper", "x"), ("", "x"), ("sp ace", "x"), ("grpc-status", "0"), ("content-type", "x"), ("te", "x"),
        ("connection", "x"), ("host", "x"), (":path", "/"), ("k", b"bytes"), ("k-bin", "text"),
        ("k", "new\nline"),
        ("k", "grün"), ("k", " x"), ("k", "x "), ("k", "\x00"),
    ],
)  # fmt: skip
def test_metadata_that_no_header_can_carry_is_refused_at_the_sender(key: str, value: str | bytes) -> None:
    with pytest.raises(InvalidMetadata) as caught:
        metadata_to_headers([(key, value)])

    assert caught.value.key == key


def test_what_belongs_to_the_protocol_is_not_metadata() -> None:
    headers = [(b":path", b"/a/b"), (b"te", b"trailers"), (b"grpc-timeout", b"1S"), (b"user-agent", b"me")]

    assert metadata_from_headers(headers).pairs == (("user-agent", "me"),)


def test_values_stay_out_of_texts() -> None:
    secret = "hunter2 "
    with pytest.raises(InvalidMetadata) as caught:
        metadata_to_headers([("authorization", secret)])

    assert secret.strip() not in str(caught.value)
    assert "hunter2" not in repr(Metadata((("authorization", "hunter2"),)))


def test_credentials_are_never_put_into_the_header_table() -> None:
    assert not metadata_to_headers([("authorization", "x")])[0].indexable  # type: ignore[attr-defined]  # hpack's tuple
