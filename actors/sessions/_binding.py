"""One host session: opened with retries, read until it ends, its end told to everyone it concerns."""

import random
from collections.abc import Callable

import trio

from actors.sessions._admission import pause_before_next_s
from actors.sessions._book import CellBook
from actors.sessions._callbacks import Callbacks
from actors.sessions._catalogue import Catalogue
from actors.sessions._delegate import NO_DELEGATE, Report
from actors.sessions._errors import (
    HostTimedOut,
    Lost,
    ProtocolViolation,
    SessionClosed,
    SessionsError,
    call_failed,
)
from actors.sessions._executions import Executions
from actors.sessions._journal import Journal
from actors.sessions._link import CALL_S, ROUTE_KEY, Link, Phase
from actors.sessions._promise import Promise
from actors.sessions._pulse import Pulse
from actors.sessions._responses import Result
from actors.sessions._translation import open_session_message
from actors.sessions._values import (
    IDENTIFIER_BYTES_MAX,
    ExecuteRequest,
    OutputTruncation,
    SessionOptions,
)
from actors.sessions._waits import Waits
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions._wire._methods import CLOSE_SESSION, OPEN_SESSION, SUBSCRIBE_TO_TOOL_CALLS
from actors.sessions._wording import Operation
from actors.sessions.grpc import CallFailed, Channel, Status, StatusCode

ROUTE_BYTES_MAX = 256


class Binding:
    """Binds a session to one host session, under a generation of its own."""

    def __init__(
        self,
        channel: Channel,
        nursery: trio.Nursery,
        generation: int,
        *,
        report: Report,
        traceparent: Callable[[], str | None],
        heartbeat_interval_s: int | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.generation = generation
        self.link: Link = Link(channel, nursery, traceparent)
        self.link.on_end = self._on_end
        self.book: CellBook = CellBook()
        self.catalogue: Catalogue = Catalogue()
        self.executions: Executions = Executions(self.link, self.book, generation, report, self.catalogue, journal)
        self.waits: Waits = Waits(self.link, self.executions, generation)
        self._callbacks = Callbacks(self.link, self.book, nursery, generation, report, self.executions.by_id, journal)
        self._heartbeat_interval_s, self._journal = heartbeat_interval_s, journal
        self.restored_keys: tuple[str, ...] = ()
        self.opened: Promise[None] = Promise()
        self.waiters = 0
        self.lost: Lost | None = None
        self.on_live: Callable[[Binding], None] = lambda _: None
        self.on_ended: Callable[[Binding], None] = lambda _: None
        self._opening_scope = trio.CancelScope()

    @property
    def is_live(self) -> bool:
        """Whether calls may be sent."""
        return self.link.phase is Phase.LIVE

    # --- opening

    def open(self, options: SessionOptions, mode: OutputTruncation, settle: Callable[[int], OutputTruncation]) -> None:
        """Begin to open; `opened` comes when calls may be sent.

        Args:
            options: What to ask for.
            mode: The truncation to ask for.
            settle: Judges the mode that the host answers; raises to refuse the host.
        """
        self.link.start(self._hold, open_session_message(options, mode), settle)

    async def _hold(self, message: wire.OpenSessionRequest, settle: Callable[[int], OutputTruncation]) -> None:
        scope = self._opening_scope
        scope.deadline = trio.current_time() + CALL_S
        with scope:
            attempts = 0
            while True:
                attempts += 1
                try:
                    await self._attempt(message, settle)
                except CallFailed as failed:
                    if self.link.session_id:
                        raise call_failed(Operation.SESSION_LEASE, failed.code, failed.status.message) from failed
                    pause_s = pause_before_next_s(attempts, failed.code, chance=random.random())  # noqa: S311 - spread, no secret
                    if pause_s is None:
                        error = call_failed(Operation.SESSION_OPENING, failed.code, failed.status.message)
                        raise error from failed
                    await trio.sleep(pause_s)
                else:
                    raise ProtocolViolation("gRPC code-mode session lease closed unexpectedly")
        connected = self.link.channel.connections_open > 0
        raise HostTimedOut(Operation.SESSION_OPENING if connected else Operation.TRANSPORT_CONNECTION)

    async def _attempt(self, message: wire.OpenSessionRequest, settle: Callable[[int], OutputTruncation]) -> None:
        # No route goes with it: the link has none before it is admitted, and every opening has a link of its own.
        metadata = self.link.metadata(traced=True)
        async with self.link.channel.stream(OPEN_SESSION, message, metadata=metadata) as lease:
            try:
                first = await lease.receive()
            except trio.EndOfChannel:
                early = Status(StatusCode.UNAVAILABLE, "the lease ended before its first event")
                raise CallFailed(OPEN_SESSION.path, early) from None
            route = (await lease.headers()).text(ROUTE_KEY)
            self._admit(first, route, settle)
            self._opening_scope.deadline = float("inf")
            self.link.start(self._subscribe)
            with Pulse(self._heartbeat_interval_s, Operation.SESSION_LEASE) as pulse:
                async for event in lease:
                    pulse.felt(heartbeat=event.HasField("heartbeat"))
                    self._on_event(event)

    def _admit(self, first: wire.SessionEvent, route: str | None, settle: Callable[[int], OutputTruncation]) -> None:
        if route is not None and len(route) > ROUTE_BYTES_MAX:
            text = "session routing token is too long"
            raise call_failed(Operation.SESSION_OPENING, StatusCode.INVALID_ARGUMENT, text)
        if first.WhichOneof("event") != "opened":
            raise ProtocolViolation("gRPC code-mode session lease omitted its opening event")
        session_id = first.opened.session_id
        if not session_id:
            raise ProtocolViolation("gRPC code-mode host returned an empty session ID")
        if len(session_id.encode()) > IDENTIFIER_BYTES_MAX:
            raise ProtocolViolation("gRPC code-mode host returned session ID exceeding 256 bytes")
        settle(int(first.opened.output_truncation))
        self.link.session_id, self.link.route = session_id, route
        self.catalogue.supported = first.opened.supports_catalog_revision

    async def _subscribe(self) -> None:
        message = wire.SubscribeToToolCallsRequest(
            session_id=self.link.session_id, heartbeat_interval_s=self._heartbeat_interval_s or None
        )
        try:
            with trio.CancelScope(deadline=trio.current_time() + CALL_S) as patience:
                metadata = self.link.metadata(traced=True)
                async with self.link.channel.stream(SUBSCRIBE_TO_TOOL_CALLS, message, metadata=metadata) as calls:
                    await calls.headers()
                    patience.deadline = float("inf")
                    self._go_live()
                    with Pulse(self._heartbeat_interval_s, Operation.TOOL_SUBSCRIPTION) as pulse:
                        async for call in calls:
                            pulse.felt(heartbeat=call.HasField("heartbeat"))
                            self._callbacks.on_tool_call(call)
                raise ProtocolViolation("gRPC code-mode tool subscription closed unexpectedly")
            raise HostTimedOut(Operation.TOOL_SUBSCRIPTION)
        except CallFailed as failed:
            error = call_failed(Operation.TOOL_SUBSCRIPTION, failed.code, failed.status.message)
            await self._give_up(error, failed)
        except SessionsError as error:
            await self._give_up(error, error.__cause__)

    async def _give_up(self, error: SessionsError, cause: BaseException | None) -> None:
        """End; a session that never served anyone is closed first, so that the host need not notice by itself."""
        error.__cause__ = cause
        if self.link.phase is not Phase.OPENING:
            raise error
        self.begin_closing()
        try:
            await self._close_session()
        except SessionsError:
            pass  # The lease goes with the link, and the host session with it.
        finally:
            self.link.finish(error)

    def _go_live(self) -> None:
        if self.link.phase is Phase.OPENING:
            self.link.phase = Phase.LIVE
            restoring = None if self._journal is None else self._journal.restoring()
            if restoring is None:
                self._publish()
            else:
                self.link.start(self._restore, restoring)

    async def _restore(self, source: str) -> None:
        """Put the stored values back before anyone may call. What cannot be put back is not named as restored."""
        assert self._journal is not None, "what is put back comes out of a journal"
        keys = self._journal.kept_keys
        request = ExecuteRequest(tool_call_id="restore", source=source, yield_time_ms=int(CALL_S * 1000))
        try:
            execution = await self.executions.execute(request, NO_DELEGATE, None)
            response = await execution.outcome.wait()
            execution.consumed = True
            self.restored_keys = keys if isinstance(response, Result) and response.error_text is None else ()
        except SessionsError:
            if self.link.phase is Phase.CLOSED:
                raise
        self._publish()

    def _publish(self) -> None:
        if self._journal is not None:
            self._journal.restored(self.restored_keys)
        self.on_live(self)
        self.opened.fulfil(None)

    # --- the lease

    def _on_event(self, event: wire.SessionEvent) -> None:
        # Each kind, and what belongs under it; a heartbeat, and kinds that only some hosts know, need nothing done.
        match event.WhichOneof("event"):
            case "opened":
                raise ProtocolViolation("gRPC code-mode host repeated the session opening event")
            case "tool_call_cancelled":
                self._callbacks.cancel_tool_call(event.tool_call_cancelled.invocation_id, self.executions.all())
            case "notification":
                self._callbacks.on_notification(event.notification)
            case "notification_cancelled":
                cancelled = event.notification_cancelled.notification_id
                self._callbacks.cancel_notification(cancelled, self.executions.all())
            case "cell_closed":
                self._on_cell_closed(event.cell_closed)
            case _:
                # An event of an unknown kind leaves bytes behind; this one would be empty.
                if event.ByteSize() == 0:
                    raise ProtocolViolation("gRPC code-mode host sent an empty session event")

    def _on_cell_closed(self, closed: wire.CellClosed) -> None:
        entry = self.book.close(closed.execution_id, closed.cell_id)
        if entry is not None:
            execution = self.executions.by_id(entry.execution_id)
            execution.cancel_callbacks(tool_calls=True)
            execution.closed.set()
            execution.report_if_due()

    # --- the end

    def begin_closing(self) -> None:
        """Refuse further calls; `close` must follow."""
        self.link.phase = Phase.CLOSING

    async def close(self) -> None:
        """Close the host session and wait for what belongs to it.

        Raises:
            SessionsError: The host did not say that it closed it; the lease is dropped all the same.
        """
        try:
            await self._close_session()
        finally:
            self.link.finish(SessionClosed())
        await self.link.join()

    async def _close_session(self) -> None:
        message = wire.CloseSessionRequest(session_id=self.link.session_id)
        operation = Operation.SESSION_SHUTDOWN
        with trio.move_on_after(CALL_S):
            try:
                await self.link.request(CLOSE_SESSION, message)
            except CallFailed as failed:
                if failed.code is not StatusCode.NOT_FOUND:
                    raise call_failed(operation, failed.code, failed.status.message) from failed
            return
        raise HostTimedOut(operation)

    def _on_end(self) -> None:
        reason = self.link.closed_error()
        calls = [c.call for e in self.executions.all() for c in e.callbacks.values() if c.call is not None]
        running = [execution for execution in self.executions.all() if execution.entry.cell_id is not None]
        self.lost = Lost(
            generation=self.generation,
            running_cells=tuple(e.public_cell_id for e in running if not e.entry.closed),
            unanswered_tool_calls=tuple(calls),
            stored_keys=None if self._journal is None else self._journal.keys,
            cause=reason,
        )
        if self._journal is not None:
            self._journal.host_lost()
        self.opened.fail(reason)
        for execution in self.executions.all():
            execution.fail(self.link.stopped())
            execution.cancel_callbacks(tool_calls=True, notifications=True)
        for execution in running:
            self.book.mark_closed(execution.entry)
            execution.report_closed()
        self.on_ended(self)
