"""The thread between a session and one host session: its calls, its tasks, and whether it still stands.

All ways to end it meet in `end`, which is synchronous: whoever looks afterwards sees it ended, with the reason.
"""

import enum
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar, TypeVarTuple

import trio

from actors.sessions._errors import (
    HostTimedOut,
    InvalidRequest,
    SessionClosed,
    SessionsError,
    SessionStopped,
    WaitNotRetired,
    call_failed,
)
from actors.sessions._retirement import failure_retires, silence_retires
from actors.sessions._wording import Operation
from actors.sessions.grpc import CallFailed, Channel, ChannelClosed, InvalidMetadata, Method, Reply

Request = TypeVar("Request")
Response = TypeVar("Response")
Arguments = TypeVarTuple("Arguments")

CALL_S: Final = 60.0
"""How long the host may take over anything that does not itself wait."""

ROUTE_KEY: Final = "x-code-mode-route"
ROUTE_LOST_KEY: Final = "x-code-mode-route-lost"


class Phase(enum.Enum):
    """How far a link is."""

    OPENING = "opening"
    LIVE = "live"
    CLOSING = "closing"
    CLOSED = "closed"


class Link:
    """Carries the calls of one host session."""

    def __init__(self, channel: Channel, nursery: trio.Nursery, traceparent: Callable[[], str | None]) -> None:
        self.channel: Channel = channel
        self._nursery = nursery
        self._traceparent = traceparent
        self.phase: Phase = Phase.OPENING
        self.reason: SessionsError | None = None
        self.session_id = ""
        self.route: str | None = None
        self.on_end: Callable[[], None] = lambda: None
        # Every scope here is open, and is cancelled when the link ends.
        self._scopes: set[trio.CancelScope] = set()
        self._tasks = 0
        self._task_ended = trio.lowlevel.ParkingLot()

    def metadata(self, *, traced: bool = False) -> list[tuple[str, str]]:
        """Return what goes beside each call of this session, and the caller's trace where it is wanted."""
        pairs = [] if self.route is None else [(ROUTE_KEY, self.route)]
        parent = self._traceparent() if traced else None
        return pairs if parent is None else [*pairs, ("traceparent", parent)]

    # --- calls

    async def unary(
        self, operation: Operation, method: Method[Request, Response], message: Request, *, timeout_s: float = CALL_S
    ) -> Reply[Response]:
        """Make one call, once.

        Raises:
            SessionsError: It failed; the link has ended if that is what the failure means.
        """
        with self.bounded(operation, timeout_s):
            try:
                return await self.request(method, message)
            except CallFailed as failed:
                raise self.judged(operation, failed) from failed
        raise AssertionError("a block that was cut short raises")

    async def request(self, method: Method[Request, Response], message: Request) -> Reply[Response]:
        """Make one call and leave it to the caller to judge."""
        try:
            return await self.channel.unary_reply(method, message, metadata=self.metadata())
        except ChannelClosed as closed:
            raise SessionClosed from closed
        except InvalidMetadata as invalid:
            raise InvalidRequest(str(invalid)) from invalid

    @contextmanager
    def bounded(self, operation: Operation, timeout_s: float) -> Generator[trio.CancelScope]:
        """Run a block until it ends, its time is over or the link ends.

        Raises:
            HostTimedOut: Its time was over.
            SessionsError: The link ended, or had ended.
        """
        if self.phase is Phase.CLOSED:
            raise self.closed_error()
        with trio.CancelScope(deadline=trio.current_time() + timeout_s) as scope:
            self._scopes.add(scope)
            try:
                yield scope
            finally:
                self._scopes.discard(scope)
        if scope.cancelled_caught:
            raise self.interrupted(operation)

    def interrupted(self, operation: Operation) -> SessionsError:
        """Say why a bounded block was cut short, and end the link if silence means that."""
        error, over = self.why_interrupted(operation)
        if over:
            self.end(error)
        return error

    def why_interrupted(self, operation: Operation) -> tuple[SessionsError, bool]:
        """Say why a bounded block was cut short, and whether the link is to end for it."""
        if self.phase is Phase.CLOSED:
            return self.stopped(), False
        return HostTimedOut(operation), silence_retires(operation)

    def judged(self, operation: Operation, failed: CallFailed) -> SessionsError:
        """Say what a failed call means to the caller, and end the link if it means that."""
        error, over = self.verdict(operation, failed)
        if over:
            self.end(error)
        return error

    def verdict(self, operation: Operation, failed: CallFailed) -> tuple[SessionsError, bool]:
        """Say what a failed call means to the caller, and whether the link is to end for it."""
        error: SessionsError = call_failed(operation, failed.code, failed.status.message)
        if operation is Operation.WAIT_CANCELLATION:
            error = WaitNotRetired(str(error))
        error.__cause__ = failed
        lost = any("true" in pairs.get_all(ROUTE_LOST_KEY) for pairs in (failed.trailers, failed.headers))
        return error, failure_retires(operation, failed.code, route_lost=lost, routed=self.route is not None)

    def stopped(self) -> SessionStopped:
        """Make the error for whoever was under way when the link ended."""
        stopped = SessionStopped()
        stopped.__cause__ = self.reason
        return stopped

    def closed_error(self) -> SessionsError:
        """Return the recorded reason of the end."""
        return self.reason or SessionStopped()

    # --- tasks

    def start(self, work: Callable[[*Arguments], Awaitable[object]], *args: *Arguments) -> None:
        """Run a task that ends with the link. A `SessionsError` out of it ends the link."""
        if self.phase is not Phase.CLOSED:
            self._tasks += 1
            self._nursery.start_soon(self._own, work, args)

    async def _own(self, work: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> None:
        try:
            with trio.CancelScope() as scope:
                self._scopes.add(scope)
                if self.phase is Phase.CLOSED:
                    scope.cancel()
                try:
                    await work(*args)
                except SessionsError as fault:
                    self.end(fault)
                except InvalidMetadata as invalid:
                    # A trace parent or route that cannot be written; nothing of this session can be sent.
                    self.end(InvalidRequest(str(invalid)))
                finally:
                    self._scopes.discard(scope)
        finally:
            self._tasks -= 1
            self._task_ended.unpark_all()

    async def join(self) -> None:
        """Wait until every task has ended."""
        while self._tasks:
            await self._task_ended.park()

    # --- the end

    def end(self, reason: SessionsError) -> None:
        """End at once, for a reason, unless it has ended or is being closed politely."""
        if self.phase is not Phase.CLOSING:
            self.finish(reason)

    def finish(self, reason: SessionsError) -> None:
        """End at once, also out of a polite closing."""
        if self.phase is Phase.CLOSED:
            return
        self.phase = Phase.CLOSED
        self.reason = reason
        for scope in [*self._scopes]:
            scope.cancel()
        self.on_end()
