"""Messages between a harness and an executor: what they are, how they travel, what order they have.

Pure: knows neither who sends nor who receives. Bytes and times are arguments; faults are `ProtocolFault`.
"""

from actors.protocol._base64 import decode_bytes as decode_bytes
from actors.protocol._base64 import encode_bytes as encode_bytes
from actors.protocol._capability_messages import CapabilityFile as CapabilityFile
from actors.protocol._capability_messages import DiscoveredPlugin as DiscoveredPlugin
from actors.protocol._capability_messages import DiscoveredRoot as DiscoveredRoot
from actors.protocol._capability_messages import DiscoveredSkill as DiscoveredSkill
from actors.protocol._capability_messages import DiscoverRootsParams as DiscoverRootsParams
from actors.protocol._capability_messages import DiscoverRootsResult as DiscoverRootsResult
from actors.protocol._capability_messages import RootToDiscover as RootToDiscover
from actors.protocol._capability_rules import CAPABILITY_DEPTH_MAX as CAPABILITY_DEPTH_MAX
from actors.protocol._capability_rules import CAPABILITY_FILE_BYTES_MAX as CAPABILITY_FILE_BYTES_MAX
from actors.protocol._capability_rules import CAPABILITY_FOLDERS_MAX as CAPABILITY_FOLDERS_MAX
from actors.protocol._capability_rules import CAPABILITY_ROOT_BYTES_MAX as CAPABILITY_ROOT_BYTES_MAX
from actors.protocol._capability_rules import CAPABILITY_ROOTS_MAX as CAPABILITY_ROOTS_MAX
from actors.protocol._capability_rules import MANIFESTS as MANIFESTS
from actors.protocol._capability_rules import SKILL_FILE as SKILL_FILE
from actors.protocol._capability_rules import SKILL_METADATA as SKILL_METADATA
from actors.protocol._capability_rules import ManifestPaths as ManifestPaths
from actors.protocol._capability_rules import capability_roots_too_many as capability_roots_too_many
from actors.protocol._capability_rules import file_no_text as file_no_text
from actors.protocol._capability_rules import file_over_limit as file_over_limit
from actors.protocol._capability_rules import manifest_paths as manifest_paths
from actors.protocol._capability_rules import root_no_folder as root_no_folder
from actors.protocol._capability_rules import root_over_limit as root_over_limit
from actors.protocol._capability_rules import root_uninspectable as root_uninspectable
from actors.protocol._capability_rules import scan_over_limit as scan_over_limit
from actors.protocol._capability_rules import sorted_by_path as sorted_by_path
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
from actors.protocol._file_failures import BLOCK_BYTES_MAX as BLOCK_BYTES_MAX
from actors.protocol._file_failures import FILE_BYTES_MAX as FILE_BYTES_MAX
from actors.protocol._file_failures import FILE_HANDLES_MAX as FILE_HANDLES_MAX
from actors.protocol._file_failures import FileFailureKind as FileFailureKind
from actors.protocol._file_failures import block_length_refused as block_length_refused
from actors.protocol._file_failures import copy_into_itself as copy_into_itself
from actors.protocol._file_failures import copy_needs_recursive as copy_needs_recursive
from actors.protocol._file_failures import copy_special as copy_special
from actors.protocol._file_failures import file_answer_too_large as file_answer_too_large
from actors.protocol._file_failures import file_failure_kind as file_failure_kind
from actors.protocol._file_failures import file_handle_is_unknown as file_handle_is_unknown
from actors.protocol._file_failures import file_os_failure as file_os_failure
from actors.protocol._file_failures import file_too_large as file_too_large
from actors.protocol._file_failures import handle_exists as handle_exists
from actors.protocol._file_failures import handle_unknown as handle_unknown
from actors.protocol._file_failures import handles_full as handles_full
from actors.protocol._file_failures import not_a_file as not_a_file
from actors.protocol._file_failures import outside_roots as outside_roots
from actors.protocol._file_failures import path_foreign as path_foreign
from actors.protocol._file_failures import path_holds_link as path_holds_link
from actors.protocol._file_failures import path_outside_roots as path_outside_roots
from actors.protocol._file_failures import removal_unsupported as removal_unsupported
from actors.protocol._file_failures import root_not_removed as root_not_removed
from actors.protocol._file_failures import sandbox_unconfigured as sandbox_unconfigured
from actors.protocol._file_failures import walk_limits_zero as walk_limits_zero
from actors.protocol._file_failures import write_needs_base64 as write_needs_base64
from actors.protocol._file_messages import CanonicalizeParams as CanonicalizeParams
from actors.protocol._file_messages import CanonicalizeResult as CanonicalizeResult
from actors.protocol._file_messages import CopyParams as CopyParams
from actors.protocol._file_messages import CreateDirectoryParams as CreateDirectoryParams
from actors.protocol._file_messages import DirectoryEntry as DirectoryEntry
from actors.protocol._file_messages import FileMetadata as FileMetadata
from actors.protocol._file_messages import GetMetadataParams as GetMetadataParams
from actors.protocol._file_messages import LeftOut as LeftOut
from actors.protocol._file_messages import LeftOutKind as LeftOutKind
from actors.protocol._file_messages import ReadDirectoryParams as ReadDirectoryParams
from actors.protocol._file_messages import ReadDirectoryResult as ReadDirectoryResult
from actors.protocol._file_messages import ReadFileParams as ReadFileParams
from actors.protocol._file_messages import ReadFileResult as ReadFileResult
from actors.protocol._file_messages import RemoveParams as RemoveParams
from actors.protocol._file_messages import WalkEntry as WalkEntry
from actors.protocol._file_messages import WalkError as WalkError
from actors.protocol._file_messages import WalkKind as WalkKind
from actors.protocol._file_messages import WalkOptions as WalkOptions
from actors.protocol._file_messages import WalkParams as WalkParams
from actors.protocol._file_messages import WalkResult as WalkResult
from actors.protocol._file_messages import WriteFileParams as WriteFileParams
from actors.protocol._file_stream_messages import CloseParams as CloseParams
from actors.protocol._file_stream_messages import CloseResult as CloseResult
from actors.protocol._file_stream_messages import MissingChanged as MissingChanged
from actors.protocol._file_stream_messages import OpenMode as OpenMode
from actors.protocol._file_stream_messages import OpenParams as OpenParams
from actors.protocol._file_stream_messages import OpenResult as OpenResult
from actors.protocol._file_stream_messages import ReadBlockParams as ReadBlockParams
from actors.protocol._file_stream_messages import ReadBlockResult as ReadBlockResult
from actors.protocol._file_stream_messages import WatchMissingParams as WatchMissingParams
from actors.protocol._file_stream_messages import WatchMissingResult as WatchMissingResult
from actors.protocol._file_stream_messages import WriteBlockParams as WriteBlockParams
from actors.protocol._http_decoding import BodyDecoder as BodyDecoder
from actors.protocol._http_decoding import BodyUndecodable as BodyUndecodable
from actors.protocol._http_decoding import GzipBody as GzipBody
from actors.protocol._http_decoding import PlainBody as PlainBody
from actors.protocol._http_decoding import ZstdBody as ZstdBody
from actors.protocol._http_failures import BODY_BROKEN as BODY_BROKEN
from actors.protocol._http_failures import HTTP_BODY_BYTES_MAX as HTTP_BODY_BYTES_MAX
from actors.protocol._http_failures import HttpFailureKind as HttpFailureKind
from actors.protocol._http_failures import check_http_header as check_http_header
from actors.protocol._http_failures import check_http_method as check_http_method
from actors.protocol._http_failures import check_http_url as check_http_url
from actors.protocol._http_failures import http_body_failed as http_body_failed
from actors.protocol._http_failures import http_body_too_large as http_body_too_large
from actors.protocol._http_failures import http_cancelled as http_cancelled
from actors.protocol._http_failures import http_send_failed as http_send_failed
from actors.protocol._http_failures import http_stream_active as http_stream_active
from actors.protocol._http_failures import http_streams_full as http_streams_full
from actors.protocol._http_failures import http_too_many_redirects as http_too_many_redirects
from actors.protocol._http_failures import http_variable_missing as http_variable_missing
from actors.protocol._http_messages import HttpBodyDelta as HttpBodyDelta
from actors.protocol._http_messages import HttpCancelParams as HttpCancelParams
from actors.protocol._http_messages import HttpMoreParams as HttpMoreParams
from actors.protocol._http_messages import HttpRequestHeader as HttpRequestHeader
from actors.protocol._http_messages import HttpRequestParams as HttpRequestParams
from actors.protocol._http_messages import HttpResponse as HttpResponse
from actors.protocol._http_messages import HttpResponseHeader as HttpResponseHeader
from actors.protocol._http_messages import RedirectPolicy as RedirectPolicy
from actors.protocol._ids import RequestId as RequestId
from actors.protocol._methods import CAPABILITY_ROOTS_DISCOVER as CAPABILITY_ROOTS_DISCOVER
from actors.protocol._methods import ENVIRONMENT_INFO as ENVIRONMENT_INFO
from actors.protocol._methods import ENVIRONMENT_STATUS as ENVIRONMENT_STATUS
from actors.protocol._methods import FS_CANONICALIZE as FS_CANONICALIZE
from actors.protocol._methods import FS_CLOSE as FS_CLOSE
from actors.protocol._methods import FS_COPY as FS_COPY
from actors.protocol._methods import FS_CREATE_DIRECTORY as FS_CREATE_DIRECTORY
from actors.protocol._methods import FS_GET_METADATA as FS_GET_METADATA
from actors.protocol._methods import FS_MISSING_CHANGED as FS_MISSING_CHANGED
from actors.protocol._methods import FS_OPEN as FS_OPEN
from actors.protocol._methods import FS_READ_BLOCK as FS_READ_BLOCK
from actors.protocol._methods import FS_READ_DIRECTORY as FS_READ_DIRECTORY
from actors.protocol._methods import FS_READ_FILE as FS_READ_FILE
from actors.protocol._methods import FS_REMOVE as FS_REMOVE
from actors.protocol._methods import FS_WALK as FS_WALK
from actors.protocol._methods import FS_WATCH_MISSING as FS_WATCH_MISSING
from actors.protocol._methods import FS_WRITE_BLOCK as FS_WRITE_BLOCK
from actors.protocol._methods import FS_WRITE_FILE as FS_WRITE_FILE
from actors.protocol._methods import HTTP_BODY_DELTA as HTTP_BODY_DELTA
from actors.protocol._methods import HTTP_CANCEL as HTTP_CANCEL
from actors.protocol._methods import HTTP_MORE as HTTP_MORE
from actors.protocol._methods import HTTP_REQUEST as HTTP_REQUEST
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
from actors.protocol._process_events import ProcessClosed as ProcessClosed
from actors.protocol._process_events import ProcessEvent as ProcessEvent
from actors.protocol._process_events import ProcessExited as ProcessExited
from actors.protocol._process_events import ProcessOutput as ProcessOutput
from actors.protocol._process_events import Survivor as Survivor
from actors.protocol._process_messages import EnvironmentInherit as EnvironmentInherit
from actors.protocol._process_messages import EnvironmentPolicy as EnvironmentPolicy
from actors.protocol._process_messages import NetworkProxy as NetworkProxy
from actors.protocol._process_messages import OutputChunk as OutputChunk
from actors.protocol._process_messages import ReadParams as ReadParams
from actors.protocol._process_messages import ReadResult as ReadResult
from actors.protocol._process_messages import ShellSnapshot as ShellSnapshot
from actors.protocol._process_messages import Signal as Signal
from actors.protocol._process_messages import SignalParams as SignalParams
from actors.protocol._process_messages import StartParams as StartParams
from actors.protocol._process_messages import StartResult as StartResult
from actors.protocol._process_messages import Stream as Stream
from actors.protocol._process_messages import TerminateParams as TerminateParams
from actors.protocol._process_messages import TerminateResult as TerminateResult
from actors.protocol._process_messages import WriteParams as WriteParams
from actors.protocol._process_messages import WriteResult as WriteResult
from actors.protocol._process_messages import WriteStatus as WriteStatus
from actors.protocol._retention import RETAINED_BYTES_MAX as RETAINED_BYTES_MAX
from actors.protocol._retention import RETAINED_CHUNKS_MAX as RETAINED_CHUNKS_MAX
from actors.protocol._retention import ProcessLog as ProcessLog
from actors.protocol._retention import RetainedOutput as RetainedOutput
from actors.protocol._sandbox_messages import Sandbox as Sandbox
from actors.protocol._sandbox_messages import SandboxFileAccess as SandboxFileAccess
from actors.protocol._sandbox_messages import SandboxFiles as SandboxFiles
from actors.protocol._sandbox_messages import SandboxNetwork as SandboxNetwork
from actors.protocol._sandbox_messages import SandboxPermissions as SandboxPermissions
from actors.protocol._sandbox_messages import SandboxType as SandboxType
from actors.protocol._sequence import EVENT_BYTES_MAX as EVENT_BYTES_MAX
from actors.protocol._sequence import REORDER_BYTES_MAX as REORDER_BYTES_MAX
from actors.protocol._sequence import REORDER_EVENTS_MAX as REORDER_EVENTS_MAX
from actors.protocol._sequence import EventOrder as EventOrder
from actors.protocol._sequence import OrderedEvent as OrderedEvent
from actors.protocol._sequence import OutputGap as OutputGap
from actors.protocol._text import CappedText as CappedText
from actors.protocol._text import TextDecoder as TextDecoder
from actors.protocol._text import cap_text as cap_text

__all__ = [
    "BLOCK_BYTES_MAX",
    "BODY_BROKEN",
    "CAPABILITY_DEPTH_MAX",
    "CAPABILITY_FILE_BYTES_MAX",
    "CAPABILITY_FOLDERS_MAX",
    "CAPABILITY_ROOTS_DISCOVER",
    "CAPABILITY_ROOTS_MAX",
    "CAPABILITY_ROOT_BYTES_MAX",
    "ENVIRONMENT_INFO",
    "ENVIRONMENT_STATUS",
    "EVENT_BYTES_MAX",
    "FILE_BYTES_MAX",
    "FILE_HANDLES_MAX",
    "FRAME_BYTES_MAX",
    "FS_CANONICALIZE",
    "FS_CLOSE",
    "FS_COPY",
    "FS_CREATE_DIRECTORY",
    "FS_GET_METADATA",
    "FS_MISSING_CHANGED",
    "FS_OPEN",
    "FS_READ_BLOCK",
    "FS_READ_DIRECTORY",
    "FS_READ_FILE",
    "FS_REMOVE",
    "FS_WALK",
    "FS_WATCH_MISSING",
    "FS_WRITE_BLOCK",
    "FS_WRITE_FILE",
    "HTTP_BODY_BYTES_MAX",
    "HTTP_BODY_DELTA",
    "HTTP_CANCEL",
    "HTTP_MORE",
    "HTTP_REQUEST",
    "INITIALIZE",
    "INITIALIZED",
    "MANIFESTS",
    "MESSAGE_BYTES_MAX",
    "METHODS",
    "NEWS",
    "PROCESS_CLOSED",
    "PROCESS_EXITED",
    "PROCESS_OUTPUT",
    "PROCESS_READ",
    "PROCESS_SIGNAL",
    "PROCESS_START",
    "PROCESS_TERMINATE",
    "PROCESS_WRITE",
    "REORDER_BYTES_MAX",
    "REORDER_EVENTS_MAX",
    "RETAINED_BYTES_MAX",
    "RETAINED_CHUNKS_MAX",
    "SKILL_FILE",
    "SKILL_METADATA",
    "UNREADABLE_ID",
    "BodyDecoder",
    "BodyUndecodable",
    "CanonicalizeParams",
    "CanonicalizeResult",
    "Capabilities",
    "CapabilityFile",
    "CappedText",
    "CloseParams",
    "CloseResult",
    "CopyParams",
    "CreateDirectoryParams",
    "DirectoryEntry",
    "DiscoverRootsParams",
    "DiscoverRootsResult",
    "DiscoveredPlugin",
    "DiscoveredRoot",
    "DiscoveredSkill",
    "Empty",
    "EnvironmentInfo",
    "EnvironmentInherit",
    "EnvironmentPolicy",
    "EnvironmentStatus",
    "ErrorCode",
    "ErrorResponse",
    "EventOrder",
    "EventRefused",
    "Failure",
    "Family",
    "FileFailureKind",
    "FileMetadata",
    "GetMetadataParams",
    "GzipBody",
    "HttpBodyDelta",
    "HttpCancelParams",
    "HttpFailureKind",
    "HttpMoreParams",
    "HttpRequestHeader",
    "HttpRequestParams",
    "HttpResponse",
    "HttpResponseHeader",
    "InitializeParams",
    "InitializeResult",
    "InvalidParams",
    "LeftOut",
    "LeftOutKind",
    "MalformedMessage",
    "ManifestPaths",
    "Message",
    "MessageTooLarge",
    "Method",
    "MissingChanged",
    "NetworkProxy",
    "News",
    "Nothing",
    "Notification",
    "OpenMode",
    "OpenParams",
    "OpenResult",
    "OrderedEvent",
    "OutputChunk",
    "OutputGap",
    "PathUriRefused",
    "PlainBody",
    "ProcessClosed",
    "ProcessEvent",
    "ProcessExited",
    "ProcessLog",
    "ProcessOutput",
    "ProtocolFault",
    "ReadBlockParams",
    "ReadBlockResult",
    "ReadDirectoryParams",
    "ReadDirectoryResult",
    "ReadFileParams",
    "ReadFileResult",
    "ReadParams",
    "ReadResult",
    "RecoveryRefused",
    "RedirectPolicy",
    "RemoveParams",
    "Request",
    "RequestId",
    "Response",
    "RetainedOutput",
    "RootToDiscover",
    "Sandbox",
    "SandboxFileAccess",
    "SandboxFiles",
    "SandboxNetwork",
    "SandboxPermissions",
    "SandboxType",
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
    "WalkEntry",
    "WalkError",
    "WalkKind",
    "WalkOptions",
    "WalkParams",
    "WalkResult",
    "WatchMissingParams",
    "WatchMissingResult",
    "WriteBlockParams",
    "WriteFileParams",
    "WriteParams",
    "WriteResult",
    "WriteStatus",
    "ZstdBody",
    "argv_empty",
    "block_length_refused",
    "cap_text",
    "capability_roots_too_many",
    "check_http_header",
    "check_http_method",
    "check_http_url",
    "copy_into_itself",
    "copy_needs_recursive",
    "copy_special",
    "cwd_foreign",
    "decode_bytes",
    "decode_message",
    "decode_value",
    "encode_bytes",
    "encode_message",
    "encode_value",
    "file_answer_too_large",
    "file_failure_kind",
    "file_handle_is_unknown",
    "file_no_text",
    "file_os_failure",
    "file_over_limit",
    "file_too_large",
    "handle_exists",
    "handle_unknown",
    "handles_full",
    "http_body_failed",
    "http_body_too_large",
    "http_cancelled",
    "http_send_failed",
    "http_stream_active",
    "http_streams_full",
    "http_too_many_redirects",
    "http_variable_missing",
    "initialize_first",
    "initialize_once",
    "initialized_first",
    "internal",
    "invalid_params",
    "invalid_request",
    "manifest_paths",
    "method_not_found",
    "not_a_file",
    "os_failure_text",
    "outside_roots",
    "path_foreign",
    "path_from_uri",
    "path_holds_link",
    "path_outside_roots",
    "process_exists",
    "removal_unsupported",
    "root_no_folder",
    "root_not_removed",
    "root_over_limit",
    "root_uninspectable",
    "sandbox_unconfigured",
    "scan_over_limit",
    "session_attached",
    "sorted_by_path",
    "spawn_failed",
    "stdin_write_failed",
    "unknown_process",
    "unknown_session",
    "unreadable_message",
    "uri_from_path",
    "walk_limits_zero",
    "write_id_empty",
    "write_needs_base64",
]

for _name in __all__:
    if hasattr(_thing := globals()[_name], "__qualname__") and _thing.__module__.startswith(f"{__name__}."):
        _thing.__module__ = __name__
