"""Leave out clips that are too short to hear."""

from typing import Final

from actors.sessions._audio import clip_length
from actors.sessions.host._items import AudioItem, Item, TextItem

TOO_SHORT: Final = "Audio output omitted because the clip is shorter than 25 ms; use a longer clip."
_SHORTEST_MS: Final = 25


def long_enough(item: AudioItem) -> Item:
    """Keep a clip, or put a sentence in its place when it is known to be too short to hear."""
    length = clip_length(item.audio_url)
    if length is not None and length.frames * 1000 < _SHORTEST_MS * length.rate_hz:
        return TextItem(TOO_SHORT)
    return item
