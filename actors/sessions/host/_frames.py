"""Frames between the host and an engine process: four bytes of length, little end first, then a JSON array."""

import json
from typing import Any, Final

FRAME_BYTES_MAX: Final = 160 * 1024 * 1024
"""Room for 65 MiB of text with escapes; a longer frame is a fault of the process."""
_LENGTH_BYTES: Final = 4

Frame = list[Any]


class BadFrame(ValueError):
    """An engine process wrote something that is no frame."""


def encode(frame: Frame) -> bytes:
    """Write one frame."""
    body = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return len(body).to_bytes(_LENGTH_BYTES, "little") + body


class FrameDecoder:
    """Takes bytes in any pieces and gives whole frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes and return the frames they complete.

        Raises:
            BadFrame: Nothing that follows can be trusted.
        """
        held = self._held
        held += data
        frames: list[Frame] = []
        at = 0
        while len(held) - at >= _LENGTH_BYTES:
            end = at + _LENGTH_BYTES + int.from_bytes(held[at : at + _LENGTH_BYTES], "little")
            if end - at > FRAME_BYTES_MAX:
                raise BadFrame(f"a frame of {end - at} bytes; the limit is {FRAME_BYTES_MAX}")
            if len(held) < end:
                break
            frames.append(_parse(held[at + _LENGTH_BYTES : end]))
            at = end
        if at:
            del held[:at]
        return frames


def _parse(body: bytearray) -> Frame:
    try:
        frame: Any = json.loads(body.decode())
    except (ValueError, RecursionError) as broken:
        raise BadFrame("a frame that is not JSON") from broken
    if type(frame) is not list or not frame:
        raise BadFrame("a frame that is not an array")
    return frame  # pyright: ignore[reportUnknownVariableType]  # What is in it is checked by whoever reads it.
