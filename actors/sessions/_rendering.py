"""Cut what a session in Client mode handed out, for whoever reads it. In Server mode the host has done it already."""

from actors.sessions._audio import audio_tokens
from actors.sessions._cutting import BYTES_PER_TOKEN, bounded_error, byte_count, cut_middle, cut_with_header, tokens_of
from actors.sessions._responses import (
    ContentItem,
    InputAudio,
    InputImage,
    InputText,
    Result,
    RuntimeResponse,
)
from actors.sessions._totals import output_totals
from actors.sessions._values import DEFAULT_MAX_OUTPUT_TOKENS, OutputTruncation


def render_response(
    response: RuntimeResponse,
    *,
    max_output_tokens: int | None = None,
    error_apart: bool = False,
    true_totals: bool = False,
) -> tuple[ContentItem, ...]:
    """Return the content of a response within a budget, a script's error last.

    Args:
        response: From a session in Client mode.
        max_output_tokens: The budget in tokens of four bytes; None: 10,000.
        error_apart: Keep the error out of the cut: it comes after the cut output, with its ends when it is over 64 KiB.
        true_totals: Add a line that counts everything the response held, where something was cut.
    """
    items = response.content_items
    error = response.error_text if isinstance(response, Result) else None
    apart: tuple[ContentItem, ...] = ()
    if error is not None and error_apart:
        apart = (InputText(f"Script error:\n{bounded_error(error)}"),)
    elif error is not None:
        items = (*items, InputText(f"Script error:\n{error}"))
    tokens = DEFAULT_MAX_OUTPUT_TOKENS if max_output_tokens is None else max_output_tokens
    texts = [item.text for item in items if isinstance(item, InputText)]
    cut = _render_texts(items, texts, tokens) if len(texts) == len(items) else _render_mixed(items, tokens)
    if true_totals and cut != items:
        apart = (*apart, InputText(output_totals(response, OutputTruncation.CLIENT).sentence))
    return (*cut, *apart)


def _render_texts(items: tuple[ContentItem, ...], texts: list[str], tokens: int) -> tuple[ContentItem, ...]:
    joined = ""
    if texts:
        # No newline while the joined text is still empty: leading empty items leave no trace.
        first = next((at for at, text in enumerate(texts) if text), len(texts) - 1)
        joined = "\n".join(texts[first:])
    if byte_count(joined) <= BYTES_PER_TOKEN * tokens:
        return items
    return (InputText(cut_with_header(joined, tokens)),)


def _render_mixed(items: tuple[ContentItem, ...], tokens: int) -> tuple[ContentItem, ...]:
    kept: list[ContentItem] = []
    left, omitted = tokens, {"text": 0, "audio": 0}
    for item in items:
        match item:
            case InputText(text):
                left = _take_text(kept, text, left, omitted)
            case InputImage():
                kept.append(item)
            case InputAudio(url):
                cost = audio_tokens(url)
                if cost <= left:
                    kept.append(item)
                    left -= cost
                else:
                    omitted["audio"] += 1
    return (*kept, *(InputText(f"[omitted {count} {kind} items ...]") for kind, count in omitted.items() if count))


def _take_text(kept: list[ContentItem], text: str, left: int, omitted: dict[str, int]) -> int:
    """Keep what fits of a text; returns what is left of the budget."""
    if not text:
        return left
    cost = tokens_of(byte_count(text))
    if left == 0:
        omitted["text"] += 1
    elif cost <= left:
        kept.append(InputText(text))
        return left - cost
    else:
        kept.append(InputText(cut_middle(text, left)))
    return 0
