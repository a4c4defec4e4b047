"""Turns the plan's answers into the errors that its users see."""

from typing import NoReturn

from supervision._book import KILL_WAIT_S
from supervision._errors import (
    AlreadyPresent,
    AlreadyStarted,
    ChildIsRestarting,
    ChildIsRunning,
    ChildNotFound,
    ChildWillNotStop,
    ReturnedBeforeStarted,
    StartAborted,
    StartFailed,
    StartTimedOut,
    SupervisorClosed,
)
from supervision._exits import RETURNED
from supervision._specs import ChildSpec
from supervision._states import Entry, Ticket, Verdict
from supervision._wording import cause_text

__all__: list[str] = []


def raise_refused(supervisor: str, ticket: Ticket, name: str) -> NoReturn:
    """Raise what the plan's answer means."""
    path, entry = f"{supervisor}/{name}", ticket.entry
    state = entry.state.value if entry is not None else "known"
    match ticket.verdict:
        case Verdict.ALREADY_STARTED:
            raise AlreadyStarted(path, state)
        case Verdict.ALREADY_PRESENT:
            raise AlreadyPresent(path, state)
        case Verdict.NOT_FOUND:
            raise ChildNotFound(path)
        case Verdict.RUNNING:
            raise ChildIsRunning(path, state)
        case Verdict.RESTARTING:
            raise ChildIsRestarting(path)
        case Verdict.WILL_NOT_STOP:
            raise ChildWillNotStop(path, entry.generation if entry else 0, KILL_WAIT_S)
        case Verdict.START_FAILED | Verdict.START_ABORTED if entry is not None:
            raise_start_failed(supervisor, entry)
        case _:
            raise SupervisorClosed(supervisor)


def raise_start_failed(supervisor: str, entry: Entry) -> NoReturn:
    """Raise one typed error whose cause is the child's own exception, at any depth of supervisors."""
    name, path, how = entry.name, f"{supervisor}/{entry.name}", entry.last_exit
    cause = how.cause if how is not None else None
    generation = entry.generation
    if isinstance(cause, StartFailed) and not isinstance(entry.spec, ChildSpec):
        raise cause.told_of(name) from cause.__cause__
    if entry.timed_out:
        raise StartTimedOut(name, path, generation, entry.spec.start_timeout_s) from cause
    if cause is not None:
        raise StartFailed(name, path, generation, f"it raised {cause_text(cause)}") from cause
    if how is RETURNED and entry.since_s is None:
        raise ReturnedBeforeStarted(name, path, generation)
    raise StartAborted(name, path, generation)
