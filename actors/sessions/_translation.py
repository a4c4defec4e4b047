"""Turn our values into messages of the wire, and the other way round."""

import json
from typing import Final, cast

from actors.sessions._catalogue import Listing
from actors.sessions._errors import ProtocolViolation
from actors.sessions._generations import public_cell_id
from actors.sessions._responses import (
    ContentItem,
    ImageDetail,
    InputAudio,
    InputImage,
    InputText,
    Result,
    RuntimeResponse,
    Terminated,
    Yielded,
)
from actors.sessions._values import (
    ExecuteRequest,
    Json,
    OutputTruncation,
    SessionOptions,
    ToolDefinition,
    ToolKind,
)
from actors.sessions._wire import code_mode_pb2 as wire

_KIND_NUMBERS: Final = {ToolKind.FUNCTION: wire.TOOL_KIND_FUNCTION, ToolKind.FREEFORM: wire.TOOL_KIND_FREEFORM}
_KINDS: Final[dict[int, ToolKind]] = {int(number): kind for kind, number in _KIND_NUMBERS.items()}
_DETAILS: Final[dict[int, ImageDetail]] = {
    int(wire.IMAGE_DETAIL_AUTO): ImageDetail.AUTO,
    int(wire.IMAGE_DETAIL_LOW): ImageDetail.LOW,
    int(wire.IMAGE_DETAIL_HIGH): ImageDetail.HIGH,
    int(wire.IMAGE_DETAIL_ORIGINAL): ImageDetail.ORIGINAL,
}


def open_session_message(options: SessionOptions, mode: OutputTruncation) -> wire.OpenSessionRequest:
    """Ask for a session. All defaults make an empty message, which the oldest hosts take."""
    message = wire.OpenSessionRequest()
    limits = options.cell_execution_limits
    if limits is not None:
        message.cell_execution_limits.SetInParent()
        if limits.max_yield_time_ms is not None:
            message.cell_execution_limits.max_yield_time_ms = limits.max_yield_time_ms
        if limits.max_heap_size_bytes is not None:
            message.cell_execution_limits.max_heap_size_bytes = limits.max_heap_size_bytes
    if mode is OutputTruncation.SERVER:
        message.output_truncation = wire.OUTPUT_TRUNCATION_SERVER
    if options.max_pending_tool_calls is not None:
        message.max_pending_delegate_calls = options.max_pending_tool_calls
    if options.heartbeat_interval_s:
        message.heartbeat_interval_s = options.heartbeat_interval_s
    return message


def execute_message(
    session_id: str, execution_id: str, request: ExecuteRequest, listing: Listing, source: str
) -> wire.ExecuteRequest:
    """Ask for an execution.

    Args:
        session_id: Of the host.
        execution_id: Ours.
        request: What the caller wants.
        listing: How its tools are told.
        source: The script as it is sent.
    """
    return wire.ExecuteRequest(
        session_id=session_id,
        execution_id=execution_id,
        tool_call_id=request.tool_call_id,
        source=source,
        enabled_tools=[_tool_message(tool) for tool in listing.inline],
        catalog_revision=listing.revision,
        yield_time_ms=request.yield_time_ms,
        max_output_tokens=request.max_output_tokens,
    )


def _tool_message(tool: ToolDefinition) -> wire.ToolDefinition:
    return wire.ToolDefinition(
        name=tool.name,
        tool_name=wire.ToolName(name=tool.tool_name.name, namespace=tool.tool_name.namespace),
        description=tool.description,
        kind=_KIND_NUMBERS[tool.kind],
        input_schema_json=None if tool.input_schema is None else json_bytes(tool.input_schema),
        output_schema_json=None if tool.output_schema is None else json_bytes(tool.output_schema),
    )


def json_bytes(value: Json) -> bytes:
    """Write JSON as the wire has it.

    Raises:
        ValueError: It holds NaN or an infinity, or itself.
        TypeError: It holds something that JSON has no form for.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def read_json(data: bytes) -> Json:
    """Read JSON that the host sent.

    Raises:
        ProtocolViolation: It is none.
    """
    try:
        return cast("Json", json.loads(data))
    except (ValueError, RecursionError) as broken:
        raise ProtocolViolation("gRPC code-mode host sent a tool input that is not JSON") from broken


def tool_kind_of(number: int) -> ToolKind | None:
    """Read a kind; None is one nobody knows, which no tool has."""
    return _KINDS.get(number)


def response_of(outcome: wire.ExecutionOutcome, generation: int) -> RuntimeResponse:
    """Read an outcome.

    Raises:
        ProtocolViolation: It says nothing.
    """
    cell_id = public_cell_id(generation, outcome.cell_id)
    items = [_item_of(item) for item in outcome.content_items]
    duration_ns = outcome.code_mode_host_duration_ns
    match outcome.WhichOneof("outcome"):
        case "yielded":
            return Yielded(cell_id=cell_id, content_items=items, host_duration_ns=duration_ns)
        case "terminated":
            return Terminated(cell_id=cell_id, content_items=items, host_duration_ns=duration_ns)
        case "completed":
            completed = outcome.completed
            error_text = completed.error_text if completed.HasField("error_text") else None
            return Result(cell_id=cell_id, content_items=items, error_text=error_text, host_duration_ns=duration_ns)
        case _:
            raise ProtocolViolation("gRPC code-mode host returned an outcome of no known kind")


def _item_of(item: wire.ContentItem) -> ContentItem:
    match item.WhichOneof("item"):
        case "text":
            return InputText(item.text.text)
        case "image":
            return InputImage(item.image.image_url, _DETAILS.get(int(item.image.detail)))
        case "audio":
            return InputAudio(item.audio.audio_url)
        case _:
            raise ProtocolViolation("gRPC code-mode host returned a content item of no known kind")
