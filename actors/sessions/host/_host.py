"""The sessions of a host, by id, each a supervised child, and what they share."""

from typing import Final

from actors.sessions.host._alarms import Alarms
from actors.sessions.host._engine_shelf import EngineShelf, ShelfOptions
from actors.sessions.host._engines import Engine
from actors.sessions.host._options import HostOptions, HostStatistics
from actors.sessions.host._pool import EnginePool
from actors.sessions.host._session import Session, SessionOptions
from actors.sessions.host._stored import STORED_OF_HEAP
from supervision import ChildSpec, ChildStatus, Pool, Restart

_HEAP_LEAST_BYTES: Final = 16 * 1024 * 1024


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
