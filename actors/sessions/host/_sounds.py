"""How long a clip is, as far as a data URL tells: RIFF/WAVE is read, whatever its declared type says."""

import base64
import binascii
import struct
from typing import Final

from actors.sessions.host._items import AudioItem, Item, TextItem

TOO_SHORT: Final = "Audio output omitted because the clip is shorter than 25 ms; use a longer clip."
_SHORTEST_S: Final = 0.025
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE


def long_enough(item: AudioItem) -> Item:
    """Keep a clip, or put a sentence in its place when it is known to be too short to hear."""
    seconds = seconds_of(item.audio_url)
    return TextItem(TOO_SHORT) if seconds is not None and seconds < _SHORTEST_S else item


def cost_tokens(audio_url: str) -> int:
    """Price a clip: ten tokens for each second where its length is known, else its URL as if it were text."""
    head = audio_url[:11].lower()
    seconds = seconds_of(audio_url) if head.startswith("data:audio/") else None
    if seconds is None:
        return -(-len(audio_url.encode()) // 4)
    # Rounded first: 0.1 s are one token, not the 1.0000000000000002 that binary fractions make of it.
    return -int(-round(seconds * 10, 9) // 1)


def seconds_of(audio_url: str) -> float | None:
    """Measure a clip by the sample frames that are really there; None when that cannot be told."""
    head, comma, body = audio_url.partition(",")
    if not comma or not head[-7:].lower().endswith(";base64"):
        return None
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return None
    return _seconds_of_wave(data)


def _seconds_of_wave(data: bytes) -> float | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return None
    at, rate, frame_bytes = 12, 0, 0
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        at += 8
        if name == b"fmt " and at + 16 <= len(data):
            kind, channels, rate, _, align, bits = struct.unpack_from("<HHIIHH", data, at)
            if kind not in {_PCM, _FLOAT, _EXTENSIBLE} or not rate:
                return None
            frame_bytes = align or channels * bits // 8
        elif name == b"data":
            return min(size, len(data) - at) // frame_bytes / rate if frame_bytes else None
        at += size + size % 2
    return None
