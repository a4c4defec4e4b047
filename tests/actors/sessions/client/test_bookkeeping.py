"""What the client makes of events that come early, late, twice, or that no host may send."""

import uuid

import pytest
import trio
import trio.testing

from actors.sessions import (
    HostCallFailed,
    HostTimedOut,
    InputText,
    InvalidRequest,
    Json,
    LiveCell,
    Notification,
    ProtocolViolation,
    Session,
    SessionProvider,
    SessionReset,
    SessionsError,
    SessionStopped,
    Terminated,
    ToolCall,
    ToolDefinition,
    ToolKind,
    ToolName,
    WaitRequest,
    Yielded,
    open_provider,
)
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import Send, ServerCall, StatusCode
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.client.hosts import Cell, Host, HostSession, Serving, serving
from tests.actors.sessions.client.recording import ECHO, Recorder, printed, request, run, told


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked(0.02)


def host_session(host: Host) -> HostSession:
    return next(iter(host.sessions.values()))


def call_of(session: HostSession, cell: Cell, **more: object) -> wire.ToolCall:
    fields: dict[str, object] = {
        "session_id": session.session_id, "execution_id": cell.execution_id, "cell_id": cell.cell_id,
        "invocation_id": str(uuid.uuid4()), "runtime_tool_call_id": "tool-9", "tool_name": wire.ToolName(name="echo"),
        "tool_kind": wire.TOOL_KIND_FUNCTION, "input_json": b"1", "sequence": 9,
    }  # fmt: skip
    return wire.ToolCall(**{**fields, **more})  # type: ignore[arg-type]


def expect_answer(session: HostSession, call: wire.ToolCall, cell: Cell) -> list[wire.CompleteToolCallRequest]:
    """Know a call, so that its completion is taken, and return where the completion will be."""
    answers: list[wire.CompleteToolCallRequest] = []
    session.calls[call.invocation_id] = cell, trio.Event(), answers
    return answers


# --- notifications


@pytest.mark.parametrize("waited", [False, True])
async def test_a_result_is_held_back_until_its_notifications_are_done(
    host: Host, provider: SessionProvider, waited: bool
) -> None:
    release, go = trio.Event(), trio.Event()

    async def block(_: Notification, cancelled: trio.Event) -> None:
        await release.wait()

    @host.script
    async def notify_late(cell: Cell) -> None:
        if waited:
            await go.wait()
        cell.notify("notice")
        cell.text("after")

    recorder = Recorder()
    recorder.on_notify = block
    session = await provider.create_session()
    cell = await session.execute(request("notify_late", yield_time_ms=1 if waited else 5_000), recorder)
    if waited:
        assert isinstance(await cell.initial_response(), Yielded)
        go.set()
    answers: list[object] = []

    async def observe() -> None:
        answers.append((await session.wait(WaitRequest("1"))).response if waited else await cell.initial_response())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(observe)
        await recorder.notified.wait()
        await settle()
        early, closed_early = [*answers], [*recorder.closed]
        release.set()

    assert (early, closed_early) == ([], [])
    assert [told(answer) for answer in answers] == [printed("1", "after")]  # type: ignore[arg-type]
    assert recorder.cancelled == []
    assert recorder.closed == ["1"]


async def test_terminating_cancels_a_blocked_notification(host: Host, provider: SessionProvider) -> None:
    async def block(_: Notification, cancelled: trio.Event) -> None:
        await trio.sleep_forever()

    @host.script
    async def notify_and_stay(cell: Cell) -> None:
        cell.notify("notice")
        await trio.sleep_forever()

    recorder = Recorder()
    recorder.on_notify = block
    session = await provider.create_session()
    await run(session, "notify_and_stay", recorder, yield_time_ms=1)
    await recorder.notified.wait()
    ended = await session.terminate("1")
    with trio.fail_after(5):
        await recorder.wait_closed("1")

    assert isinstance(ended.response, Terminated)
    assert recorder.cancelled == ["notice"]


async def test_a_notification_arrives_unchanged(host: Host, provider: SessionProvider) -> None:
    text = "\N{PERFORMING ARTS}" * 512

    @host.script
    async def notify_wide(cell: Cell) -> None:
        cell.notify(text)

    recorder = Recorder()
    session = await provider.create_session()
    await run(session, "notify_wide", recorder)

    assert [notification.text for notification in recorder.notifications] == [text]


async def test_at_the_limit_of_pending_callbacks_the_next_is_refused_and_a_freed_place_is_used(
    host: Host, provider: SessionProvider
) -> None:
    release = trio.Event()

    async def block(_: Notification, cancelled: trio.Event) -> None:
        await release.wait()

    @host.script
    async def notify_1024_times(cell: Cell) -> None:
        for _ in range(1024):
            cell.notify("notice")
        await trio.sleep_forever()

    recorder = Recorder()
    recorder.on_notify = block
    session = await provider.create_session()
    await run(session, "notify_1024_times", recorder, yield_time_ms=1)
    while len(recorder.notifications) < 1024:
        await settle()
    refused = await run(session, "catch_echo", recorder, enabled_tools=[ECHO])
    release.set()
    await settle()
    freed = await run(session, "call_echo", recorder, enabled_tools=[ECHO])

    assert told(refused) == printed("2", "caught code-mode host exceeded its pending delegate callback limit")
    assert told(freed) == printed("3", '{"value":"persisted"}')


# --- tool calls


@pytest.mark.parametrize(
    "enabled",
    [
        (),
        (ToolDefinition(name="echo", tool_name=ToolName("echo", "elsewhere")),),
        (ToolDefinition(name="echo", tool_name=ToolName("echo"), kind=ToolKind.FREEFORM),),
    ],
)
async def test_a_tool_that_is_not_enabled_as_called_is_refused(
    host: Host, provider: SessionProvider, enabled: tuple[ToolDefinition, ...]
) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    await run(session, "stay", recorder, yield_time_ms=1, enabled_tools=enabled)
    there = host_session(host)
    call = call_of(there, there.cells["1"])
    answers = expect_answer(there, call, there.cells["1"])
    there.tool_calls[0].send_nowait(call)
    await settle()

    assert [answer.failed.message for answer in answers] == ["code-mode tool echo is not enabled for this execution"]
    assert recorder.calls == []


@pytest.mark.parametrize("namespace", [None, "", "functions"])
async def test_three_spellings_of_the_namespace_of_functions_are_one(
    host: Host, provider: SessionProvider, namespace: str | None
) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    await run(session, "stay", recorder, yield_time_ms=1, enabled_tools=[ECHO])
    there = host_session(host)
    call = call_of(there, there.cells["1"], tool_name=wire.ToolName(name="echo", namespace=namespace))
    expect_answer(there, call, there.cells["1"])
    there.tool_calls[0].send_nowait(call)
    await settle()

    assert [call.tool_name.namespace for call in recorder.calls] == [namespace]


async def test_a_call_withdrawn_while_it_runs_is_cancelled_and_not_answered(
    host: Host, provider: SessionProvider
) -> None:
    async def block(_: ToolCall, cancelled: trio.Event) -> Json:
        await trio.sleep_forever()

    recorder = Recorder()
    recorder.on_call = block
    session = await provider.create_session()
    await run(session, "call_echo", recorder, yield_time_ms=1, enabled_tools=[ECHO])
    await recorder.called.wait()
    there = host_session(host)
    [invocation_id] = there.calls
    there.tell(wire.SessionEvent(tool_call_cancelled=wire.ToolCallCancelled(invocation_id=invocation_id)))
    await settle()

    assert recorder.cancelled == ["tool-1"]
    assert host.count("CompleteToolCall") == 0
    assert told(await run(session, "still_live")) == printed("2", "still live")


async def test_a_call_withdrawn_before_it_came_is_dropped(host: Host, provider: SessionProvider) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    await run(session, "stay", recorder, yield_time_ms=1, enabled_tools=[ECHO])
    there = host_session(host)
    call = call_of(there, there.cells["1"])
    there.tell(wire.SessionEvent(tool_call_cancelled=wire.ToolCallCancelled(invocation_id=call.invocation_id)))
    await settle()
    there.tool_calls[0].send_nowait(call)
    await settle()

    assert recorder.calls == []
    assert host.count("CompleteToolCall") == 0


async def test_a_completion_that_races_with_its_withdrawal_keeps_the_session(
    host: Host, provider: SessionProvider
) -> None:
    session = await provider.create_session()
    held, go = trio.Event(), trio.Event()

    async def hold(request: wire.CompleteToolCallRequest) -> None:
        held.set()
        await go.wait()

    host.complete_hook = hold
    host.refuse_late("CompleteToolCall", StatusCode.NOT_FOUND, "unknown code-mode tool invocation")
    await run(session, "call_echo", Recorder(), yield_time_ms=1, enabled_tools=[ECHO])
    await held.wait()
    there = host_session(host)
    [invocation_id] = there.calls
    there.tell(wire.SessionEvent(tool_call_cancelled=wire.ToolCallCancelled(invocation_id=invocation_id)))
    await settle()
    go.set()
    await settle()

    assert told(await run(session, "still_live")) == printed("2", "still live")


async def test_a_completion_that_fails_costs_the_session(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    host.refuse_next("CompleteToolCall", StatusCode.NOT_FOUND, "unknown code-mode tool invocation")
    with pytest.raises(SessionStopped):
        await run(session, "call_echo", Recorder(), enabled_tools=[ECHO])

    with pytest.raises(SessionReset):
        await run(session, "recall")


async def test_a_call_of_a_closed_cell_is_answered_as_closed(host: Host, provider: SessionProvider) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    await run(session, "stay", recorder, yield_time_ms=1, enabled_tools=[ECHO])
    there = host_session(host)
    cell = there.cells["1"]
    await session.terminate("1")
    call = call_of(there, cell)
    answers = expect_answer(there, call, cell)
    there.tool_calls[0].send_nowait(call)
    await settle()

    assert [answer.failed.message for answer in answers] == ["code-mode cell 1 is closed"]
    assert recorder.calls == []


async def test_callbacks_before_the_start_reach_the_right_delegate(host: Host, provider: SessionProvider) -> None:
    async def call_first(cell: Cell, send: Send) -> None:
        there = cell.session
        call = call_of(there, cell)
        expect_answer(there, call, cell)
        there.tool_calls[0].send_nowait(call)
        cell.notify("early")
        await settle()

    host.before_start = call_first
    recorder = Recorder()
    session = await provider.create_session()
    response = await run(session, "still_live", recorder, enabled_tools=[ECHO])

    assert told(response) == printed("1", "still live")
    assert [call.cell_id for call in recorder.calls] == ["1"]
    assert [notification.text for notification in recorder.notifications] == ["early"]


async def test_a_closure_before_the_start_is_told_after_it(host: Host, provider: SessionProvider) -> None:
    closed_at_start: list[list[str]] = []
    recorder = Recorder()

    async def close_first(cell: Cell, send: Send) -> None:
        cell.close()
        await settle()
        closed_at_start.append([*recorder.closed])

    host.before_start = close_first
    session = await provider.create_session()
    response = await run(session, "still_live", recorder)

    assert closed_at_start == [[]]
    assert told(response) == printed("1", "still live")
    assert recorder.closed == ["1"]


async def test_a_cell_closed_before_its_outcome_still_ends_its_holder_when_the_session_is_lost(
    host: Host, provider: SessionProvider
) -> None:
    async def close_and_lose(call: ServerCall, asked: wire.ExecuteRequest, send: Send) -> None:
        there = host_session(host)
        await send(wire.ExecuteEvent(started=wire.ExecutionStarted(execution_id=asked.execution_id, cell_id="1")))
        there.tell(wire.SessionEvent(cell_closed=wire.CellClosed(execution_id=asked.execution_id, cell_id="1")))
        await settle()
        there.end()
        await trio.sleep_forever()

    host.execute_hook = close_and_lose
    recorder = Recorder()
    session = await provider.create_session()
    cell = await session.execute(request("stay"), recorder)
    with pytest.raises(SessionStopped), trio.fail_after(5):
        await cell.initial_response()

    assert recorder.closed == ["1"]


async def test_a_tool_result_over_the_message_limit_becomes_a_failure_naming_both_sizes(
    host: Host, provider: SessionProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.sessions._callbacks.MESSAGE_BYTES_MAX", 1_000)

    async def large(*_: object) -> Json:
        return "x" * 2_000

    recorder = Recorder()
    recorder.on_call = large
    session = await provider.create_session()
    response = await run(session, "catch_echo", recorder, enabled_tools=[ECHO])

    [text] = told(response)[1]
    assert text.startswith("caught code-mode tool result of 2")
    assert "exceeds the 1000-byte gRPC message limit" in text
    assert "ask the tool for it in parts" in text


async def test_an_input_that_was_not_given_is_told_from_null(host: Host, provider: SessionProvider) -> None:
    @host.script
    async def call_twice(cell: Cell) -> None:
        await cell.tool("echo", None)
        await cell.tool("echo", b"null")

    recorder = Recorder()
    session = await provider.create_session()
    await run(session, "call_twice", recorder, enabled_tools=[ECHO])

    assert [(call.input, call.input_given) for call in recorder.calls] == [(None, False), (None, True)]


# --- what no host may send


async def violated(session: Session, send: object) -> str:
    """Let a host send something, and return what the session ends with."""
    recorder = Recorder()
    await run(session, "stay", recorder, yield_time_ms=1, enabled_tools=[ECHO])
    send()  # type: ignore[operator]
    with trio.fail_after(5):
        await recorder.wait_closed("1")
    with pytest.raises(ProtocolViolation) as violation:
        await session.terminate("1")
    return str(violation.value)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            wire.SessionEvent(opened=wire.SessionOpened(session_id="s")),
            "gRPC code-mode host repeated the session opening event",
        ),
        (wire.SessionEvent(), "gRPC code-mode host sent an empty session event"),
        (
            wire.SessionEvent(notification=wire.Notification(notification_id="x", call_id="c")),
            "code-mode notification ID must be a UUID",
        ),
    ],
)
async def test_a_lease_event_without_a_place_ends_the_session(
    host: Host, provider: SessionProvider, event: wire.SessionEvent, text: str
) -> None:
    session = await provider.create_session()

    assert await violated(session, lambda: host_session(host).tell(event)) == text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"invocation_id": "x"}, "code-mode tool invocation ID must be a UUID"),
        ({"heartbeat": wire.Heartbeat()}, "gRPC code-mode heartbeat carried a tool invocation"),
        ({"cell_id": "7"}, "code-mode execution changed cell ID from 1 to 7"),
        ({"input_json": b"{"}, "gRPC code-mode host sent a tool input that is not JSON"),
        ({"session_id": "other"}, "gRPC code-mode host sent a tool call of another session"),
    ],
)
async def test_a_tool_call_without_a_place_ends_the_session(
    host: Host, provider: SessionProvider, change: dict[str, object], text: str
) -> None:
    session = await provider.create_session()

    def send() -> None:
        there = host_session(host)
        there.tool_calls[0].send_nowait(call_of(there, there.cells["1"], **change))

    assert await violated(session, send) == text


async def test_a_reused_invocation_id_ends_the_session(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()

    def send() -> None:
        there = host_session(host)
        call = call_of(there, there.cells["1"])
        expect_answer(there, call, there.cells["1"])
        there.tool_calls[0].send_nowait(call)
        there.tool_calls[0].send_nowait(call)

    assert await violated(session, send) == "code-mode tool invocation ID was reused"


async def test_a_cell_of_another_execution_ends_the_session(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    await run(session, "stay", yield_time_ms=1)

    def before(cell: Cell) -> None:
        cell.cell_id = "1"

    host.on_cell = before
    with pytest.raises(ProtocolViolation, match=r"^code-mode host reused active cell ID 1$"):
        await run(session, "stay")


@pytest.mark.parametrize("cell_id", ["", "x" * 257])
async def test_a_cell_id_out_of_bounds_is_refused(host: Host, provider: SessionProvider, cell_id: str) -> None:
    def before(cell: Cell) -> None:
        cell.cell_id = cell_id

    host.on_cell = before
    session = await provider.create_session()
    with pytest.raises(ProtocolViolation, match=r"^gRPC code-mode host returned (an empty cell ID|cell ID exceeding)"):
        await run(session, "stay")


@pytest.mark.parametrize("tool_call_id", ["", "x" * 257])
async def test_an_outer_call_id_out_of_bounds_is_refused_unsent(
    host: Host, provider: SessionProvider, tool_call_id: str
) -> None:
    session = await provider.create_session()
    with pytest.raises(InvalidRequest):
        await run(session, "stay", tool_call_id=tool_call_id)

    assert host.count("Execute") == 0


async def test_unknown_events_and_heartbeats_are_skipped(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    there = host_session(host)
    there.tell(wire.SessionEvent.FromString(b"\xa2\x06\x00"))
    there.tell(wire.SessionEvent(heartbeat=wire.Heartbeat()))
    there.tool_calls[0].send_nowait(wire.ToolCall(session_id=there.session_id, heartbeat=wire.Heartbeat()))
    await settle()

    assert told(await run(session, "still_live")) == printed("1", "still live")


@pytest.mark.parametrize(
    ("sends", "text"),
    [
        ([], "gRPC code-mode execution ended before its starting event"),
        (["outcome"], "gRPC code-mode execution omitted its starting event"),
        (["started"], "gRPC code-mode execution omitted its initial outcome"),
        (["started", "started"], "gRPC code-mode execution returned an unexpected event"),
        (["other"], "gRPC code-mode execution returned ID other instead of "),
        (["started", "elsewhere"], "gRPC code-mode execution returned cell 9 instead of 1"),
    ],
)
async def test_an_execution_that_tells_its_story_wrongly_ends_the_session(
    host: Host, provider: SessionProvider, sends: list[str], text: str
) -> None:
    async def tell(call: ServerCall, asked: wire.ExecuteRequest, send: Send) -> None:
        call.send_headers()
        events = {
            "started": wire.ExecuteEvent(started=wire.ExecutionStarted(execution_id=asked.execution_id, cell_id="1")),
            "other": wire.ExecuteEvent(started=wire.ExecutionStarted(execution_id="other", cell_id="1")),
            "outcome": wire.ExecuteEvent(outcome=wire.ExecutionOutcome(cell_id="1", yielded=wire.ExecutionYielded())),
            "elsewhere": wire.ExecuteEvent(outcome=wire.ExecutionOutcome(cell_id="9", yielded=wire.ExecutionYielded())),
        }
        for name in sends:
            await send(events[name])

    host.execute_hook = tell
    session = await provider.create_session()
    with pytest.raises(ProtocolViolation) as violation:
        await run(session, "still_live")

    assert str(violation.value).startswith(text)


async def test_a_lease_that_ends_by_itself_ends_the_session(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    text = await violated(session, lambda: host_session(host).end())

    # The host ends both streams of a session; either may be seen first.
    assert text in {
        "gRPC code-mode session lease closed unexpectedly",
        "gRPC code-mode tool subscription closed unexpectedly",
    }


async def test_a_subscription_that_ends_by_itself_ends_the_session(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    text = await violated(session, lambda: host_session(host).scopes[1].cancel())

    assert text == "gRPC code-mode tool subscription closed unexpectedly"


# --- deadlines, on the virtual clock


@pytest.mark.parametrize(
    ("method", "operation", "after_s"),
    [
        ("Execute", "execution", 60),
        ("Wait", "wait", 71),
        ("Terminate", "termination", 60),
        ("CloseSession", "session shutdown", 60),
    ],
)
async def test_a_silent_host_is_given_up_after_its_time(
    host: Host, autojump_clock: trio.testing.MockClock, method: str, operation: str, after_s: float
) -> None:
    network = MemoryNetwork()
    calls = {
        "Execute": lambda session: session.execute(request("stay")),
        "Wait": lambda session: session.wait(WaitRequest("1")),
        "Terminate": lambda session: session.terminate("1"),
        "CloseSession": lambda session: session.shutdown(),
    }
    async with (
        serving(host, listener=network.listener) as served,
        open_provider(served.url, dial=network.dial) as provider,
    ):
        session = await provider.create_session()
        host.silent.add(method)
        began_s = trio.current_time()
        with pytest.raises(HostTimedOut) as late:
            await calls[method](session)
        took_s = trio.current_time() - began_s
        host.silent.clear()
        if method != "CloseSession":
            with pytest.raises(SessionReset):
                await run(session, "recall")

    assert str(late.value) == f"gRPC code-mode host timed out waiting for {operation} response"
    assert took_s == pytest.approx(after_s)


async def test_an_outcome_has_its_observation_and_61_seconds(
    host: Host, autojump_clock: trio.testing.MockClock
) -> None:
    async def start_and_stay(call: ServerCall, asked: wire.ExecuteRequest, send: Send) -> None:
        await send(wire.ExecuteEvent(started=wire.ExecutionStarted(execution_id=asked.execution_id, cell_id="1")))
        await trio.sleep_forever()

    host.execute_hook = start_and_stay
    network = MemoryNetwork()
    async with (
        serving(host, listener=network.listener) as served,
        open_provider(served.url, dial=network.dial) as provider,
    ):
        session = await provider.create_session()
        began_s = trio.current_time()
        with pytest.raises(HostTimedOut, match="execution outcome"):
            await run(session, "stay", yield_time_ms=None)
        took_s = trio.current_time() - began_s

    assert took_s == pytest.approx(71)


# --- shutting down


async def test_a_failure_after_closing_began_does_not_cancel_the_closing(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    there = host_session(host)
    shutdown = session.shutdown()
    there.tell(wire.SessionEvent())
    await settle()
    await shutdown

    assert host.count("CloseSession") == 1


async def test_a_failure_before_closing_makes_shutdown_succeed_without_a_call(
    host: Host, provider: SessionProvider
) -> None:
    session = await provider.create_session()
    host_session(host).tell(wire.SessionEvent())
    await settle()
    await session.shutdown()

    assert host.count("CloseSession") == 0


async def test_shutting_down_reports_each_live_cell_once(host: Host, provider: SessionProvider) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    await run(session, "stay", recorder, yield_time_ms=1)
    await run(session, "recall", recorder)
    await run(session, "stay", recorder, yield_time_ms=1)
    await session.shutdown()

    assert sorted(recorder.closed) == ["1", "2", "3"]


async def test_a_failed_shutdown_says_the_same_to_everyone(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    host.refuse_next("CloseSession", StatusCode.INTERNAL, "stuck")
    texts: list[str] = []
    for _ in range(2):
        with pytest.raises(HostCallFailed) as failed:
            await session.shutdown()
        texts.append(str(failed.value))

    assert len({*texts}) == 1
    assert texts[0].startswith("gRPC code-mode session shutdown failed: ")
    assert host.count("CloseSession") == 1


async def test_leaving_the_provider_ends_every_session_and_reports_its_cells(served: Serving) -> None:
    recorder = Recorder()
    async with open_provider(served.url) as provider:
        session = await provider.create_session()
        cell = await session.execute(request("stay"), recorder)
    with pytest.raises(SessionStopped):
        await cell.initial_response()
    with pytest.raises(SessionsError):
        await provider.create_session()
    with pytest.raises(SessionsError):
        await run(session, "recall")
    await session.shutdown()

    assert recorder.closed == ["1"]


# --- what cannot be sent


async def test_a_request_that_cannot_be_written_hurts_nobody(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    broken = ToolDefinition(name="echo", tool_name=ToolName("echo"), input_schema=float("nan"))
    for more in ({"source": "\ud800"}, {"tool_call_id": "\ud800"}, {"enabled_tools": [broken]}):
        with pytest.raises(InvalidRequest):
            await run(session, **{"source": "still_live", **more})
    with pytest.raises(InvalidRequest):
        await session.wait(WaitRequest("\ud800", 1))

    assert told(await run(session, "still_live")) == printed("1", "still live")
    assert host.count("Execute") == 1


async def test_a_trace_parent_that_cannot_be_written_fails_the_opening(served: Serving) -> None:
    async with open_provider(served.url, traceparent=lambda: "new\nline") as provider:
        with pytest.raises(InvalidRequest):
            await provider.create_session()


# --- observations


async def test_each_observation_has_what_came_since_the_one_before(host: Host, provider: SessionProvider) -> None:
    go_on = trio.Event()

    @host.script
    async def in_two_parts(cell: Cell) -> None:
        cell.text("before")
        cell.yield_control()
        await go_on.wait()
        cell.text("after")

    session = await provider.create_session()
    first = await run(session, "in_two_parts")
    go_on.set()
    second = await session.wait(WaitRequest("1"))

    assert first == Yielded(cell_id="1", content_items=[InputText("before")])
    assert told(second.response) == printed("1", "after")
    assert (first.host_duration_ns, second.response.host_duration_ns) == (1, 1)


async def test_terminating_what_has_completed_returns_the_completion(host: Host, provider: SessionProvider) -> None:
    go = trio.Event()

    @host.script
    async def end_behind_the_scenes(cell: Cell) -> None:
        cell.store("key", "kept")
        await go.wait()
        cell.text("done")

    session = await provider.create_session()
    assert isinstance(await run(session, "end_behind_the_scenes", yield_time_ms=1), Yielded)
    go.set()
    await settle()
    ended = await session.terminate("1")

    assert told(ended.response) == printed("1", "done")
    assert told(await run(session, "recall")) == printed("2", "kept")


async def test_a_terminate_is_answered_although_a_notification_never_returns(
    host: Host, provider: SessionProvider
) -> None:
    async def never(_: Notification, cancelled: trio.Event) -> None:
        await trio.sleep_forever()

    @host.script
    async def notify_and_wait(cell: Cell) -> None:
        cell.notify("notice")
        await trio.sleep_forever()

    recorder = Recorder()
    recorder.on_notify = never
    session = await provider.create_session()
    cell = await session.execute(request("notify_and_wait"), recorder)
    await recorder.notified.wait()
    with trio.fail_after(5):
        ended = await session.terminate("1")
        first = await cell.initial_response()

    assert ended == LiveCell(first)
    assert isinstance(first, Terminated)


async def test_a_blocked_tool_nobody_waits_for_does_not_hold_up_the_result(
    host: Host, provider: SessionProvider
) -> None:
    async def never(*_: object) -> Json:
        await trio.sleep_forever()

    @host.script
    async def call_and_end(cell: Cell) -> None:
        cell.session.host.nursery.start_soon(cell.tool, "echo")
        await recorder.called.wait()
        cell.text("done")

    recorder = Recorder()
    recorder.on_call = never
    session = await provider.create_session()
    response = await run(session, "call_and_end", recorder, enabled_tools=[ECHO])
    await settle()

    assert told(response) == printed("1", "done")
    assert recorder.cancelled == ["tool-1"]
    assert host.count("CompleteToolCall") == 0
