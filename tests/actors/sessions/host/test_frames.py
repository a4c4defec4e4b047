"""What an engine process writes, in any pieces, and what is no frame."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.sessions.host._frames import (
    FRAME_BYTES_MAX,
    TURN_WORK_MAX,
    BadFrame,
    Frame,
    FrameDecoder,
    encode,
    encode_answer,
)


def letter(kind: bytes, cell: int, text: bytes, *numbers: int) -> bytes:
    body = kind + struct.pack(f"<{1 + len(numbers)}I", cell, *numbers) + text
    return struct.pack("<I", len(body)) + body


WRITTEN: list[tuple[bytes, Frame]] = [
    (encode(["idle", 3, {"a": "\N{SNOWMAN}"}]), ["idle", 3, {"a": "\N{SNOWMAN}"}]),
    (letter(b"t", 3, b"one"), ["texts", 3, [b"one"]]),
    (letter(b"t", 3, "\N{SNOWMAN}".encode() * 40), ["texts", 3, ["\N{SNOWMAN}".encode() * 40]]),
    (letter(b"c", 3, b"{}", 7, 1), ["call", 3, 7, 1, "{}"]),
    (letter(b"c", 3, b"", 8, 1 | 1 << 31), ["call", 3, 8, 1, None]),
    (letter(b"d", 3, b"", 0), ["done", 3, None, False]),
    (letter(b"d", 3, b"", 3), ["done", 3, "", True]),
]


def joined(frames: list[Frame]) -> list[Frame]:
    """Texts may come as one frame or as several."""
    plain: list[Frame] = []
    for frame in frames:
        if frame[0] == "texts":
            plain += [["texts", frame[1], [text]] for text in frame[2]]
        else:
            plain.append(frame)
    return plain


@given(st.lists(st.sampled_from(WRITTEN)), st.lists(st.integers(0, 400)))
def test_frames_come_out_whole_and_in_order_however_the_bytes_are_cut(
    written: list[tuple[bytes, Frame]], cuts: list[int]
) -> None:
    """Killed: needing one byte less than a frame has; texts of one read joined across another frame."""
    data = b"".join(one for one, _ in written)
    decoder, read, at = FrameDecoder(), list[Frame](), 0
    for cut in [*sorted(cut for cut in cuts if cut < len(data)), len(data)]:
        read += decoder.feed(data[at:cut])
        at = cut
        while decoder.more:
            read += decoder.feed(b"")

    assert joined(read) == [frame for _, frame in written]


@pytest.mark.parametrize(("one", "most"), [(WRITTEN[1], TURN_WORK_MAX), (WRITTEN[3], TURN_WORK_MAX // 8)])
def test_only_so_much_is_given_at_a_time_and_the_rest_when_asked_for(one: tuple[bytes, Frame], most: int) -> None:
    decoder, number = FrameDecoder(), 2 * most + 3
    turns = [len(joined(decoder.feed(one[0] * number + one[0][:7])))]
    while decoder.more:
        turns.append(len(joined(decoder.feed(b""))))

    assert turns == [most, most, 3]
    assert joined(decoder.feed(one[0][7:])) == [one[1]]


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<I", FRAME_BYTES_MAX + 1) + bytes(5),
        struct.pack("<I", 4) + bytes(5),
        letter(b"t", 1, b"\xff"),
        letter(b"d", 1, b""),
        letter(b"c", 1, b"", 1),
        letter(b"x", 1, b""),
        struct.pack("<I", 6) + b"[1,2}]",
        struct.pack("<I", 9) + b'{"a":[1]}',
        struct.pack("<I", 5) + b"[   ]",
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(BadFrame):
        FrameDecoder().feed(data)


def test_an_answer_is_written_with_its_numbers_and_its_text() -> None:
    assert encode_answer(2, 5, True, '"x"') == letter(b"s", 2, b'"x"', 5, 1)
    assert encode_answer(2, 6, False, "") == letter(b"s", 2, b"", 6, 0)
