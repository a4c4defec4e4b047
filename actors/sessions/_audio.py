"""Estimate what a clip costs: by its length where that can be read, else by the size of its URL.

Reads WAV. Other containers count by size, which is never less than nothing and never fails.
"""

import base64
import binascii
import struct
from collections.abc import Iterator
from typing import Final

from actors.sessions._cutting import byte_count, tokens_of_bytes

TOKENS_PER_S: Final = 10


def audio_tokens(audio_url: str) -> int:
    """Estimate the tokens of a clip in a data URL: ten a second, rounded up."""
    frames, rate = _wav_length(_audio_data(audio_url))
    if frames and rate:
        return -(-TOKENS_PER_S * frames // rate)
    return tokens_of_bytes(byte_count(audio_url))


def _audio_data(url: str) -> bytes:
    head, comma, body = url.partition(",")
    if not (comma and head[:11].lower() == "data:audio/" and head.lower().endswith(";base64")):
        return b""
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _wav_length(data: bytes) -> tuple[int, int]:
    """Return sample frames and frames per second, or zeros."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return 0, 0
    rate = frame_bytes = samples_bytes = 0
    for name, body in _chunks(data):
        if name == b"fmt " and len(body) >= 16:
            _, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
            frame_bytes = channels * (bits // 8)
        elif name == b"data":
            samples_bytes = len(body)
    return (samples_bytes // frame_bytes if frame_bytes else 0), rate


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        yield data[at : at + 4], data[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
