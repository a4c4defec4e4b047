"""What callers give to a code session, as frozen values.

Knows the shapes and their bounds. Does not know the wire, hosts or generations.
"""

import enum
from collections.abc import Iterable
from typing import Final, TypeAlias

import attrs

from actors.sessions._arguments import checked_items, count, count_or_none, flag, of_kind, text, text_or_none

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


def _tools(tools: "Iterable[ToolDefinition]") -> "tuple[ToolDefinition, ...]":
    return checked_items("enabled_tools", tools, ToolDefinition)


class OutputTruncation(enum.Enum):
    """Who cuts long output.

    Attributes:
        CLIENT: The session hands output out untouched; its holder cuts (`render_response`).
        SERVER: The host cuts; what the session hands out is final.
    """

    CLIENT = "client"

    SERVER = "server"


class ToolKind(enum.Enum):
    """How a tool is called.

    Attributes:
        FUNCTION: With one JSON value.
        FREEFORM: With one text.
    """

    FUNCTION = "function"

    FREEFORM = "freeform"


@attrs.frozen(kw_only=True)
class CellExecutionLimits:
    """Bounds of every cell of a session.

    Attributes:
        max_yield_time_ms: Longest observation; 0 yields at once.
        max_heap_size_bytes: Heap of one cell, where the host enforces it.
    """

    max_yield_time_ms: int | None = attrs.field(default=None, validator=count_or_none)

    max_heap_size_bytes: int | None = attrs.field(default=None, validator=count_or_none)


@attrs.frozen(kw_only=True)
class SessionOptions:
    """What a session asks of its host.

    Attributes:
        output_truncation: The mode asked for; the first host's answer is pinned (`Session.output_truncation`).
        cell_execution_limits: None: the host's own.
        max_pending_tool_calls: Tool calls open at once; None: 1,024; hosts cut it at 4,096.
        heartbeat_interval_s: How often an idle host is to say that it is there. Once one does, three missed ones mean
            that it is lost. None: silence means nothing.
        restore_stored_values: Keep a journal of what scripts store, and put it back when a host was lost
            (`SessionReset.restored_keys`). Each script then has more before it in its first line, whose columns shift
            in the texts of errors; a restored session has used its first cell id.
    """

    output_truncation: OutputTruncation = attrs.field(
        default=OutputTruncation.CLIENT, validator=of_kind(OutputTruncation)
    )

    cell_execution_limits: CellExecutionLimits | None = attrs.field(
        default=None, validator=of_kind(CellExecutionLimits, or_none=True)
    )

    max_pending_tool_calls: int | None = attrs.field(default=None, validator=count_or_none)

    heartbeat_interval_s: int | None = attrs.field(default=None, validator=count_or_none)

    restore_stored_values: bool = attrs.field(default=False, validator=flag)


@attrs.frozen
class ToolName:
    """The name a tool call carries.

    Attributes:
        name: 1 to 256 bytes.
        namespace: None, the empty one and `functions` are the same namespace.
    """

    name: str = attrs.field(validator=text)

    namespace: str | None = attrs.field(default=None, validator=text_or_none)

    @property
    def key(self) -> tuple[str, str]:
        """What two spellings of the same tool have in common."""
        return (self.namespace or "functions", self.name)


@attrs.frozen(kw_only=True)
class ToolDefinition:
    """A tool that the script of one execution may call.

    Attributes:
        name: Becomes the name in JavaScript.
        tool_name: What its calls carry.
        description: For whoever writes the script.
        kind: How it is called.
        input_schema: JSON schema of what it takes; None: not said.
        output_schema: JSON schema of what it gives; None: not said.
    """

    name: str = attrs.field(validator=text)

    tool_name: ToolName = attrs.field(validator=of_kind(ToolName))

    description: str = attrs.field(default="", validator=text)

    kind: ToolKind = attrs.field(default=ToolKind.FUNCTION, validator=of_kind(ToolKind))

    input_schema: Json = None

    output_schema: Json = None


@attrs.frozen(kw_only=True)
class ExecuteRequest:
    """A script to run in a cell of its own.

    Attributes:
        tool_call_id: The caller's own id of this call, 1 to 256 bytes; notifications carry it.
        source: An ES module. It puts out what it gives to `text`, `image`, `audio` and `generatedImage`; the value of
            its last expression is nobody's. The guide says what else there is, and what is not.
        enabled_tools: What the script may call.
        yield_time_ms: How long the first observation may take; None: 10,000.
        max_output_tokens: Budget of the first observation, where the host cuts; None: 10,000.
    """

    tool_call_id: str = attrs.field(validator=text)

    source: str = attrs.field(validator=text)

    enabled_tools: tuple[ToolDefinition, ...] = attrs.field(default=(), converter=_tools)

    yield_time_ms: int | None = attrs.field(default=None, validator=count_or_none)

    max_output_tokens: int | None = attrs.field(default=None, validator=count_or_none)


@attrs.frozen
class WaitRequest:
    """A wish to see the next of a cell.

    Attributes:
        cell_id: As the session named it.
        yield_time_ms: How long to wait for the end before whatever there is comes back.
        max_output_tokens: Budget of this observation, where the host cuts; None: 10,000.
    """

    cell_id: str = attrs.field(validator=text)

    yield_time_ms: int = attrs.field(default=DEFAULT_YIELD_TIME_MS, validator=count)

    max_output_tokens: int | None = attrs.field(default=None, kw_only=True, validator=count_or_none)
