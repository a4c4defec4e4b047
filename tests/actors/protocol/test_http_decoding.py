"""Encodings of bodies are taken off the same way however the bytes were cut, and never into an unbounded piece."""

import gzip
import importlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol import BodyDecoder, BodyUndecodable, GzipBody, PlainBody, ZstdBody
from tests.support.skips import needs

PIECE_BYTES_MAX = 64 * 1024


def zstd_module() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


ZSTD = zstd_module()
needs_zstd = needs(ZSTD, "zstd", "pip install '.[zstd]', or use Python 3.14 or newer")


def fed(decoder: BodyDecoder, data: bytes, cut: int) -> bytes:
    pieces = [p for start in range(0, len(data), cut) for p in decoder.feed(data[start : start + cut])]
    decoder.finish()
    assert all(0 < len(piece) <= PIECE_BYTES_MAX for piece in pieces)
    return b"".join(pieces)


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 50))
def test_gzip_comes_out_the_same_for_every_way_to_cut_it(members: list[bytes], cut: int) -> None:
    assert fed(GzipBody(), b"".join(gzip.compress(member) for member in members), cut) == b"".join(members)


@given(st.binary(max_size=300), st.integers(1, 50))
def test_what_has_no_encoding_comes_out_as_it_is(data: bytes, cut: int) -> None:
    assert fed(PlainBody(), data, cut) == data


@pytest.mark.parametrize("size", [0, 1, 10 * 1024 * 1024])
def test_a_bomb_comes_in_pieces(size: int) -> None:
    assert fed(GzipBody(), gzip.compress(bytes(size)), 64 * 1024) == bytes(size)
    assert fed(PlainBody(), bytes(size), 1024 * 1024) == bytes(size)


@given(st.binary(min_size=1, max_size=300), st.integers(1, 30))
def test_half_a_gzip_body_is_refused_at_its_end(data: bytes, missing: int) -> None:
    whole = gzip.compress(data)
    with pytest.raises(BodyUndecodable):
        fed(GzipBody(), whole[: max(1, len(whole) - missing)], 1024)


def test_what_is_no_gzip_is_refused() -> None:
    with pytest.raises(BodyUndecodable):
        list(GzipBody().feed(b"no gzip at all"))


@needs_zstd
@pytest.mark.parametrize("cut", [1, 7, 1 << 20])
def test_zstd_comes_out_the_same_and_in_pieces(cut: int) -> None:
    first, second = bytes(300_000) + b"end", b"another frame"
    data = ZSTD.compress(first) + ZSTD.compress(second)

    assert fed(ZstdBody(ZSTD.ZstdDecompressor, ZSTD.ZstdError), data, cut) == first + second


@needs_zstd
def test_half_a_zstd_body_and_what_is_none_are_refused() -> None:
    half = ZstdBody(ZSTD.ZstdDecompressor, ZSTD.ZstdError)
    list(half.feed(ZSTD.compress(b"x" * 100)[:-1]))
    with pytest.raises(BodyUndecodable):
        half.finish()
    with pytest.raises(BodyUndecodable):
        list(ZstdBody(ZSTD.ZstdDecompressor, ZSTD.ZstdError).feed(b"no zstd at all"))
