"""Write outcomes as bytes.

By hand, after the definition of the messages: an answer may hold 64 MiB or tens of thousands of items, and building it
as a message first would copy all of it three times. Checked against the generated classes by `test_answers.py`.
"""

from collections.abc import Iterable
from typing import Final

from actors.sessions.host._items import AudioItem, ImageItem, TextItem, Written
from actors.sessions.host._outputs import CutOutput, Ending, Outcome, WholeOutput

# A field's number and what kind of value follows, as `code_mode.proto` numbers them.
_CELL_ID, _ITEM, _YIELDED, _TERMINATED, _COMPLETED = 0x0A, 0x12, 0x1A, 0x22, 0x2A
_DURATION: Final = 0x30
_ERROR_TEXT: Final = 0x0A
_TEXT, _IMAGE, _AUDIO = 0x0A, 0x12, 0x1A
_CONTENT: Final = 0x0A
_DETAIL: Final = 0x10
_OUTCOME_OF_EVENT: Final = 0x12
_LIVE, _MISSING = 0x0A, 0x12
_DETAILS: Final = {"auto": 1, "low": 2, "high": 3, "original": 4}


def event_parts(cell_id: str, outcome: Outcome, duration_ns: int) -> list[bytes]:
    """Write an `ExecuteEvent` with an outcome, in pieces: a large text is not copied."""
    return _wrapped(_OUTCOME_OF_EVENT, _parts(cell_id, outcome, duration_ns))


def live_cell(cell_id: str, outcome: Outcome, duration_ns: int) -> bytes:
    """Write a `WaitResponse` of a cell that is there."""
    return b"".join(_wrapped(_LIVE, _parts(cell_id, outcome, duration_ns)))


def missing_cell(cell_id: str, *, cut_output: bool, tokens: int, duration_ns: int) -> bytes:
    """Write a `WaitResponse` of a cell that is not there."""
    output = CutOutput() if cut_output else WholeOutput()
    outcome = output.outcome(Ending.COMPLETED, f"exec cell {cell_id} not found", tokens)
    return b"".join(_wrapped(_MISSING, _parts(cell_id, outcome, duration_ns)))


def _wrapped(tag: int, parts: list[bytes]) -> list[bytes]:
    return [bytes((tag,)) + _varint(sum(map(len, parts))), *parts]


def _parts(cell_id: str, outcome: Outcome, duration_ns: int) -> list[bytes]:
    parts = [_field(_CELL_ID, cell_id.encode()), *_items(outcome.items)]
    match outcome.ending:
        case Ending.YIELDED:
            parts.append(_field(_YIELDED, b""))
        case Ending.TERMINATED:
            parts.append(_field(_TERMINATED, b""))
        case Ending.COMPLETED:
            error = outcome.error
            parts.append(_field(_COMPLETED, b"" if error is None else _field(_ERROR_TEXT, error.encode())))
    parts.append(bytes((_DURATION,)) + _varint(max(0, duration_ns)))
    return parts


def _items(items: Iterable[Written]) -> list[bytes]:
    parts: list[bytes] = []
    for item in items:
        if isinstance(item, bytes | TextItem):
            text = item if isinstance(item, bytes) else item.text.encode()
            head = _SMALL[len(text)] if len(text) < len(_SMALL) else _text_head(len(text))
            parts.append(head)
            parts.append(text)
        else:
            parts.append(_field(_ITEM, _other_content(item)))
    return parts


def _other_content(item: ImageItem | AudioItem) -> bytes:
    if isinstance(item, ImageItem):
        return _field(_IMAGE, _field(_CONTENT, item.image_url.encode()) + bytes((_DETAIL, _DETAILS[item.detail])))
    return _field(_AUDIO, _field(_CONTENT, item.audio_url.encode()))


def _text_head(size: int) -> bytes:
    """Write all that stands before a text."""
    inner = bytes((_CONTENT,)) + _varint(size)
    middle = bytes((_TEXT,)) + _varint(len(inner) + size) + inner
    return bytes((_ITEM,)) + _varint(len(middle) + size) + middle


def _field(tag: int, value: bytes) -> bytes:
    return bytes((tag,)) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


_SMALL: Final = [_text_head(size) for size in range(64)]
