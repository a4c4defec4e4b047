"""An executor: sessions of processes, served to any number of channels. Does not know what carries them."""

import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import trio

from actors.executor._channel import MessageChannel
from actors.executor._connection import serve_connection
from actors.executor._events import ConnectionEnded, ConnectionRefused, ExecutorEvent, Observer
from actors.executor._information import gather_information
from actors.executor._launching import ProcessLauncher
from actors.executor._limits import Limits
from actors.executor._outbox import Outbox
from actors.executor._posix_launcher import open_posix_launcher
from actors.executor._process_requests import ProcessRequests
from actors.executor._requests import Handlers, Requests, environment_handlers
from actors.executor._sessions import Sessions
from actors.executor._statistics import Counters, ExecutorStatistics
from actors.protocol import EnvironmentInfo

__all__ = ["Executor", "open_executor"]


def unobserved(event: ExecutorEvent) -> None:
    """Let events pass."""
    del event


class Executor:
    """Owns sessions and their processes. Given by :func:`open_executor`."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        handlers: Handlers,
        information: EnvironmentInfo,
        limits: Limits,
        counters: Counters,
        observer: Observer,
    ) -> None:
        self._sessions, self._handlers, self._information = sessions, handlers, information
        self._counters, self._observer = counters, observer
        self._connections = self._knocking = 0
        self.limits = limits
        """Its bounds."""

    async def serve_channel(self, channel: MessageChannel) -> None:
        """Serve one connection until it ends, for whatever reason.

        Cancelled:
            The channel is closed; its session goes on without a connection for as long as the executor runs.
        """
        self._counters.connections_accepted += 1
        self._connections += 1
        try:
            reason = await serve_connection(
                channel,
                self._requests_of,
                self._counters,
                outbox_bytes=self.limits.outbox_bytes,
                message_bytes_max=self.limits.message_bytes_max,
            )
        finally:
            self._connections -= 1
        self._observer(ConnectionEnded(peer=channel.peer, reason=reason))

    def _requests_of(self, outbox: Outbox, nursery: trio.Nursery) -> Requests:
        return Requests(
            sessions=self._sessions,
            handlers=self._handlers,
            information=self._information,
            outbox=outbox,
            nursery=nursery,
            limits=self.limits,
            counters=self._counters,
        )

    @contextmanager
    def knocking(self) -> Generator[bool, None, None]:
        """Count a peer that has not been let in yet; says whether it may go on."""
        self._knocking += 1
        try:
            yield self._knocking <= self.limits.handshakes_max
        finally:
            self._knocking -= 1

    def has_place(self) -> bool:
        """Whether one more connection may be served."""
        return self._connections < self.limits.connections_max

    def note_refused(self, peer: str, reason: str) -> None:
        """Count and tell that a peer was turned away."""
        self._counters.connections_refused += 1
        self._observer(ConnectionRefused(peer=peer, reason=reason))

    def note_silent(self) -> None:
        """Count a connection that gave no sign of life."""
        self._counters.connections_silent += 1

    def statistics(self) -> ExecutorStatistics:
        """Look at what it counts."""
        return self._counters.snapshot(
            connections=self._connections, sessions=len(self._sessions), processes=self._sessions.running()
        )


@asynccontextmanager
async def open_executor(
    *,
    launcher: ProcessLauncher | None = None,
    limits: Limits | None = None,
    observer: Observer = unobserved,
    information: EnvironmentInfo | None = None,
    variables: Mapping[str, str] | None = None,
) -> AsyncGenerator[Executor, None]:
    """Open an executor for the duration of a block; at its end every process is killed and reaped, within a bound.

    Args:
        launcher: What starts processes; the system's own when ``None``.
        limits: Its bounds; the defaults when ``None``.
        observer: Told what happens.
        information: What `environment/info` says; looked up when ``None``.
        variables: What processes may inherit if their client asks for it; a copy of ``os.environ`` when ``None``.
    """
    limits = limits or Limits()
    information = information or gather_information()
    counters = Counters()
    requests = ProcessRequests(
        variables=dict(os.environ if variables is None else variables),
        platform=information.platform_os or "linux",
    )
    failure: Exception | None = None
    async with AsyncExitStack() as stack:
        if launcher is None:
            launcher = await stack.enter_async_context(open_posix_launcher())
        nursery = await stack.enter_async_context(trio.open_nursery())
        sessions = Sessions(nursery=nursery, launcher=launcher, limits=limits, counters=counters, observer=observer)
        nursery.start_soon(sessions.reminders.run)
        try:
            yield Executor(
                sessions=sessions,
                handlers={**environment_handlers(information), **requests.handlers()},
                information=information,
                limits=limits,
                counters=counters,
                observer=observer,
            )
        except Exception as error:  # It goes on its way below, outside of our nursery: case P20.
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
