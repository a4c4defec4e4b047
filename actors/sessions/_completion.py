"""Hear of the end of a cell without polling: one long observation after the other, as few as the cell allows."""

from collections.abc import Awaitable, Callable
from typing import Final

import attrs
import trio

from actors.sessions._cutting import byte_count
from actors.sessions._responses import (
    ContentItem,
    InputAudio,
    InputImage,
    InputText,
    LiveCell,
    MissingCell,
    RuntimeResponse,
    WaitOutcome,
    Yielded,
)
from actors.sessions._values import WaitRequest

OBSERVATION_MS: Final = 3_600_000
"""How long one observation may last."""

GATHERED_BYTES_MAX: Final = 16 * 1024 * 1024
"""What is gathered before the holder must take it."""

PAUSE_S: Final = 0.1
"""Least time between two observations: a session may be limited to short ones."""


async def follow(
    wait: Callable[[WaitRequest], Awaitable[WaitOutcome]],
    cell_id: str,
    max_output_tokens: int | None,
    on_output: Callable[[Yielded], None] | None,
) -> WaitOutcome:
    """Observe a cell until it ends, or until more was gathered than may be held.

    Args:
        wait: Makes one observation.
        cell_id: Whose.
        max_output_tokens: Of each observation, where the host cuts.
        on_output: Takes what comes before the end; None: it comes with the end.
    """
    request = WaitRequest(cell_id, OBSERVATION_MS, max_output_tokens=max_output_tokens)
    gathered: list[ContentItem] = []
    while True:
        earliest_next_s = trio.current_time() + PAUSE_S
        outcome = await wait(request)
        response = outcome.response
        if on_output is not None and isinstance(response, Yielded):
            on_output(response)
        else:
            gathered += response.content_items
        if not isinstance(response, Yielded) or _size(gathered) > GATHERED_BYTES_MAX:
            return _with_items(outcome, response, gathered)
        await trio.sleep_until(earliest_next_s)


def _with_items(outcome: WaitOutcome, response: RuntimeResponse, items: list[ContentItem]) -> WaitOutcome:
    whole = attrs.evolve(response, content_items=items)
    if isinstance(outcome, LiveCell):
        return LiveCell(whole, buffered_for_ns=outcome.buffered_for_ns)
    return MissingCell(whole)


def _size(items: list[ContentItem]) -> int:
    size = 0
    for item in items:
        match item:
            case InputText(text):
                size += byte_count(text)
            case InputImage(url) | InputAudio(url):
                size += len(url)
    return size
