"""Wait for cells and terminate them: at most one wait a cell, and one that was dropped is withdrawn first."""

import uuid

import trio

from actors.sessions._errors import CellBusy, ProtocolViolation, SessionsError
from actors.sessions._executions import Executions, observation_s
from actors.sessions._link import CALL_S, Link
from actors.sessions._observing import preempted_by
from actors.sessions._responses import LiveCell, MissingCell, WaitOutcome
from actors.sessions._translation import response_of
from actors.sessions._values import WaitRequest
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions._wire._methods import CANCEL_WAIT, TERMINATE, WAIT
from actors.sessions._wording import Operation
from actors.sessions.grpc import Metadata

_BUFFERED_KEY = "codex-code-mode-result-buffered-for-ns"


class Waits:
    """The waits of one host session."""

    def __init__(self, link: Link, executions: Executions, generation: int) -> None:
        self._link, self._executions, self._generation = link, executions, generation
        # Every cell here has exactly one caller inside `wait`.
        self._observed: set[str] = set()
        # Every cell here has one wait that is being withdrawn; the next one queues for the event.
        self._withdrawing: dict[str, trio.Event] = {}

    async def wait(self, request: WaitRequest, host_cell_id: str, preempt: trio.Event | None) -> WaitOutcome:
        """Observe a cell once.

        Cancelled:
            The wait is withdrawn in the background; the next wait of the cell queues behind that.
        """
        if host_cell_id in self._observed:
            raise CellBusy(request.cell_id)
        self._observed.add(host_cell_id)
        try:
            while (withdrawn := self._withdrawing.get(host_cell_id)) is not None:
                with self._link.bounded(Operation.WAIT_CANCELLATION, CALL_S + 1):
                    await withdrawn.wait()
            return await self._observe(request, host_cell_id, preempt)
        finally:
            self._observed.discard(host_cell_id)

    async def _observe(self, request: WaitRequest, host_cell_id: str, preempt: trio.Event | None) -> WaitOutcome:
        wait_id = str(uuid.uuid4())
        message = wire.WaitRequest(
            session_id=self._link.session_id,
            cell_id=host_cell_id,
            wait_id=wait_id,
            yield_time_ms=request.yield_time_ms,
            max_output_tokens=request.max_output_tokens,
        )
        yielding = wire.YieldObservationRequest(session_id=self._link.session_id, wait_id=wait_id)
        answered = False
        try:
            with preempted_by(self._link, preempt, yielding):
                timeout_s = observation_s(request.yield_time_ms)
                reply = await self._link.unary(Operation.WAIT, WAIT, message, timeout_s=timeout_s)
            answered = True
        except SessionsError:
            answered = True  # Refused, or the link has ended: there is nothing to withdraw.
            raise
        finally:
            if not answered:
                self._withdraw(host_cell_id, wait_id)
        return await self._outcome(reply.message, host_cell_id, _buffered_for_ns(reply.headers))

    def _withdraw(self, host_cell_id: str, wait_id: str) -> None:
        self._withdrawing[host_cell_id] = trio.Event()
        message = wire.CancelWaitRequest(session_id=self._link.session_id, wait_id=wait_id)
        self._link.start(self._cancel_wait, host_cell_id, message)

    async def _cancel_wait(self, host_cell_id: str, message: wire.CancelWaitRequest) -> None:
        try:
            await self._link.unary(Operation.WAIT_CANCELLATION, CANCEL_WAIT, message)
        finally:
            self._withdrawing.pop(host_cell_id).set()

    async def terminate(self, host_cell_id: str, max_output_tokens: int | None) -> WaitOutcome:
        """Stop a cell.

        Cancelled:
            Whether the cell was stopped is not known; terminating it again is harmless.
        """
        message = wire.TerminateRequest(
            session_id=self._link.session_id, cell_id=host_cell_id, max_output_tokens=max_output_tokens
        )
        reply = await self._link.unary(Operation.TERMINATION, TERMINATE, message)
        return await self._outcome(reply.message, host_cell_id, None)

    async def _outcome(self, message: wire.WaitResponse, host_cell_id: str, buffered_ns: int | None) -> WaitOutcome:
        try:
            kind = message.WhichOneof("state")
            if kind is None:
                raise ProtocolViolation("gRPC code-mode host returned a wait response without a state")
            found = message.live_cell if kind == "live_cell" else message.missing_cell
            if found.cell_id != host_cell_id:
                text = f"gRPC code-mode host returned cell {found.cell_id} instead of {host_cell_id}"
                raise ProtocolViolation(text)
            response = response_of(found, self._generation)
        except ProtocolViolation as violation:
            self._link.end(violation)
            raise
        if kind == "missing_cell":
            return MissingCell(response)
        execution = self._executions.by_cell(host_cell_id)
        if execution is not None:
            with self._link.bounded(Operation.CELL_CLOSURE, float("inf")):
                await self._executions.hold_back(execution, response)
        self._executions.note_ending(host_cell_id, response)
        return LiveCell(response, buffered_for_ns=buffered_ns)


def _buffered_for_ns(headers: Metadata) -> int | None:
    text = headers.text(_BUFFERED_KEY)
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 20 else None
