"""Why an environment is what it is: a chain of reasons that ends in a cause, and what to do about it."""

from collections.abc import Iterator

import attrs

from actors.environments._connection import Phase
from actors.environments._gate import Gate
from actors.environments._lifecycle import Kind, Lifecycle
from actors.environments._outcomes import said_by
from actors.environments._printable import printable, shown


@attrs.frozen(kw_only=True)
class Reason:
    """One link of the chain.

    Attributes:
        code: A word that stays the same, for programs.
        text: The same as a sentence, for people.
        ago_s: For how long it has been so.
    """

    code: str
    text: str
    ago_s: float | None = None

    def __str__(self) -> str:
        text = printable(self.text)  # What a provider says must not forge a line of a log.
        return text if self.ago_s is None else f"{text}, {self.ago_s:.3g} s ago"


@attrs.frozen(kw_only=True)
class Why:
    """The reasons for the state of one environment, from what is seen to its cause.

    Attributes:
        environment_id: Which environment was asked about.
        generation: Which generation; none when there is no such environment.
        reasons: Each is explained by the next; the last is the cause. Never empty.
        advice: What to do.
    """

    environment_id: str
    generation: int | None
    reasons: tuple[Reason, ...]
    advice: str

    def __str__(self) -> str:
        return " <- ".join(map(str, self.reasons)) + f"; {self.advice}"


def explain_absence(environment_id: str) -> Why:
    """Why an id leads to nothing."""
    reason = Reason(code="unknown", text=f"no environment {shown(environment_id)} is registered here")
    return Why(
        environment_id=environment_id,
        generation=None,
        reasons=(reason,),
        advice="register it, or ask for one that is",
    )


def explain(life: Lifecycle, now_s: float, tries: int = 0) -> Why:
    """Why an environment is in its state.

    Args:
        life: The environment.
        now_s: What the run's clock says.
        tries: How often the provider was asked in the attempt under way.
    """
    chain = list(_chain(life, now_s, tries))
    return Why(
        environment_id=life.environment_id,
        generation=life.generation,
        reasons=tuple(chain),
        advice=_advice(life),
    )


def _chain(life: Lifecycle, now_s: float, tries: int) -> Iterator[Reason]:
    name = f"environment `{life.environment_id}` generation {life.generation}"
    connection, since_s = life.connection, now_s - life.connection.since_s
    if life.is_closed:
        yield Reason(code="closed", text=f"{name} is closed")
        yield Reason(code="cause", text=connection.reason or "it was closed", ago_s=since_s)
    elif life.gate is Gate.PENDING:
        yield from _pending(life, now_s, name)
    elif life.gate is not Gate.READY:
        yield Reason(code=life.gate.value, text=f"{name} is {life.gate.value}")
        cause = f"environment unavailable: {life.provisioning.message}"
        yield Reason(code="cause", text=cause, ago_s=now_s - life.provisioning.since_s)
    else:
        yield from _connecting(life, since_s, name, tries)
    yield from _place(life)


def _pending(life: Lifecycle, now_s: float, name: str) -> Iterator[Reason]:
    yield Reason(code="pending", text=f"{name} is not provisioned", ago_s=None)
    who = "the holder of its registration" if life.kind is Kind.DEFERRED else "a provisioning report for its id"
    yield Reason(code="waiting_for_completion", text=f"waiting for {who}")
    if life.deadline_s is None:
        yield Reason(code="no_deadline", text="it was given no deadline")
    else:
        yield Reason(code="deadline", text=f"it fails in {life.deadline_s - now_s:.3g} s")
    yield Reason(code="registered", text="it was registered", ago_s=now_s - life.born_s)


def _connecting(life: Lifecycle, since_s: float, name: str, tries: int) -> Iterator[Reason]:
    connection = life.connection
    yield Reason(code=connection.phase.value.replace(" ", "_"), text=f"{name} is {connection.phase.value}")
    match connection.phase:
        case Phase.NOT_STARTED:
            yield Reason(code="unused", text="nobody has waited for it or used it")
        case Phase.STARTING | Phase.RECONNECTING:
            asked = f"attempt {connection.attempt} began" + (f", its provider was asked {tries} times" if tries else "")
            yield Reason(code="attempt", text=asked, ago_s=since_s)
            if connection.reason:
                yield Reason(code="cause", text=connection.reason)
        case Phase.START_FAILED | Phase.START_REFUSED:
            failed = f"attempt {connection.failed_attempt} failed"
            yield Reason(code="attempt_failed", text=failed, ago_s=since_s)
            yield Reason(code="cause", text=said_by(connection.error))
        case Phase.RECOVERING | Phase.LOST:
            yield Reason(code="cause", text=connection.reason or "the link ended", ago_s=since_s)
            if connection.error is not None:
                failed = f"attempt {connection.failed_attempt} to reconnect failed: {said_by(connection.error)}"
                yield Reason(code="attempt_failed", text=failed)
        case Phase.CONNECTED | Phase.CLOSED:
            yield Reason(code="answers", text="the executor answers", ago_s=since_s)


def _place(life: Lifecycle) -> Iterator[Reason]:
    if life.superseded_by is not None:
        yield Reason(code="superseded", text=f"its id belongs to generation {life.superseded_by} by now")
    elif life.removed:
        yield Reason(code="removed", text="its id was taken away")


_PHASE_ADVICE = {
    Phase.NOT_STARTED: "wait for it, or use it",
    Phase.STARTING: "wait",
    Phase.START_FAILED: "use it again to try again",
    Phase.START_REFUSED: "mend the cause and register it anew",
    Phase.CONNECTED: "nothing to do",
    Phase.RECOVERING: "wait",
    Phase.LOST: "use it again to reconnect",
    Phase.RECONNECTING: "wait",
    Phase.CLOSED: "register it anew",
}


def _advice(life: Lifecycle) -> str:
    if life.is_closed or life.gate is Gate.READY:
        return _PHASE_ADVICE[life.connection.phase]
    if life.gate is Gate.PENDING:
        return "complete, fail or abandon it"
    return "register it anew, or recover it by name"
