"""Write outcomes as messages."""

from typing import Final

from actors.sessions._wire.code_mode_pb2 import (
    IMAGE_DETAIL_AUTO,
    IMAGE_DETAIL_HIGH,
    IMAGE_DETAIL_LOW,
    IMAGE_DETAIL_ORIGINAL,
    AudioContent,
    ContentItem,
    ExecutionCompleted,
    ExecutionOutcome,
    ExecutionTerminated,
    ExecutionYielded,
    ImageContent,
    ImageDetail,
    TextContent,
)
from actors.sessions.host._items import AudioItem, ImageItem, Item, TextItem
from actors.sessions.host._outputs import CutOutput, Ending, Outcome, WholeOutput

_DETAILS: Final[dict[str, ImageDetail]] = {
    "auto": IMAGE_DETAIL_AUTO,
    "low": IMAGE_DETAIL_LOW,
    "high": IMAGE_DETAIL_HIGH,
    "original": IMAGE_DETAIL_ORIGINAL,
}


def outcome_message(cell_id: str, outcome: Outcome, duration_ns: int) -> ExecutionOutcome:
    """Write an outcome."""
    message = ExecutionOutcome(cell_id=cell_id, code_mode_host_duration_ns=max(0, duration_ns))
    message.content_items.extend(_content(item) for item in outcome.items)
    match outcome.ending:
        case Ending.YIELDED:
            message.yielded.CopyFrom(ExecutionYielded())
        case Ending.TERMINATED:
            message.terminated.CopyFrom(ExecutionTerminated())
        case Ending.COMPLETED:
            message.completed.CopyFrom(ExecutionCompleted(error_text=outcome.error))
    return message


def missing_message(cell_id: str, *, cut_output: bool, tokens: int, duration_ns: int) -> ExecutionOutcome:
    """Write what is said of a cell that is not there."""
    output = CutOutput() if cut_output else WholeOutput()
    outcome = output.outcome(Ending.COMPLETED, f"exec cell {cell_id} not found", tokens)
    return outcome_message(cell_id, outcome, duration_ns)


def _content(item: Item) -> ContentItem:
    match item:
        case TextItem(text):
            return ContentItem(text=TextContent(text=text))
        case ImageItem(image_url, detail):
            return ContentItem(image=ImageContent(image_url=image_url, detail=_DETAILS[detail]))
        case AudioItem(audio_url):
            return ContentItem(audio=AudioContent(audio_url=audio_url))
