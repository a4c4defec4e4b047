"""The real way to a plain executor: a harness, held by the task that opened it."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import final

import attrs
from attrs.validators import optional

from actors.environments._demands import Demand, of, offering
from actors.environments._errors import NotSupported
from actors.environments._outcomes import said_by
from actors.environments._provider import Answer, PlainEndpoint
from actors.environments._retry import is_retryable, retry_after_s
from actors.environments._seams import Client, LinkReport, LinkRequest
from actors.harness import (
    LIMITS,
    RECOVERY,
    ConnectionChange,
    Dialer,
    Disconnected,
    HarnessError,
    HarnessLimits,
    MessageChannel,
    RecoveryPolicy,
    WebSocketDialer,
    run_harness,
)

MANAGED_CLIENT_NAME = "greenroom-environment"


_RECOVERY: Demand = optional(of(RecoveryPolicy))


@final
@attrs.frozen(kw_only=True)
class HarnessConnector:
    """Open a harness to a `PlainEndpoint` and hold it: it resumes its own session while that can be done.

    Attributes:
        dialer: How to get there; a WebSocket when left out.
        recovery: How a lost connection gets its session back; not at all when None.
        limits: How long to wait, how much to hold.
    """

    dialer: Dialer | None = attrs.field(default=None, validator=optional(offering("dial")))
    recovery: RecoveryPolicy | None = attrs.field(default=RECOVERY, validator=_RECOVERY)
    limits: HarnessLimits = attrs.field(default=LIMITS, validator=of(HarnessLimits))

    async def hold(self, request: LinkRequest, report: LinkReport, /) -> None:
        """Open the link, report it, and raise when it is gone for good.

        Raises:
            HarnessError: Why it could not be opened, or could not be kept.
            NotSupported: The answer is no `PlainEndpoint`.

        Cancelled:
            The connection is closed within a bound; the session stays at the executor until it forgets it.
        """
        if not isinstance(request.answer, PlainEndpoint):
            raise NotSupported(f"connecting to a {type(request.answer).__name__}", "this connector has no encryption")
        dialer = RenewingDialer(self.dialer or WebSocketDialer(), request.renew)
        await hold_harness(request.answer.websocket_url, report, attrs.evolve(self, dialer=dialer))


async def hold_harness(url: str, report: LinkReport, how: HarnessConnector) -> None:
    """Run a harness and tell what becomes of it."""
    told = _Told(report)
    await run_harness(
        url,
        dialer=how.dialer,
        client_name=MANAGED_CLIENT_NAME,
        recovery=how.recovery,
        limits=how.limits,
        on_change=told.changed,
        task_status=told,
    )


class NoAnswer(HarnessError):
    """The provider could not say how to get there again, so the session is not resumed."""

    def __init__(self, said: str) -> None:
        super().__init__(f"the provider failed: {said}")


async def ask_again(renew: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask the provider for another physical connection.

    Raises:
        Disconnected: It failed, and the next try may do better.
        NoAnswer: It failed for good.
    """
    try:
        return await renew()
    except Exception as error:
        # As the harness judges: a lost connection is tried again, anything else ends the recovery.
        said = (Disconnected if is_retryable(error) else NoAnswer)(said_by(error))
        said.retry_after_s = retry_after_s(error)
        raise said from error


class RenewingDialer:
    """Dial where the provider says: its first answer is used once, and each later connection gets a fresh one."""

    def __init__(self, dialer: Dialer, renew: Callable[[], Awaitable[Answer]] | None) -> None:
        self._dialer, self._renew = dialer, renew
        self._is_first = True

    @asynccontextmanager
    async def dial(self, url: str) -> AsyncGenerator[MessageChannel, None]:
        """Open a channel; see `actors.harness.Dialer`."""
        if not self._is_first and self._renew is not None:
            url = await self._fresh_url(self._renew)
        self._is_first = False
        async with self._dialer.dial(url) as channel:
            yield channel

    async def _fresh_url(self, renew: Callable[[], Awaitable[Answer]]) -> str:
        answer = await ask_again(renew)
        if not isinstance(answer, PlainEndpoint):
            raise NoAnswer(f"it answered with a {type(answer).__name__}, expected a PlainEndpoint as before")
        return answer.websocket_url


class _Told:
    """Puts what a harness tells into the order that a link report has: opened, then interrupted and resumed in turn."""

    def __init__(self, report: LinkReport) -> None:
        self._report = report
        self._is_open = self._is_interrupted = False

    def started(self, client: Client, /) -> None:
        self._report.opened(client)
        self._is_open = True

    def changed(self, change: ConnectionChange) -> None:
        # The first connection is told by `started`, the last loss by the end of the harness.
        if not self._is_open or change.final or change.connected is not self._is_interrupted:
            return
        self._is_interrupted = not change.connected
        if change.connected:
            self._report.resumed()
        else:
            self._report.interrupted(str(change.reason or "the connection was lost"))
