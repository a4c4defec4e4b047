"""What a cell has put out since it was last observed, and how an observation ends."""

import enum
from collections.abc import Sequence
from typing import Final

import attrs

from actors.sessions._cutting import bounded_error
from actors.sessions.host._items import ImageItem, TextItem, Written
from actors.sessions.host._rendering import render
from actors.sessions.host._retention import Retention

MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
DEFAULT_TOKENS: Final = 10_000
# An item costs a few bytes around its text; what is left under the limit is for the rest of the answer.
_ITEM_BYTES: Final = 24
_WHOLE_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 64 * 1024


class Ending(enum.Enum):
    """How an observation ended."""

    YIELDED = "yielded"
    """The cell goes on."""
    TERMINATED = "terminated"
    """Somebody stopped the cell."""
    COMPLETED = "completed"
    """The script ended, well or not."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What an observer is told."""

    ending: Ending
    """Which of the three."""

    items: Sequence[Written] = attrs.field(repr=False)
    """Everything since the last event, cut to the observer's budget in Server mode."""

    error: str | None = None
    """Of a script that failed; an empty text is a failure too."""


class WholeOutput:
    """Client mode: everything, as long as it fits one answer."""

    def __init__(self) -> None:
        self._items: list[Written] = []
        self._size_bytes = 0

    def add(self, items: Sequence[Written]) -> None:
        """Take the next items. Once an answer could not hold it all, nothing is kept but the count."""
        self._size_bytes += sum(map(size_of, items)) + _ITEM_BYTES * len(items)
        if self._size_bytes > _WHOLE_BYTES_MAX:
            self._items.clear()
        else:
            self._items += items

    def outcome(self, ending: Ending, error: str | None, tokens: int) -> Outcome:
        """Write it; an answer that fits no message becomes an error that says so."""
        size_bytes = self._size_bytes + (0 if error is None else size_of(TextItem(error)))
        if size_bytes > _WHOLE_BYTES_MAX:
            text = (
                f"exec cell output of {size_bytes} bytes does not fit the {MESSAGE_BYTES_MAX}-byte gRPC message "
                "limit; put out less before each yield, or open the session with Server output truncation"
            )
            if ending is Ending.COMPLETED:
                return Outcome(ending=ending, items=[], error=text)
            # Only a result has room for an error; without a word in its place the output would just be gone.
            return Outcome(ending=ending, items=[text.encode()], error=None)
        return Outcome(ending=ending, items=self._items, error=error)


class CutOutput:
    """Server mode: bounded while it is gathered, and cut to a budget when it is told."""

    def __init__(self) -> None:
        self._kept = Retention()
        self._error_added = False

    def add(self, items: Sequence[Written]) -> None:
        """Take the next items."""
        for item in items:
            self._kept.add(TextItem(item.decode()) if isinstance(item, bytes) else item)

    def outcome(self, ending: Ending, error: str | None, tokens: int) -> Outcome:
        """Write it, the error as its last text too."""
        if error is not None and not self._error_added:
            self._error_added = True
            self._kept.add(TextItem(f"Script error:\n{error}"))
        kept = None if error is None else bounded_error(error)
        return Outcome(ending=ending, items=render(self._kept, tokens), error=kept)


Output = WholeOutput | CutOutput


def size_of(item: Written) -> int:
    """Count the bytes of an item."""
    if isinstance(item, bytes):
        return len(item)
    if isinstance(item, TextItem):
        text = item.text
        return len(text) if text.isascii() else len(text.encode())
    return len(item.image_url if isinstance(item, ImageItem) else item.audio_url)


_GRACE_FROM_MS: Final = 10_000
_GRACE_MS: Final = 1_000


def effective_yield_ms(requested_ms: int, limit_ms: int | None) -> int:
    """Give long observations a second of grace, then hold them to the limit of the session."""
    granted_ms = requested_ms + _GRACE_MS if requested_ms >= _GRACE_FROM_MS else requested_ms
    return granted_ms if limit_ms is None else min(granted_ms, limit_ms)
