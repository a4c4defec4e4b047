"""Run what scripts call back: judge it by the books, give it to the delegate, send the answer."""

from collections.abc import Callable
from typing import Final

import attrs
import trio

from actors.sessions._book import Answer, CellBook, Drop, Problem, Run
from actors.sessions._delegate import DelegateFailed, Report
from actors.sessions._errors import ProtocolViolation, SessionsError, ToolFailed
from actors.sessions._execution import Callback, Execution
from actors.sessions._generations import public_cell_id
from actors.sessions._journal import Journal
from actors.sessions._link import CALL_S, Link, Phase
from actors.sessions._responses import Notification, ToolCall
from actors.sessions._translation import json_bytes, read_json, tool_kind_of
from actors.sessions._values import ToolName
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions._wire._methods import COMPLETE_TOOL_CALL
from actors.sessions._wording import Operation
from actors.sessions.grpc import CallFailed

MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
_PANICKED: Final = "code-mode tool delegate panicked"


@attrs.define(eq=False)
class Callbacks:
    """The callbacks of one host session."""

    link: Link
    """Carries the answers."""

    book: CellBook
    """Judges."""

    nursery: trio.Nursery
    """Where delegates run: a session that ends does not wait for them."""

    generation: int
    """Of the host session."""

    report: Report
    """Hears of delegates that fail."""

    execution_of: Callable[[str], Execution]
    """Finds an execution by its id."""

    journal: Journal | None = None
    """Takes the reports of what scripts store."""

    # --- tool calls

    def on_tool_call(self, message: wire.ToolCall) -> None:
        """Take what the tool subscription brought.

        Raises:
            ProtocolViolation: It has no place in the protocol.
        """
        if message.HasField("heartbeat"):
            if message.invocation_id or message.HasField("tool_name"):
                raise ProtocolViolation("gRPC code-mode heartbeat carried a tool invocation")
            return
        if message.session_id != self.link.session_id:
            raise ProtocolViolation("gRPC code-mode host sent a tool call of another session")
        name = _tool_name(message)
        kind = tool_kind_of(int(message.tool_kind))
        verdict = self.book.admit_tool_call(message.invocation_id, message.execution_id, message.cell_id, name, kind)
        match verdict:
            case Run(entry):
                execution = self.execution_of(entry.execution_id)
                assert kind is not None, "a call of no known kind is enabled for nobody"
                given = message.HasField("input_json")
                call = ToolCall(
                    cell_id=execution.public_cell_id,
                    runtime_tool_call_id=message.runtime_tool_call_id,
                    tool_name=name,
                    tool_kind=kind,
                    input=read_json(message.input_json) if given else None,
                    input_given=given,
                )
                callback = Callback(message.invocation_id, call)
                execution.callbacks[callback.callback_id] = callback
                self.nursery.start_soon(self._run_tool, execution, callback, call)
            case Answer(problem):
                self.link.start(self._reject, message.invocation_id, self._problem_text(problem, message))
            case Drop():
                pass

    def _problem_text(self, problem: Problem, message: wire.ToolCall) -> str:
        match problem:
            case Problem.CELL_CLOSED:
                return f"code-mode cell {public_cell_id(self.generation, message.cell_id)} is closed"
            case Problem.TOOL_NOT_ENABLED:
                return f"code-mode tool {message.tool_name.name} is not enabled for this execution"
            case Problem.TOO_MANY_PENDING:
                return "code-mode host exceeded its pending delegate callback limit"

    async def _reject(self, invocation_id: str, text: str) -> None:
        message = self._failure(invocation_id, text)
        await self.link.unary(Operation.TOOL_INVOCATION_COMPLETION, COMPLETE_TOOL_CALL, message)

    async def _run_tool(self, execution: Execution, callback: Callback, call: ToolCall) -> None:
        message: wire.CompleteToolCallRequest | None = None
        try:
            with callback.scope:
                message = await self._answer(execution, callback, call)
            if message is not None and not callback.cancelled and self.link.phase is not Phase.CLOSED:
                await self._complete(callback, message)
        finally:
            self.book.finish(callback.callback_id)
            execution.finish(callback)

    async def _answer(self, execution: Execution, callback: Callback, call: ToolCall) -> wire.CompleteToolCallRequest:
        invocation_id = callback.callback_id
        try:
            output = json_bytes(await execution.delegate.call_tool(call, callback.signal))
        except ToolFailed as rejection:
            return self._failure(invocation_id, str(rejection))
        except Exception as error:
            # The script learns that the call failed, and nothing of the holder's insides.
            self.report(DelegateFailed(call.cell_id, "call_tool", error, call.tool_name))
            return self._failure(invocation_id, _PANICKED)
        message = wire.CompleteToolCallRequest(
            session_id=self.link.session_id,
            invocation_id=invocation_id,
            succeeded=wire.ToolCallSucceeded(output_json=output),
        )
        size = message.ByteSize()
        if size <= MESSAGE_BYTES_MAX:
            return message
        text = (
            f"code-mode tool result of {size} bytes exceeds the {MESSAGE_BYTES_MAX}-byte gRPC message limit; "
            "nothing of it was sent: ask the tool for it in parts"
        )
        return self._failure(invocation_id, text)

    def _failure(self, invocation_id: str, text: str) -> wire.CompleteToolCallRequest:
        return wire.CompleteToolCallRequest(
            session_id=self.link.session_id,
            invocation_id=invocation_id,
            failed=wire.ToolCallFailed(message=text.encode("utf-8", "replace").decode()),
        )

    async def _complete(self, callback: Callback, message: wire.CompleteToolCallRequest) -> None:
        operation = Operation.TOOL_INVOCATION_COMPLETION
        try:
            with self.link.bounded(operation, CALL_S):
                await self.link.request(COMPLETE_TOOL_CALL, message)
        except CallFailed as failed:
            if not callback.cancelled:
                self.link.judged(operation, failed)
        except SessionsError:
            return  # The link has ended, and everyone it concerns was told why.

    def cancel_tool_call(self, invocation_id: str, executions: "list[Execution]") -> None:
        """Withdraw a call, also one that is yet to come."""
        if self.book.cancel_tool_call(invocation_id):
            self._cancel(invocation_id, executions)

    def _cancel(self, callback_id: str, executions: "list[Execution]") -> None:
        for execution in executions:
            callback = execution.callbacks.get(callback_id)
            if callback is not None:
                callback.cancel()

    # --- notifications

    def on_notification(self, message: wire.Notification) -> None:
        """Take a text of a script.

        Raises:
            ProtocolViolation: It has no place in the protocol.
        """
        verdict = self.book.admit_notification(
            message.notification_id, message.execution_id, message.cell_id, message.call_id
        )
        if self.journal is not None and self.journal.take(message.cell_id, message.text):
            if isinstance(verdict, Run):
                self.book.finish(message.notification_id)
            return
        if not isinstance(verdict, Run):
            return
        execution = self.execution_of(verdict.entry.execution_id)
        notification = Notification(cell_id=execution.public_cell_id, tool_call_id=message.call_id, text=message.text)
        callback = Callback(message.notification_id)
        execution.callbacks[callback.callback_id] = callback
        self.nursery.start_soon(self._notify, execution, callback, notification)

    async def _notify(self, execution: Execution, callback: Callback, notification: Notification) -> None:
        try:
            with callback.scope:
                await execution.delegate.notify(notification, callback.signal)
        except Exception as error:
            # There is nobody to answer: the script went on long ago.
            self.report(DelegateFailed(notification.cell_id, "notify", error))
        finally:
            self.book.finish(callback.callback_id)
            execution.finish(callback)

    def cancel_notification(self, notification_id: str, executions: "list[Execution]") -> None:
        """Withdraw a notification."""
        self._cancel(notification_id, executions)


def _tool_name(message: wire.ToolCall) -> ToolName:
    namespace = message.tool_name.namespace if message.tool_name.HasField("namespace") else None
    return ToolName(message.tool_name.name, namespace)
