"""Frames of both sides, beside wsproto as a second opinion."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, TextMessage
from wsproto.events import Ping as TheirPing
from wsproto.events import Pong as TheirPong

from actors.websocket import (
    Closed,
    FrameDecoder,
    FrameFault,
    Opcode,
    Part,
    Ping,
    Pong,
    WholeMessage,
    encode_close,
    encode_frame,
)

LIMIT = 1 << 20


def client_frame(
    opcode: int,
    payload: bytes,
    *,
    final: bool = True,
    mask: bytes = b"\x01\x02\x03\x04",
    masked: bool = True,
    rsv: int = 0,
) -> bytes:
    length = len(payload)
    if length < 126:
        head = bytes([length])
    elif length <= 0xFFFF:
        head = b"\x7e" + length.to_bytes(2, "big")
    else:
        head = b"\x7f" + length.to_bytes(8, "big")
    if not masked:
        return bytes([final << 7 | rsv | opcode]) + head + payload
    covered = bytearray(payload)
    for place, byte in enumerate(mask):
        covered[place::4] = covered[place::4].translate(bytes(byte ^ value for value in range(256)))
    return bytes([final << 7 | rsv | opcode, head[0] | 0x80]) + head[1:] + mask + covered


def ours(pieces: Sequence[bytes], *, from_client: bool) -> list[object]:
    decoder, seen = FrameDecoder(message_bytes_max=LIMIT, from_client=from_client), []
    try:
        for piece in pieces:
            decoder.feed(piece)
            while (one := decoder.next_event()) is not None:
                if isinstance(one, Closed):
                    return [*seen, ("end", one.code)]
                if not isinstance(one, Part):
                    seen.append(one)
    except FrameFault as fault:
        seen.append(("end", fault.code))
    return seen


def theirs(pieces: Sequence[bytes], *, from_client: bool) -> list[object]:
    connection, seen = Connection(ConnectionType.SERVER if from_client else ConnectionType.CLIENT), []
    parts = bytearray()
    for piece in pieces:
        connection.receive_data(piece)
        for one in connection.events():
            match one:
                case TextMessage() | BytesMessage():
                    parts += one.data.encode() if isinstance(one.data, str) else one.data
                    if one.message_finished:
                        seen.append(WholeMessage(bytes(parts), isinstance(one, TextMessage)))
                        parts.clear()
                case TheirPing():
                    seen.append(Ping(bytes(one.payload)))
                case TheirPong():
                    seen.append(Pong(bytes(one.payload)))
                case CloseConnection():
                    # A peer's close and a fault of framing look the same here.
                    return [*seen, ("end", int(one.code))]
    return seen


ASCII = st.text("abc {}", max_size=200).map(str.encode)
BIG = st.sampled_from([b"x" * 125, b"y" * 126, b"z" * 0xFFFF, b"w" * 0x10000])
MASKS = st.binary(min_size=4, max_size=4)


def control(*, masked: bool) -> st.SearchStrategy[bytes]:
    payloads = ASCII.map(lambda payload: payload[:125])
    return st.builds(
        client_frame, st.sampled_from([Opcode.PING, Opcode.PONG]), payloads, mask=MASKS, masked=st.just(masked)
    )


@st.composite
def whole_messages(draw: st.DrawFn, *, masked: bool) -> bytes:
    """A message in one to four fragments, with control frames between them."""
    parts = draw(st.lists(ASCII | BIG, min_size=1, max_size=4))
    kind = draw(st.sampled_from([Opcode.TEXT, Opcode.BINARY]))
    frames = b""
    for number, part in enumerate(parts):
        opcode = Opcode.CONTINUATION if number else kind
        frames += client_frame(opcode, part, final=number == len(parts) - 1, mask=draw(MASKS), masked=masked)
        if number < len(parts) - 1 and draw(st.booleans()):
            frames += draw(control(masked=masked))
    return frames


def bad_frame(*, masked: bool) -> st.SearchStrategy[bytes]:
    def frame(opcode: int, payload: bytes, **options: object) -> bytes:
        return client_frame(opcode, payload, **{"masked": masked, **options})  # type: ignore[arg-type]

    bit, key = (0x80, b"mask") if masked else (0, b"")
    return st.one_of(
        st.builds(frame, st.just(Opcode.CONTINUATION), st.just(b"x")),
        st.just(frame(1, b"x", final=False) + frame(1, b"x")),
        st.builds(frame, st.sampled_from([3, 7, 11, 15]), st.just(b"x")),
        st.builds(frame, st.just(1), st.just(b"x"), masked=st.just(not masked)),
        st.builds(frame, st.just(1), st.just(b"x"), rsv=st.sampled_from([0x10, 0x20, 0x40])),
        st.builds(frame, st.just(9), st.just(b"x"), final=st.just(False)),
        st.just(bytes([0x81, 126 | bit, 0, 5]) + key + b"12345"),
        st.just(bytes([0x81, 127 | bit]) + (200).to_bytes(8, "big") + key + bytes(200)),
        st.builds(
            frame,
            st.just(8),
            st.sampled_from([b"", b"\x03", b"\x03\xe8", b"\x03\xe8bye", b"\x03\xed", b"\x03\xe8\xff"]),
        ),
    )


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[bytes], bool]:
    """What one side writes, in pieces, and whether it is the client."""
    masked = draw(st.booleans())
    frames = draw(st.lists(whole_messages(masked=masked) | control(masked=masked), max_size=4))
    stream = b"".join(frames) + draw(st.just(b"") | bad_frame(masked=masked))
    cuts = draw(st.lists(st.floats(0, 1, exclude_max=True), max_size=8))
    borders = sorted({0, len(stream), *(int(cut * len(stream)) for cut in cuts)})
    return [stream[a:b] for a, b in pairwise(borders)], masked


@given(conversations())
def test_any_frames_in_any_pieces_are_read_as_wsproto_reads_them(conversation: tuple[list[bytes], bool]) -> None:
    """Killed: the mask not turned when a payload comes in pieces; a message forgotten at a fragment; the length of 127
    not checked for its shortest form; a continuation without a beginning let through; a ping in fragments let through;
    the short way taken in the middle of a fragmented message; a masked frame of a server let through.
    """
    pieces, masked = conversation
    stream = b"".join(pieces)
    whole = ours([stream], from_client=masked)
    event(type(whole[-1]).__name__ if whole else "nothing")

    assert ours(pieces, from_client=masked) == whole == theirs([stream], from_client=masked)


def test_a_message_over_the_limit_is_refused_by_its_header_alone() -> None:
    decoder = FrameDecoder(message_bytes_max=100)
    decoder.feed(client_frame(1, b"x" * 60, final=False) + client_frame(0, b"x" * 60)[:8])
    assert decoder.next_event() == Part()

    with pytest.raises(FrameFault) as refused:
        decoder.next_event()
    assert refused.value.code == 1009


@pytest.mark.parametrize("mask", [None, b"\x00\xff\x80\x01"])
@pytest.mark.parametrize("length", [0, 1, 125, 126, 0xFFFF, 0x10000])
def test_what_we_write_is_what_wsproto_reads(length: int, mask: bytes | None) -> None:
    other, payload = Connection(ConnectionType.CLIENT if mask is None else ConnectionType.SERVER), b"a" * length
    other.receive_data(encode_frame(Opcode.TEXT, payload, mask))
    text = "".join(str(one.data) for one in other.events() if isinstance(one, TextMessage))

    assert text.encode() == payload


def test_a_close_reason_is_cut_on_a_whole_character() -> None:
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(encode_close(1002, "ä" * 100))
    (closed,) = client.events()

    assert isinstance(closed, CloseConnection)
    assert (closed.code, closed.reason) == (1002, "ä" * 61)
