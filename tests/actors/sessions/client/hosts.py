"""A host for the client's tests: the real service on a real gRPC server, whose cells run Python instead of JavaScript.

A script is looked up by its source; it is an async function of the cell. Requests are recorded, and can be refused.
"""

import contextlib
import itertools
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import trio

from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions._wording import oversize_status
from actors.sessions.grpc import (
    Abort,
    Limits,
    Send,
    Server,
    ServerCall,
    ServerOptions,
    StatusCode,
    addresses_of,
    listen_tcp,
    routes_of,
)

SERVICE = wire.DESCRIPTOR.services_by_name["CodeModeHost"]


class ScriptError(Exception):
    """What a script throws."""


@attrs.define(eq=False)
class Cell:
    session: "HostSession"
    cell_id: str
    execution_id: str
    call_id: str
    tools: dict[str, wire.ToolDefinition]
    items: list[wire.ContentItem] = attrs.field(factory=list)
    ended: str = ""
    error: str | None = None
    observed: bool = False
    yields: bool = False
    closed: bool = False
    sequence: int = 0
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)
    writes: dict[str, object] = attrs.field(factory=dict)

    def text(self, text: object) -> None:
        self.items.append(wire.ContentItem(text=wire.TextContent(text=str(text))))

    def store(self, key: str, value: object) -> None:
        self.writes[key] = value

    def load(self, key: str) -> object:
        return {**self.session.stored, **self.writes}.get(key, "undefined")

    def yield_control(self) -> None:
        if self.observed:
            self.yields = True
            self.changed.unpark_all()

    def notify(self, text: str) -> None:
        notification = wire.Notification(
            notification_id=str(uuid.uuid4()), execution_id=self.execution_id, cell_id=self.cell_id,
            call_id=self.call_id, text=text,
        )  # fmt: skip
        self.session.tell(wire.SessionEvent(notification=notification))

    async def tool(self, name: str, input_json: bytes | None = b"null") -> bytes:
        self.sequence += 1
        definition = self.tools.get(name)
        call = wire.ToolCall(
            session_id=self.session.session_id, execution_id=self.execution_id, cell_id=self.cell_id,
            invocation_id=str(uuid.uuid4()), runtime_tool_call_id=f"tool-{self.sequence}",
            tool_name=definition.tool_name if definition else wire.ToolName(name=name),
            tool_kind=definition.kind if definition else wire.TOOL_KIND_FUNCTION, input_json=input_json,
            sequence=self.sequence,
        )  # fmt: skip
        return await self.session.call(self, call)

    async def run(self, script: Callable[["Cell"], Awaitable[None]]) -> None:
        with self.scope:
            try:
                await script(self)
            except ScriptError as error:
                self.error = str(error)
            self.session.stored.update(self.writes)
            self.end("completed")

    def end(self, how: str) -> None:
        if not self.ended:
            self.ended = how
            self.session.cancel_calls(self)
            self.changed.unpark_all()

    async def observe(self, yield_ms: float, signal: "Signal") -> wire.ExecutionOutcome:
        if self.observed:
            raise Abort(StatusCode.FAILED_PRECONDITION, f"exec cell {self.cell_id} already has an active observer")
        self.observed, self.yields = True, False
        try:
            with trio.move_on_after(yield_ms / 1000):
                signal.on_fire = self.yield_control
                while not (self.ended or self.yields or signal.fired):
                    await self.changed.park()
        finally:
            self.observed = False
        return self.outcome()

    def outcome(self) -> wire.ExecutionOutcome:
        outcome = wire.ExecutionOutcome(cell_id=self.cell_id, code_mode_host_duration_ns=1, content_items=self.items)
        self.items = []
        match self.ended:
            case "completed":
                outcome.completed.SetInParent()
                if self.error is not None:
                    outcome.completed.error_text = self.error
            case "terminated":
                outcome.terminated.SetInParent()
            case _:
                outcome.yielded.SetInParent()
        return outcome

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.session.cells.pop(self.cell_id, None)
            self.session.tell(wire.SessionEvent(cell_closed=wire.CellClosed(
                execution_id=self.execution_id, cell_id=self.cell_id, final_tool_call_sequence=self.sequence,
            )))  # fmt: skip

    def terminate(self) -> None:
        self.scope.cancel()
        self.end("terminated")


@attrs.define(eq=False)
class Signal:
    fired: bool = False
    on_fire: Callable[[], None] = lambda: None
    cancelled: trio.CancelScope = attrs.field(factory=trio.CancelScope)


@attrs.define(eq=False)
class HostSession:
    host: "Host"
    session_id: str
    route: str | None
    scopes: list[trio.CancelScope] = attrs.field(factory=list)
    stored: dict[str, object] = attrs.field(factory=dict)
    cells: dict[str, Cell] = attrs.field(factory=dict)
    executions: dict[str, Cell] = attrs.field(factory=dict)
    signals: dict[str, Signal] = attrs.field(factory=dict)
    numbers: "itertools.count[int]" = attrs.field(factory=lambda: itertools.count(1))
    calls: dict[str, tuple[Cell, trio.Event, list[wire.CompleteToolCallRequest]]] = attrs.field(factory=dict)
    events: tuple[trio.MemorySendChannel, trio.MemoryReceiveChannel] = attrs.field(
        factory=lambda: trio.open_memory_channel[wire.SessionEvent](10_000)
    )
    tool_calls: tuple[trio.MemorySendChannel, trio.MemoryReceiveChannel] = attrs.field(
        factory=lambda: trio.open_memory_channel[wire.ToolCall](10_000)
    )

    def tell(self, event: wire.SessionEvent) -> None:
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            self.events[0].send_nowait(event)

    def signal(self, identifier: str) -> Signal:
        return self.signals.setdefault(identifier, Signal())

    async def call(self, cell: Cell, call: wire.ToolCall) -> bytes:
        answered, answers = trio.Event(), list[wire.CompleteToolCallRequest]()
        self.calls[call.invocation_id] = cell, answered, answers
        self.tool_calls[0].send_nowait(call)
        await answered.wait()
        answer = answers[0]
        if answer.WhichOneof("outcome") == "failed":
            raise ScriptError(answer.failed.message)
        return answer.succeeded.output_json

    def cancel_calls(self, cell: Cell) -> None:
        for invocation_id, (owner, answered, _) in [*self.calls.items()]:
            if owner is cell and not answered.is_set():
                cancelled = wire.ToolCallCancelled(invocation_id=invocation_id)
                self.tell(wire.SessionEvent(tool_call_cancelled=cancelled))

    def end(self) -> None:
        self.host.sessions.pop(self.session_id, None)
        for cell in [*self.cells.values()]:
            cell.scope.cancel()
            cell.closed = True
        for scope in self.scopes:
            scope.cancel()


class Host:
    """The service. Its knobs are plain attributes."""

    def __init__(self) -> None:
        self.scripts: dict[str, Callable[[Cell], Awaitable[None]]] = {}
        self.sessions: dict[str, HostSession] = {}
        self.nursery: trio.Nursery
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.refusals: dict[str, list[Abort]] = {}
        self.knows_modes = True
        self.keeps_catalogues = False
        self.subscriptions: list[wire.SubscribeToToolCallsRequest] = []
        self.routes: list[str] = []
        self.unread_openings = 0
        self.opened_modes: list[int] = []
        self.seen_executions: list[str] = []
        self.first_event: wire.SessionEvent | None = None
        self.late_refusals: dict[str, list[Abort]] = {}
        self.silent: set[str] = set()
        self.complete_hook: Callable[[wire.CompleteToolCallRequest], Awaitable[None]] | None = None
        self.execute_hook: Callable[..., Awaitable[None]] | None = None
        self.before_start: Callable[[Cell, Send], Awaitable[None]] | None = None
        self.on_cell: Callable[[Cell], None] = lambda _: None
        self.subscribe_hook: Callable[..., Awaitable[None]] | None = None
        self.openings: list[wire.OpenSessionRequest] = []
        self.executions: list[wire.ExecuteRequest] = []

    def count(self, method: str) -> int:
        return Counter(name for name, _ in self.requests)[method]

    def refuse_next(self, method: str, code: StatusCode, message: str, *, trailers: tuple = (), times: int = 1) -> None:
        self.refusals.setdefault(method, []).extend([Abort(code, message, trailers=trailers)] * times)

    def refuse_late(self, method: str, code: StatusCode, message: str) -> None:
        """Refuse once, after the hook of the method has run."""
        self.late_refusals[method] = [Abort(code, message)]

    def script(self, function: Callable[[Cell], Awaitable[None]]) -> Callable[[Cell], Awaitable[None]]:
        self.scripts[function.__name__] = function
        return function

    async def _arrived(self, call: ServerCall) -> None:
        method = call.path.rpartition("/")[2]
        if method in self.silent:
            await trio.sleep_forever()
        self.requests.append((method, {key: str(value) for key, value in call.metadata}))
        if waiting := self.refusals.get(method):
            raise waiting.pop(0)

    def _session(self, session_id: str) -> HostSession:
        if session_id not in self.sessions:
            raise Abort(StatusCode.NOT_FOUND, f"unknown code-mode session {session_id}")
        return self.sessions[session_id]

    async def open_session(self, call: ServerCall, request: wire.OpenSessionRequest, send: Send) -> None:
        route = self.routes.pop(0) if self.routes else None
        if route is not None:
            call.set_headers([("x-code-mode-route", route)])
            call.send_headers()
        await self._arrived(call)
        self.opened_modes.append(int(request.output_truncation))
        self.openings.append(request)
        session = HostSession(self, str(uuid.uuid4()), route)
        self.sessions[session.session_id] = session
        mode = int(request.output_truncation) if self.knows_modes else 0
        opened = wire.SessionOpened(
            session_id=session.session_id,
            output_truncation=2 if mode == 2 else 0,
            supports_catalog_revision=self.keeps_catalogues,
        )
        try:
            await send(self.first_event or wire.SessionEvent(opened=opened))
            with trio.CancelScope() as scope:
                session.scopes.append(scope)
                async for event in session.events[1]:
                    await send(event)
        finally:
            session.end()

    async def close_session(self, call: ServerCall, request: wire.CloseSessionRequest) -> wire.CloseSessionResponse:
        await self._arrived(call)
        self._session(request.session_id).end()
        return wire.CloseSessionResponse()

    async def subscribe_to_tool_calls(
        self, call: ServerCall, request: wire.SubscribeToToolCallsRequest, send: Send
    ) -> None:
        await self._arrived(call)
        self.subscriptions.append(request)
        session = self._session(request.session_id)
        if self.subscribe_hook is not None:
            await self.subscribe_hook(call, request, send)
        call.send_headers()
        with trio.CancelScope() as scope:
            session.scopes.append(scope)
            async for tool_call in session.tool_calls[1]:
                await send(tool_call)

    async def complete_tool_call(
        self, call: ServerCall, request: wire.CompleteToolCallRequest
    ) -> wire.CompleteToolCallResponse:
        await self._arrived(call)
        session = self._session(request.session_id)
        if self.complete_hook is not None:
            await self.complete_hook(request)
        if waiting := self.late_refusals.get("CompleteToolCall"):
            raise waiting.pop(0)
        if request.invocation_id not in session.calls:
            raise Abort(StatusCode.NOT_FOUND, f"unknown code-mode tool invocation {request.invocation_id}")
        _, answered, answers = session.calls[request.invocation_id]
        answers.append(request)
        answered.set()
        return wire.CompleteToolCallResponse()

    async def acknowledge_notification(
        self, call: ServerCall, request: wire.AcknowledgeNotificationRequest
    ) -> wire.AcknowledgeNotificationResponse:
        await self._arrived(call)
        return wire.AcknowledgeNotificationResponse()

    async def execute(self, call: ServerCall, request: wire.ExecuteRequest, send: Send) -> None:
        await self._arrived(call)
        session = self._session(request.session_id)
        self.seen_executions.append(request.source)
        self.executions.append(request)
        if self.execute_hook is not None:
            await self.execute_hook(call, request, send)
            return
        tools = {tool.tool_name.name: tool for tool in request.enabled_tools}
        cell = Cell(session, str(next(session.numbers)), request.execution_id, request.tool_call_id, tools)
        self.on_cell(cell)
        session.cells[cell.cell_id] = cell
        delivered = False
        try:
            if self.before_start is not None:
                call.send_headers()
                await self.before_start(cell, send)
            started = wire.ExecutionStarted(execution_id=request.execution_id, cell_id=cell.cell_id)
            await send(wire.ExecuteEvent(started=started))
            self.nursery.start_soon(cell.run, self.scripts[request.source.partition("#")[0]])
            yield_ms = request.yield_time_ms if request.HasField("yield_time_ms") else 10_000
            signal = session.signal(request.execution_id)
            outcome = await cell.observe(yield_ms, signal)
            delivered = True
            if cell.ended:
                cell.close()
            await send(wire.ExecuteEvent(outcome=outcome))
        finally:
            if not delivered:
                cell.terminate()
                cell.close()

    async def wait(self, call: ServerCall, request: wire.WaitRequest) -> wire.WaitResponse:
        await self._arrived(call)
        session = self._session(request.session_id)
        cell = session.cells.get(request.cell_id)
        if cell is None:
            return _missing(request.cell_id)
        signal = session.signal(request.wait_id)
        with signal.cancelled:
            outcome = await cell.observe(request.yield_time_ms, signal)
            if cell.ended:
                cell.close()
            return wire.WaitResponse(live_cell=outcome)
        raise Abort(StatusCode.CANCELLED, "code-mode wait was cancelled")

    async def yield_observation(
        self, call: ServerCall, request: wire.YieldObservationRequest
    ) -> wire.YieldObservationResponse:
        await self._arrived(call)
        signal = self._session(request.session_id).signal(request.execution_id or request.wait_id)
        signal.fired = True
        signal.on_fire()
        return wire.YieldObservationResponse()

    async def cancel_wait(self, call: ServerCall, request: wire.CancelWaitRequest) -> wire.CancelWaitResponse:
        await self._arrived(call)
        self._session(request.session_id).signal(request.wait_id).cancelled.cancel()
        return wire.CancelWaitResponse()

    async def terminate(self, call: ServerCall, request: wire.TerminateRequest) -> wire.WaitResponse:
        await self._arrived(call)
        cell = self._session(request.session_id).cells.get(request.cell_id)
        if cell is None:
            return _missing(request.cell_id)
        cell.terminate()
        cell.close()
        return wire.WaitResponse(live_cell=cell.outcome())

    async def get_process_metrics(
        self, call: ServerCall, request: wire.GetProcessMetricsRequest
    ) -> wire.GetProcessMetricsResponse:
        raise Abort(StatusCode.UNIMPLEMENTED, "process metrics are unsupported")


def _missing(cell_id: str) -> wire.WaitResponse:
    completed = wire.ExecutionCompleted(error_text=f"exec cell {cell_id} not found")
    return wire.WaitResponse(missing_cell=wire.ExecutionOutcome(cell_id=cell_id, completed=completed))


class CountingListener(trio.abc.Listener):
    """Counts accepts."""

    def __init__(self, listener: trio.abc.Listener) -> None:
        self.listener, self.accepts = listener, 0

    async def accept(self) -> trio.abc.Stream:
        stream = await self.listener.accept()
        self.accepts += 1
        return stream

    async def aclose(self) -> None:
        await self.listener.aclose()


@attrs.frozen
class Serving:
    url: str
    server: Server
    listener: CountingListener
    scope: trio.CancelScope


@asynccontextmanager
async def serving(host: Host, *, port: int = 0, listener: trio.abc.Listener | None = None) -> AsyncIterator[Serving]:
    """Serve a host on a real socket, or on a listener given."""
    server = Server(routes_of(SERVICE, host), ServerOptions(limits=Limits(oversize_status=oversize_status)))
    if listener is None:
        [listener] = await listen_tcp("127.0.0.1", port)
        url = f"http://{addresses_of([listener])[0]}"
    else:
        url = "http://in-memory:1"
    counting = CountingListener(listener)
    async with trio.open_nursery() as nursery:
        host.nursery = nursery
        await nursery.start(server.serve, [counting])
        try:
            yield Serving(url, server, counting, nursery.cancel_scope)
        finally:
            nursery.cancel_scope.cancel()
