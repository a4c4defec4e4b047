"""What a child can be, and which changes lead from one state to another.

A child has one record (`Entry`) in the plan of its supervisor for as long as the supervisor knows it, over all its
generations. Three states have a task behind them: STARTING, RUNNING and STOPPING. The rule that is not in the table:
at most one generation of a child has a task at any time, so BEGIN is only ever reached from a state whose task has
ended. `CHILD_TRANSITIONS` is also what the drawing in the docs is made from.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from supervision._errors import OutOfTurn
from supervision._exits import Exit
from supervision._specs import AnySpec

__all__ = ["CHILD_TRANSITIONS", "Change", "ChildState"]


class ChildState(enum.Enum):
    """What a child is doing."""

    # Members are compared by identity; the hash that `Enum` writes in Python costs 1 us a start.
    __hash__ = object.__hash__

    WAITING = "waiting"
    """Registered; its first start waits until its group is at rest."""
    STARTING = "starting"
    """Its task runs and has not yet said started."""
    RUNNING = "running"
    """It said started."""
    STOPPING = "stopping"
    """It was asked to stop or killed, and its task has not ended."""
    ENDED = "ended"
    """It ended by itself while its group was busy; the judgement follows."""
    RESTARTING = "restarting"
    """It has no task and will get another attempt."""
    STOPPED = "stopped"
    """It has no task; its spec is kept."""
    GONE = "gone"
    """Its supervisor has forgotten it."""


class Change(enum.Enum):
    """What can happen to a child."""

    __hash__ = object.__hash__

    BEGIN = "begin"
    """A new generation is started."""
    SERVE = "serve"
    """It says started."""
    ASK = "ask"
    """It is asked to stop, or killed."""
    END = "end"
    """Its task has ended, and it is not its turn to be judged."""
    DELAY = "delay"
    """It will be started again, later."""
    REST = "rest"
    """It stays down, its spec is kept."""
    FORGET = "forget"
    """It stays down and nothing is kept."""


_TABLE: Final[dict[ChildState, dict[Change, ChildState]]] = {
    ChildState.WAITING: {
        Change.BEGIN: ChildState.STARTING,
        Change.FORGET: ChildState.GONE,
    },
    ChildState.STARTING: {
        Change.SERVE: ChildState.RUNNING,
        Change.ASK: ChildState.STOPPING,
        Change.DELAY: ChildState.RESTARTING,
        Change.REST: ChildState.STOPPED,
        Change.FORGET: ChildState.GONE,
    },
    ChildState.RUNNING: {
        Change.ASK: ChildState.STOPPING,
        Change.END: ChildState.ENDED,
        Change.BEGIN: ChildState.STARTING,
        Change.DELAY: ChildState.RESTARTING,
        Change.REST: ChildState.STOPPED,
        Change.FORGET: ChildState.GONE,
    },
    ChildState.STOPPING: {
        Change.DELAY: ChildState.RESTARTING,
        Change.REST: ChildState.STOPPED,
        Change.FORGET: ChildState.GONE,
    },
    ChildState.ENDED: {
        Change.DELAY: ChildState.RESTARTING,
        Change.REST: ChildState.STOPPED,
        Change.FORGET: ChildState.GONE,
    },
    ChildState.RESTARTING: {
        Change.BEGIN: ChildState.STARTING,
        Change.REST: ChildState.STOPPED,
        Change.FORGET: ChildState.GONE,
    },
    ChildState.STOPPED: {
        Change.BEGIN: ChildState.STARTING,
        Change.FORGET: ChildState.GONE,
    },
    ChildState.GONE: {},
}

CHILD_TRANSITIONS: Final[Mapping[tuple[ChildState, Change], ChildState]] = MappingProxyType(
    {(before, change): after for before, row in _TABLE.items() for change, after in row.items()}
)
"""Where each change leads; a pair that is not here has no place."""

WITH_TASK: Final = frozenset({ChildState.STARTING, ChildState.RUNNING, ChildState.STOPPING})
"""The states behind which a task runs."""


class Purpose(enum.Enum):
    """Why a start was ordered; it decides what a failure leaves."""

    ADDED = "added"
    """By `start_child`: a failure leaves nothing."""
    BY_HAND = "by hand"
    """By `restart_child`: a failure leaves the child stopped."""
    RESTART = "restart"
    """By the supervisor: a failure is tried again."""


class Entry:
    """One child as the plan knows it.

    Mutable slots, since a pool holds 100,000 of them (`benchmarks/supervision.py`). Only the plan changes it.
    """

    __slots__ = (
        "attempts",
        "counted",
        "downs",
        "generation",
        "handle",
        "held",
        "killed",
        "last_exit",
        "name",
        "purpose",
        "restarts",
        "since_s",
        "spec",
        "state",
        "stuck",
        "timed_out",
        "timer",
        "ups",
    )

    def __init__(self, spec: AnySpec, handle: object = None) -> None:
        self.name: str = spec.name
        self.spec: AnySpec = spec
        # Opaque to the plan: what the waiting half hangs on its own record.
        self.handle: object = handle
        self.timer: object = None
        self.state: ChildState = ChildState.WAITING
        # Raised by each BEGIN, and only there; news of a lower one is late and means nothing.
        self.generation: int = 0
        self.purpose: Purpose = Purpose.ADDED
        # When it last said started; None before the first time.
        self.since_s: float | None = None
        # Restarts in a row without a healthy time between, and how many there were ever.
        self.attempts: int = 0
        self.restarts: int = 0
        self.last_exit: Exit | None = None
        # Of the stop in hand.
        self.killed: bool = False
        self.timed_out: bool = False
        self.stuck: bool = False
        # Of the restart in hand: whether it was counted, and how often it stood back for commands.
        self.counted: bool = False
        self.held: int = 0
        # Commands that wait for it to be up or down; None for nobody, which is most of the time.
        self.ups: list[Ticket] | None = None
        self.downs: list[Ticket] | None = None

    def change(self, change: Change) -> None:
        """Move to where the table leads, or raise and change nothing."""
        after = _TABLE[self.state].get(change)
        if after is None:
            raise OutOfTurn(self.name, self.state.value, change.value)
        self.state = after


class Verdict(enum.Enum):
    """The answer to a command."""

    OK = "ok"
    ALREADY_STARTED = "already started"
    ALREADY_PRESENT = "already present"
    NOT_FOUND = "not found"
    RUNNING = "running"
    RESTARTING = "restarting"
    START_FAILED = "start failed"
    START_ABORTED = "start aborted"
    WILL_NOT_STOP = "will not stop"
    CLOSED = "closed"


class Ticket:
    """One command that waits for its answer; the plan fills it in exactly once."""

    __slots__ = ("entry", "exit", "task", "verdict")

    def __init__(self) -> None:
        self.verdict: Verdict | None = None
        # Of a start that failed: how the child ended.
        self.exit: Exit | None = None
        # The child that was found, if one was.
        self.entry: Entry | None = None
        # Opaque to the plan: who is parked until the answer.
        self.task: object = None
