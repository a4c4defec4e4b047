"""Keep an executor reachable: register, dial, serve, and dial again when the connection ends.

The rules are those that the rendezvous counts on: the same address with the same registration is dialled again and
again; an answer of 4xx means that the rendezvous does not know it any more, and only then is there a new registration:
at once if that address has worked before, as after a restart of the rendezvous.
"""

import random
from collections.abc import Awaitable, Callable
from typing import NoReturn, Protocol

import attrs
import trio

from actors.relay._connection import Dialer, PhysicalConnection
from actors.relay._errors import (
    AddressUnusable,
    ConnectionLost,
    DialFailed,
    DialRefused,
    DisconnectReason,
    RelayError,
)
from actors.relay._redial import Redial

__all__ = ["ExecutorRegistration", "RegistrarFailed", "UpkeepEvent", "keep_executor_connected"]


class RegistrarFailed(RelayError):
    """The registry did not do what was asked. `retryable` tells whether asking again makes sense."""

    def __init__(self, text: str, *, retryable: bool, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retryable: bool = retryable
        self.retry_after_s: float | None = retry_after_s


class ExecutorRegistration(Protocol):
    """What the registry gives an executor."""

    @property
    def url(self) -> str:
        """Where to dial; a secret from its first `?` on."""
        ...

    @property
    def environment_id(self) -> str:
        """What is served."""
        ...

    @property
    def executor_registration_id(self) -> str:
        """Names the registration."""
        ...


@attrs.frozen(kw_only=True)
class UpkeepEvent:
    """One step of keeping an executor reachable.

    Attributes:
        what: `registered`, `connected`, `disconnected`, `dial failed` or `registration failed`.
        why: The reason, without any secret.
        retry_in_s: How long until the next attempt.
    """

    what: str
    why: str = ""
    retry_in_s: float | None = None


async def keep_executor_connected(
    register: Callable[[], Awaitable[ExecutorRegistration]],
    serve: Callable[[PhysicalConnection, ExecutorRegistration], Awaitable[DisconnectReason]],
    *,
    dialer: Dialer,
    redial: Redial | None = None,
    spread: Callable[[], float] = random.random,
    report: Callable[[UpkeepEvent], None] = lambda event: None,
) -> NoReturn:
    """Stay connected until cancelled or refused for good.

    Args:
        register: Asks the registry for a place; called once, and again when the address is refused.
        serve: Serves one connection until it ends, for example `serve_executor` with everything else filled in.
        dialer: How to reach the rendezvous.
        redial: When to try again.
        spread: Random numbers from 0 to 1, so that many executors do not come back together.
        report: Told each step. Must not wait or raise.

    Raises:
        RegistrarFailed: The registry refused, and asking again makes no sense.

    Cancelled:
        The connection is closed within the close limit; the registration stays and goes stale.
    """
    plan = redial or Redial()
    registration: ExecutorRegistration | None = None
    # Whether this registration has led to a connection: one that never did is not renewed in a hurry.
    has_worked = False
    while True:
        retry_after_s: float | None = None
        at_once = False
        try:
            if registration is None:
                registration, has_worked = await register(), False
                report(UpkeepEvent(what="registered"))
            began_s, reason = await _serve_once(registration, serve, dialer, report)
            plan = plan.after_connection(trio.current_time() - began_s)
            has_worked = True
            what, why = "disconnected", reason
        except RegistrarFailed as error:
            if not error.retryable:
                raise
            what, why, retry_after_s = "registration failed", str(error), error.retry_after_s
        except DialFailed as error:
            what, why, retry_after_s = "dial failed", _told(error), error.retry_after_s
            if _is_spent(error):
                registration, at_once = None, has_worked
        wait_s = 0.0 if at_once else plan.delay_s(spread(), retry_after_s)
        plan = plan.failed()
        report(UpkeepEvent(what=what, why=why, retry_in_s=wait_s))
        await trio.sleep(wait_s)


def _told(error: DialFailed) -> str:
    return str(error) if error.request_id is None else f"{error} (x-request-id {error.request_id})"


def _is_spent(error: DialFailed) -> bool:
    """Whether dialling the same address again leads nowhere, and the registry may know a better one."""
    return isinstance(error, AddressUnusable) or (isinstance(error, DialRefused) and 400 <= error.status < 500)


async def _serve_once(
    registration: ExecutorRegistration,
    serve: Callable[[PhysicalConnection, ExecutorRegistration], Awaitable[DisconnectReason]],
    dialer: Dialer,
    report: Callable[[UpkeepEvent], None],
) -> tuple[float, str]:
    """Give when the connection was made, and why it ended."""
    async with dialer.dial(registration.url) as connection:
        began_s = trio.current_time()
        report(UpkeepEvent(what="connected"))
        try:
            return began_s, (await serve(connection, registration)).value
        except ConnectionLost as lost:
            return began_s, str(lost)
