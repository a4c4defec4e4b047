"""An executor: sessions of processes, served to any number of channels. Does not know what carries them."""

import os
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import PurePath

import trio

from actors.blocks import block, open_helpers
from actors.executor._capability_requests import CapabilityRequests
from actors.executor._channel import MessageChannel
from actors.executor._connection import serve_connection
from actors.executor._events import ConnectionEnded, ConnectionRefused, ExecutorEvent, Observer
from actors.executor._file_requests import FileRequests, Files
from actors.executor._file_tree import open_file_tree
from actors.executor._http_requests import HttpAccess, HttpRequests
from actors.executor._information import gather_information, with_http
from actors.executor._launching import ProcessLauncher
from actors.executor._limits import Limits
from actors.executor._outbox import Outbox
from actors.executor._posix_launcher import open_posix_launcher
from actors.executor._process_requests import ProcessRequests
from actors.executor._requests import Handlers, Requests, environment_handlers
from actors.executor._sessions import Sessions
from actors.executor._settings import check_callable, check_kind, check_variables
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
        files: Files,
        http: HttpAccess | None,
        information: EnvironmentInfo,
        limits: Limits,
        counters: Counters,
        observer: Observer,
    ) -> None:
        self._sessions, self._handlers, self._information = sessions, handlers, information
        self._files, self._http = files, http
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
        # Open files belong to a connection, so each has handlers of its own for them.
        files = FileRequests(self._files, outbox, nursery)
        http: Handlers = {} if self._http is None else HttpRequests(self._http, outbox).handlers()
        return Requests(
            sessions=self._sessions,
            handlers={
                **self._handlers,
                **files.handlers(),
                **CapabilityRequests(self._files, files).handlers(),
                **http,
            },
            closing=files.close,
            information=self._information,
            outbox=outbox,
            nursery=nursery,
            limits=self.limits,
            counters=self._counters,
            observer=self._observer,
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

    def note_silent(self, peer: str, reason: str) -> None:
        """Count and tell that a connection gave no sign of life and was ended for it."""
        self._counters.connections_silent += 1
        self._observer(ConnectionEnded(peer=peer, reason=reason))

    def statistics(self) -> ExecutorStatistics:
        """Look at what it counts."""
        return self._counters.snapshot(
            connections=self._connections, sessions=len(self._sessions), processes=self._sessions.running()
        )


def _check(
    launcher: object, limits: object, observer: object, information: object, variables: Mapping[str, str] | None
) -> None:
    check_kind("limits", limits, Limits)
    check_kind("information", information, EnvironmentInfo)
    check_callable("observer", observer)
    if launcher is not None:
        check_callable("launcher.launch", getattr(launcher, "launch", None))
    if variables is not None:
        check_variables("variables", variables)


@block
async def open_executor(
    *,
    launcher: ProcessLauncher | None = None,
    limits: Limits | None = None,
    observer: Observer = unobserved,
    information: EnvironmentInfo | None = None,
    variables: Mapping[str, str] | None = None,
    file_roots: Sequence[str | PurePath] | None = None,
    http: bool = False,
) -> AsyncGenerator[Executor, None]:
    """Open an executor for the duration of a block; at its end every process is killed and reaped, within a bound.

    Args:
        launcher: What starts processes; the system's own when ``None``.
        limits: Its bounds; the defaults when ``None``.
        observer: Told what happens.
        information: What `environment/info` says; looked up when ``None``.
        variables: What processes may inherit if their client asks for it; a copy of ``os.environ`` when ``None``.
        file_roots: Folders that hold everything clients may reach through files and start processes in; the whole
            machine when ``None``. What a process does once it runs is its own affair.
        http: Make HTTP requests for clients. They go out from here, through this machine's proxies, and may carry
            ``variables`` in their headers.

    Raises:
        SettingInvalid: One of these is of another kind; nothing was opened.
        RootUnusable: One of the roots is no folder.

    Cancelled:
        As at its end: every process is killed and reaped, within a bound.
    """
    limits = limits if limits is not None else Limits()
    information = information if information is not None else gather_information()
    _check(launcher, limits, observer, information, variables)
    check_kind("http", http, bool)
    information = with_http(information) if http else information
    counters = Counters()
    platform = information.platform_os or "linux"
    async with AsyncExitStack() as stack:
        roots = None if file_roots is None else [os.fspath(root) for root in file_roots]
        tree = stack.enter_context(open_file_tree(roots))
        if launcher is None:
            launcher = await stack.enter_async_context(open_posix_launcher(None if roots is None else tree))
        variables = dict(os.environ if variables is None else variables)
        requests = ProcessRequests(variables=variables, platform=platform, tree=tree)
        access = HttpAccess(variables=variables, limits=limits, counters=counters, observer=observer)
        stack.push_async_callback(access.client.aclose)
        afterwards = stack.enter_context(ExitStack())
        nursery = await stack.enter_async_context(open_helpers())
        sessions = Sessions(nursery=nursery, launcher=launcher, limits=limits, counters=counters, observer=observer)
        afterwards.callback(sessions.kill_left_behind)
        nursery.start_soon(sessions.reminders.run)
        yield Executor(
            sessions=sessions,
            handlers={**environment_handlers(information), **requests.handlers()},
            http=access if http else None,
            files=Files(tree, limits=limits, platform=platform),
            information=information,
            limits=limits,
            counters=counters,
            observer=observer,
        )
