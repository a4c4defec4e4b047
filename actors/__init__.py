"""Actors on trio: a mailbox, a reference that survives restarts, questions that always end, pure machines with a task.

Says how messages reach an actor and how its life is told. Does not know what a message means.
"""

from actors._actor import Actor as Actor
from actors._deadlines import ASK_TIMEOUT_S as ASK_TIMEOUT_S
from actors._errors import ActorGone as ActorGone
from actors._errors import ActorsError as ActorsError
from actors._errors import AsksFailed as AsksFailed
from actors._errors import AskTimedOut as AskTimedOut
from actors._errors import InvalidEffect as InvalidEffect
from actors._errors import InvalidOption as InvalidOption
from actors._errors import LeftBehind as LeftBehind
from actors._errors import MailboxDeadlock as MailboxDeadlock
from actors._errors import MailboxFull as MailboxFull
from actors._errors import MonitorNotOpen as MonitorNotOpen
from actors._errors import NotAQuestion as NotAQuestion
from actors._errors import NotAwaited as NotAwaited
from actors._errors import NotInThisRun as NotInThisRun
from actors._errors import NotOnStage as NotOnStage
from actors._errors import Refusal as Refusal
from actors._errors import Undelivered as Undelivered
from actors._errors import WaitsForItself as WaitsForItself
from actors._gather import ask_all as ask_all
from actors._machine import CancelTimer as CancelTimer
from actors._machine import ChangeTimer as ChangeTimer
from actors._machine import Machine as Machine
from actors._machine import NextEvent as NextEvent
from actors._machine import Order as Order
from actors._machine import Postpone as Postpone
from actors._machine import StopActor as StopActor
from actors._machine import Timer as Timer
from actors._machine import Until as Until
from actors._machine_actor import MachineReference as MachineReference
from actors._machine_actor import StateMachineActor as StateMachineActor
from actors._mailbox import Mailbox as Mailbox
from actors._mailbox import OnRestart as OnRestart
from actors._mailbox import WhenFull as WhenFull
from actors._messages import Down as Down
from actors._messages import Ending as Ending
from actors._messages import Question as Question
from actors._monitor import Monitor as Monitor
from actors._monitor import monitor as monitor
from actors._reference import Address as Address
from actors._reference import Reference as Reference
from actors._spawn import spawn as spawn
from actors._spawn import spawn_machine as spawn_machine
from actors._spawn import spawn_machine_nowait as spawn_machine_nowait
from actors._spawn import spawn_nowait as spawn_nowait
from actors._statistics import Statistics as Statistics

__all__ = [
    "ASK_TIMEOUT_S",
    "Actor",
    "ActorGone",
    "ActorsError",
    "Address",
    "AskTimedOut",
    "AsksFailed",
    "CancelTimer",
    "ChangeTimer",
    "Down",
    "Ending",
    "InvalidEffect",
    "InvalidOption",
    "LeftBehind",
    "Machine",
    "MachineReference",
    "Mailbox",
    "MailboxDeadlock",
    "MailboxFull",
    "Monitor",
    "MonitorNotOpen",
    "NextEvent",
    "NotAQuestion",
    "NotAwaited",
    "NotInThisRun",
    "NotOnStage",
    "OnRestart",
    "Order",
    "Postpone",
    "Question",
    "Reference",
    "Refusal",
    "StateMachineActor",
    "Statistics",
    "StopActor",
    "Timer",
    "Undelivered",
    "Until",
    "WaitsForItself",
    "WhenFull",
    "ask_all",
    "monitor",
    "spawn",
    "spawn_machine",
    "spawn_machine_nowait",
    "spawn_nowait",
]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
