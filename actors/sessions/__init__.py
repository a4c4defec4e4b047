"""Run code in sessions that survive the loss of the host that serves them, without running anything twice."""

# ruff: noqa: F403, F405  # What the door offers is what `_client` imports; it must be here before only for a type checker.

from typing import TYPE_CHECKING

from actors.sessions import _extra as _extra  # first, to say what to install in the place of a trace from its inside.

if TYPE_CHECKING:
    from actors.sessions._client import *

__all__ = [
    "Call",
    "CellBusy",
    "CellExecutionLimits",
    "ContentItem",
    "Delegate",
    "DelegateFailed",
    "ExecSource",
    "ExecuteRequest",
    "HostCallFailed",
    "HostTimedOut",
    "HostUnavailable",
    "ImageDetail",
    "InputAudio",
    "InputImage",
    "InputText",
    "InvalidArgument",
    "InvalidEndpoint",
    "InvalidRequest",
    "Json",
    "LiveCell",
    "Lost",
    "MissingCell",
    "Notification",
    "OutputModeChanged",
    "OutputTotals",
    "OutputTruncation",
    "ProtocolViolation",
    "ProviderStatistics",
    "ResponseTaken",
    "Result",
    "RuntimeResponse",
    "Session",
    "SessionClosed",
    "SessionOptions",
    "SessionProvider",
    "SessionReset",
    "SessionStopped",
    "SessionsError",
    "StaleGeneration",
    "StartedCell",
    "Terminated",
    "ToolCall",
    "ToolDefinition",
    "ToolFailed",
    "ToolKind",
    "ToolName",
    "UnexpectedOutputMode",
    "WaitNotRetired",
    "WaitOutcome",
    "WaitRequest",
    "Yielded",
    "open_provider",
    "output_totals",
    "read_exec_source",
    "render_response",
    "status_text",
]


def __getattr__(name: str) -> object:
    """Load the client with the first name of it: a host that only serves sessions starts quicker without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from actors.sessions import _client

    for offered in __all__:
        thing = globals()[offered] = getattr(_client, offered)
        if callable(thing) and getattr(thing, "__module__", "").startswith(__name__ + "."):
            thing.__module__ = __name__
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
