"""Text out of bytes that come in pieces (case P07)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from actors.protocol import TextDecoder, cap_text

# Whole characters of every length, a line end, more text, and the first two bytes of a character of three.
SAMPLE = "aé漢🙂z\nfurther text".encode() + "漢".encode()[:2]
SAMPLE_TEXT = "aé漢🙂z\nfurther text�"
BROKEN = st.lists(
    st.sampled_from([*(c.encode() for c in "aé漢🙂"), b"\xff", b"\xc3", b"\xe6\xbc", b"\xf0\x9f\x99", b"\xed\xa0"])
    | st.binary(max_size=4)
).map(b"".join)


def decode(pieces: list[bytes]) -> str:
    decoder = TextDecoder()
    return "".join([*map(decoder.feed, pieces), decoder.finish()])


def test_every_split_in_two_gives_the_same_text_and_one_mark_at_the_end() -> None:
    for cut in range(len(SAMPLE) + 1):
        assert decode([SAMPLE[:cut], SAMPLE[cut:]]) == SAMPLE_TEXT


def test_one_byte_at_a_time_gives_the_same_text() -> None:
    assert decode([SAMPLE[at : at + 1] for at in range(len(SAMPLE))]) == SAMPLE_TEXT


@given(BROKEN, st.lists(st.integers(0, 60)))
def test_marks_for_broken_bytes_are_the_same_wherever_they_are_cut(data: bytes, cuts: list[int]) -> None:
    """Kills: decoding each piece alone; giving one mark a byte; forgetting the tail."""
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    assert decode([data[a:b] for a, b in pairwise(edges)]) == data.decode("utf-8", "replace")


def test_a_decoder_begins_anew_after_its_end() -> None:
    decoder = TextDecoder()
    decoder.feed(b"\xe6")
    decoder.finish()

    assert decoder.feed(b"a") == "a"


@given(BROKEN, st.integers(0, 80))
def test_a_capped_text_fits_ends_on_a_whole_character_and_says_what_is_missing(data: bytes, max_bytes: int) -> None:
    """Kills: counting a mark as the byte it stands for; cutting inside a character; stopping one character early."""
    capped = cap_text(data, max_bytes)
    whole = data.decode("utf-8", "replace")

    assert len(capped.text.encode()) <= max_bytes
    assert whole.startswith(capped.text)
    assert (capped.left_out_bytes == 0) == (capped.text == whole)
    assert data[len(data) - capped.left_out_bytes :].decode("utf-8", "replace") == whole[len(capped.text) :]
    following = whole[len(capped.text) : len(capped.text) + 1]
    assert not following or len((capped.text + following).encode()) > max_bytes


def test_the_sample_is_capped_well_at_every_length() -> None:
    texts = [cap_text(SAMPLE, max_bytes).text for max_bytes in range(len(SAMPLE) + 3)]

    assert texts[0] == ""
    assert texts[1:4] == ["a", "a", "aé"]
    assert texts[-1] == SAMPLE_TEXT


def test_a_long_text_is_capped_across_its_runs() -> None:
    data = "漢".encode() * 100_000

    capped = cap_text(data, 200_000)

    assert (len(capped.text), capped.left_out_bytes) == (66_666, 300_000 - 3 * 66_666)
