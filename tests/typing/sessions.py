"""What must check and what must not, of code sessions. Read by mypy and pyright, never run."""

from typing import assert_type

import trio

from actors.sessions import (
    Call,
    ContentItem,
    Delegate,
    ExecSource,
    ExecuteRequest,
    InputText,
    Json,
    LiveCell,
    MissingCell,
    Notification,
    OutputTotals,
    OutputTruncation,
    Result,
    RuntimeResponse,
    Session,
    SessionOptions,
    SessionReset,
    StartedCell,
    Terminated,
    ToolCall,
    ToolDefinition,
    ToolName,
    WaitOutcome,
    WaitRequest,
    Yielded,
    open_provider,
    output_totals,
    read_exec_source,
    render_response,
)


class Tools:
    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        assert_type(call.input, Json)
        return {"seen": call.tool_name.name}

    async def notify(self, notification: Notification, cancelled: trio.Event) -> None:
        assert_type(notification.text, str)

    def cell_closed(self, cell_id: str) -> None: ...


class HalfADelegate:
    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        return None


delegate: Delegate = Tools()
wrong: Delegate = HalfADelegate()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


async def holder() -> None:
    async with open_provider("http://127.0.0.1:1") as provider:
        session = await provider.create_session(SessionOptions(heartbeat_interval_s=5, restore_stored_values=True))
        assert_type(session, Session)
        assert_type(session.output_truncation, OutputTruncation)
        execute = ExecuteRequest(
            tool_call_id="call", source="text(1)", enabled_tools=(ToolDefinition(name="t", tool_name=ToolName("t")),)
        )
        assert_type(session.execute(execute, delegate), Call[StartedCell])
        cell = await session.execute(execute)
        assert_type(await cell.initial_response(), RuntimeResponse)
        assert_type(await session.wait(WaitRequest("1")), WaitOutcome)
        assert_type(await session.terminate("1"), WaitOutcome)
        assert_type(session.completion("1", on_output=seen), Call[WaitOutcome])
        assert_type(await session.shutdown(), None)

        session.execute("text(1)")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        session.wait("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        session.execute(execute, HalfADelegate())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        session.completion("1", on_output=len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def seen(one: Yielded) -> None:
    assert_type(one.content_items, tuple[ContentItem, ...])


def every_kind_of_response(response: RuntimeResponse) -> str | None:
    match response:
        case Yielded() | Terminated():
            return None
        case Result(error_text=error):
            return error


def every_kind_of_outcome(outcome: WaitOutcome) -> RuntimeResponse:
    match outcome:
        case LiveCell(response) | MissingCell(response):
            return response


def shown(response: RuntimeResponse, reset: SessionReset) -> None:
    assert_type(render_response(response, error_apart=True, true_totals=True), tuple[ContentItem, ...])
    assert_type(output_totals(response, OutputTruncation.SERVER), OutputTotals)
    assert_type(read_exec_source("text(1)"), ExecSource)
    assert_type(reset.restored_keys, tuple[str, ...])
    assert_type(reset.lost.stored_keys, tuple[str, ...] | None)
    InputText(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    render_response(response, 5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
