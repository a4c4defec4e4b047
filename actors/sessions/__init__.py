"""Run code in sessions that survive the loss of the host that serves them, without running anything twice."""

from actors.sessions import _extra as _extra  # first, to say what to install in the place of a trace from its inside.
from actors.sessions._cell import StartedCell as StartedCell
from actors.sessions._delegate import Delegate as Delegate
from actors.sessions._delegate import DelegateFailed as DelegateFailed
from actors.sessions._errors import CellBusy as CellBusy
from actors.sessions._errors import HostCallFailed as HostCallFailed
from actors.sessions._errors import HostTimedOut as HostTimedOut
from actors.sessions._errors import HostUnavailable as HostUnavailable
from actors.sessions._errors import InvalidArgument as InvalidArgument
from actors.sessions._errors import InvalidEndpoint as InvalidEndpoint
from actors.sessions._errors import InvalidRequest as InvalidRequest
from actors.sessions._errors import Lost as Lost
from actors.sessions._errors import OutputModeChanged as OutputModeChanged
from actors.sessions._errors import ProtocolViolation as ProtocolViolation
from actors.sessions._errors import ResponseTaken as ResponseTaken
from actors.sessions._errors import SessionClosed as SessionClosed
from actors.sessions._errors import SessionReset as SessionReset
from actors.sessions._errors import SessionsError as SessionsError
from actors.sessions._errors import SessionStopped as SessionStopped
from actors.sessions._errors import StaleGeneration as StaleGeneration
from actors.sessions._errors import ToolFailed as ToolFailed
from actors.sessions._errors import UnexpectedOutputMode as UnexpectedOutputMode
from actors.sessions._errors import WaitNotRetired as WaitNotRetired
from actors.sessions._pragma import ExecSource as ExecSource
from actors.sessions._pragma import read_exec_source as read_exec_source
from actors.sessions._promise import Call as Call
from actors.sessions._provider import ProviderStatistics as ProviderStatistics
from actors.sessions._provider import SessionProvider as SessionProvider
from actors.sessions._provider import open_provider as open_provider
from actors.sessions._rendering import render_response as render_response
from actors.sessions._session import Session as Session
from actors.sessions._totals import OutputTotals as OutputTotals
from actors.sessions._totals import output_totals as output_totals
from actors.sessions._values import CellExecutionLimits as CellExecutionLimits
from actors.sessions._values import ContentItem as ContentItem
from actors.sessions._values import ExecuteRequest as ExecuteRequest
from actors.sessions._values import ImageDetail as ImageDetail
from actors.sessions._values import InputAudio as InputAudio
from actors.sessions._values import InputImage as InputImage
from actors.sessions._values import InputText as InputText
from actors.sessions._values import Json as Json
from actors.sessions._values import LiveCell as LiveCell
from actors.sessions._values import MissingCell as MissingCell
from actors.sessions._values import Notification as Notification
from actors.sessions._values import OutputTruncation as OutputTruncation
from actors.sessions._values import Result as Result
from actors.sessions._values import RuntimeResponse as RuntimeResponse
from actors.sessions._values import SessionOptions as SessionOptions
from actors.sessions._values import Terminated as Terminated
from actors.sessions._values import ToolCall as ToolCall
from actors.sessions._values import ToolDefinition as ToolDefinition
from actors.sessions._values import ToolKind as ToolKind
from actors.sessions._values import ToolName as ToolName
from actors.sessions._values import WaitOutcome as WaitOutcome
from actors.sessions._values import WaitRequest as WaitRequest
from actors.sessions._values import Yielded as Yielded
from actors.sessions._wording import status_text as status_text

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

for _name in __all__:
    if callable(_object := globals()[_name]) and getattr(_object, "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
