"""Why an environment is what it is: a chain of reasons that ends in a cause, and what to do about it."""

from collections.abc import Iterator

import attrs

from actors.environments._connection import Phase
from actors.environments._gate import Gate
from actors.environments._lifecycle import Kind, Lifecycle
from actors.environments._outcomes import said_by
from actors.environments._printable import printable, shown, time_text


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
        return text if self.ago_s is None else f"{text}, {time_text(self.ago_s)} ago"


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


def explain_absence(environment_id: str, doing: str | None = None) -> Why:
    """Why an id leads to nothing.

    Args:
        environment_id: Which id.
        doing: What the manager is doing that it takes nobody any more.
    """
    if doing is not None:
        return Why(
            environment_id=environment_id,
            generation=None,
            reasons=(
                Reason(code="unknown", text=f"no environment {shown(environment_id)} is registered here"),
                Reason(code="manager_closed", text=f"this manager is {doing} and takes no new environments"),
            ),
            advice="register it with another manager: open_manager()",
        )
    reason = Reason(code="unknown", text=f"no environment {shown(environment_id)} is registered here")
    return Why(
        environment_id=environment_id,
        generation=None,
        reasons=(reason,),
        advice="register it (manager.register_deferred(), manager.upsert()), or look at manager.environment_ids",
    )


def explain(life: Lifecycle, now_s: float, tries: int = 0, *, lost: bool = False) -> Why:
    """Why an environment is in its state.

    Args:
        life: The environment.
        now_s: What the run's clock says.
        tries: How often the provider was asked in the latest attempt.
        lost: Nobody has its registration any more.
    """
    lost = lost and life.gate is Gate.PENDING and not life.is_closed
    chain = list(_chain(life, now_s, tries, lost=lost))
    return Why(
        environment_id=life.environment_id,
        generation=life.generation,
        reasons=tuple(chain),
        advice=_keep_it(life) if lost else _advice(life),
    )


def _chain(life: Lifecycle, now_s: float, tries: int, *, lost: bool) -> Iterator[Reason]:
    name = f"environment `{life.environment_id}` generation {life.generation}"
    connection, since_s = life.connection, now_s - life.connection.since_s
    if life.is_closed:
        yield Reason(code="closed", text=f"{name} is closed")
        yield Reason(code="cause", text=connection.reason or "it was closed", ago_s=since_s)
    elif life.gate is Gate.PENDING:
        yield from _pending(life, now_s, name, lost=lost)
    elif life.gate is not Gate.READY:
        yield Reason(code=life.gate.value, text=f"{name} is {life.gate.value}")
        cause = f"environment unavailable: {life.provisioning.message}"
        yield Reason(code="cause", text=cause, ago_s=now_s - life.provisioning.since_s)
    else:
        yield from _connecting(life, since_s, name, tries)
    yield from _place(life)


def _pending(life: Lifecycle, now_s: float, name: str, *, lost: bool) -> Iterator[Reason]:
    yield Reason(code="pending", text=f"{name} is not provisioned", ago_s=None)
    if lost:
        yield Reason(code="registration_lost", text="its registration was lost, so it is about to be abandoned")
        yield Reason(code="registered", text="it was registered", ago_s=now_s - life.born_s)
        return
    who = "the holder of its registration" if life.kind is Kind.DEFERRED else "a provisioning report for its id"
    yield Reason(code="waiting_for_completion", text=f"waiting for {who}")
    if life.deadline_s is None:
        yield Reason(code="no_deadline", text="it was given no deadline")
    else:
        yield Reason(code="deadline", text=f"it fails in {time_text(life.deadline_s - now_s)}")
    yield Reason(code="registered", text="it was registered", ago_s=now_s - life.born_s)


def _connecting(life: Lifecycle, since_s: float, name: str, tries: int) -> Iterator[Reason]:
    connection = life.connection
    yield Reason(code=connection.phase.value.replace(" ", "_"), text=f"{name}{_standing(connection.phase)}")
    match connection.phase:
        case Phase.NOT_STARTED:
            yield Reason(code="unused", text="nobody has waited for it or used it")
        case Phase.STARTING | Phase.RECONNECTING:
            yield Reason(code="attempt", text=f"attempt {connection.attempt} began{_asked(tries)}", ago_s=since_s)
            if connection.reason:
                yield Reason(code="cause", text=connection.reason)
        case Phase.START_FAILED | Phase.START_REFUSED:
            failed = f"attempt {connection.failed_attempt} failed{_asked(tries)}"
            yield Reason(code="attempt_failed", text=failed, ago_s=since_s)
            yield Reason(code="cause", text=said_by(connection.error))
        case Phase.RECOVERING | Phase.LOST:
            yield Reason(code="cause", text=connection.reason or "the link ended", ago_s=since_s)
            if connection.error is not None:
                failed = f"attempt {connection.failed_attempt} to reconnect failed{_asked(tries)}"
                yield Reason(code="attempt_failed", text=f"{failed}: {said_by(connection.error)}")
        case Phase.CONNECTED | Phase.CLOSED:
            yield Reason(code="answers", text="the executor answers", ago_s=since_s)


def _standing(phase: Phase) -> str:
    match phase:
        case Phase.START_FAILED:
            return " failed to start"
        case Phase.START_REFUSED:
            return " failed to start, for good"
        case _:
            return f" is {phase.value}"


def _asked(tries: int) -> str:
    match tries:
        case 0:
            return ""
        case 1:
            return ", its provider was asked once"
        case _:
            return f", its provider was asked {tries} times"


def _place(life: Lifecycle) -> Iterator[Reason]:
    if life.superseded_by is not None:
        yield Reason(code="superseded", text=f"its id belongs to generation {life.superseded_by} by now")
    elif life.removed:
        yield Reason(code="removed", text="its id was taken away")


_USE_IT = "environment.run(), or environment.info()"
_PHASE_ADVICE = {
    Phase.NOT_STARTED: "await environment.wait_until_ready(), or use it: environment.run()",
    Phase.STARTING: "wait: environment.wait_until_ready()",
    Phase.START_FAILED: "await environment.wait_until_ready() again: it makes another attempt",
    Phase.START_REFUSED: "mend the cause, then register it anew: ",
    Phase.CONNECTED: "nothing to do",
    Phase.RECOVERING: f"wait, by using it: {_USE_IT}",
    Phase.LOST: f"use it again, which reconnects: {_USE_IT}",
    Phase.RECONNECTING: f"wait, by using it: {_USE_IT}",
    Phase.CLOSED: "register it anew: ",
}


def _advice(life: Lifecycle) -> str:
    if life.superseded_by is not None and life.gate is not Gate.PENDING and life.connection.phase not in _USABLE:
        return f"use generation {life.superseded_by}, which has its id now: manager.get({shown(life.environment_id)})"
    if life.is_closed or life.gate is Gate.READY:
        advice = _PHASE_ADVICE[life.connection.phase]
        return advice + _anew(life) if advice.endswith(": ") else advice
    if life.gate is Gate.PENDING:
        return _completion(life)
    if life.removed:
        return f"register it anew: {_anew(life)}"
    report = _call("report_provisioning", life, ", info, provider, recover=True")
    return f"register it anew: {_anew(life)}; or bring this very one back: {report}"


_USABLE = frozenset({*Phase} - {Phase.START_REFUSED, Phase.CLOSED})


def _completion(life: Lifecycle) -> str:
    if life.kind is Kind.DEFERRED:
        return "complete it with its registration: registration.complete(info), .fail(message) or .abandon()"
    return f"report how it went: {_call('report_provisioning', life, ', info or failure text, provider')}"


def _keep_it(life: Lifecycle) -> str:
    return f"register it anew, and keep the registration: with {_anew(life)} as registration"


def _anew(life: Lifecycle) -> str:
    """The call that gives the id to a new generation."""
    match life.kind:
        case Kind.DEFERRED:
            return _call("register_deferred", life, ", provider")
        case Kind.ORDINARY:
            return _call("upsert", life, ", provider")
        case Kind.PROVISIONED:
            free = "" if life.removed or life.is_closed else f"await {_call('remove', life)}, then "
            return free + _call("materialize", life, ", provider")
        case Kind.LOCAL:
            return "open_manager() with a snapshot that includes this machine"


def _call(method: str, life: Lifecycle, rest: str = "") -> str:
    return f"manager.{method}({shown(life.environment_id)}{rest})"
