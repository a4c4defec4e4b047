"""The logical client: calls and followed processes over connections that come and go.

Three states: connected, recovering, failed; `connection` and `_failure` say which. A call made while recovering waits
for the outcome. A call that was certainly not sent is made again on the next connection; one whose answer was lost is
made again only where that is harmless. Knows neither how connections are made nor what users call.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import trio

from actors.harness._client_values import ClientStatistics, ConnectionChange
from actors.harness._connection import Connection
from actors.harness._errors import (
    AnswerLost,
    CallNotSent,
    CallTimedOut,
    Failed,
    HarnessError,
    InvalidArgument,
    ProcessFailed,
    ProcessStateUnknown,
)
from actors.harness._flow import ReadValve
from actors.harness._followed import Followed
from actors.harness._http_bodies import IncomingBody
from actors.harness._limits import HarnessLimits
from actors.protocol import (
    NEWS,
    PROCESS_READ,
    PROCESS_TERMINATE,
    EnvironmentInfo,
    EventRefused,
    HttpBodyDelta,
    InitializeResult,
    Method,
    MissingChanged,
    Notification,
    ProcessClosed,
    ProcessExited,
    ProcessOutput,
    ProtocolFault,
    ReadParams,
    TerminateParams,
)

P = TypeVar("P")
R = TypeVar("R")

_TRIES_MAX: Final = 8


class Core:
    """State of one logical client. Each change is made in one breath."""

    def __init__(
        self, *, limits: HarnessLimits, new_id: Callable[[], str], on_change: Callable[[ConnectionChange], None] | None
    ) -> None:
        self.limits = limits
        self.new_id = new_id
        self.valve: ReadValve = ReadValve()
        self.session_id: str | None = None
        self.info: EnvironmentInfo | None = None
        self.followed: dict[str, Followed] = {}
        self._bodies: dict[str, IncomingBody] = {}
        self._watches: dict[int, trio.Event] = {}
        self._watches_made = 0
        self.connection: Connection | None = None
        self.nursery: trio.Nursery | None = None
        self._failure: HarnessError | None = None
        self._on_change = on_change
        self._lot = trio.lowlevel.ParkingLot()
        self._position = 0
        self._connections = 0
        self._unknown_news = 0
        self._cleanups_failed = 0
        # Tasks of our own that see to processes nobody wants any more, or that are only being started.
        self._chores = 0
        self._chores_lot = trio.lowlevel.ParkingLot()

    @property
    def failure(self) -> HarnessError | None:
        """Why this client is of no use any more."""
        return self._failure

    def statistics(self) -> ClientStatistics:
        """Give a snapshot."""
        return ClientStatistics(
            connections=self._connections,
            followed_processes=len(self.followed),
            unknown_news=self._unknown_news,
            read_pauses=self.valve.pauses,
            cleanups_failed=self._cleanups_failed,
        )

    def install(self, connection: Connection, result: InitializeResult) -> None:
        """Use this connection from now on."""
        self.connection = connection
        self.session_id = result.session_id
        self.info = result.environment_info or self.info
        self._connections += 1
        self._lot.unpark_all()
        self._tell_change(connected=True)

    def lost(self, reason: HarnessError) -> None:
        """Begin recovering."""
        self.connection = None
        self._end_with_connection(reason)
        self._tell_change(connected=False, reason=reason)

    def fail(self, reason: HarnessError) -> None:
        """Give up: every wait of this client ends with the reason."""
        if self._failure is not None:
            return
        self._failure = reason
        self.connection, self.nursery = None, None
        for followed in self.followed.values():
            followed.fail(ProcessStateUnknown(followed.process_id, followed.backlog.arrived_seq, reason))
        self._end_with_connection(reason)
        self._lot.unpark_all()
        if self._connections:
            self._tell_change(connected=False, reason=reason, final=True)

    def retire(self, reason: HarnessError) -> None:
        """Give up for a reason of ours, and let the harness end; what ended before has its own reason."""
        connection, nursery = self.connection, self.nursery
        self.fail(reason)
        if connection is not None:
            connection.end(reason)
        if nursery is not None:
            nursery.cancel_scope.cancel()

    def _tell_change(self, **facts: Any) -> None:
        self._position += 1
        if self._on_change is not None:
            self._on_change(ConnectionChange(position=self._position, **facts))

    async def call(
        self,
        method: Method[P, R],
        params: P,
        *,
        timeout_s: float | None = None,
        identity: str = "",
        cleanup: bool = False,
        repeat: bool = False,
    ) -> R:
        """Call a method, waiting for a connection; ``repeat`` says that twice is as good as once.

        Raises:
            DidNotRun: It was never written.
            MayHaveRun: It was written, and no answer came.
            Failed: The answer is an error.

        Cancelled:
            As `Connection.call`.
        """
        last: HarnessError | None = None
        for _ in range(_TRIES_MAX):
            try:
                connection = await self._connected(method.name, identity)
                return await connection.call(method, params, timeout_s=timeout_s, identity=identity, cleanup=cleanup)
            except CallNotSent as error:
                # Once an answer was lost, "not sent" is only true of the last try.
                last = last if isinstance(last, AnswerLost) else error
                if self._failure is not None or isinstance(error.reason, CallTimedOut):
                    raise last from last.__cause__
            except AnswerLost as error:
                last = error
                if not repeat:
                    raise
        assert last is not None, "every try ended in an error"
        raise last

    async def call_for_body(self, method: Method[P, R], params: P, request_id: str) -> tuple[R, IncomingBody]:
        """Call a method whose answer is followed by a body; it lives as long as the connection it was asked on.

        Raises:
            HarnessError: As `call`. No body is expected then.

        Cancelled:
            As `call`.
        """
        for tries_left in reversed(range(_TRIES_MAX)):
            connection = await self._connected(method.name, request_id)
            body = IncomingBody(request_id, limits=self.limits, valve=self.valve)
            self._bodies[request_id] = body
            try:
                return await connection.call(method, params, timeout_s=None, identity=request_id), body
            except CallNotSent:
                self.forget_body(body)
                if not tries_left or self._failure is not None:
                    raise
            except BaseException:
                self.forget_body(body)
                raise
        raise AssertionError("the last try returns or raises")

    def forget_body(self, body: IncomingBody) -> None:
        """Drop whatever still comes of a body."""
        if self._bodies.get(body.request_id) is body:
            del self._bodies[body.request_id]
        body.forget()

    @contextmanager
    def expecting_change(self) -> Generator[tuple[int, trio.Event], None, None]:
        """Give a number for a watch, and what is set when it reports, or when its connection is lost."""
        self._watches_made += 1
        watch_id, changed = self._watches_made, trio.Event()
        self._watches[watch_id] = changed
        try:
            with self.valve.someone_waits():
                yield watch_id, changed
        finally:
            self._watches.pop(watch_id, None)

    def _end_with_connection(self, reason: HarnessError) -> None:
        for changed in self._watches.values():
            changed.set()
        for body in self._bodies.values():
            body.fail(str(reason))

    async def _connected(self, method: str, identity: str) -> Connection:
        while self._failure is None:
            if self.connection is not None and self.connection.lost is None:
                return self.connection
            await self._lot.park()
        raise CallNotSent(method, self._failure, identity=identity) from self._failure

    def on_news(self, notification: Notification) -> None:
        """Give an event to its process; raises `InvalidParams`."""
        news = NEWS.get(notification.method)
        event = news.decode_params(notification.params) if news is not None else None
        if isinstance(event, HttpBodyDelta):
            self._on_piece(event)
            return
        if isinstance(event, MissingChanged) and event.watch_id in self._watches:
            self._watches[event.watch_id].set()
            return
        if not isinstance(event, ProcessOutput | ProcessExited | ProcessClosed):
            self._unknown_news += 1
            return
        followed = self.followed.get(event.process_id)
        if followed is None:
            self._unknown_news += 1
            return
        try:
            followed.accept(event)
        except EventRefused:
            # Too much came out of order: what was refused is asked for again, not lost.
            self._refetch_soon(followed)

    def _on_piece(self, delta: HttpBodyDelta) -> None:
        body = self._bodies.get(delta.request_id)
        if body is None:
            self._unknown_news += 1
        else:
            body.accept(delta)

    def follow(self, process_id: str) -> Followed:
        """Expect events of a process, from before it is started."""
        if process_id in self.followed:
            raise InvalidArgument("process_id", f"process `{process_id}` is in use by this client")
        if len(self.followed) >= self.limits.processes:
            raise InvalidArgument("process_id", f"this client follows {self.limits.processes} processes, its limit")
        followed = Followed(process_id, limits=self.limits, valve=self.valve)
        self.followed[process_id] = followed
        if self._failure is not None:
            followed.fail(ProcessStateUnknown(process_id, 0, self._failure))
        return followed

    def forget(self, followed: Followed) -> None:
        """Drop whatever still comes of a process."""
        if self.followed.get(followed.process_id) is followed:
            del self.followed[followed.process_id]
        followed.forget()

    def _refetch_soon(self, followed: Followed) -> None:
        if self.nursery is not None and not followed.refetching:
            followed.refetching = True
            self.nursery.start_soon(self._refetch, followed)

    async def _refetch(self, followed: Followed) -> None:
        try:
            await self.refetch(followed)
        except HarnessError as error:
            followed.fail(ProcessStateUnknown(followed.process_id, followed.backlog.arrived_seq, error))
        finally:
            followed.refetching = False

    async def refetch(self, followed: Followed) -> None:
        """Ask the executor for everything after the last event that came."""
        params = ReadParams(process_id=followed.process_id, after_seq=followed.backlog.arrived_seq, wait_ms=0)
        answer = await self.call(PROCESS_READ, params, identity=followed.process_id, repeat=True)
        self.merge(followed, answer)

    def merge(self, followed: Followed, answer: Any) -> None:
        """Take a read answer; a process that it cannot continue fails and is ended."""
        try:
            followed.recover(answer)
        except ProtocolFault as fault:
            self.give_up(followed, str(fault))

    def give_up(self, followed: Followed, why: str) -> None:
        """Fail one process and end it at the executor."""
        reason = f"failed to recover process {followed.process_id}: {why}"
        followed.fail(ProcessFailed(followed.process_id, followed.backlog.arrived_seq, reason))
        self.terminate_soon(followed.process_id)

    def terminate_soon(self, process_id: str) -> None:
        """Tell the executor, from a task of the client's own, that nobody wants a process any more."""
        self.call_soon(PROCESS_TERMINATE, TerminateParams(process_id=process_id), identity=process_id)

    def call_soon(self, method: Method[P, R], params: P, *, identity: str) -> None:
        """Tell the executor, from a task of the client's own, that something is no longer wanted."""
        self.begin_chore(partial(self._clean_up, method, params, identity))

    def begin_chore(self, chore: Callable[[], Awaitable[None]]) -> bool:
        """Do something in a task of the client's own, whoever is cancelled meanwhile; False when it has ended."""
        if self.nursery is None:
            return False
        self._chores += 1
        self.nursery.start_soon(self._do_chore, chore)
        return True

    async def _do_chore(self, chore: Callable[[], Awaitable[None]]) -> None:
        try:
            await chore()
        finally:
            self._chores -= 1
            self._chores_lot.unpark_all()

    async def wait_chores(self) -> None:
        """Return when no chore is left."""
        await trio.lowlevel.checkpoint()
        while self._chores:
            await self._chores_lot.park()

    async def _clean_up(self, method: Method[Any, Any], params: Any, identity: str) -> None:
        try:
            await self.call(method, params, identity=identity, cleanup=True, repeat=True)
        except Failed:
            pass  # It answered: there is nothing left to tell.
        except HarnessError:
            self._cleanups_failed += 1
