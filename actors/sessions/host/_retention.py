"""Keep the beginning and the end of an observation within fixed bounds, and count what was left out between.

One list holds everything that is kept. Its head is filled first and never changes again; what comes later is the
tail, of which the oldest goes first. A gap belongs to the entry behind it, or to the end of the list; gaps that
meet become one, except that the one at the end of the head stays its own: they are told as one and counted as two. Text
is held as bytes, since every bound counts bytes.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

import attrs

from actors.sessions._cutting import ceil_boundary, floor_boundary
from actors.sessions.host._items import AudioItem, ImageItem, Item, TextItem

TEXT_BYTES_MAX: Final = 1024 * 1024
SLOTS_MAX: Final = 32 * 1024
IMAGE_BYTES_MAX: Final = 8 * 1024 * 1024
AUDIO_BYTES_MAX: Final = 62 * 1024 * 1024
# One answer holds both, and must fit one message of 64 MiB; peers without this bound lose the whole answer.
MEDIA_BYTES_MAX: Final = 62 * 1024 * 1024
_HEAD_BYTES: Final = TEXT_BYTES_MAX // 2
_HEAD_SLOTS: Final = SLOTS_MAX // 2


@attrs.frozen
class Gap:
    """What is missing at one place."""

    text_bytes: int = 0
    """Bytes of text, trimmed or discarded."""
    texts: int = 0
    """Texts of which nothing is left."""
    images: int = 0
    """Images."""
    audios: int = 0
    """Sounds."""

    def __add__(self, other: "Gap") -> "Gap":
        return Gap(
            self.text_bytes + other.text_bytes,
            self.texts + other.texts,
            self.images + other.images,
            self.audios + other.audios,
        )


class Entry:
    """One thing that is kept. Mutable and linked: a cell may put out a million of them."""

    __slots__ = ("data", "following", "gap", "gap_behind", "item", "preceding", "remainder")

    def __init__(self, item: Item | None, data: bytes, *, remainder: bool = False) -> None:
        self.item = item
        """The image or sound; None for a text."""
        self.data = data
        """The bytes of a text, or of a URL."""
        self.remainder = remainder
        """Whether it is the second half of a text whose first half stands before it."""
        self.gap: Gap | None = None
        """What is missing right before it."""
        self.gap_behind: Gap | None = None
        """What is missing right behind it in the head: only the last of the head has this."""
        self.preceding: Entry | None = None
        self.following: Entry | None = None


class Retention:
    """What is kept of one observation."""

    def __init__(self) -> None:
        self._first: Entry | None = None
        self._last: Entry | None = None
        self._oldest: Entry | None = None  # of the tail; the first that may be discarded
        self._tail_texts: deque[Entry] = deque()
        self._head_open = True
        self._head_bytes = self._head_slots = self._tail_bytes = 0
        self._items = self._gaps = 0
        self._image_bytes = self._audio_bytes = 0
        self.end_gap: Gap | None = None
        """What is missing behind everything that is kept."""
        self.media_seen = False
        """Whether an image or sound was put out, kept or not."""

    def __iter__(self) -> Iterator[Entry]:
        entry = self._first
        while entry is not None:
            yield entry
            entry = entry.following

    def add(self, item: Item) -> None:
        """Take the next item, and drop older ones for it if need be."""
        match item:
            case TextItem(text):
                self._add_text(text.encode("utf-8", "replace"))
            case ImageItem(image_url):
                self.media_seen = True
                self._add_media(item, image_url.encode())
            case AudioItem(audio_url):
                self.media_seen = True
                self._add_media(item, audio_url.encode())
        self._drop_over_slots()

    def _close_head(self) -> None:
        self._head_open = False
        if self.end_gap is not None and self._last is not None:
            self._last.gap_behind, self.end_gap = self.end_gap, None

    def _add_text(self, data: bytes) -> None:
        if self._head_open and self._head_slots >= _HEAD_SLOTS:
            self._close_head()
        if self._head_open:
            room = _HEAD_BYTES - self._head_bytes
            if len(data) <= room:
                self._head_bytes += len(data)
                self._append(Entry(None, data))
                return
            fits = floor_boundary(data, room)
            if fits:
                self._head_bytes += fits
                self._append(Entry(None, data[:fits]))
            self._close_head()
            if fits:
                self._add_tail_text(Entry(None, data[fits:], remainder=True))
                return
        self._add_tail_text(Entry(None, data))

    def _add_tail_text(self, entry: Entry) -> None:
        self._append(entry)
        if entry.data:
            self._tail_texts.append(entry)
            self._tail_bytes += len(entry.data)
        while (excess := self._head_bytes + self._tail_bytes - TEXT_BYTES_MAX) > 0:
            oldest = self._tail_texts[0]
            cut = ceil_boundary(oldest.data, excess)
            if cut >= len(oldest.data):
                self._discard(oldest)
                continue
            oldest.data = oldest.data[cut:]
            self._tail_bytes -= cut
            self._widen(oldest, Gap(text_bytes=cut))

    def _add_media(self, item: ImageItem | AudioItem, url: bytes) -> None:
        if self._head_open and self._head_slots >= _HEAD_SLOTS:
            self._close_head()
        media = self._image_bytes + self._audio_bytes + len(url)
        if isinstance(item, ImageItem):
            fits = self._image_bytes + len(url) <= IMAGE_BYTES_MAX and media <= MEDIA_BYTES_MAX
            missing = Gap(images=1)
        else:
            fits = self._audio_bytes + len(url) <= AUDIO_BYTES_MAX and media <= MEDIA_BYTES_MAX
            missing = Gap(audios=1)
        if not fits:
            self._head_slots += self._head_open and self.end_gap is None
            self._widen(None, missing)
            return
        self._count_media(item, len(url))
        self._append(Entry(item, url))

    def _count_media(self, item: Item, size_bytes: int) -> None:
        if isinstance(item, ImageItem):
            self._image_bytes += size_bytes
        else:
            self._audio_bytes += size_bytes

    def _append(self, entry: Entry) -> None:
        entry.gap, self.end_gap = self.end_gap, None
        entry.preceding = self._last
        if self._last is None:
            self._first = entry
        else:
            self._last.following = entry
        self._last = entry
        self._items += not entry.remainder
        if self._head_open:
            self._head_slots += 1
        elif self._oldest is None and not entry.remainder:
            self._oldest = entry

    def _widen(self, before: Entry | None, gap: Gap) -> None:
        """Add to what is missing before an entry, or at the end."""
        old = self.end_gap if before is None else before.gap
        self._gaps += old is None
        new = gap if old is None else old + gap
        if before is None:
            self.end_gap = new
        else:
            before.gap = new

    def _drop_over_slots(self) -> None:
        while self._items + self._gaps > SLOTS_MAX and self._oldest is not None:
            self._discard(self._oldest)

    def _discard(self, entry: Entry) -> None:
        if entry.item is None:
            gap = Gap(text_bytes=len(entry.data), texts=1)
            self._tail_bytes -= len(entry.data)
            if entry.data:
                # The oldest, or the one after the second half of a split text, which slots never take.
                self._tail_texts.remove(entry)
        else:
            gap = Gap(images=1) if isinstance(entry.item, ImageItem) else Gap(audios=1)
            self._count_media(entry.item, -len(entry.data))
        self._unlink(entry)
        if entry.gap is not None:
            self._gaps -= 1
            gap = entry.gap + gap
        self._widen(entry.following, gap)

    def _unlink(self, entry: Entry) -> None:
        before, behind = entry.preceding, entry.following
        if before is None:
            self._first = behind
        else:
            before.following = behind
        if behind is None:
            self._last = before
        else:
            behind.preceding = before
        self._items -= not entry.remainder
        if self._oldest is entry:
            self._oldest = behind
