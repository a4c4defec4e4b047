"""Reports by id: publish information, report how provisioning went, materialize before anybody reported.

Ordinary environments need no report and take none. Deferred ones are completed by the holder of their registration,
so a report by id is a conflict, until that right is spent and `recover` is asked for by name.
"""

from actors.environments._body import Body
from actors.environments._demands import must_be, must_be_count, refuse
from actors.environments._errors import (
    AlreadyFailed,
    AlreadyReady,
    InvalidReadyInfo,
    ProvisioningConflict,
    StaleGeneration,
    UnknownEnvironment,
)
from actors.environments._gate import FailureReported, Gate, InfoPublished, ReadyReported, Recovered, reason_given
from actors.environments._lifecycle import Kind, Lifecycle
from actors.environments._ready_info import ReadyInfo, check_ready_info

_SHUT = (Gate.FAILED, Gate.ABANDONED)


def check_report(report: object) -> None:
    """Refuse what is neither information nor the text of a failure."""
    if not isinstance(report, ReadyInfo | str):
        raise refuse("info_or_failure", report, "it must be a ReadyInfo, or a text that says what failed")


def takes_reports(life: Lifecycle, *, recover: bool) -> bool:
    """Whether a report by id concerns this environment.

    Raises:
        ProvisioningConflict: It does, but another holds the right to complete it.
    """
    if life.kind in (Kind.ORDINARY, Kind.LOCAL):
        return False
    if life.kind is Kind.DEFERRED and not (recover and life.gate in _SHUT):
        raise ProvisioningConflict(life.environment_id, _remedy(life))
    return True


def _remedy(life: Lifecycle) -> str:
    whose = f"It was registered by register_deferred() and is {life.gate.value}; "
    if life.gate in _SHUT:
        return whose + "report_provisioning(..., recover=True) with ready information would bring it back."
    if life.gate is Gate.PENDING:
        return whose + "the holder of its registration completes it."
    return whose + "reports by id reach one that failed or was abandoned, and only with recover=True."


def take_report(body: Body, report: ReadyInfo | str, now_s: float, *, recover: bool) -> None:
    """Let a report act on an environment that takes it.

    Raises:
        AlreadyReady: A failure of one that is ready.
        AlreadyFailed: Readiness of one that failed, without `recover`.
        InvalidReadyInfo: The information breaks a rule; a pending gate has failed with the same text.
    """
    if isinstance(report, str):
        _take_failure(body, report, now_s)
    else:
        _take_readiness(body, report, now_s, recover=recover)


def _take_failure(body: Body, message: str, now_s: float) -> None:
    life = body.life
    match life.gate:
        case Gate.READY:
            raise AlreadyReady(life.environment_id, reason_given(message))
        case Gate.PENDING | Gate.FAILED:
            body.step(FailureReported(message, now_s), now_s)
        case Gate.ABANDONED:
            return  # It has failed in its own way before; the first word stands.


def _take_readiness(body: Body, info: ReadyInfo, now_s: float, *, recover: bool) -> None:
    life = body.life
    shut = life.gate in _SHUT
    if shut and not recover:
        # Before the information is looked at: that it failed is the more important news.
        raise AlreadyFailed(life.environment_id, life.generation, life.provisioning.message or "")
    try:
        check_ready_info(info, life.environment_id)
    except InvalidReadyInfo as error:
        if life.gate is Gate.PENDING:
            body.step(FailureReported(str(error), now_s), now_s)
        raise
    body.step((Recovered if shut else ReadyReported)(info, now_s), now_s)


def publish(body: Body | None, environment_id: str, info: ReadyInfo, generation: int | None, now_s: float) -> None:
    """Replace the information of the environment that has the id now; its gate stays.

    Raises:
        UnknownEnvironment: Nobody has the id.
        StaleGeneration: Another generation has it than the one that was meant.
        InvalidReadyInfo: The information breaks a rule.
    """
    must_be(ReadyInfo, "info", info)
    if generation is not None:
        must_be_count("generation", generation, 1)
    if body is None:
        raise UnknownEnvironment(environment_id)
    if generation is not None and body.life.generation != generation:
        raise StaleGeneration(environment_id, generation, body.life.generation)
    check_ready_info(info, environment_id)
    body.step(InfoPublished(info, now_s), now_s)
