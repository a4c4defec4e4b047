"""Count what a script really put out, beside the numbers that cut output tells.

The header of cut text counts what was there to be cut. In Server mode that is what the host retained, at most 1 MiB;
what it had dropped before is told in notices of their own. This adds the two up.
"""

import re
from typing import Final

import attrs

from actors.sessions._cutting import byte_count, tokens_of
from actors.sessions._responses import InputAudio, InputImage, InputText, Result, RuntimeResponse
from actors.sessions._values import OutputTruncation

_HEADER: Final = re.compile(r"Warning: truncated output \(original token count: (\d+)\)\nTotal output lines: (\d+)\n\n")
_NOTICE: Final = re.compile(
    r"\[Code Mode session output limit reached: (?:across this observation, )?omitted (\d+) text bytes; "
    r"discarded (\d+) text segments, (\d+) images, (\d+) audio items\]"
)
_OMITTED: Final = re.compile(r"\[omitted (\d+) (text|audio) items \.\.\.\]")


@attrs.frozen(kw_only=True)
class OutputTotals:
    """How much one observation really held.

    Attributes:
        tokens: Estimated over all text: four bytes each. Of mixed output that a host cut, a lower bound.
        lines: Of the text that could be counted; what a host dropped has no lines.
        images: Shown and dropped.
        sounds: Shown and dropped.
        dropped_text_bytes: What the host had dropped before it cut: the header's numbers leave this out.
        dropped_texts: Texts of which nothing was left.
    """

    tokens: int

    lines: int

    images: int

    sounds: int

    dropped_text_bytes: int = 0

    dropped_texts: int = 0

    @property
    def sentence(self) -> str:
        """What to show beside the historical numbers."""
        return (
            f"[True totals: {self.tokens} tokens of text, {self.lines} lines, "
            f"{self.images} images, {self.sounds} audio items]"
        )


def output_totals(response: RuntimeResponse, mode: OutputTruncation) -> OutputTotals:
    """Count a response.

    Args:
        response: What a session handed out.
        mode: Who has cut it. Of a host's text the notices are read; a script that prints one of its own is believed.
    """
    texts = [item.text for item in response.content_items if isinstance(item, InputText)]
    images = sum(isinstance(item, InputImage) for item in response.content_items)
    sounds = sum(isinstance(item, InputAudio) for item in response.content_items)
    if mode is OutputTruncation.CLIENT:
        if isinstance(response, Result) and response.error_text is not None:
            texts.append(f"Script error:\n{response.error_text}")
        joined = "\n".join(texts)
        return OutputTotals(tokens=tokens_of(byte_count(joined)), lines=_lines(joined), images=images, sounds=sounds)
    notices = [match for match in map(_NOTICE.fullmatch, texts) if match is not None]
    dropped = [sum(int(match[column]) for match in notices) for column in (1, 2, 3, 4)]
    omitted = [match for match in map(_OMITTED.fullmatch, texts) if match is not None]
    sounds += sum(int(match[1]) for match in omitted if match[2] == "audio")
    own = [text for text in texts if _NOTICE.fullmatch(text) is None and _OMITTED.fullmatch(text) is None]
    header = next((match for match in map(_HEADER.match, own) if match is not None), None)
    joined = "\n".join(own)
    return OutputTotals(
        tokens=(int(header[1]) if header else tokens_of(byte_count(joined))) + tokens_of(dropped[0]),
        lines=int(header[2]) if header else _lines(joined),
        images=images + dropped[2],
        sounds=sounds + dropped[3],
        dropped_text_bytes=dropped[0],
        dropped_texts=dropped[1],
    )


def _lines(text: str) -> int:
    return text.count("\n") + (0 if text.endswith("\n") or not text else 1)
