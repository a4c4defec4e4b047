"""A harness as a child of a supervisor, and as a context."""

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Final, NoReturn, Protocol

import attrs
import trio

from actors.blocks import block
from actors.harness._arguments import check_callable, check_kind, check_text
from actors.harness._channel import Dialer
from actors.harness._client import Client
from actors.harness._client_values import ConnectionChange
from actors.harness._core import Core
from actors.harness._errors import HarnessError, TransportClosed
from actors.harness._groups import plainly
from actors.harness._limits import LIMITS, HarnessLimits
from actors.harness._recovery_policy import RecoveryPolicy
from actors.harness._session import Session
from actors.harness._websocket import WebSocketDialer

CLIENT_NAME: Final = "greenroom"
RECOVERY: Final = RecoveryPolicy()


class Started(Protocol):
    """Where a child says that it can serve: trio's task status, or a supervisor's."""

    def started(self, value: Client, /) -> None:
        """Say it."""
        ...


def _new_id() -> str:
    return uuid.uuid4().hex


async def run_harness(
    url: str,
    *,
    dialer: Dialer | None = None,
    client_name: str = CLIENT_NAME,
    resume_session_id: str | None = None,
    recovery: RecoveryPolicy | None = RECOVERY,
    limits: HarnessLimits = LIMITS,
    on_change: Callable[[ConnectionChange], None] | None = None,
    new_id: Callable[[], str] = _new_id,
    task_status: Started,
) -> NoReturn:
    """Connect to an executor and stay connected; fit to be the function of a `ChildSpec`.

    Says ``task_status.started(client)`` once `initialize` is answered and `initialized` is sent. Ends with an error
    when the connection ends and its session cannot be resumed.

    Args:
        url: Where the executor listens; a token in it never shows up in an error.
        dialer: How to get there; a WebSocket when left out.
        client_name: What to call ourselves.
        resume_session_id: Attach to this session, not to a new one.
        recovery: How to get a lost connection back with its session; not at all when None.
        limits: How long to wait, how much to hold.
        on_change: Called, and not awaited, whenever the connection came or went.
        new_id: Makes process ids.
        task_status: Where to say that the client can be used.

    Raises:
        HarnessError: Why the connection could not be made, or could not be kept.

    Cancelled:
        Every call and wait of the client ends; the connection is closed within a bound. The session and its processes
        live on at the executor until it forgets them.
    """
    _check_options(url, client_name, resume_session_id, recovery, limits, on_change, new_id)
    core = Core(limits=limits, new_id=new_id, on_change=on_change)
    session = Session(
        core=core, url=url, dialer=dialer or WebSocketDialer(), client_name=client_name, recovery=recovery
    )
    client = Client(core)
    end: HarnessError = TransportClosed()
    with plainly():
        async with trio.open_nursery() as nursery:
            core.nursery = nursery
            try:
                end = await session.serve(
                    resume_session_id=resume_session_id, started=lambda: task_status.started(client)
                )
            except HarnessError as error:
                end = error
            finally:
                core.fail(end)
                nursery.cancel_scope.cancel()
    raise core.failure or end


def _check_options(
    url: object,
    client_name: object,
    resume_session_id: object,
    recovery: object,
    limits: object,
    on_change: object,
    new_id: object,
) -> None:
    check_kind("url", url, str)
    check_text("client_name", client_name)
    if resume_session_id is not None:
        check_text("resume_session_id", resume_session_id)
    if recovery is not None:
        check_kind("recovery", recovery, RecoveryPolicy)
    check_kind("limits", limits, HarnessLimits)
    if on_change is not None:
        check_callable("on_change", on_change)
    check_callable("new_id", new_id)


@block
async def open_client(
    url: str,
    *,
    dialer: Dialer | None = None,
    client_name: str = CLIENT_NAME,
    resume_session_id: str | None = None,
    recovery: RecoveryPolicy | None = RECOVERY,
    limits: HarnessLimits = LIMITS,
    on_change: Callable[[ConnectionChange], None] | None = None,
    new_id: Callable[[], str] = _new_id,
) -> AsyncGenerator[Client, None]:
    """Connect to an executor for as long as the context lasts; options as for `run_harness`.

    When the connection is lost for good, calls of the client say so; the context itself goes on.

    Raises:
        HarnessError: The connection could not be made.

    Cancelled:
        The connection outlives the block, so that its processes can still be ended; 2 s more at most.
    """

    run = partial(
        run_harness,
        url,
        dialer=dialer,
        client_name=client_name,
        resume_session_id=resume_session_id,
        recovery=recovery,
        limits=limits,
        on_change=on_change,
        new_id=new_id,
    )
    with plainly():
        async with trio.open_nursery() as nursery:
            served = _Served(run)
            client = await nursery.start(served.serve)
            try:
                yield client
            finally:
                with trio.move_on_after(limits.cleanup_s, shield=True):
                    await client.wait_clean()
                served.scope.cancel()


class _Served:
    """The client's own task, from its start until its user is done with it."""

    def __init__(self, run: Callable[..., Awaitable[NoReturn]]) -> None:
        self._run = run
        self.scope = trio.CancelScope()

    async def serve(self, *, task_status: trio.TaskStatus[Client]) -> None:
        def started(client: Client, /) -> None:
            # What cancels the user must not cut the connection first, for leaving a process needs it: see
            # test_a_cancelled_user_of_a_client_still_ends_its_processes. The end of the user's block ends this scope.
            self.scope.shield = True
            task_status.started(client)

        with self.scope:
            try:
                await self._run(task_status=_Says(started))
            except HarnessError:
                # Whoever uses the client hears of it from each call: the context is theirs to leave.
                if not self.scope.shield:
                    raise


@attrs.frozen
class _Says:
    """A task status made of a function."""

    started: Callable[[Client], None]
    """Called with the client once it can be used."""
