import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from actors.sessions.grpc import MalformedCall, MessageTooLarge
from actors.sessions.grpc._framing import MessageDecoder, decompressor_of, gunzip, message_prefix

payloads = st.lists(st.binary(max_size=40), max_size=8)


def framed(messages: list[bytes], *, compressed: bool = False) -> bytes:
    bodies = [gzip.compress(message) if compressed else message for message in messages]
    return b"".join(bytes([compressed]) + len(body).to_bytes(4) + body for body in bodies)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


@given(payloads, st.lists(st.integers(0, 10_000), max_size=12), st.booleans())
def test_the_cuts_do_not_show(messages: list[bytes], places: list[int], compressed: bool) -> None:
    """Seen to fail with: a byte of a cut prefix lost; `_missing` reduced by one; the flag taken as 0."""
    decoder = MessageDecoder(10_000, gunzip)
    chunks = cut(framed(messages, compressed=compressed), places)
    event(f"{min(len(chunks), 5)} chunks")

    found = [message for chunk in chunks for message in decoder.feed(chunk)]

    assert found == messages
    assert not decoder.incomplete


@given(st.binary(min_size=1, max_size=30), st.data())
def test_a_decoder_knows_that_it_is_within_a_message(message: bytes, data: st.DataObject) -> None:
    """Seen to fail with: `incomplete` looking only at `_missing`."""
    wire = framed([message])
    decoder = MessageDecoder(100)

    decoder.feed(wire[: data.draw(st.integers(1, len(wire) - 1))])

    assert decoder.incomplete


def test_a_large_message_is_refused_by_its_announcement() -> None:
    with pytest.raises(MessageTooLarge) as caught:
        MessageDecoder(100).feed(message_prefix(101))

    assert (caught.value.found_bytes, caught.value.limit_bytes, caught.value.inbound) == (101, 100, True)
    assert MessageDecoder(100).feed(message_prefix(100) + bytes(100)) == [bytes(100)]


def test_a_small_message_that_unpacks_to_a_large_one_is_refused_before_it_is_unpacked() -> None:
    bomb = gzip.compress(bytes(50_000_000))

    with pytest.raises(MessageTooLarge):
        MessageDecoder(100_000, gunzip).feed(b"\1" + len(bomb).to_bytes(4) + bomb)


@pytest.mark.parametrize(
    ("wire", "why"),
    [(b"\2\0\0\0\0", "neither 0 nor 1"), (b"\1\0\0\0\1x", "named no encoding")],
)
def test_what_is_no_message_is_refused(wire: bytes, why: str) -> None:
    with pytest.raises(MalformedCall, match=why):
        MessageDecoder(100).feed(wire)


@pytest.mark.parametrize("packed", [b"no gzip", gzip.compress(b"cut short", mtime=0)[:-9], b""])
def test_what_cannot_be_unpacked_is_refused(packed: bytes) -> None:
    with pytest.raises(MalformedCall):
        gunzip(packed, 100)


def test_gzip_and_deflate_are_read_and_others_are_not_known() -> None:
    assert gunzip(zlib.compress(b"abc"), 3) == gunzip(gzip.compress(b"abc"), 3) == b"abc"
    assert decompressor_of(b"identity") is None
    with pytest.raises(LookupError):
        decompressor_of(b"snappy")
