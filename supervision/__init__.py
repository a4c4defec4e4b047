"""Keep async functions alive: children, strategies, restart intensity, events, a tree to look at."""

from supervision._backoff import Backoff as Backoff
from supervision._child import Child as Child
from supervision._child import ChildStatus as ChildStatus
from supervision._errors import AlreadyPresent as AlreadyPresent
from supervision._errors import AlreadyStarted as AlreadyStarted
from supervision._errors import ChildIsRestarting as ChildIsRestarting
from supervision._errors import ChildIsRunning as ChildIsRunning
from supervision._errors import ChildNotFound as ChildNotFound
from supervision._errors import ChildWillNotStop as ChildWillNotStop
from supervision._errors import Death as Death
from supervision._errors import EventsNotOpen as EventsNotOpen
from supervision._errors import InvalidSpec as InvalidSpec
from supervision._errors import NotInThisRun as NotInThisRun
from supervision._errors import RestartIntensityExceeded as RestartIntensityExceeded
from supervision._errors import ReturnedBeforeStarted as ReturnedBeforeStarted
from supervision._errors import Shutdown as Shutdown
from supervision._errors import StartAborted as StartAborted
from supervision._errors import StartFailed as StartFailed
from supervision._errors import StartTimedOut as StartTimedOut
from supervision._errors import SupervisionError as SupervisionError
from supervision._errors import SupervisorClosed as SupervisorClosed
from supervision._events import ChildAsked as ChildAsked
from supervision._events import ChildExited as ChildExited
from supervision._events import ChildKilled as ChildKilled
from supervision._events import ChildRestarting as ChildRestarting
from supervision._events import ChildStarted as ChildStarted
from supervision._events import ChildStartFailed as ChildStartFailed
from supervision._events import ChildStuck as ChildStuck
from supervision._events import Event as Event
from supervision._events import EventsDropped as EventsDropped
from supervision._events import SupervisorStopped as SupervisorStopped
from supervision._events import SupervisorStopping as SupervisorStopping
from supervision._exits import Exit as Exit
from supervision._exits import ExitKind as ExitKind
from supervision._hub import Events as Events
from supervision._hub import EventsStatistics as EventsStatistics
from supervision._intensity import RestartIntensity as RestartIntensity
from supervision._root import open_root as open_root
from supervision._specs import AutoShutdown as AutoShutdown
from supervision._specs import ChildSpec as ChildSpec
from supervision._specs import PoolSpec as PoolSpec
from supervision._specs import Restart as Restart
from supervision._specs import Strategy as Strategy
from supervision._specs import SupervisorSpec as SupervisorSpec
from supervision._states import CHILD_TRANSITIONS as CHILD_TRANSITIONS
from supervision._states import Change as Change
from supervision._states import ChildState as ChildState
from supervision._supervisor import Pool as Pool
from supervision._supervisor import Supervisor as Supervisor
from supervision._supervisor import SupervisorStatistics as SupervisorStatistics
from supervision._tree import ChildNode as ChildNode
from supervision._tree import SupervisorNode as SupervisorNode

__all__ = [
    "CHILD_TRANSITIONS",
    "AlreadyPresent",
    "AlreadyStarted",
    "AutoShutdown",
    "Backoff",
    "Change",
    "Child",
    "ChildAsked",
    "ChildExited",
    "ChildIsRestarting",
    "ChildIsRunning",
    "ChildKilled",
    "ChildNode",
    "ChildNotFound",
    "ChildRestarting",
    "ChildSpec",
    "ChildStartFailed",
    "ChildStarted",
    "ChildState",
    "ChildStatus",
    "ChildStuck",
    "ChildWillNotStop",
    "Death",
    "Event",
    "Events",
    "EventsDropped",
    "EventsNotOpen",
    "EventsStatistics",
    "Exit",
    "ExitKind",
    "InvalidSpec",
    "NotInThisRun",
    "Pool",
    "PoolSpec",
    "Restart",
    "RestartIntensity",
    "RestartIntensityExceeded",
    "ReturnedBeforeStarted",
    "Shutdown",
    "StartAborted",
    "StartFailed",
    "StartTimedOut",
    "Strategy",
    "SupervisionError",
    "Supervisor",
    "SupervisorClosed",
    "SupervisorNode",
    "SupervisorSpec",
    "SupervisorStatistics",
    "SupervisorStopped",
    "SupervisorStopping",
    "open_root",
]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
