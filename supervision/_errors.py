"""Every error of this package: each holds its facts and writes its own sentence."""

__all__ = [
    "AlreadyPresent",
    "AlreadyStarted",
    "ChildIsRestarting",
    "ChildIsRunning",
    "ChildNotFound",
    "ChildWillNotStop",
    "Death",
    "EventsNotOpen",
    "InvalidSpec",
    "NotInThisRun",
    "RestartIntensityExceeded",
    "ReturnedBeforeStarted",
    "Shutdown",
    "StartAborted",
    "StartFailed",
    "StartTimedOut",
    "SupervisionError",
    "SupervisorClosed",
]

import pickle
from typing import Any

import attrs

from supervision._wording import cause_text, span_text


class SupervisionError(Exception):
    """Root of all errors of supervision. A copy or a pickle keeps sentence and facts; the cause stays behind."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Born again without `__init__`, which would be given the finished sentence.
        return type(self).__new__, (type(self),), {**self.__dict__, "args": self.args}


class Shutdown(SupervisionError):
    """Raise this in a child to end it on purpose: not a crash, so a transient child stays down."""

    def __init__(self, reason: str = "shutdown") -> None:
        super().__init__(reason)
        self.reason = reason


class InvalidSpec(SupervisionError, ValueError):
    """A value that would supervise wrongly was refused when it was made or used."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field: str = field
        self.rule: str = rule


class NotInThisRun(SupervisionError, RuntimeError):
    """What belongs to one run of trio was used from outside of that run. Nothing was changed."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} belongs to one run of trio, and this call came from outside of that run; nothing was changed. "
            "From another thread write trio.from_thread.run_sync(function, *args), or trio.from_thread.run() for an "
            "async function, with trio_token=trio.lowlevel.current_trio_token() of that run if trio did not start "
            "the thread"
        )
        self.what: str = what


class EventsNotOpen(SupervisionError, RuntimeError):
    """Events were to be read outside of the block that collects them: none would ever come."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the events of {path} are not being collected: write `async with ....events() as events:`, and read "
            "them in that block with `async for event in events:`"
        )
        self.path: str = path


class OutOfTurn(SupervisionError):
    """News has no place in the state a child is in: a bug of the waiting half, never of its user."""

    def __init__(self, child: str, state: str, change: str) -> None:
        super().__init__(f"child {child!r} is {state}: {change} has no place there (a bug of supervision)")
        self.child, self.state, self.change = child, state, change


class _ChildError(SupervisionError):
    """An answer about one child of one supervisor."""

    def __init__(self, sentence: str, *, path: str) -> None:
        super().__init__(sentence)
        self.path = path


class AlreadyStarted(_ChildError):
    """The name belongs to a child that is starting, running, stopping or between two attempts."""

    def __init__(self, path: str, state: str) -> None:
        super().__init__(f"{path} is already {state}: stop and delete it first, or pick another name", path=path)
        self.state = state


class AlreadyPresent(_ChildError):
    """The name belongs to a child that is down, but whose spec was kept."""

    def __init__(self, path: str, state: str) -> None:
        super().__init__(f"{path} is present and {state}: restart_child() it, or delete_child() it first", path=path)
        self.state = state


class ChildNotFound(_ChildError):
    """The supervisor has no child of this name."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no {path}: it was never started, or it was forgotten when it ended", path=path)


class ChildIsRunning(_ChildError):
    """The command is for stopped children, and this one is not stopped."""

    def __init__(self, path: str, state: str) -> None:
        super().__init__(f"{path} is {state}: stop_child() it first", path=path)
        self.state = state


class ChildIsRestarting(_ChildError):
    """The child is between two attempts to bring it back."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is being restarted: stop_child() ends that, then ask again", path=path)


class ChildWillNotStop(_ChildError):
    """A child went on after it was asked and killed; nothing can end a task that shields itself."""

    def __init__(self, path: str, generation: int, waited_s: float) -> None:
        super().__init__(
            f"{path} (generation {generation}) still runs {waited_s:g} s after it was killed: it shields itself "
            "from cancellation, or it never awaits. Its name stays taken until it ends",
            path=path,
        )
        self.generation: int = generation
        self.waited_s: float = waited_s


class SupervisorClosed(SupervisionError):
    """The supervisor is stopping, has ended, or is between two generations, and takes no commands."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} takes no commands: it is stopping, has ended, or is being restarted")
        self.path = path


class StartFailed(_ChildError):
    """A child ended before it said that it can serve; its own exception is the cause."""

    def __init__(self, child: str, path: str, generation: int, why: str) -> None:
        super().__init__(f"{path} (generation {generation}) did not start: {why}", path=path)
        self.child: str = child
        self.generation: int = generation
        self.why: str = why

    def told_of(self, child: str) -> "StartFailed":
        """Return the same failure as the supervisor above tells it: of ``child``, the one it was asked to start."""
        twin = type(self).__new__(type(self), *self.args)
        twin.__dict__.update(self.__dict__)
        twin.child = child
        return twin


class StartTimedOut(StartFailed):
    """A child did not say in time that it can serve."""

    def __init__(self, child: str, path: str, generation: int, after_s: float) -> None:
        super().__init__(child, path, generation, f"no task_status.started() within {after_s:g} s")
        self.after_s = after_s


class ReturnedBeforeStarted(StartFailed):
    """A child returned without having said that it can serve."""

    def __init__(self, child: str, path: str, generation: int) -> None:
        super().__init__(child, path, generation, "it returned without calling task_status.started()")


class StartAborted(StartFailed):
    """A child was stopped before it could say that it can serve."""

    def __init__(self, child: str, path: str, generation: int) -> None:
        super().__init__(child, path, generation, "it was stopped before it called task_status.started()")


@attrs.frozen(kw_only=True)
class Death:
    """One end of a child that called for a restart.

    Attributes:
        child: The child's name in its supervisor.
        generation: Which life of the child ended; the first is 1.
        at_s: When, on the supervisor's clock.
        cause: What the child raised; None when it returned. One that no pickle can hold is
            told there by its text.
    """

    child: str
    generation: int
    at_s: float
    cause: BaseException | None = attrs.field(eq=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _death, (self.child, self.generation, self.at_s, _kept(self.cause))


def _death(child: str, generation: int, at_s: float, cause: BaseException | None) -> Death:
    return Death(child=child, generation=generation, at_s=at_s, cause=cause)


def _kept(cause: BaseException | None) -> BaseException | None:
    try:
        pickle.loads(pickle.dumps(cause))  # noqa: S301  # Our own bytes: many an exception fails only when it is read.
    except Exception:  # It is the user's, and may raise anything.
        return SupervisionError(cause_text(cause))
    return cause


def _told(death: Death, end_s: float) -> str:
    when = span_text(end_s - death.at_s)
    return f"{death.child} (generation {death.generation}) {when} before the end: {cause_text(death.cause)}"


class RestartIntensityExceeded(SupervisionError):
    """Children ended more often than the supervisor may restart them, so it stopped them all and gave up."""

    def __init__(self, path: str, restarts: int, period_s: float, deaths: tuple[Death, ...]) -> None:
        many = "1 restart" if restarts == 1 else f"{restarts} restarts"
        told = "; ".join(_told(death, deaths[-1].at_s) for death in deaths)
        super().__init__(
            f"{path} gave up: more than {many} within {period_s:g} s. The last deaths: {told}. "
            "Mend the cause, raise the intensity, or give the child a backoff"
        )
        self.path: str = path
        self.restarts: int = restarts
        self.period_s: float = period_s
        self.deaths: tuple[Death, ...] = deaths
        # The last straw, with its traceback: what a reader of the error looks for first.
        self.__cause__: BaseException | None = deaths[-1].cause if deaths else None

    @property
    def causes(self) -> tuple[BaseException | None, ...]:
        """What the last children to die raised, oldest first; None for one that returned."""
        return tuple(death.cause for death in self.deaths)
