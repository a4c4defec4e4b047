"""A host: an engine, sessions and their cells as supervised children, and the listener in front of them."""

import ssl
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import attrs
import trio

from actors.blocks import block, open_helpers
from actors.sessions._arguments import check_kind, flag, not_negative, of_kind, positive, text_or_none
from actors.sessions._wire import _methods as methods
from actors.sessions._wording import oversize_status
from actors.sessions.grpc import (
    RAW,
    Limits,
    Method,
    Route,
    Server,
    ServerOptions,
    addresses_of,
    server_stream,
    unary,
    unary_now,
)
from actors.sessions.host._alarms import Alarms
from actors.sessions.host._engine_shelf import EngineShelf, ShelfOptions
from actors.sessions.host._engines import Engine, find_engine
from actors.sessions.host._errors import WallsMissing
from actors.sessions.host._health import answer_http1
from actors.sessions.host._launching import GuardLauncher, Walls, launcher_for
from actors.sessions.host._listening import guarded, read_listen
from actors.sessions.host._pool import EnginePool
from actors.sessions.host._service import CodeModeService
from actors.sessions.host._session import Session, SessionOptions
from actors.sessions.host._stored import STORED_BYTES_MAX, STORED_OF_HEAP
from supervision import ChildSpec, ChildStatus, Pool, Restart, open_root

Request = TypeVar("Request")
_MIB: Final = 1024 * 1024
_CALLS_MAX: Final = 10_000
_HEAP_LEAST_BYTES: Final = 16 * _MIB


@attrs.frozen(kw_only=True)
class HostOptions:
    """How a host runs cells. Every bound has a default.

    Attributes:
        engine_path: A deno or node to use and no other; None finds one.
        heap_bytes: Room for JavaScript in one process, unless the session asks for its own.
        warm_engines: Processes that are kept ready for the first cells of sessions.
        starters: Processes that may be starting at once.
        cells_max: Live cells of all sessions together.
        cells_per_session_max: Live cells of one session.
        cells_per_engine_max: Cells that one process may serve; 1 gives every cell its own, None is what suits the
            engine.
        cell_deadline_s: How long a script may run; None is for ever.
        stored_bytes_max: What the values that the cells of one session store may take, keys and JSON together; and
            never more than an eighth of the room for JavaScript of its processes, which hold them all.
        walls_required: Whether to refuse to start where an engine process would not stand behind every wall of `WALLS`.
        token: A bearer token that every call has to show; None asks for none.
        ssl_context: With a certificate, to speak TLS.
    """

    engine_path: str | None = attrs.field(default=None, validator=text_or_none)

    heap_bytes: int = attrs.field(default=512 * _MIB, validator=positive)

    warm_engines: int = attrs.field(default=2, validator=not_negative)

    starters: int = attrs.field(default=2, validator=positive)

    cells_max: int = attrs.field(default=2048, validator=positive)

    cells_per_session_max: int = attrs.field(default=2048, validator=positive)

    cells_per_engine_max: int | None = attrs.field(default=None, validator=positive)

    cell_deadline_s: float | None = attrs.field(default=None, validator=positive)

    stored_bytes_max: int = attrs.field(default=STORED_BYTES_MAX, validator=positive)

    walls_required: bool = attrs.field(default=False, validator=flag)

    token: str | None = attrs.field(default=None, repr=False, validator=text_or_none)

    ssl_context: ssl.SSLContext | None = attrs.field(
        default=None, repr=False, validator=of_kind(ssl.SSLContext, or_none=True)
    )


@attrs.frozen(kw_only=True)
class HostStatistics:
    """What a host is doing.

    Attributes:
        sessions: Open sessions.
        cells: Live cells.
        engines: Engine processes, the warm ones too.
        engines_started: Engine processes that were ever started.
        stored_bytes: What the values that cells have stored take, of all sessions together.
        stores_refused: Values that were ever refused because their session had no room for them.
        walls: Limits of the operating system that hold for the latest engine process.
    """

    sessions: int

    cells: int

    engines: int

    engines_started: int

    stored_bytes: int

    stores_refused: int

    walls: tuple[str, ...]


class Host:
    """Keeps sessions by id and gives each what it needs."""

    def __init__(
        self, options: HostOptions, engine: Engine, children: Pool, engines: EnginePool, alarms: Alarms
    ) -> None:
        self._options, self._engine = options, engine
        self._children, self._engines, self._alarms = children, engines, alarms
        self._sessions: dict[str, Session] = {}
        self._cells = 0
        self._stores_refused = 0  # In sessions that have ended.

    @property
    def cells_full(self) -> bool:
        """Whether there are as many cells as there may be."""
        return self._cells >= self._options.cells_max

    def statistics(self) -> HostStatistics:
        """Count what there is."""
        walls = [process.walls for process in self._engines.alive if process.ready]
        return HostStatistics(
            sessions=len(self._sessions),
            cells=self._cells,
            engines=len(self._engines.alive),
            engines_started=self._engines.started,
            stored_bytes=sum(session.stored.bytes for session in self._sessions.values()),
            stores_refused=self._stores_refused + sum(session.stored.refused for session in self._sessions.values()),
            walls=walls[-1] if walls else (),
        )

    def find(self, session_id: str, /) -> Session | None:
        """Find a session that has not ended."""
        return self._sessions.get(session_id)

    async def open(self, options: SessionOptions, heap_bytes: int | None, /) -> Session:
        """Open a session as a child of its own.

        Cancelled:
            No session is left.
        """
        limit = self._options.cells_per_engine_max
        granted = None if heap_bytes is None else self._granted(heap_bytes)
        shelf = EngineShelf(
            self._engines,
            self._alarms,
            ShelfOptions(
                heap_bytes=granted,
                cells_max=self._engine.cells_per_process_max if limit is None else limit,
            ),
        )
        session = Session(
            options,
            shelf,
            self._alarms,
            cells_max=self._options.cells_per_session_max,
            cell_deadline_s=self._options.cell_deadline_s,
            stored_bytes_max=min(
                self._options.stored_bytes_max, (granted or self._options.heap_bytes) // STORED_OF_HEAP
            ),
            on_cell=self._count_cells,
            on_end=self._forget,
        )
        self._sessions[session.session_id] = session
        try:
            await self._children.start_child(
                ChildSpec(f"session-{session.session_id}", _keep, session, restart=Restart.TEMPORARY)
            )
        except BaseException:
            session.end()
            raise
        return session

    def drain(self) -> None:
        """Let every session end once nobody waits for one of its cells."""
        for session in [*self._sessions.values()]:
            session.drain()

    def _granted(self, heap_bytes: int) -> int:
        """Hold what a session asks for between what an engine needs and what this host gives."""
        return max(_HEAP_LEAST_BYTES, min(heap_bytes, self._options.heap_bytes))

    def _count_cells(self, change: int) -> None:
        self._cells += change

    def _forget(self, session: Session) -> None:
        if self._sessions.pop(session.session_id, None) is not None:
            self._stores_refused += session.stored.refused


async def _keep(session: Session, *, task_status: ChildStatus[None]) -> None:
    """Be a session: end it when asked, and be there until it has ended."""
    task_status.on_stop(session.end)
    task_status.started()
    try:
        await session.ended.wait()
    finally:
        session.end()


class RunningHost:
    """A host that serves."""

    def __init__(self, host: Host, server: Server, endpoint: str, engine: Engine, walls: Walls) -> None:
        self._host, self._server = host, server
        self.endpoint = endpoint
        """What to dial."""
        self.engine = engine
        """What runs JavaScript."""
        self.walls = walls
        """What stands around it."""

    def statistics(self) -> HostStatistics:
        """Count what there is."""
        return self._host.statistics()

    async def drain(self, *, grace_s: float) -> None:
        """Take no new connections and calls, end each session once nobody waits for its cells, and all after `grace_s`.

        Cancelled:
            The draining goes on; only the bound is gone.
        """
        self._host.drain()
        await self._server.drain(grace_s=grace_s)


@block
async def open_host(listen: str, *, options: HostOptions | None = None) -> AsyncGenerator[RunningHost, None]:
    """Serve code sessions while the block runs.

    Args:
        listen: `grpc://ADDRESS:PORT`, port 0 for a free one, or `unix:PATH`.
        options: How cells are run.

    Raises:
        EngineNotFound: There is nothing to run JavaScript with.
        ListenRefused: Others could reach the address, and there is no token or no TLS.
        WallsMissing: Walls are required, and cannot all be had.
        ValueError: `listen` cannot be read.
        OSError: The address cannot be listened on.

    Cancelled:
        Leases end, cells are terminated, engine processes are killed and reaped.
    """
    check_kind("listen", listen, str)
    check_kind("options", options, HostOptions, or_none=True)
    options = options or HostOptions()
    where = read_listen(listen)
    where.check(token=options.token is not None, tls=options.ssl_context is not None)
    engine = await trio.to_thread.run_sync(find_engine, options.engine_path)
    with tempfile.TemporaryDirectory(prefix="greenroom-", ignore_cleanup_errors=True) as place:
        async with open_root("code-sessions") as root:
            alarms, launcher = Alarms(), launcher_for(engine, place)
            if isinstance(launcher, GuardLauncher):
                # The first to start is the last to end: processes are ended through it.
                await root.start_child(ChildSpec("guard", launcher.run))
            engines = EnginePool(
                await root.start_pool("engines"),
                launcher,
                engine,
                place,
                heap_bytes=options.heap_bytes,
                warm=options.warm_engines,
                starters=options.starters,
            )
            engines.refill()
            await root.start_child(ChildSpec("alarms", alarms.run))
            await root.start_child(ChildSpec("memory", engines.watch))
            walls = await launcher.probe(place)
            if options.walls_required and walls.missing:
                raise WallsMissing(walls.missing)
            host = Host(options, engine, await root.start_pool("sessions"), engines, alarms)
            routes = routes_for(CodeModeService(host))
            server = Server(routes if options.token is None else guarded(routes, options.token), _server_options())
            # Outside every nursery of ours: an address that is taken is told as it is.
            listeners = await where.open(options.ssl_context)
            async with _served(server, listeners):
                endpoint = where.endpoint(addresses_of(listeners)[0], tls=options.ssl_context is not None)
                try:
                    yield RunningHost(host, server, endpoint, engine, walls)
                finally:
                    engines.stop()


@asynccontextmanager
async def _served(server: Server, listeners: Sequence[trio.abc.Listener[Any]]) -> AsyncGenerator[None, None]:
    async with open_helpers() as nursery:
        await nursery.start(server.serve, listeners)
        yield


async def serve_host(
    listen: str,
    *,
    options: HostOptions | None = None,
    task_status: "trio.TaskStatus[str] | ChildStatus[str]" = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve code sessions until cancelled; `task_status` is given the endpoint to dial.

    Args:
        listen: As `open_host` takes it.
        options: How cells are run.
        task_status: As `nursery.start` and supervisors give it.

    Raises:
        EngineNotFound: There is nothing to run JavaScript with.
        ListenRefused: Others could reach the address, and there is no token or no TLS.
        WallsMissing: Walls are required, and cannot all be had.
        ValueError: `listen` cannot be read.
        OSError: The address cannot be listened on.

    Cancelled:
        As `open_host`.
    """
    async with open_host(listen, options=options) as running:
        task_status.started(running.endpoint)
        await trio.sleep_forever()


def _server_options() -> ServerOptions:
    limits = Limits(concurrent_calls_max=_CALLS_MAX, oversize_status=oversize_status)
    return ServerOptions(limits=limits, other_protocol=answer_http1)


def routes_for(service: CodeModeService) -> list[Route]:
    """Join the methods of the service with its handlers."""
    return [
        server_stream(methods.OPEN_SESSION, service.open_session),
        unary_now(methods.CLOSE_SESSION, service.close_session),
        server_stream(_answered_raw(methods.SUBSCRIBE_TO_TOOL_CALLS), service.subscribe_to_tool_calls),
        unary_now(methods.COMPLETE_TOOL_CALL, service.complete_tool_call),
        unary_now(methods.ACKNOWLEDGE_NOTIFICATION, service.acknowledge_notification),
        server_stream(_answered_raw(methods.EXECUTE), service.execute),
        unary(_answered_raw(methods.WAIT), service.wait),
        unary_now(methods.YIELD_OBSERVATION, service.yield_observation),
        unary_now(methods.CANCEL_WAIT, service.cancel_wait),
        unary_now(_answered_raw(methods.TERMINATE), service.terminate),
        unary_now(methods.GET_PROCESS_METRICS, service.get_process_metrics),
    ]


def _answered_raw(method: Method[Request, Any]) -> Method[Request, bytes]:
    """Let the service write the answers itself."""
    return Method(method.path, method.request, RAW, server_streaming=method.server_streaming)
