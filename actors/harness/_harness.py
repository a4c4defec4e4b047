"""A harness as a child of a supervisor, and as a context."""

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NoReturn, Protocol

import trio

from actors.harness._channel import Dialer
from actors.harness._client import Client
from actors.harness._core import ConnectionChange, Core
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
    raise end


@asynccontextmanager
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
            client = await nursery.start(_serve, run)
            yield client
            nursery.cancel_scope.cancel()


class _Once:
    """Remembers that the client was handed out."""

    def __init__(self, status: trio.TaskStatus[Client]) -> None:
        self._status = status
        self.reached = False

    def started(self, client: Client, /) -> None:
        self.reached = True
        self._status.started(client)


async def _serve(run: Callable[..., Awaitable[NoReturn]], *, task_status: trio.TaskStatus[Client]) -> None:
    once = _Once(task_status)
    try:
        await run(task_status=once)
    except HarnessError:
        # Whoever uses the client hears of it from each call: the context is theirs to leave.
        if not once.reached:
            raise
