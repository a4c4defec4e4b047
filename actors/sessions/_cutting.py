"""Cut one text to a number of tokens, keeping its beginning and its end.

A token is estimated as four bytes of UTF-8. Text with lone surrogates is measured as if each were three bytes.
"""

from typing import Final

BYTES_PER_TOKEN: Final = 4
_ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"


def byte_count(text: str) -> int:
    """Count the bytes of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def tokens_of_bytes(count: int) -> int:
    """Estimate tokens, rounded up."""
    return -(-count // BYTES_PER_TOKEN)


def cut_middle(text: str, tokens: int) -> str:
    """Cut a text to a budget; a marker stands for what is left out and is not part of the budget.

    Args:
        text: Any text.
        tokens: 0 leaves the marker alone.
    """
    data = text.encode("utf-8", "surrogatepass")
    budget = BYTES_PER_TOKEN * tokens
    if not data or (tokens > 0 and len(data) <= budget):
        return text
    left = budget // 2
    head_end = _boundary_down(data, left)
    tail_start = max(head_end, _boundary_up(data, len(data) - (budget - left)))
    marker = f"{_ELLIPSIS}{tokens_of_bytes(len(data) - budget)} tokens truncated{_ELLIPSIS}"
    return _decoded(data[:head_end]) + marker + _decoded(data[tail_start:])


def cut_with_header(text: str, tokens: int) -> str:
    """Cut a text that is over a budget, under a header that tells its full size; one within it is returned as it is."""
    size = byte_count(text)
    if size <= BYTES_PER_TOKEN * tokens:
        return text
    lines = text.count("\n") + (0 if text.endswith("\n") or not text else 1)
    return (
        f"Warning: truncated output (original token count: {tokens_of_bytes(size)})\n"
        f"Total output lines: {lines}\n\n{cut_middle(text, tokens)}"
    )


def _boundary_down(data: bytes, index: int) -> int:
    while 0 < index < len(data) and data[index] & 0xC0 == 0x80:
        index -= 1
    return index


def _boundary_up(data: bytes, index: int) -> int:
    while index < len(data) and data[index] & 0xC0 == 0x80:
        index += 1
    return index


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
