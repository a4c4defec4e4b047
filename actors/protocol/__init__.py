"""Messages between a harness and an executor: what they are, how they travel, what order they have.

Pure: knows neither who sends nor who receives. Bytes and times are arguments; faults are `ProtocolFault`.
"""

from actors.protocol._base64 import decode_bytes as decode_bytes
from actors.protocol._base64 import encode_bytes as encode_bytes
from actors.protocol._codec import decode_value as decode_value
from actors.protocol._codec import encode_value as encode_value
from actors.protocol._envelope import FRAME_BYTES_MAX as FRAME_BYTES_MAX
from actors.protocol._envelope import MESSAGE_BYTES_MAX as MESSAGE_BYTES_MAX
from actors.protocol._envelope import ErrorResponse as ErrorResponse
from actors.protocol._envelope import Failure as Failure
from actors.protocol._envelope import Message as Message
from actors.protocol._envelope import Notification as Notification
from actors.protocol._envelope import Request as Request
from actors.protocol._envelope import Response as Response
from actors.protocol._envelope import decode_message as decode_message
from actors.protocol._envelope import encode_message as encode_message
from actors.protocol._environment_messages import Capabilities as Capabilities
from actors.protocol._environment_messages import Empty as Empty
from actors.protocol._environment_messages import EnvironmentInfo as EnvironmentInfo
from actors.protocol._environment_messages import EnvironmentStatus as EnvironmentStatus
from actors.protocol._environment_messages import InitializeParams as InitializeParams
from actors.protocol._environment_messages import InitializeResult as InitializeResult
from actors.protocol._environment_messages import Nothing as Nothing
from actors.protocol._environment_messages import Shell as Shell
from actors.protocol._failures import UNREADABLE_ID as UNREADABLE_ID
from actors.protocol._failures import ErrorCode as ErrorCode
from actors.protocol._failures import SpawnFailureKind as SpawnFailureKind
from actors.protocol._failures import argv_empty as argv_empty
from actors.protocol._failures import cwd_foreign as cwd_foreign
from actors.protocol._failures import initialize_first as initialize_first
from actors.protocol._failures import initialize_once as initialize_once
from actors.protocol._failures import initialized_first as initialized_first
from actors.protocol._failures import internal as internal
from actors.protocol._failures import invalid_params as invalid_params
from actors.protocol._failures import invalid_request as invalid_request
from actors.protocol._failures import method_not_found as method_not_found
from actors.protocol._failures import os_failure_text as os_failure_text
from actors.protocol._failures import process_exists as process_exists
from actors.protocol._failures import session_attached as session_attached
from actors.protocol._failures import spawn_failed as spawn_failed
from actors.protocol._failures import stdin_write_failed as stdin_write_failed
from actors.protocol._failures import unknown_process as unknown_process
from actors.protocol._failures import unknown_session as unknown_session
from actors.protocol._failures import unreadable_message as unreadable_message
from actors.protocol._failures import write_id_empty as write_id_empty
from actors.protocol._faults import EventRefused as EventRefused
from actors.protocol._faults import InvalidParams as InvalidParams
from actors.protocol._faults import MalformedMessage as MalformedMessage
from actors.protocol._faults import MessageTooLarge as MessageTooLarge
from actors.protocol._faults import ProtocolFault as ProtocolFault
from actors.protocol._faults import RecoveryRefused as RecoveryRefused
from actors.protocol._ids import RequestId as RequestId
from actors.protocol._methods import ENVIRONMENT_INFO as ENVIRONMENT_INFO
from actors.protocol._methods import ENVIRONMENT_STATUS as ENVIRONMENT_STATUS
from actors.protocol._methods import INITIALIZE as INITIALIZE
from actors.protocol._methods import INITIALIZED as INITIALIZED
from actors.protocol._methods import METHODS as METHODS
from actors.protocol._methods import NEWS as NEWS
from actors.protocol._methods import PROCESS_CLOSED as PROCESS_CLOSED
from actors.protocol._methods import PROCESS_EXITED as PROCESS_EXITED
from actors.protocol._methods import PROCESS_OUTPUT as PROCESS_OUTPUT
from actors.protocol._methods import PROCESS_READ as PROCESS_READ
from actors.protocol._methods import PROCESS_SIGNAL as PROCESS_SIGNAL
from actors.protocol._methods import PROCESS_START as PROCESS_START
from actors.protocol._methods import PROCESS_TERMINATE as PROCESS_TERMINATE
from actors.protocol._methods import PROCESS_WRITE as PROCESS_WRITE
from actors.protocol._methods import Family as Family
from actors.protocol._methods import Method as Method
from actors.protocol._methods import News as News
from actors.protocol._path_uri import PathUriRefused as PathUriRefused
from actors.protocol._path_uri import path_from_uri as path_from_uri
from actors.protocol._path_uri import uri_from_path as uri_from_path
from actors.protocol._process_messages import EnvironmentInherit as EnvironmentInherit
from actors.protocol._process_messages import EnvironmentPolicy as EnvironmentPolicy
from actors.protocol._process_messages import NetworkProxy as NetworkProxy
from actors.protocol._process_messages import OutputChunk as OutputChunk
from actors.protocol._process_messages import ProcessClosed as ProcessClosed
from actors.protocol._process_messages import ProcessEvent as ProcessEvent
from actors.protocol._process_messages import ProcessExited as ProcessExited
from actors.protocol._process_messages import ProcessOutput as ProcessOutput
from actors.protocol._process_messages import ReadParams as ReadParams
from actors.protocol._process_messages import ReadResult as ReadResult
from actors.protocol._process_messages import Sandbox as Sandbox
from actors.protocol._process_messages import SandboxPermissions as SandboxPermissions
from actors.protocol._process_messages import ShellSnapshot as ShellSnapshot
from actors.protocol._process_messages import Signal as Signal
from actors.protocol._process_messages import SignalParams as SignalParams
from actors.protocol._process_messages import StartParams as StartParams
from actors.protocol._process_messages import StartResult as StartResult
from actors.protocol._process_messages import Stream as Stream
from actors.protocol._process_messages import Survivor as Survivor
from actors.protocol._process_messages import TerminateParams as TerminateParams
from actors.protocol._process_messages import TerminateResult as TerminateResult
from actors.protocol._process_messages import WriteParams as WriteParams
from actors.protocol._process_messages import WriteResult as WriteResult
from actors.protocol._process_messages import WriteStatus as WriteStatus
from actors.protocol._retention import OUTPUT_CHUNK_BYTES as OUTPUT_CHUNK_BYTES
from actors.protocol._retention import RETAINED_BYTES_MAX as RETAINED_BYTES_MAX
from actors.protocol._retention import RETAINED_CHUNKS_MAX as RETAINED_CHUNKS_MAX
from actors.protocol._retention import ProcessLog as ProcessLog
from actors.protocol._retention import RetainedOutput as RetainedOutput
from actors.protocol._sequence import EVENT_BYTES_MAX as EVENT_BYTES_MAX
from actors.protocol._sequence import REORDER_BYTES_MAX as REORDER_BYTES_MAX
from actors.protocol._sequence import REORDER_EVENTS_MAX as REORDER_EVENTS_MAX
from actors.protocol._sequence import EventOrder as EventOrder
from actors.protocol._sequence import OrderedEvent as OrderedEvent
from actors.protocol._sequence import OutputGap as OutputGap
from actors.protocol._text import CappedText as CappedText
from actors.protocol._text import TextDecoder as TextDecoder
from actors.protocol._text import cap_text as cap_text

__all__ = [  # noqa: RUF022 (plain order, as tests/test_doors.py asks)
    "Capabilities",
    "CappedText",
    "ENVIRONMENT_INFO",
    "ENVIRONMENT_STATUS",
    "EVENT_BYTES_MAX",
    "Empty",
    "EnvironmentInfo",
    "EnvironmentInherit",
    "EnvironmentPolicy",
    "EnvironmentStatus",
    "ErrorCode",
    "ErrorResponse",
    "EventOrder",
    "EventRefused",
    "FRAME_BYTES_MAX",
    "Failure",
    "Family",
    "INITIALIZE",
    "INITIALIZED",
    "InitializeParams",
    "InitializeResult",
    "InvalidParams",
    "MESSAGE_BYTES_MAX",
    "METHODS",
    "MalformedMessage",
    "Message",
    "MessageTooLarge",
    "Method",
    "NEWS",
    "NetworkProxy",
    "News",
    "Nothing",
    "Notification",
    "OUTPUT_CHUNK_BYTES",
    "OrderedEvent",
    "OutputChunk",
    "OutputGap",
    "PROCESS_CLOSED",
    "PROCESS_EXITED",
    "PROCESS_OUTPUT",
    "PROCESS_READ",
    "PROCESS_SIGNAL",
    "PROCESS_START",
    "PROCESS_TERMINATE",
    "PROCESS_WRITE",
    "PathUriRefused",
    "ProcessClosed",
    "ProcessEvent",
    "ProcessExited",
    "ProcessLog",
    "ProcessOutput",
    "ProtocolFault",
    "REORDER_BYTES_MAX",
    "REORDER_EVENTS_MAX",
    "RETAINED_BYTES_MAX",
    "RETAINED_CHUNKS_MAX",
    "ReadParams",
    "ReadResult",
    "RecoveryRefused",
    "Request",
    "RequestId",
    "Response",
    "RetainedOutput",
    "Sandbox",
    "SandboxPermissions",
    "Shell",
    "ShellSnapshot",
    "Signal",
    "SignalParams",
    "SpawnFailureKind",
    "StartParams",
    "StartResult",
    "Stream",
    "Survivor",
    "TerminateParams",
    "TerminateResult",
    "TextDecoder",
    "UNREADABLE_ID",
    "WriteParams",
    "WriteResult",
    "WriteStatus",
    "argv_empty",
    "cap_text",
    "cwd_foreign",
    "decode_bytes",
    "decode_message",
    "decode_value",
    "encode_bytes",
    "encode_message",
    "encode_value",
    "initialize_first",
    "initialize_once",
    "initialized_first",
    "internal",
    "invalid_params",
    "invalid_request",
    "method_not_found",
    "os_failure_text",
    "path_from_uri",
    "process_exists",
    "session_attached",
    "spawn_failed",
    "stdin_write_failed",
    "unknown_process",
    "unknown_session",
    "unreadable_message",
    "uri_from_path",
    "write_id_empty",
]

for _name in __all__:
    if hasattr(_thing := globals()[_name], "__qualname__") and _thing.__module__.startswith(f"{__name__}."):
        _thing.__module__ = __name__
