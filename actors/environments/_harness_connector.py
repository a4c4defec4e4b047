"""The real way to a plain executor: a harness, held by the task that opened it."""

from typing import final

import attrs

from actors.environments._errors import NotSupported
from actors.environments._provider import PlainEndpoint
from actors.environments._seams import Client, LinkReport, LinkRequest
from actors.harness import LIMITS, RECOVERY, ConnectionChange, Dialer, HarnessLimits, RecoveryPolicy, run_harness

MANAGED_CLIENT_NAME = "greenroom-environment"


@final
@attrs.frozen(kw_only=True)
class HarnessConnector:
    """Open a harness to a `PlainEndpoint` and hold it: it resumes its own session while that can be done."""

    dialer: Dialer | None = None
    """How to get there; a WebSocket when left out."""
    recovery: RecoveryPolicy | None = RECOVERY
    """How a lost connection gets its session back; not at all when None."""
    limits: HarnessLimits = LIMITS
    """How long to wait, how much to hold."""

    async def hold(self, request: LinkRequest, report: LinkReport, /) -> None:
        """Open the link, report it, and raise when it is gone for good.

        Raises:
            HarnessError: Why it could not be opened, or could not be kept.

        Cancelled:
            The connection is closed within a bound; the session stays at the executor until it forgets it.
        """
        if not isinstance(request.answer, PlainEndpoint):
            raise NotSupported(f"connecting to a {type(request.answer).__name__}", "this connector has no encryption")
        await hold_harness(request.answer.websocket_url, report, self)


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
