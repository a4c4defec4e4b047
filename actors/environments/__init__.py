"""Own the life of environments: registered before they exist, fenced by generation, never waited for in vain."""

from actors.environments._backstage import Connectors as Connectors
from actors.environments._configuration import NoiseSettings as NoiseSettings
from actors.environments._configuration import Snapshot as Snapshot
from actors.environments._connection import CONNECTION_TRANSITIONS as CONNECTION_TRANSITIONS
from actors.environments._connection import ConnectionState as ConnectionState
from actors.environments._connection import Phase as Phase
from actors.environments._environment import Environment as Environment
from actors.environments._environment import EnvironmentProcesses as EnvironmentProcesses
from actors.environments._environment_files import EnvironmentFiles as EnvironmentFiles
from actors.environments._environment_http import EnvironmentHttp as EnvironmentHttp
from actors.environments._errors import AlreadyFailed as AlreadyFailed
from actors.environments._errors import AlreadyReady as AlreadyReady
from actors.environments._errors import AttemptSuperseded as AttemptSuperseded
from actors.environments._errors import ConnectFailed as ConnectFailed
from actors.environments._errors import EnvironmentClosed as EnvironmentClosed
from actors.environments._errors import EnvironmentUnavailable as EnvironmentUnavailable
from actors.environments._errors import InvalidEnvironmentId as InvalidEnvironmentId
from actors.environments._errors import InvalidReadyInfo as InvalidReadyInfo
from actors.environments._errors import ManagerClosed as ManagerClosed
from actors.environments._errors import NotInThisRun as NotInThisRun
from actors.environments._errors import NotSupported as NotSupported
from actors.environments._errors import OutOfPlace as OutOfPlace
from actors.environments._errors import ProtocolError as ProtocolError
from actors.environments._errors import ProvisioningConflict as ProvisioningConflict
from actors.environments._errors import RegistrationInactive as RegistrationInactive
from actors.environments._errors import RegistrationUsed as RegistrationUsed
from actors.environments._errors import RegistryConfigurationError as RegistryConfigurationError
from actors.environments._errors import StaleGeneration as StaleGeneration
from actors.environments._errors import TooManyEnvironments as TooManyEnvironments
from actors.environments._errors import UnknownEnvironment as UnknownEnvironment
from actors.environments._errors import WillNotStop as WillNotStop
from actors.environments._event_stream import EnvironmentEvents as EnvironmentEvents
from actors.environments._events import CompletionRefused as CompletionRefused
from actors.environments._events import ConnectionMoved as ConnectionMoved
from actors.environments._events import EnvironmentEnded as EnvironmentEnded
from actors.environments._events import EnvironmentEvent as EnvironmentEvent
from actors.environments._events import EnvironmentRegistered as EnvironmentRegistered
from actors.environments._events import EnvironmentRemoved as EnvironmentRemoved
from actors.environments._events import EnvironmentSuperseded as EnvironmentSuperseded
from actors.environments._events import EventsMissed as EventsMissed
from actors.environments._events import GateMoved as GateMoved
from actors.environments._events import ReadyInfoReplaced as ReadyInfoReplaced
from actors.environments._from_thread import FromThread as FromThread
from actors.environments._gate import GATE_TRANSITIONS as GATE_TRANSITIONS
from actors.environments._gate import Gate as Gate
from actors.environments._harness_connector import HarnessConnector as HarnessConnector
from actors.environments._ids import LOCAL_ENVIRONMENT_ID as LOCAL_ENVIRONMENT_ID
from actors.environments._ids import MAX_ENVIRONMENT_ID_BYTES as MAX_ENVIRONMENT_ID_BYTES
from actors.environments._ids import REMOTE_ENVIRONMENT_ID as REMOTE_ENVIRONMENT_ID
from actors.environments._lifecycle import Kind as Kind
from actors.environments._local_connector import LocalConnector as LocalConnector
from actors.environments._manager import EnvironmentManager as EnvironmentManager
from actors.environments._manager import ManagerStatistics as ManagerStatistics
from actors.environments._noise_connector import NoiseConnector as NoiseConnector
from actors.environments._opening import open_manager as open_manager
from actors.environments._options import HttpOptions as HttpOptions
from actors.environments._options import RunOptions as RunOptions
from actors.environments._options import StartOptions as StartOptions
from actors.environments._options import WalkRules as WalkRules
from actors.environments._provider import Answer as Answer
from actors.environments._provider import ConnectBundle as ConnectBundle
from actors.environments._provider import ConnectProvider as ConnectProvider
from actors.environments._provider import FixedEndpoint as FixedEndpoint
from actors.environments._provider import PlainEndpoint as PlainEndpoint
from actors.environments._ready_info import MAX_SELECTED_CAPABILITY_ROOTS as MAX_SELECTED_CAPABILITY_ROOTS
from actors.environments._ready_info import ReadyInfo as ReadyInfo
from actors.environments._ready_info import SelectedCapabilityRoot as SelectedCapabilityRoot
from actors.environments._registration import Registration as Registration
from actors.environments._registry_provider import BundleRegistry as BundleRegistry
from actors.environments._registry_provider import RegistryConnectProvider as RegistryConnectProvider
from actors.environments._registry_provider import RegistryRefused as RegistryRefused
from actors.environments._registry_provider import open_registry_provider as open_registry_provider
from actors.environments._retry import AttemptRules as AttemptRules
from actors.environments._retry import is_retryable_answer as is_retryable_answer
from actors.environments._seams import Client as Client
from actors.environments._seams import Connector as Connector
from actors.environments._seams import FileAccess as FileAccess
from actors.environments._seams import HarnessIdentity as HarnessIdentity
from actors.environments._seams import HttpAccess as HttpAccess
from actors.environments._seams import IdentityFactory as IdentityFactory
from actors.environments._seams import LinkReport as LinkReport
from actors.environments._seams import LinkRequest as LinkRequest
from actors.environments._seams import ProcessStarter as ProcessStarter
from actors.environments._status import EnvironmentStatus as EnvironmentStatus
from actors.environments._status import StatusDisconnected as StatusDisconnected
from actors.environments._status import StatusPending as StatusPending
from actors.environments._status import StatusReady as StatusReady
from actors.environments._watch import Change as Change
from actors.environments._watch import Watch as Watch
from actors.environments._why import Reason as Reason
from actors.environments._why import Why as Why

__all__ = [
    "CONNECTION_TRANSITIONS",
    "GATE_TRANSITIONS",
    "LOCAL_ENVIRONMENT_ID",
    "MAX_ENVIRONMENT_ID_BYTES",
    "MAX_SELECTED_CAPABILITY_ROOTS",
    "REMOTE_ENVIRONMENT_ID",
    "AlreadyFailed",
    "AlreadyReady",
    "Answer",
    "AttemptRules",
    "AttemptSuperseded",
    "BundleRegistry",
    "Change",
    "Client",
    "CompletionRefused",
    "ConnectBundle",
    "ConnectFailed",
    "ConnectProvider",
    "ConnectionMoved",
    "ConnectionState",
    "Connector",
    "Connectors",
    "Environment",
    "EnvironmentClosed",
    "EnvironmentEnded",
    "EnvironmentEvent",
    "EnvironmentEvents",
    "EnvironmentFiles",
    "EnvironmentHttp",
    "EnvironmentManager",
    "EnvironmentProcesses",
    "EnvironmentRegistered",
    "EnvironmentRemoved",
    "EnvironmentStatus",
    "EnvironmentSuperseded",
    "EnvironmentUnavailable",
    "EventsMissed",
    "FileAccess",
    "FixedEndpoint",
    "FromThread",
    "Gate",
    "GateMoved",
    "HarnessConnector",
    "HarnessIdentity",
    "HttpAccess",
    "HttpOptions",
    "IdentityFactory",
    "InvalidEnvironmentId",
    "InvalidReadyInfo",
    "Kind",
    "LinkReport",
    "LinkRequest",
    "LocalConnector",
    "ManagerClosed",
    "ManagerStatistics",
    "NoiseConnector",
    "NoiseSettings",
    "NotInThisRun",
    "NotSupported",
    "OutOfPlace",
    "Phase",
    "PlainEndpoint",
    "ProcessStarter",
    "ProtocolError",
    "ProvisioningConflict",
    "ReadyInfo",
    "ReadyInfoReplaced",
    "Reason",
    "Registration",
    "RegistrationInactive",
    "RegistrationUsed",
    "RegistryConfigurationError",
    "RegistryConnectProvider",
    "RegistryRefused",
    "RunOptions",
    "SelectedCapabilityRoot",
    "Snapshot",
    "StaleGeneration",
    "StartOptions",
    "StatusDisconnected",
    "StatusPending",
    "StatusReady",
    "TooManyEnvironments",
    "UnknownEnvironment",
    "WalkRules",
    "Watch",
    "Why",
    "WillNotStop",
    "is_retryable_answer",
    "open_manager",
    "open_registry_provider",
]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
