"""The head of an HTTP/2 frame (RFC 9113, 4.1): how it is packed, and the kinds and flags that a call is made of."""

import struct
from typing import Final

HEAD: Final = struct.Struct(">BHBBL")
"""24 bits of length, type, flags, stream."""
HEAD_BYTES: Final = HEAD.size

DATA, HEADERS, RESET, WINDOW, CONTINUATION = 0, 1, 3, 8, 9
END_STREAM, END_HEADERS = 0x1, 0x4

NUMBER_FRAME_BYTES: Final = HEAD_BYTES + 4
"""The size of a frame that holds one number: a larger window, or the code of a reset."""
WINDOW_MAX: Final = 2**31 - 1
"""What a window never grows beyond."""


def frame_head(size_bytes: int, kind: int, flags: int, number: int) -> bytes:
    """Write the head of a frame of a stream."""
    return HEAD.pack(size_bytes >> 16, size_bytes & 0xFFFF, kind, flags, number)
