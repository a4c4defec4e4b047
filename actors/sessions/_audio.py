"""Measure clips in data URLs: RIFF/WAVE is read, other containers count by size, which never fails."""

import base64
import binascii
import struct
from typing import Final

import attrs

from actors.sessions._cutting import byte_count, tokens_of

TOKENS_PER_S: Final = 10
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE


@attrs.frozen
class ClipLength:
    """How long a clip is, without rounding.

    Attributes:
        frames: Sample frames that are really there.
        rate_hz: Frames a second; more than 0.
    """

    frames: int

    rate_hz: int


def audio_tokens(audio_url: str) -> int:
    """Price a clip: ten tokens a second, rounded up; its URL as if it were text where its length is not known."""
    length = clip_length(audio_url) if audio_url[:11].lower() == "data:audio/" else None
    if length is None:
        return tokens_of(byte_count(audio_url))
    return -(-TOKENS_PER_S * length.frames // length.rate_hz)


def clip_length(audio_url: str) -> ClipLength | None:
    """Measure a clip by what it holds, whatever its declared type says; None when that cannot be told."""
    head, comma, body = audio_url.partition(",")
    if not comma or not head[-7:].lower().endswith(";base64"):
        return None
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return None
    return _length_of_wave(data)


def _length_of_wave(data: bytes) -> ClipLength | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return None
    at, rate_hz, frame_bytes = 12, 0, 0
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        at += 8
        if name == b"fmt " and at + 16 <= len(data):
            kind, channels, rate_hz, _, align, bits = struct.unpack_from("<HHIIHH", data, at)
            if kind not in {_PCM, _FLOAT, _EXTENSIBLE} or not rate_hz:
                return None
            frame_bytes = align or channels * bits // 8
        elif name == b"data":
            return ClipLength(min(size, len(data) - at) // frame_bytes, rate_hz) if frame_bytes else None
        at += size + size % 2
    return None
