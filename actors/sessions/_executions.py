"""Send executions, once each, and follow them to their first observation, whoever still listens."""

import uuid
from typing import Final

import trio

from actors.sessions._book import CellBook
from actors.sessions._catalogue import Catalogue
from actors.sessions._delegate import Delegate, Report
from actors.sessions._errors import HostCallFailed, InvalidRequest, ProtocolViolation, SessionsError
from actors.sessions._execution import Execution
from actors.sessions._journal import Journal
from actors.sessions._link import CALL_S, Link
from actors.sessions._observing import preempted_by
from actors.sessions._responses import Result, RuntimeResponse, Terminated
from actors.sessions._translation import execute_message, response_of
from actors.sessions._values import DEFAULT_YIELD_TIME_MS, ExecuteRequest
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions._wire._methods import EXECUTE, TERMINATE
from actors.sessions._wording import Operation
from actors.sessions.grpc import CallFailed, ClientCall

GRACE_S: Final = 1.0
"""What hosts may add to a long observation."""

EventCall = ClientCall[wire.ExecuteRequest, wire.ExecuteEvent]


def observation_s(yield_time_ms: int | None) -> float:
    """Return how long the host may take over an observation."""
    return (DEFAULT_YIELD_TIME_MS if yield_time_ms is None else yield_time_ms) / 1000 + GRACE_S + CALL_S


class Executions:
    """The executions of one host session."""

    def __init__(
        self, link: Link, book: CellBook, generation: int, report: Report, catalogue: Catalogue, journal: Journal | None
    ) -> None:
        self._link, self._book, self._generation, self._report = link, book, generation, report
        self._catalogue, self._journal = catalogue, journal
        self._by_id: dict[str, Execution] = {}

    def by_id(self, execution_id: str) -> Execution:
        """Return one that the books still hold open."""
        return self._by_id[execution_id]

    def by_cell(self, cell_id: str) -> Execution | None:
        """Return the one whose closure has not been reported, by the host's id of its cell."""
        return next((e for e in self._by_id.values() if e.entry.cell_id == cell_id), None)

    def all(self) -> list[Execution]:
        """Return those whose closure has not been reported, in the order they were sent."""
        return [*self._by_id.values()]

    def _forget(self, execution: Execution) -> None:
        self._by_id.pop(execution.entry.execution_id, None)

    async def execute(self, request: ExecuteRequest, delegate: Delegate, preempt: trio.Event | None) -> Execution:
        """Send an execution and wait for its start.

        Cancelled:
            It is sent all the same, and its cell terminated as soon as there is one.
        """
        execution_id = str(uuid.uuid4())
        listing = self._catalogue.listing(request.enabled_tools)
        source = request.source if self._journal is None else self._journal.watched(request.source)
        try:
            message = execute_message(self._link.session_id, execution_id, request, listing, source)
        except (TypeError, ValueError) as broken:
            raise InvalidRequest(f"the execute request cannot be written: {broken}") from broken
        entry = self._book.register(execution_id, request.tool_call_id, request.enabled_tools)
        execution = Execution(entry, delegate, self._generation, self._report, self._forget)
        self._by_id[entry.execution_id] = execution
        self._link.start(self._drive, execution, message, preempt, request.yield_time_ms)
        claimed = False
        try:
            await execution.started.wait()
            claimed = True
            self._catalogue.started(listing)
        except HostCallFailed:
            self._catalogue.refused(listing)
            raise
        finally:
            if not claimed:
                self.abandon(execution)
        execution.claim()
        return execution

    # --- following one

    async def _drive(
        self, execution: Execution, message: wire.ExecuteRequest, preempt: trio.Event | None, yield_time_ms: int | None
    ) -> None:
        entry = execution.entry
        waiting_for = [Operation.EXECUTION]
        try:
            with execution.scope:
                execution.scope.deadline = trio.current_time() + CALL_S
                metadata = self._link.metadata(traced=True)
                async with self._link.channel.stream(EXECUTE, message, metadata=metadata) as call:
                    yielding = wire.YieldObservationRequest(
                        session_id=self._link.session_id, execution_id=entry.execution_id
                    )
                    with preempted_by(self._link, preempt, yielding):
                        await self._follow(execution, call, yield_time_ms, waiting_for)
                    await self._drain(execution, call)
            if execution.scope.cancelled_caught and not execution.abandoned:
                self._fail(execution, *self._link.why_interrupted(waiting_for[0]))
        except CallFailed as failed:
            self._fail(execution, *self._link.verdict(Operation.EXECUTION, failed))
        except SessionsError as fault:
            self._fail(execution, fault, over=True)
        finally:
            # Whoever still waits must hear of it, also of a cell that was reported closed before its outcome came.
            execution.fail(self._link.stopped())
            self._book.settle(entry)
            if entry.cell_id is None:
                self._forget(execution)

    def _fail(self, execution: Execution, error: SessionsError, over: bool) -> None:
        # Its own caller first: everyone else is only told that the session stopped.
        told = not execution.outcome.is_done
        execution.fail(error)
        if over and told:
            self._link.end(error)

    async def _follow(
        self, execution: Execution, call: EventCall, yield_time_ms: int | None, waiting_for: list[Operation]
    ) -> None:
        await call.headers()
        waiting_for[0] = Operation.EXECUTION_STARTING_EVENT
        execution.scope.deadline = trio.current_time() + CALL_S
        event = await _next_event(call, "gRPC code-mode execution ended before its starting event")
        if event.WhichOneof("event") != "started":
            raise ProtocolViolation("gRPC code-mode execution omitted its starting event")
        self._book.start(execution.entry, event.started.execution_id, event.started.cell_id)
        execution.started.fulfil(None)
        waiting_for[0] = Operation.EXECUTION_OUTCOME
        execution.scope.deadline = trio.current_time() + observation_s(yield_time_ms)
        if execution.abandoned:
            await self._reap(execution)
            return
        event = await _next_event(call, "gRPC code-mode execution omitted its initial outcome")
        if event.WhichOneof("event") != "outcome":
            raise ProtocolViolation("gRPC code-mode execution returned an unexpected event")
        got, expected = event.outcome.cell_id, execution.entry.cell_id
        if got != expected:
            raise ProtocolViolation(f"gRPC code-mode execution returned cell {got} instead of {expected}")
        execution.scope.deadline = float("inf")
        response = response_of(event.outcome, self._generation)
        await self.hold_back(execution, response)
        self.note_ending(got, response)
        execution.outcome.fulfil(response)

    async def _drain(self, execution: Execution, call: EventCall) -> None:
        # The host may take an early goodbye for a caller that never got its outcome, and terminate the cell.
        execution.scope.deadline = trio.current_time() + CALL_S
        async for _ in call:
            raise ProtocolViolation("gRPC code-mode execution returned an unexpected event")

    async def hold_back(self, execution: Execution, response: RuntimeResponse) -> None:
        """Keep a final response until the delegate has finished what it was sent before."""
        match response:
            case Result():
                with self._link.bounded(Operation.CELL_CLOSURE, CALL_S):
                    await execution.closed.wait()
                await execution.wait_quiet()
            case Terminated():
                execution.cancel_callbacks(notifications=True)
            case _:
                pass

    def note_ending(self, host_cell_id: str, response: RuntimeResponse) -> None:
        """Keep the journal of stored values: who ends by itself has committed them."""
        if self._journal is not None:
            if isinstance(response, Result):
                self._journal.commit(host_cell_id)
            elif isinstance(response, Terminated):
                self._journal.drop(host_cell_id)

    # --- letting go of one

    def abandon(self, execution: Execution) -> None:
        """Note that nobody will ask for the first response: the cell is terminated. Safe to call at any time."""
        if execution.abandoned or execution.consumed:
            return
        execution.abandoned = True
        execution.report_if_due()
        if execution.entry.started and not execution.entry.closed:
            self._link.start(self._reap, execution)

    async def _reap(self, execution: Execution) -> None:
        try:
            cell_id = execution.entry.cell_id or ""
            message = wire.TerminateRequest(session_id=self._link.session_id, cell_id=cell_id)
            await self._link.unary(Operation.TERMINATION, TERMINATE, message)
            with trio.move_on_after(CALL_S):
                await execution.closed.wait()
        except SessionsError:
            pass  # Judged already; letting go of the stream terminates the cell as well.
        finally:
            execution.scope.cancel()
            execution.cancel_callbacks(tool_calls=True, notifications=True)
            if self._journal is not None:
                self._journal.drop(execution.entry.cell_id or "")
            self._book.mark_closed(execution.entry)
            execution.report_closed()


async def _next_event(call: EventCall, at_end: str) -> wire.ExecuteEvent:
    try:
        return await call.receive()
    except trio.EndOfChannel:
        raise ProtocolViolation(at_end) from None
