"""Text out of bytes that come in pieces: the same text for every way to cut them.

What is not UTF-8 becomes replacement marks, the same marks wherever the bytes were cut.
"""

import codecs

import attrs


class TextDecoder:
    """Decodes one stream; a character cut in half waits for its other half."""

    __slots__ = ("_decoder",)

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """Give the whole characters that are there now."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """Give the mark for an unfinished character, if one was left; the decoder begins anew."""
        return self._decoder.decode(b"", final=True)


@attrs.frozen
class CappedText:
    """The beginning of a text.

    Attributes:
        text: Whole characters only.
        left_out_bytes: How many of the original bytes are not in it.
    """

    text: str
    left_out_bytes: int


def cap_text(data: bytes, max_bytes: int) -> CappedText:
    """Decode as much of ``data`` as encodes to at most ``max_bytes``, ending on a whole character.

    A replacement mark counts with the three bytes it encodes to, not with the bytes it stands for.
    """
    kept: list[str] = []
    room, position = max(max_bytes, 0), 0
    while position < len(data):
        text, end = _next_run(data, position)
        encoded = text.encode("utf-8")
        if len(encoded) <= room:
            kept.append(text)
            room -= len(encoded)
            position = end
            continue
        if end - position == len(encoded) and text != "�":
            whole = encoded[:room].decode("utf-8", "ignore")
            kept.append(whole)
            position += len(whole.encode("utf-8"))
        break
    return CappedText("".join(kept), len(data) - position)


_RUN_BYTES = 64 * 1024


def _next_run(data: bytes, start: int) -> tuple[str, int]:
    """Give the next run of valid text, or one replacement mark, and where it ends."""
    window = data[start : start + _RUN_BYTES]
    try:
        return window.decode("utf-8"), start + len(window)
    except UnicodeDecodeError as fault:
        if fault.start > 0:
            return window[: fault.start].decode("utf-8"), start + fault.start
        return "�", start + fault.end
