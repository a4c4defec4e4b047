"""What a child can be, and which changes lead from one state to another.

A child has one record (`Entry`) in the plan of its supervisor for as long as the supervisor knows it, over all its
generations. Three states have a task behind them: STARTING, RUNNING and STOPPING. The rule that is not in the table:
at most one generation of a child has a task at any time, so BEGIN is only ever reached from a state whose task has
ended. `CHILD_TRANSITIONS` is also what the drawing in the docs is made from.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from supervision._errors import OutOfTurn
from supervision._exits import Exit
from supervision._specs import AnySpec

__all__ = ["CHILD_TRANSITIONS", "Change", "ChildState"]


class ChildState(enum.Enum):
    """What a child is doing.

    Attributes:
        WAITING: Registered; its first start waits until its group is at rest.
        STARTING: Its task runs and has not yet said started.
        RUNNING: It said started.
        STOPPING: It was asked to stop or killed, and its task has not ended.
        ENDED: It ended by itself while its group was busy; the judgement follows.
        RESTARTING: It has no task and will get another attempt.
        STOPPED: It has no task; its spec is kept.
        GONE: Its supervisor has forgotten it.
    """

    # Members are compared by identity; the hash that `Enum` writes in Python costs 1 us a start.
    if not TYPE_CHECKING:  # To whom it is the same.
        __hash__ = object.__hash__

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"
    RESTARTING = "restarting"
    STOPPED = "stopped"
    GONE = "gone"


class Change(enum.Enum):
    """What can happen to a child.

    Attributes:
        BEGIN: A new generation is started.
        SERVE: It says started.
        ASK: It is asked to stop, or killed.
        END: Its task has ended, and it is not its turn to be judged.
        DELAY: It will be started again, later.
        REST: It stays down, its spec is kept.
        FORGET: It stays down and nothing is kept.
    """

    if not TYPE_CHECKING:  # To whom it is the same.
        __hash__ = object.__hash__

    BEGIN = "begin"
    SERVE = "serve"
    ASK = "ask"
    END = "end"
    DELAY = "delay"
    REST = "rest"
    FORGET = "forget"


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


class Pressed(enum.Enum):
    """How hard the present generation of a child was pressed to end, beyond being asked."""

    NOT = "not"
    KILLED = "killed"
    IN_VAIN = "in vain"
    """It outlived its kill."""


# Members by themselves, for what happens at each start and end of a child: before Python 3.12, to read one from its
# enum costs as much as a call, and a restart reads twenty.
WAITING: Final = ChildState.WAITING
STARTING: Final = ChildState.STARTING
RUNNING: Final = ChildState.RUNNING
STOPPING: Final = ChildState.STOPPING
STOPPED: Final = ChildState.STOPPED
GONE: Final = ChildState.GONE
BEGIN: Final = Change.BEGIN
SERVE: Final = Change.SERVE
ASK: Final = Change.ASK
FORGET: Final = Change.FORGET
ADDED: Final = Purpose.ADDED
RESTARTED: Final = Purpose.RESTART
NOT_PRESSED: Final = Pressed.NOT
IN_VAIN: Final = Pressed.IN_VAIN


class Past:
    """What came of the generations of one child that have ended."""

    __slots__ = ("attempts", "counted", "held", "last_exit", "restarts")

    def __init__(self) -> None:
        # Restarts in a row without a healthy time between, and how many there were ever.
        self.attempts: int = 0
        self.restarts: int = 0
        self.last_exit: Exit | None = None
        # Of the restart in hand: whether it was counted, and how often it stood back for commands.
        self.counted: bool = False
        self.held: int = 0


NO_PAST: Final = Past()
"""Shared by all children of which no generation has ended yet, which is most. Never written to."""


class Entry:
    """One child as the plan knows it.

    Mutable slots, since a pool holds 100,000 of them (`benchmarks/supervision.py`). Only the plan changes it.
    """

    __slots__ = (
        "downs",
        "generation",
        "handle",
        "past",
        "pressed",
        "purpose",
        "since_s",
        "spec",
        "state",
        "timed_out",
        "timer",
        "ups",
    )

    def __init__(self, spec: AnySpec, handle: Any = None) -> None:
        self.spec: AnySpec = spec
        # Opaque to the plan: what the waiting half hangs on its own record.
        self.handle: Any = handle
        self.timer: object = None
        self.state: ChildState = WAITING
        # Raised by each BEGIN, and only there; news of a lower one is late and means nothing.
        self.generation: int = 0
        self.purpose: Purpose = ADDED
        # When it last said started; None before the first time.
        self.since_s: float | None = None
        # One of its own from the first end of a generation on.
        self.past: Past = NO_PAST
        # Of the stop in hand.
        self.pressed: Pressed = NOT_PRESSED
        self.timed_out: bool = False
        # Commands that wait for it to be up or down; None for nobody, which is most of the time.
        self.ups: list[Ticket] | None = None
        self.downs: list[Ticket] | None = None

    @property
    def name(self) -> str:
        """Its name in its supervisor."""
        return self.spec.name

    @property
    def last_exit(self) -> Exit | None:
        """How its latest generation to end has ended."""
        return self.past.last_exit

    @property
    def killed(self) -> bool:
        """Whether its present generation was killed."""
        return self.pressed is not NOT_PRESSED

    @property
    def stuck(self) -> bool:
        """Whether it outlived its kill."""
        return self.pressed is IN_VAIN

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


OK: Final = Verdict.OK
"""As above: by itself."""


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
        self.task: Any = None
