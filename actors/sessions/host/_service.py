"""The methods of the service, each as one handler."""

import functools
import json
import math
import re
import time
import uuid
from typing import Final, Protocol

import trio

from actors.sessions._wire.code_mode_pb2 import (
    OUTPUT_TRUNCATION_SERVER,
    AcknowledgeNotificationRequest,
    AcknowledgeNotificationResponse,
    CancelWaitRequest,
    CancelWaitResponse,
    CloseSessionRequest,
    CloseSessionResponse,
    CompleteToolCallRequest,
    CompleteToolCallResponse,
    ExecuteEvent,
    ExecuteRequest,
    ExecutionStarted,
    GetProcessMetricsRequest,
    GetProcessMetricsResponse,
    Heartbeat,
    OpenSessionRequest,
    SessionEvent,
    SessionOpened,
    SubscribeToToolCallsRequest,
    TerminateRequest,
    ToolCall,
    WaitRequest,
    YieldObservationRequest,
    YieldObservationResponse,
)
from actors.sessions.grpc import Abort, Send, ServerCall, StatusCode
from actors.sessions.host._answers import event_parts, live_cell, missing_cell
from actors.sessions.host._catalogue import check_tool_name, key_of
from actors.sessions.host._cell import Phase
from actors.sessions.host._identifiers import check_identifier
from actors.sessions.host._outputs import DEFAULT_TOKENS
from actors.sessions.host._session import Observation, Session, SessionOptions, is_last
from actors.sessions.host._tool_calls import CAPACITY_MAX, DEFAULT_CAPACITY, FILTERS_MAX, Call, numbered

BUFFERED_FOR: Final = "codex-code-mode-result-buffered-for-ns"
_CANONICAL: Final = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_WAIT_CANCELLED: Final = "code-mode wait was cancelled"


class Sessions(Protocol):
    """Where sessions are kept."""

    async def open(self, options: SessionOptions, heap_bytes: int | None, /) -> Session:
        """Open one."""
        ...

    def find(self, session_id: str, /) -> Session | None:
        """Find one by its canonical id."""

    @property
    def cells_full(self) -> bool:
        """Whether the host has as many cells as it may."""
        ...


class CodeModeService:
    """Serves sessions to callers that know their ids."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    # --- sessions

    async def open_session(self, call: ServerCall, request: OpenSessionRequest, send: Send[SessionEvent]) -> None:
        """Open a lease; its end is the end of the session."""
        if request.output_truncation not in {0, 1, 2}:
            raise Abort(StatusCode.INVALID_ARGUMENT, "unknown code-mode output truncation mode")
        capacity = DEFAULT_CAPACITY
        if request.HasField("max_pending_delegate_calls"):
            capacity = min(request.max_pending_delegate_calls, CAPACITY_MAX)
        if capacity == 0:
            raise Abort(StatusCode.INVALID_ARGUMENT, "callback capacity must be positive")
        limits = request.cell_execution_limits
        cut_output = request.output_truncation == OUTPUT_TRUNCATION_SERVER
        options = SessionOptions(
            cut_output=cut_output,
            yield_ms_max=limits.max_yield_time_ms if limits.HasField("max_yield_time_ms") else None,
            pending_calls_max=capacity,
        )
        heap_bytes = limits.max_heap_size_bytes if limits.HasField("max_heap_size_bytes") else None
        session = await self._sessions.open(options, heap_bytes)
        try:
            opened = SessionOpened(session_id=session.session_id, supports_catalog_revision=True)
            if cut_output:
                opened.output_truncation = OUTPUT_TRUNCATION_SERVER
            await send(SessionEvent(opened=opened))
            session.lease.sink = functools.partial(_send_now, session, call)
            beat = _Beat(request.heartbeat_interval_s)
            while not session.lease.ended:
                event = await session.lease.next(beat.left_s())
                if event is not None:
                    await send(event)
                if beat.due():
                    await send(SessionEvent(heartbeat=Heartbeat()))
        finally:
            session.end()

    def close_session(self, call: ServerCall, request: CloseSessionRequest) -> CloseSessionResponse:
        """End a session."""
        self._session(request.session_id).end()
        return CloseSessionResponse()

    def _session(self, session_id: str) -> Session:
        session = self._sessions.find(session_id)
        if session is not None:
            return session
        canonical = _check_uuid(session_id, "session ID")
        session = self._sessions.find(canonical)
        if session is None:
            raise Abort(StatusCode.NOT_FOUND, f"unknown code-mode session {canonical}")
        return session

    # --- tool calls and notifications

    async def subscribe_to_tool_calls(
        self, call: ServerCall, request: SubscribeToToolCallsRequest, send: Send[bytes]
    ) -> None:
        """Receive tool calls until the session ends. One that was sent and not answered ends with the stream, and
        with it the session: nobody can know whether it was carried out."""
        session = self._session(request.session_id)
        if len(request.tool_names) > FILTERS_MAX:
            text = f"code-mode tool subscription exceeds {FILTERS_MAX} filters"
            raise Abort(StatusCode.INVALID_ARGUMENT, text)
        for name in request.tool_names:
            check_tool_name(name)
        subscription = session.calls.subscribe(map(key_of, request.tool_names))
        try:
            call.send_headers()
            subscription.outbox.sink = functools.partial(_dispatch_now, session, call)
            beat = _Beat(request.heartbeat_interval_s)
            while not subscription.outbox.ended:
                message = await subscription.next(beat.left_s())
                if message is not None:
                    await send(message)
                if beat.due():
                    await send(ToolCall(session_id=session.session_id, heartbeat=Heartbeat()).SerializeToString())
        finally:
            if session.calls.unsubscribe(subscription):
                session.end()

    def complete_tool_call(self, call: ServerCall, request: CompleteToolCallRequest) -> CompleteToolCallResponse:
        """Answer a tool call."""
        session = self._session(request.session_id)
        invocation_id = request.invocation_id
        if not session.calls.knows(invocation_id):
            invocation_id = _check_uuid(invocation_id, "tool invocation ID")
        match request.WhichOneof("outcome"):
            case "succeeded":
                session.calls.complete(invocation_id, True, _checked_json(request.succeeded.output_json))
            case "failed":
                session.calls.complete(invocation_id, False, request.failed.message)
            case _:
                raise Abort(StatusCode.INVALID_ARGUMENT, "tool completion is missing its outcome")
        return CompleteToolCallResponse()

    def acknowledge_notification(
        self, call: ServerCall, request: AcknowledgeNotificationRequest
    ) -> AcknowledgeNotificationResponse:
        """Do nothing: notifications are not kept for an acknowledgement any more."""
        self._session(request.session_id)
        _check_uuid(request.notification_id, "notification ID")
        return AcknowledgeNotificationResponse()

    # --- cells

    async def execute(self, call: ServerCall, request: ExecuteRequest, send: Send[bytes]) -> None:
        """Run a cell: say that it has started, then its first event. A caller that leaves before takes it along."""
        # Durations are told in whole nanoseconds, so none of them is taken on the run's clock of floats.
        began_ns = time.perf_counter_ns()
        session = self._session(request.session_id)
        check_identifier(request.execution_id, "execution ID")
        check_identifier(request.tool_call_id, "tool call ID")
        if self._sessions.cells_full:
            raise Abort(StatusCode.RESOURCE_EXHAUSTED, "code-mode host has too many active cells")
        observation = session.execute(request)
        cell, told = observation.cell, False
        try:
            started = ExecutionStarted(execution_id=request.execution_id, cell_id=cell.cell_id)
            call.queue(ExecuteEvent(started=started).SerializeToString(), flushed=True)
            call.flush()
            outcome = await observation.wait()
            if outcome is not None:
                # Not waited for: it is the last message, and goes out with the end of the call.
                call.queue(*event_parts(cell.cell_id, outcome, time.perf_counter_ns() - began_ns), flushed=True)
                told = True
        finally:
            session.observed(observation, session.executions, request.execution_id)
            if not told:
                session.terminate(cell.cell_id, 0)
            session.close_cell(cell)

    async def wait(self, call: ServerCall, request: WaitRequest) -> bytes:
        """Return the next event of a cell."""
        began_ns = time.perf_counter_ns()
        session = self._session(request.session_id)
        check_identifier(request.cell_id, "cell ID")
        check_identifier(request.wait_id, "wait ID")
        session.waits.reserve(request.wait_id)
        if session.waits.was_cancelled(request.wait_id):
            raise Abort(StatusCode.CANCELLED, _WAIT_CANCELLED)
        tokens = request.max_output_tokens if request.HasField("max_output_tokens") else DEFAULT_TOKENS
        cell = session.cells.get(request.cell_id)
        if cell is None or cell.machine.phase is Phase.OVER:
            return self._missing(session, request.cell_id, tokens, began_ns)
        if cell.finished_ns is not None:
            call.set_headers([(BUFFERED_FOR, str(began_ns - cell.finished_ns))])
        observation = Observation(cell, tokens)
        session.observe(observation, session.waits, request.wait_id, request.yield_time_ms)
        try:
            outcome = await observation.wait()
        finally:
            session.observed(observation, session.waits, request.wait_id)
        if outcome is None:
            raise Abort(StatusCode.CANCELLED, _WAIT_CANCELLED)
        if is_last(outcome):
            session.close_cell(cell)
        return live_cell(cell.cell_id, outcome, time.perf_counter_ns() - began_ns)

    def terminate(self, call: ServerCall, request: TerminateRequest) -> bytes:
        """Stop a cell."""
        began_ns = time.perf_counter_ns()
        session = self._session(request.session_id)
        check_identifier(request.cell_id, "cell ID")
        tokens = request.max_output_tokens if request.HasField("max_output_tokens") else DEFAULT_TOKENS
        outcome = session.terminate(request.cell_id, tokens)
        if outcome is None:
            return self._missing(session, request.cell_id, tokens, began_ns)
        return live_cell(request.cell_id, outcome, time.perf_counter_ns() - began_ns)

    def _missing(self, session: Session, cell_id: str, tokens: int, began_ns: int) -> bytes:
        duration_ns = time.perf_counter_ns() - began_ns
        return missing_cell(cell_id, cut_output=session.cut_output, tokens=tokens, duration_ns=duration_ns)

    def yield_observation(self, call: ServerCall, request: YieldObservationRequest) -> YieldObservationResponse:
        """Make an observation return early; the cell goes on."""
        session = self._session(request.session_id)
        match request.WhichOneof("observation"):
            case "execution_id":
                check_identifier(request.execution_id, "execution ID")
                observation = session.executions.ask_yield(request.execution_id)
            case "wait_id":
                check_identifier(request.wait_id, "wait ID")
                observation = session.waits.ask_yield(request.wait_id)
            case _:
                raise Abort(StatusCode.INVALID_ARGUMENT, "missing code-mode observation ID")
        if observation is not None:
            observation.cell.machine.interrupt(observation.observer)
        return YieldObservationResponse()

    def cancel_wait(self, call: ServerCall, request: CancelWaitRequest) -> CancelWaitResponse:
        """Retire a wait, or make sure that it will not begin."""
        session = self._session(request.session_id)
        check_identifier(request.wait_id, "wait ID")
        observation = session.waits.ask_cancel(request.wait_id)
        if observation is not None:
            session.observed(observation, session.waits, request.wait_id)
        return CancelWaitResponse()

    def get_process_metrics(self, call: ServerCall, request: GetProcessMetricsRequest) -> GetProcessMetricsResponse:
        """Refuse, as deployed hosts do."""
        raise Abort(StatusCode.UNIMPLEMENTED, "process metrics are unsupported")


def _dispatch_now(session: Session, call: ServerCall, tool_call: Call) -> bool:
    if not call.has_room:
        return False
    _write(session, call, numbered(tool_call))
    return True


def _send_now(session: Session, call: ServerCall, event: SessionEvent) -> bool:
    if not call.has_room:
        return False
    _write(session, call, event.SerializeToString())
    return True


def _write(session: Session, call: ServerCall, message: bytes) -> None:
    """Queue a message; written when all that an engine process said at a time has been told, or soon."""
    call.queue(message, flushed=session.hears)
    if session.hears and call.flush not in session.written:
        session.written.append(call.flush)


class _Beat:
    """When the next heartbeat of a stream is due."""

    def __init__(self, interval_s: int) -> None:
        self._interval_s = float(min(interval_s, 10**9)) or math.inf
        self._next_s = trio.current_time() + self._interval_s

    def left_s(self) -> float:
        return max(0.0, self._next_s - trio.current_time())

    def due(self) -> bool:
        if trio.current_time() < self._next_s:
            return False
        self._next_s += self._interval_s
        return True


def _check_uuid(text: str, field: str) -> str:
    if _CANONICAL.fullmatch(text):
        return text
    check_identifier(text, field)
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise Abort(StatusCode.INVALID_ARGUMENT, f"code-mode {field} must be a UUID") from None


def _checked_json(data: bytes) -> str:
    try:
        text = data.decode()
        _JSON.decode(text)
    except (ValueError, RecursionError) as broken:
        raise Abort(StatusCode.INVALID_ARGUMENT, f"invalid code-mode tool output JSON: {broken}") from None
    return text


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_JSON: Final = json.JSONDecoder(parse_constant=_refuse)
