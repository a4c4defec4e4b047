"""Frames between the host and an engine process.

Four bytes of length, little end first, then a JSON array; or, for what is often or large, one letter, the number of the
cell, up to two more numbers, each of four bytes, and UTF-8. Text need not be spelled in JSON then, nor read from it.
"""

import json
import struct
from typing import Any, Final

FRAME_BYTES_MAX: Final = 160 * 1024 * 1024
"""Room for 65 MiB of text with escapes; a longer frame is a fault of the process."""
TURN_WORK_MAX: Final = 2048
"""What is taken of one process before others have their turn, counted in texts; any other frame is as much as eight."""
_TEXT_WORK, _OTHER_WORK = 1, 8
_LENGTH_BYTES: Final = 4
_HEAD: Final = struct.Struct("<IBI")  # Length, letter, cell.
_ANSWER: Final = struct.Struct("<IBIII")  # And the call, and whether it went well.
_TEXT, _CALL, _DONE, _SETTLE = b"tcds"
_NUMBERS: Final = {_CALL: 2, _DONE: 1}
_HAS_TEXT, _UNFIT = 1, 2

Frame = list[Any]


class BadFrame(ValueError):
    """An engine process wrote something that is no frame."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.before: list[Frame] = []
        """The frames that came whole before it."""


def encode(frame: Frame) -> bytes:
    """Write one frame as JSON."""
    body = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return len(body).to_bytes(_LENGTH_BYTES, "little") + body


def encode_answer(cell: int, call_id: int, good: bool, text: str) -> bytes:
    """Write the answer of a tool call."""
    body = text.encode("utf-8", "surrogatepass")
    return _ANSWER.pack(len(body) + 13, _SETTLE, cell, call_id, good) + body


class FrameDecoder:
    """Takes bytes in any pieces and gives whole frames; texts that follow each other come as one, as UTF-8.

    It gives so many at a time: while there are `more`, feed it nothing to have them.
    """

    def __init__(self) -> None:
        self.more: bool = False
        """Whether frames are held that came whole."""
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._needed = 0  # Nothing can be made of what is held before it is so much.

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes and return the frames they complete.

        Raises:
            BadFrame: Nothing that follows can be trusted.
        """
        if self._held:
            if data:
                self._held.append(data)
                self._held_bytes += len(data)
            if self._held_bytes < self._needed:
                return []
            data, self._held = b"".join(self._held), []
        frames: list[Frame] = []
        try:
            self._read(data, frames)
        except BadFrame as bad:
            bad.before = frames
            raise
        return frames

    def _read(self, data: bytes, frames: list[Frame]) -> None:
        at, size, work = 0, len(data), 0
        while (end := self._end_of_frame(data, at, size)) <= size and work < TURN_WORK_MAX:
            _, letter, cell = _HEAD.unpack_from(data, at)
            work += _TEXT_WORK if letter == _TEXT else _OTHER_WORK
            if letter != _TEXT:
                frames.append(_parse(letter, cell, data[at + _LENGTH_BYTES : end]))
            elif frames and frames[-1][:2] == ["texts", cell]:
                frames[-1][2].append(_checked(data[at + _HEAD.size : end]))
            else:
                frames.append(["texts", cell, [_checked(data[at + _HEAD.size : end])]])
            at = end
        self._needed, self.more = end - at, end <= size
        if at < size:
            self._held.append(data[at:])
            self._held_bytes = size - at

    def _end_of_frame(self, data: bytes, at: int, size: int) -> int:
        if size - at < _LENGTH_BYTES:
            return max(size + 1, at + _LENGTH_BYTES)
        length = int.from_bytes(data[at : at + _LENGTH_BYTES], "little")
        if length > FRAME_BYTES_MAX or length < _HEAD.size - _LENGTH_BYTES:
            raise BadFrame(f"a frame of {length} bytes; the limit is {FRAME_BYTES_MAX}")
        return at + _LENGTH_BYTES + length


def _parse(letter: int, cell: int, body: bytes) -> Frame:
    numbers = _NUMBERS.get(letter)
    if numbers is None:
        return _parse_json(body)
    at = 5 + 4 * numbers
    if len(body) < at:
        raise BadFrame("a frame that ends within its numbers")
    first, *more = struct.unpack_from(f"<{numbers}I", body, 5)
    text = _text(body[at:])
    if letter == _CALL:
        # A call without an input is told by its tool's number, which has the highest bit set then.
        tool = more[0]
        return ["call", cell, first, tool & 0x7FFF_FFFF, None if tool >> 31 else text]
    return ["done", cell, text if first & _HAS_TEXT else None, bool(first & _UNFIT)]


def _checked(data: bytes) -> bytes:
    """Leave a text as it is: it is often only passed on."""
    if not data.isascii():
        _text(data)
    return data


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as broken:
        raise BadFrame("a text that is not UTF-8") from broken


def _parse_json(body: bytes) -> Frame:
    try:
        frame: Any = json.loads(body)
    except (ValueError, RecursionError) as broken:
        raise BadFrame("a frame that is not JSON") from broken
    if type(frame) is not list or not frame:
        raise BadFrame("a frame that is not an array")
    return frame  # pyright: ignore[reportUnknownVariableType]  # What is in it is checked by whoever reads it.
