"""The environment's end: real processes with exact environments, in sessions that outlive their connections.

`serve_executor` serves one over WebSocket and is fit for a supervised child; `open_executor` gives one to be served
over any `MessageChannel`. `serve_remote_executor` registers one and serves it through a rendezvous, end-to-end
encrypted. Imports `actors.protocol`, `actors.relay` and `actors.noise` of ours.
"""

from actors.executor._channel import CloseReason as CloseReason
from actors.executor._channel import MessageChannel as MessageChannel
from actors.executor._errors import ExecutorError as ExecutorError
from actors.executor._errors import ListenAddressInvalid as ListenAddressInvalid
from actors.executor._errors import ListenRefused as ListenRefused
from actors.executor._errors import SettingInvalid as SettingInvalid
from actors.executor._errors import SpawnFailed as SpawnFailed
from actors.executor._events import ConnectionEnded as ConnectionEnded
from actors.executor._events import ConnectionRefused as ConnectionRefused
from actors.executor._events import ExecutorEvent as ExecutorEvent
from actors.executor._events import HttpRequested as HttpRequested
from actors.executor._events import Observer as Observer
from actors.executor._events import PathRefused as PathRefused
from actors.executor._events import ProcessEnded as ProcessEnded
from actors.executor._events import ProcessStarted as ProcessStarted
from actors.executor._events import ProcessWillNotDie as ProcessWillNotDie
from actors.executor._events import SessionAttached as SessionAttached
from actors.executor._events import SessionDetached as SessionDetached
from actors.executor._events import SessionEnded as SessionEnded
from actors.executor._executor import Executor as Executor
from actors.executor._executor import open_executor as open_executor
from actors.executor._file_tree import RootUnusable as RootUnusable
from actors.executor._information import gather_information as gather_information
from actors.executor._launching import InputEnd as InputEnd
from actors.executor._launching import LaunchedProcess as LaunchedProcess
from actors.executor._launching import LaunchSpec as LaunchSpec
from actors.executor._launching import OutputEnd as OutputEnd
from actors.executor._launching import ProcessLauncher as ProcessLauncher
from actors.executor._launching import Sighting as Sighting
from actors.executor._launching import Terminal as Terminal
from actors.executor._limits import Limits as Limits
from actors.executor._posix_launcher import PosixLauncher as PosixLauncher
from actors.executor._posix_launcher import open_posix_launcher as open_posix_launcher
from actors.executor._relay_channel import RelayChannel as RelayChannel
from actors.executor._remote import Registrar as Registrar
from actors.executor._remote import RemoteExecutor as RemoteExecutor
from actors.executor._remote import RemoteStarted as RemoteStarted
from actors.executor._remote import serve_remote_executor as serve_remote_executor
from actors.executor._serving import ExecutorEndpoint as ExecutorEndpoint
from actors.executor._serving import Started as Started
from actors.executor._serving import serve_executor as serve_executor
from actors.executor._statistics import ExecutorStatistics as ExecutorStatistics

__all__ = [
    "CloseReason",
    "ConnectionEnded",
    "ConnectionRefused",
    "Executor",
    "ExecutorEndpoint",
    "ExecutorError",
    "ExecutorEvent",
    "ExecutorStatistics",
    "HttpRequested",
    "InputEnd",
    "LaunchSpec",
    "LaunchedProcess",
    "Limits",
    "ListenAddressInvalid",
    "ListenRefused",
    "MessageChannel",
    "Observer",
    "OutputEnd",
    "PathRefused",
    "PosixLauncher",
    "ProcessEnded",
    "ProcessLauncher",
    "ProcessStarted",
    "ProcessWillNotDie",
    "Registrar",
    "RelayChannel",
    "RemoteExecutor",
    "RemoteStarted",
    "RootUnusable",
    "SessionAttached",
    "SessionDetached",
    "SessionEnded",
    "SettingInvalid",
    "Sighting",
    "SpawnFailed",
    "Started",
    "Terminal",
    "gather_information",
    "open_executor",
    "open_posix_launcher",
    "serve_executor",
    "serve_remote_executor",
]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
