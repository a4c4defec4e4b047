"""Open a host: the guard, engine processes and sessions as supervised children, and the listener in front."""

import tempfile
from collections.abc import AsyncGenerator
from types import ModuleType
from typing import TYPE_CHECKING

import trio

from actors.blocks import block
from actors.sessions._arguments import check_kind
from actors.sessions.host._alarms import Alarms
from actors.sessions.host._engines import Engine, find_engine
from actors.sessions.host._errors import WallsMissing
from actors.sessions.host._launching import GuardLauncher, Walls, launcher_for
from actors.sessions.host._listening import read_listen
from actors.sessions.host._options import HostOptions, HostStatistics
from actors.sessions.host._pool import EnginePool
from supervision import ChildSpec, ChildStatus, open_root

if TYPE_CHECKING:
    from actors.sessions.grpc import Server
    from actors.sessions.host._host import Host


class RunningHost:
    """A host that serves."""

    def __init__(self, host: "Host", server: "Server", endpoint: str, engine: Engine, walls: Walls) -> None:
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
            # While engines start, which takes about as long; on another thread, so that they are heard meanwhile.
            serving = await trio.to_thread.run_sync(_import_serving)
            walls = await launcher.probe(place)
            if options.walls_required and walls.missing:
                raise WallsMissing(walls.missing)
            host = serving.Host(options, engine, await root.start_pool("sessions"), engines, alarms)
            async with serving.served(host, where, options) as (server, endpoint):
                try:
                    yield RunningHost(host, server, endpoint, engine, walls)
                finally:
                    engines.stop()


def _import_serving() -> ModuleType:
    from actors.sessions.host import _serving

    return _serving


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
