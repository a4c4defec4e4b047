"""What callers give to a code session and get from it, as frozen values.

Knows the shapes and their bounds. Does not know the wire, hosts or generations.
"""

import enum
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import attrs

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Any JSON value."""

DEFAULT_YIELD_TIME_MS: Final = 10_000
DEFAULT_MAX_OUTPUT_TOKENS: Final = 10_000
IDENTIFIER_BYTES_MAX: Final = 256


def identifier_fault(field: str, value: str) -> str | None:
    """Say what is wrong with an identifier: it has 1 to 256 bytes of UTF-8."""
    if not value:
        return f"code-mode {field} must not be empty"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return f"code-mode {field} is not valid Unicode"
    return f"code-mode {field} exceeds {IDENTIFIER_BYTES_MAX} bytes" if size > IDENTIFIER_BYTES_MAX else None


def _not_negative(_: object, attribute: "attrs.Attribute[Any]", value: int | None) -> None:
    if value is not None and not 0 <= value < 2**64:
        raise ValueError(f"{attribute.name} is {value}; it must lie between 0 and 2^64-1")


def _tools(tools: "Iterable[ToolDefinition]") -> "tuple[ToolDefinition, ...]":
    return tuple(tools)


def _items(items: "Iterable[ContentItem]") -> "tuple[ContentItem, ...]":
    return tuple(items)


class OutputTruncation(enum.Enum):
    """Who cuts long output."""

    CLIENT = "client"
    """The session hands output out untouched; its holder cuts (`render_response`)."""

    SERVER = "server"
    """The host cuts; what the session hands out is final."""


class ToolKind(enum.Enum):
    """How a tool is called."""

    FUNCTION = "function"
    """With one JSON value."""

    FREEFORM = "freeform"
    """With one text."""


class ImageDetail(enum.Enum):
    """How closely an image is to be looked at."""

    AUTO = "auto"
    LOW = "low"
    HIGH = "high"
    ORIGINAL = "original"


@attrs.frozen(kw_only=True)
class CellExecutionLimits:
    """Bounds of every cell of a session."""

    max_yield_time_ms: int | None = attrs.field(default=None, validator=_not_negative)
    """Longest observation; 0 yields at once."""

    max_heap_size_bytes: int | None = attrs.field(default=None, validator=_not_negative)
    """Heap of one cell, where the host enforces it."""


@attrs.frozen(kw_only=True)
class SessionOptions:
    """What a session asks of its host."""

    output_truncation: OutputTruncation = OutputTruncation.CLIENT
    """The mode asked for; the first host's answer is pinned (`Session.output_truncation`)."""

    cell_execution_limits: CellExecutionLimits | None = None
    """None: the host's own."""

    max_pending_tool_calls: int | None = attrs.field(default=None, validator=_not_negative)
    """Tool calls open at once; None: 1,024; hosts cut it at 4,096."""


@attrs.frozen
class ToolName:
    """The name a tool call carries."""

    name: str
    """1 to 256 bytes."""

    namespace: str | None = None
    """None, the empty one and `functions` are the same namespace."""

    @property
    def key(self) -> tuple[str, str]:
        """What two spellings of the same tool have in common."""
        return (self.namespace or "functions", self.name)


@attrs.frozen(kw_only=True)
class ToolDefinition:
    """A tool that the script of one execution may call."""

    name: str
    """Becomes the name in JavaScript."""

    tool_name: ToolName
    """What its calls carry."""

    description: str = ""
    """For whoever writes the script."""

    kind: ToolKind = ToolKind.FUNCTION
    """How it is called."""

    input_schema: Json = None
    """JSON schema of what it takes; None: not said."""

    output_schema: Json = None
    """JSON schema of what it gives; None: not said."""


@attrs.frozen(kw_only=True)
class ExecuteRequest:
    """A script to run in a cell of its own."""

    tool_call_id: str
    """The caller's own id of this call, 1 to 256 bytes; notifications carry it."""

    source: str
    """An ES module."""

    enabled_tools: tuple[ToolDefinition, ...] = attrs.field(default=(), converter=_tools)
    """What the script may call."""

    yield_time_ms: int | None = attrs.field(default=None, validator=_not_negative)
    """How long the first observation may take; None: 10,000."""

    max_output_tokens: int | None = attrs.field(default=None, validator=_not_negative)
    """Budget of the first observation, where the host cuts; None: 10,000."""


@attrs.frozen
class WaitRequest:
    """A wish to see the next of a cell."""

    cell_id: str
    """As the session named it."""

    yield_time_ms: int = attrs.field(default=DEFAULT_YIELD_TIME_MS, validator=_not_negative)
    """How long to wait for the end before whatever there is comes back."""

    max_output_tokens: int | None = attrs.field(default=None, kw_only=True, validator=_not_negative)
    """Budget of this observation, where the host cuts; None: 10,000."""


@attrs.frozen
class InputText:
    """A piece of text that a script put out."""

    text: str
    """May be empty."""


@attrs.frozen
class InputImage:
    """An image that a script put out."""

    image_url: str
    """A data URL."""

    detail: ImageDetail | None = None
    """None: the host did not say."""


@attrs.frozen
class InputAudio:
    """A clip that a script put out."""

    audio_url: str
    """A data URL."""


ContentItem: TypeAlias = InputText | InputImage | InputAudio


@attrs.frozen(kw_only=True)
class _Response:
    cell_id: str
    """As `wait` and `terminate` take it."""

    content_items: tuple[ContentItem, ...] = attrs.field(default=(), converter=_items)
    """What the script put out since the observation before."""

    host_duration_ns: int = attrs.field(default=0, eq=False)
    """How long the host took, on its own clock; never part of a comparison."""


@attrs.frozen(kw_only=True)
class Yielded(_Response):
    """The observation ended, the cell goes on."""


@attrs.frozen(kw_only=True)
class Terminated(_Response):
    """The cell was terminated."""


@attrs.frozen(kw_only=True)
class Result(_Response):
    """The script ended."""

    error_text: str | None = None
    """None: it succeeded. Even an empty text means that it failed."""


RuntimeResponse: TypeAlias = Yielded | Terminated | Result


@attrs.frozen
class LiveCell:
    """The cell was there."""

    response: RuntimeResponse
    """What was seen of it."""

    buffered_for_ns: int | None = attrs.field(default=None, kw_only=True, eq=False)
    """How long a finished result had lain ready; None: it had not."""


@attrs.frozen
class MissingCell:
    """The cell had ended before, or never was."""

    response: RuntimeResponse
    """A `Result` that says so."""


WaitOutcome: TypeAlias = LiveCell | MissingCell


@attrs.frozen(kw_only=True)
class ToolCall:
    """A tool called by a script."""

    cell_id: str
    """Whose script, as the session names it."""

    runtime_tool_call_id: str
    """The script's own number of the call, as `tool-1`."""

    tool_name: ToolName
    """Which tool, as it was defined."""

    tool_kind: ToolKind
    """How it was called."""

    input: Json = None
    """What it was called with; None also when it was called with nothing (`input_given`)."""

    input_given: bool = True
    """Whether there was an argument."""


@attrs.frozen(kw_only=True)
class Notification:
    """A text that a script sent while it ran."""

    cell_id: str
    """Whose script, as the session names it."""

    tool_call_id: str
    """The id of the execute request it belongs to."""

    text: str
    """What it said."""
