"""Cut text by bytes without breaking a character: the token estimate, the middle cut, its marker and its header.

A token is estimated as four bytes of UTF-8. A host cuts with this, and so does whoever reads a session in Client mode.
Text with lone surrogates is measured as if each were three bytes.
"""

from typing import Final

import attrs

BYTES_PER_TOKEN: Final = 4
ERROR_BYTES_MAX: Final = 64 * 1024
_ELLIPSIS: Final = "\u2026".encode()


def byte_count(text: str) -> int:
    """Count the bytes of a text."""
    return len(text) if text.isascii() else len(_bytes_of(text))


def tokens_of(size_bytes: int) -> int:
    """Estimate the tokens of a text of this many bytes."""
    return -(-size_bytes // BYTES_PER_TOKEN)


def floor_boundary(text: bytes, at: int) -> int:
    """Move a cut left to the start of the code point it falls into."""
    at = min(at, len(text))
    while 0 < at < len(text) and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


def ceil_boundary(text: bytes, at: int) -> int:
    """Move a cut right to the end of the code point it falls into."""
    at = max(at, 0)
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at


@attrs.frozen
class MiddleCut:
    """Where a text is cut: it keeps all before `prefix_end` and all from `suffix_start` on."""

    prefix_end: int
    """In bytes."""

    suffix_start: int
    """In bytes; never before `prefix_end`."""

    marker: bytes
    """What stands in place of the middle."""


def middle_cut(text: bytes, tokens: int) -> MiddleCut | None:
    """Choose what to keep of a text within a budget; None keeps it whole. The marker is not paid for."""
    budget = tokens * BYTES_PER_TOKEN
    if not text or (tokens > 0 and len(text) <= budget):
        return None
    if tokens == 0:
        return MiddleCut(0, len(text), _marker(tokens_of(len(text))))
    left = budget // 2
    prefix_end = floor_boundary(text, left)
    suffix_start = max(prefix_end, ceil_boundary(text, len(text) - (budget - left)))
    return MiddleCut(prefix_end, suffix_start, _marker(tokens_of(len(text) - budget)))


def _marker(tokens: int) -> bytes:
    return f"\u2026{tokens} tokens truncated\u2026".encode()


def header_of(text: bytes) -> bytes:
    """Say of a text that is about to be cut how large it was."""
    lines = text.count(b"\n") + (not text.endswith(b"\n") if text else 0)
    return (
        f"Warning: truncated output (original token count: {tokens_of(len(text))})\nTotal output lines: {lines}\n\n"
    ).encode()


def cut_middle(text: str, tokens: int) -> str:
    """Cut a text to a budget; a marker stands for what is left out and is not part of the budget.

    Args:
        text: Any text.
        tokens: 0 leaves the marker alone.
    """
    data = _bytes_of(text)
    cut = middle_cut(data, tokens)
    return text if cut is None else _text_of(data[: cut.prefix_end] + cut.marker + data[cut.suffix_start :])


def cut_with_header(text: str, tokens: int) -> str:
    """Cut a text that is over a budget, under a header that tells its full size; one within it is returned as it is."""
    if byte_count(text) <= BYTES_PER_TOKEN * tokens:
        return text
    return header_of(_bytes_of(text)).decode() + cut_middle(text, tokens)


def bounded_error(text: str) -> str:
    """Keep head and tail of an error text that is over its bound."""
    data = _bytes_of(text)
    if len(data) <= ERROR_BYTES_MAX:
        return text
    room = ERROR_BYTES_MAX - len(_ELLIPSIS)
    head = floor_boundary(data, room // 2)
    tail = ceil_boundary(data, len(data) - (room - room // 2))
    return _text_of(data[:head] + _ELLIPSIS + data[tail:])


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
