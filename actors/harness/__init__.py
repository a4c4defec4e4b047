"""The client end: connect to an executor, call it, run processes in its environment.

`run_harness` is a child for a supervisor, `open_client` a context; both speak plain WebSocket, or through a rendezvous
with a `RelayDialer`. Errors tell by type what became of a call.
"""

from actors.harness._channel import ChannelClosed as ChannelClosed
from actors.harness._channel import Dialer as Dialer
from actors.harness._channel import MessageChannel as MessageChannel
from actors.harness._client import Client as Client
from actors.harness._client_values import ClientStatistics as ClientStatistics
from actors.harness._client_values import ConnectionChange as ConnectionChange
from actors.harness._command import CommandFailed as CommandFailed
from actors.harness._command import CommandTimedOut as CommandTimedOut
from actors.harness._command import CompletedCommand as CompletedCommand
from actors.harness._connection import ConnectionStatistics as ConnectionStatistics
from actors.harness._errors import AnswerLost as AnswerLost
from actors.harness._errors import AnswerUnreadable as AnswerUnreadable
from actors.harness._errors import CallNotSent as CallNotSent
from actors.harness._errors import CallTimedOut as CallTimedOut
from actors.harness._errors import DidNotRun as DidNotRun
from actors.harness._errors import Disconnected as Disconnected
from actors.harness._errors import Failed as Failed
from actors.harness._errors import HarnessError as HarnessError
from actors.harness._errors import InitializeTimedOut as InitializeTimedOut
from actors.harness._errors import InvalidArgument as InvalidArgument
from actors.harness._errors import MayHaveRun as MayHaveRun
from actors.harness._errors import OutputLost as OutputLost
from actors.harness._errors import ProcessFailed as ProcessFailed
from actors.harness._errors import ProcessNeverStarted as ProcessNeverStarted
from actors.harness._errors import ProcessStateUnknown as ProcessStateUnknown
from actors.harness._errors import ProgramNotFound as ProgramNotFound
from actors.harness._errors import ProtocolBroken as ProtocolBroken
from actors.harness._errors import ReaderBusy as ReaderBusy
from actors.harness._errors import RecoveryFailed as RecoveryFailed
from actors.harness._errors import RequestRejected as RequestRejected
from actors.harness._errors import RequestTooLarge as RequestTooLarge
from actors.harness._errors import SessionRetired as SessionRetired
from actors.harness._errors import StdinUnavailable as StdinUnavailable
from actors.harness._errors import TooManyCalls as TooManyCalls
from actors.harness._errors import TransportClosed as TransportClosed
from actors.harness._errors import WebSocketConnectFailed as WebSocketConnectFailed
from actors.harness._errors import WebSocketConnectTimedOut as WebSocketConnectTimedOut
from actors.harness._errors import WorkingFolderNotFound as WorkingFolderNotFound
from actors.harness._file_errors import AccessRefused as AccessRefused
from actors.harness._file_errors import AlreadyExists as AlreadyExists
from actors.harness._file_errors import DirectoryInTheWay as DirectoryInTheWay
from actors.harness._file_errors import DirectoryNotEmpty as DirectoryNotEmpty
from actors.harness._file_errors import FileError as FileError
from actors.harness._file_errors import FileStreamLost as FileStreamLost
from actors.harness._file_errors import FileTooLarge as FileTooLarge
from actors.harness._file_errors import LinkInTheWay as LinkInTheWay
from actors.harness._file_errors import NotADirectory as NotADirectory
from actors.harness._file_errors import NotAFile as NotAFile
from actors.harness._file_errors import NotFound as NotFound
from actors.harness._file_errors import OutsideRoots as OutsideRoots
from actors.harness._file_streams import FileReader as FileReader
from actors.harness._file_streams import FileWriter as FileWriter
from actors.harness._file_values import FileEntry as FileEntry
from actors.harness._file_values import FileKind as FileKind
from actors.harness._file_values import FileStatus as FileStatus
from actors.harness._file_values import Tree as Tree
from actors.harness._file_values import TreeEntry as TreeEntry
from actors.harness._file_values import TreeFault as TreeFault
from actors.harness._files import FilePath as FilePath
from actors.harness._files import Files as Files
from actors.harness._harness import CLIENT_NAME as CLIENT_NAME
from actors.harness._harness import RECOVERY as RECOVERY
from actors.harness._harness import Started as Started
from actors.harness._harness import open_client as open_client
from actors.harness._harness import run_harness as run_harness
from actors.harness._http import Http as Http
from actors.harness._http import HttpHeaders as HttpHeaders
from actors.harness._http import HttpStream as HttpStream
from actors.harness._http_values import FromVariable as FromVariable
from actors.harness._http_values import HttpAnswer as HttpAnswer
from actors.harness._http_values import HttpBodyBroken as HttpBodyBroken
from actors.harness._http_values import HttpRequestFailed as HttpRequestFailed
from actors.harness._http_values import HttpUnavailable as HttpUnavailable
from actors.harness._limits import LIMITS as LIMITS
from actors.harness._limits import HarnessLimits as HarnessLimits
from actors.harness._process import Process as Process
from actors.harness._process import ProcessExit as ProcessExit
from actors.harness._process import ProcessStdin as ProcessStdin
from actors.harness._processes import Processes as Processes
from actors.harness._processes import StartingProcess as StartingProcess
from actors.harness._reading import OutputBytes as OutputBytes
from actors.harness._reading import OutputLines as OutputLines
from actors.harness._reading import OutputPieces as OutputPieces
from actors.harness._reading import OutputText as OutputText
from actors.harness._recovery_policy import RecoveryPolicy as RecoveryPolicy
from actors.harness._recovery_policy import is_worth_retrying as is_worth_retrying
from actors.harness._relay import RELAY_RECOVERY as RELAY_RECOVERY
from actors.harness._relay import NoBundle as NoBundle
from actors.harness._relay import NoBundleYet as NoBundleYet
from actors.harness._relay import RelayChannel as RelayChannel
from actors.harness._relay import RelayDialer as RelayDialer
from actors.harness._websocket import WebSocketChannel as WebSocketChannel
from actors.harness._websocket import WebSocketDialer as WebSocketDialer
from actors.harness._wording import shown_url as shown_url

__all__ = [
    "CLIENT_NAME",
    "LIMITS",
    "RECOVERY",
    "RELAY_RECOVERY",
    "AccessRefused",
    "AlreadyExists",
    "AnswerLost",
    "AnswerUnreadable",
    "CallNotSent",
    "CallTimedOut",
    "ChannelClosed",
    "Client",
    "ClientStatistics",
    "CommandFailed",
    "CommandTimedOut",
    "CompletedCommand",
    "ConnectionChange",
    "ConnectionStatistics",
    "Dialer",
    "DidNotRun",
    "DirectoryInTheWay",
    "DirectoryNotEmpty",
    "Disconnected",
    "Failed",
    "FileEntry",
    "FileError",
    "FileKind",
    "FilePath",
    "FileReader",
    "FileStatus",
    "FileStreamLost",
    "FileTooLarge",
    "FileWriter",
    "Files",
    "FromVariable",
    "HarnessError",
    "HarnessLimits",
    "Http",
    "HttpAnswer",
    "HttpBodyBroken",
    "HttpHeaders",
    "HttpRequestFailed",
    "HttpStream",
    "HttpUnavailable",
    "InitializeTimedOut",
    "InvalidArgument",
    "LinkInTheWay",
    "MayHaveRun",
    "MessageChannel",
    "NoBundle",
    "NoBundleYet",
    "NotADirectory",
    "NotAFile",
    "NotFound",
    "OutputBytes",
    "OutputLines",
    "OutputLost",
    "OutputPieces",
    "OutputText",
    "OutsideRoots",
    "Process",
    "ProcessExit",
    "ProcessFailed",
    "ProcessNeverStarted",
    "ProcessStateUnknown",
    "ProcessStdin",
    "Processes",
    "ProgramNotFound",
    "ProtocolBroken",
    "ReaderBusy",
    "RecoveryFailed",
    "RecoveryPolicy",
    "RelayChannel",
    "RelayDialer",
    "RequestRejected",
    "RequestTooLarge",
    "SessionRetired",
    "Started",
    "StartingProcess",
    "StdinUnavailable",
    "TooManyCalls",
    "TransportClosed",
    "Tree",
    "TreeEntry",
    "TreeFault",
    "WebSocketChannel",
    "WebSocketConnectFailed",
    "WebSocketConnectTimedOut",
    "WebSocketDialer",
    "WorkingFolderNotFound",
    "is_worth_retrying",
    "open_client",
    "run_harness",
    "shown_url",
]

for _name in __all__:
    if hasattr(_thing := globals()[_name], "__qualname__") and _thing.__module__.startswith(f"{__name__}."):
        _thing.__module__ = __name__
