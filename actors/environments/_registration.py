"""The one-shot right to say how the provisioning of one environment went.

It is bound to the generation it was given for, never to the id. It ends by `complete`, `fail` or `abandon`, by leaving
its `with` block, or when it is lost: collected anywhere, on any thread, at any time. Of these only the last warns. The
finaliser reads two attributes, posts one job to the run and warns; it changes nothing itself, waits for nothing, and
takes no lock of ours. Proof: tests/actors/environments/test_registration_lost.py.
"""

import contextlib
import sys
import warnings
import weakref
from types import TracebackType
from typing import Self, final

import trio

from actors.environments._body import Body
from actors.environments._demands import must_be, must_be_text
from actors.environments._environment import Environment
from actors.environments._errors import (
    EnvironmentClosed,
    InvalidReadyInfo,
    RegistrationInactive,
    RegistrationUsed,
)
from actors.environments._from_thread import FromThread
from actors.environments._gate import (
    ENDED_TOO_EARLY,
    PENDING,
    FailureReported,
    GateEvent,
    ProvisioningAbandoned,
    ReadyReported,
)
from actors.environments._given import Handle
from actors.environments._outcomes import words_of
from actors.environments._printable import brief
from actors.environments._ready_info import ReadyInfo, check_ready_info


@final
class Registration(Handle):
    """The right to complete one deferred environment, once.

    It cannot be copied, pickled or made by hand. Use it as a context manager, so that an environment whose
    provisioning raises is abandoned at once; those who wait for it learn what was raised.
    """

    __slots__ = ("__weakref__", "_body", "_environment")

    def __init__(self, body: Body, environment: "weakref.ref[Environment]") -> None:
        self._body = body
        # Weak: who is to complete an environment need not keep it alive.
        self._environment = environment

    def __repr__(self) -> str:
        life = self._body.life
        return f"<Registration of {life.environment_id!r} generation {life.generation}, {life.gate.value}>"

    @property
    def environment_id(self) -> str:
        """The id of its environment."""
        return self._body.life.environment_id

    @property
    def generation(self) -> int:
        """The generation of its environment; it acts on no other."""
        return self._body.life.generation

    @property
    def environment(self) -> Environment | None:
        """Its environment, as long as anybody holds it: the registration alone does not keep it."""
        return self._environment()

    @property
    def superseded(self) -> bool:
        """Whether the id belongs to a newer generation by now; completing is allowed, and touches only the old one."""
        return self._body.life.superseded_by is not None

    @property
    def is_pending(self) -> bool:
        """Whether there is still something to complete."""
        return _is_pending(self._body)

    @property
    def from_thread(self) -> FromThread:
        """The same operations for threads outside the run; each waits until the run has carried it out."""
        return FromThread.give(self, self._body.backstage.token)

    def complete(self, info: ReadyInfo) -> None:
        """Open the gate; on return the information is visible.

        Raises:
            InvalidReadyInfo: The information breaks a rule; the gate has failed with the same text.
            RegistrationUsed: The gate is not pending any more; what came first stands.
            RegistrationInactive: The environment is gone.
        """
        must_be(ReadyInfo, "info", info)
        now_s = self._claim("complete")
        try:
            check_ready_info(info, self.environment_id)
        except InvalidReadyInfo as error:
            self._step(FailureReported(str(error), now_s), now_s)
            raise
        self._step(ReadyReported(info, now_s), now_s)

    def fail(self, message: str) -> None:
        """Fail the gate: those who wait learn the message.

        Raises:
            RegistrationUsed: The gate is not pending any more; what came first stands.
            RegistrationInactive: The environment is gone.
        """
        must_be_text("message", message, "it must be a text that says what failed")
        now_s = self._claim("fail")
        self._step(FailureReported(message, now_s), now_s)

    def abandon(self) -> None:
        """Let the right go; quiet when there is nothing left to let go."""
        if _is_pending(self._body):
            _abandon(self._body, self._body.now_s("abandon"))

    def _claim(self, operation: str) -> float:
        body = self._body
        now_s = body.now_s(operation)
        life = body.life
        if body.released or life.is_closed:
            body.backstage.note_refused(life, operation, "inactive", now_s)
            raise RegistrationInactive(life.environment_id, life.generation)
        if life.gate is not PENDING:
            said = life.provisioning.message
            outcome = life.gate.value if said is None else f"{life.gate.value} ({said})"
            body.backstage.note_refused(life, operation, outcome, now_s)
            ago_s = now_s - life.provisioning.since_s
            raise RegistrationUsed(life.environment_id, life.generation, outcome, ago_s)
        return now_s

    def _step(self, event: GateEvent, now_s: float) -> None:
        try:
            self._body.step(event, now_s)
        except EnvironmentClosed as closed:
            raise RegistrationInactive(closed.environment_id, closed.generation) from closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if _is_pending(self._body):
            _abandon(self._body, self._body.now_s("abandon"), error)

    def __del__(self) -> None:
        body = self._body
        if not _is_pending(body) or sys.is_finalizing():
            return
        body.backstage.post(lambda: _abandon(body, body.now_s("abandon")))
        life = body.life
        warnings.warn(
            f"the registration of environment {life.environment_id!r} generation {life.generation} was lost before "
            "it was completed, failed or abandoned; use it in a `with` block",
            ResourceWarning,
            stacklevel=2,
            source=self,
        )


def _is_pending(body: Body) -> bool:
    return not body.released and body.final is None and body.life.gate is PENDING


def _abandon(body: Body, now_s: float, error: BaseException | None = None) -> None:
    if _is_pending(body):
        # Cancellation is no failure, so it is never the cause of one; that it was cancelled is told.
        cause = error if isinstance(error, Exception) else None
        message = ENDED_TOO_EARLY if error is None else f"{ENDED_TOO_EARLY}: {_told(error)}"
        with contextlib.suppress(EnvironmentClosed):  # Its actor is gone: then there is nobody left to tell.
            body.step(ProvisioningAbandoned(message, now_s, cause), now_s)


def _told(error: BaseException) -> str:
    """What was raised in the block of a registration: its name and its own words, within bounds."""
    name = type(error).__name__
    said = "" if isinstance(error, trio.Cancelled) else words_of(error)
    return brief(name if said in ("", name) else f"{name}: {said}")
