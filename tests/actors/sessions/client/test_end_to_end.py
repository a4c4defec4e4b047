"""Executions, waits, terminations, delegates and losses, between the client and a host over real sockets."""

import gc
import threading

import pytest
import trio
import trio.testing

from actors.sessions import (
    CellBusy,
    CellExecutionLimits,
    HostCallFailed,
    InvalidEndpoint,
    Json,
    LiveCell,
    MissingCell,
    Notification,
    ResponseTaken,
    Result,
    SessionClosed,
    SessionOptions,
    SessionProvider,
    SessionReset,
    SessionsError,
    StaleGeneration,
    Terminated,
    ToolCall,
    ToolFailed,
    ToolKind,
    ToolName,
    WaitRequest,
    Yielded,
    open_provider,
)
from actors.sessions.grpc import StatusCode, listen_unix
from tests.actors.sessions.client.hosts import Cell, Host, Serving, serving
from tests.actors.sessions.client.recording import ECHO, Recorder, printed, request, run, texts, told


@pytest.mark.parametrize(
    "url",
    [
        "http://name:secret@127.0.0.1:1",
        "https://name:secret@127.0.0.1:1",
        "http://name@127.0.0.1:1",
        "http://:secret@127.0.0.1:1",
    ],
)
async def test_a_url_with_credentials_is_refused_without_repeating_them(url: str) -> None:
    async with open_provider(url) as provider:
        with pytest.raises(InvalidEndpoint) as refused:
            await provider.create_session()

    assert str(refused.value) == "gRPC code-mode host URL must not include credentials"
    assert "name" not in repr(provider)
    assert "secret" not in repr(provider)


async def test_a_script_stores_calls_a_tool_and_notifies(host: Host, provider: SessionProvider) -> None:
    @host.script
    async def all_of_it(cell: Cell) -> None:
        value = await cell.tool("echo", f'{{"value":"{cell.load("key")}"}}'.encode())
        cell.notify("notice")
        cell.text(value.decode())

    async def output(call: ToolCall, _: trio.Event) -> Json:
        return "output"

    first, second = Recorder(), Recorder()
    second.on_call = output
    session = await provider.create_session()
    stored = await run(session, "remember", first)
    response = await run(session, "all_of_it", second, tool_call_id="call-2", enabled_tools=[ECHO])
    await session.shutdown()

    assert told(stored) == printed("1")
    assert told(response) == printed("2", '"output"')
    assert second.calls == [
        ToolCall(
            cell_id="2",
            runtime_tool_call_id="tool-1",
            tool_name=ToolName("echo"),
            tool_kind=ToolKind.FUNCTION,
            input={"value": "persisted"},
        )
    ]
    assert second.notifications == [Notification(cell_id="2", tool_call_id="call-2", text="notice")]
    assert (first.closed, second.closed) == (["1"], ["2"])


async def test_preempting_yields_and_the_cell_goes_on(host: Host, provider: SessionProvider) -> None:
    @host.script
    async def wait_for_echo(cell: Cell) -> None:
        await cell.tool("echo")
        cell.text("done")

    release, preempted = trio.Event(), trio.Event()
    preempted.set()

    async def block(call: ToolCall, _: trio.Event) -> Json:
        await release.wait()
        return None

    recorder = Recorder()
    recorder.on_call = block
    session = await provider.create_session()
    cell = await session.execute(
        request("wait_for_echo", yield_time_ms=60_000, enabled_tools=[ECHO]), recorder, preempt=preempted
    )
    first = await cell.initial_response()
    await recorder.called.wait()
    later = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_set_when_quiet, later)
        second = await session.wait(WaitRequest("1", 60_000), preempt=later)
    release.set()
    third = await session.wait(WaitRequest("1", 60_000))

    assert isinstance(first, Yielded)
    assert isinstance(second, LiveCell)
    assert isinstance(second.response, Yielded)
    assert told(third.response) == printed("1", "done")
    assert host.count("YieldObservation") == 2


async def _set_when_quiet(event: trio.Event) -> None:
    await trio.testing.wait_all_tasks_blocked(0.01)
    event.set()


async def test_a_host_that_cannot_yield_early_keeps_its_session(host: Host, provider: SessionProvider) -> None:
    host.refuse_next("YieldObservation", StatusCode.UNIMPLEMENTED, "")
    preempted = trio.Event()
    preempted.set()
    session = await provider.create_session()
    cell = await session.execute(request("stay", yield_time_ms=20), preempt=preempted)

    assert isinstance(await cell.initial_response(), Yielded)
    assert told(await run(session, "still_live")) == printed("2", "still live")


async def test_shutdown_takes_effect_when_called(provider: SessionProvider) -> None:
    session = await provider.create_session()
    shutdown = session.shutdown()
    for call in (session.execute(request("recall")), session.wait(WaitRequest("1", 1)), session.terminate("1")):
        with pytest.raises(SessionClosed, match=r"^code mode session is shutting down$"):
            await call
    await shutdown
    await session.shutdown()

    assert "shut down" in repr(session)


async def test_a_shutdown_nobody_awaits_closes_the_host_session(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    session.shutdown()
    with trio.fail_after(5):
        while host.sessions:
            await trio.testing.wait_all_tasks_blocked(0.001)

    assert host.count("CloseSession") == 1


async def test_an_execute_cancelled_at_once_is_terminated_and_reported(host: Host, provider: SessionProvider) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.execute, request("stay"), recorder)
        await trio.testing.wait_all_tasks_blocked(0)
        nursery.cancel_scope.cancel()
    with trio.fail_after(5):
        await recorder.wait_closed("1")
    gone = await session.wait(WaitRequest("1", 1))
    response = await run(session, "still_live")

    assert isinstance(gone, MissingCell)
    assert told(gone.response) == ("1", [], "exec cell 1 not found")
    assert told(response) == printed("2", "still live")
    assert recorder.closed == ["1"]


async def test_a_cell_dropped_in_another_thread_is_terminated(host: Host, provider: SessionProvider) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    holder = [await session.execute(request("stay", yield_time_ms=1), recorder)]
    await trio.testing.wait_all_tasks_blocked(0.02)
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
    gc.collect()
    with trio.fail_after(5):
        await recorder.wait_closed("1")
    response = await run(session, "still_live")

    assert told(response) == printed("2", "still live")


async def test_a_first_response_given_up_terminates_the_cell(provider: SessionProvider) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    cell = await session.execute(request("stay", yield_time_ms=60_000), recorder)
    with trio.move_on_after(0.01):
        await cell.initial_response()
    with trio.fail_after(5):
        await recorder.wait_closed("1")

    with pytest.raises(ResponseTaken):
        await cell.initial_response()
    assert told(await run(session, "still_live")) == printed("2", "still live")


async def test_leaving_the_block_of_a_cell_terminates_it(provider: SessionProvider) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    with await session.execute(request("stay", yield_time_ms=60_000), recorder):
        pass
    with trio.fail_after(5):
        await recorder.wait_closed("1")

    assert recorder.closed == ["1"]


async def test_a_delegate_that_raises_hurts_only_its_call(host: Host, served: Serving) -> None:
    async def fall_over(*_: object) -> Json:
        raise LookupError("a secret of the holder")

    async def fall_over_quietly(*_: object) -> None:
        raise LookupError("a secret of the holder")

    recorder = Recorder()
    recorder.on_call, recorder.on_notify = fall_over, fall_over_quietly
    failures: list[str] = []
    async with open_provider(served.url, report=lambda failed: failures.append(failed.where)) as provider:
        session = await provider.create_session()
        first = await run(session, "catch_echo", recorder, enabled_tools=[ECHO])
        second = await run(session, "notify", recorder)
        third = await run(session, "still_live")
        counted = provider.statistics().delegate_failures

    assert told(first) == printed("1", "caught code-mode tool delegate panicked")
    assert told(second) == printed("2", "after")
    assert told(third) == printed("3", "still live")
    assert failures == ["call_tool", "notify"]
    assert counted == 2


async def test_a_delegate_that_sets_its_own_signal_is_still_heard(provider: SessionProvider) -> None:
    async def give_up(_: ToolCall, cancelled: trio.Event) -> Json:
        cancelled.set()
        raise ToolFailed("gave up")

    recorder = Recorder()
    recorder.on_call = give_up
    session = await provider.create_session()
    response = await run(session, "catch_echo", recorder, enabled_tools=[ECHO])

    assert told(response) == printed("1", "caught gave up")


async def test_a_large_tool_result_does_not_delay_another_session(host: Host, provider: SessionProvider) -> None:
    @host.script
    async def measure_echo(cell: Cell) -> None:
        cell.text(len(await cell.tool("echo")))

    async def large(call: ToolCall, _: trio.Event) -> Json:
        return "x" * 8_388_608

    recorder = Recorder()
    recorder.on_call = large
    first, second = await provider.create_session(), await provider.create_session()
    cell = await first.execute(request("measure_echo", enabled_tools=[ECHO]), recorder)
    beside = [await run(second, "still_live"), await run(second, "still_live")]
    response = await cell.initial_response()

    assert [told(each) for each in beside] == [printed("g2:1", "still live"), printed("g2:2", "still live")]
    assert told(response) == printed("1", "8388610")


async def test_a_slow_tool_does_not_delay_a_fast_one(provider: SessionProvider) -> None:
    release = trio.Event()

    async def slow(call: ToolCall, _: trio.Event) -> Json:
        await release.wait()
        return "slow"

    async def fast(call: ToolCall, _: trio.Event) -> Json:
        return "isolated"

    slowly, quickly = Recorder(), Recorder()
    slowly.on_call, quickly.on_call = slow, fast
    session = await provider.create_session()
    cell = await session.execute(request("call_echo", enabled_tools=[ECHO]), slowly)
    second = await run(session, "call_echo", quickly, enabled_tools=[ECHO])
    release.set()
    first = await cell.initial_response()

    assert told(second) == printed("2", '"isolated"')
    assert told(first) == printed("1", '"slow"')


async def test_limits_and_budgets_reach_the_host(provider: SessionProvider, host: Host) -> None:
    limits = CellExecutionLimits(max_yield_time_ms=1, max_heap_size_bytes=16 * 1024 * 1024)
    session = await provider.create_session(SessionOptions(cell_execution_limits=limits, max_pending_tool_calls=7))
    await run(session, "recall", max_output_tokens=5)

    opened, executed = host.openings[0], host.executions[0]
    assert opened.cell_execution_limits.max_yield_time_ms == 1
    assert opened.cell_execution_limits.max_heap_size_bytes == 16 * 1024 * 1024
    assert opened.max_pending_delegate_calls == 7
    assert executed.max_output_tokens == 5


async def test_a_second_wait_for_a_cell_is_refused_at_once(provider: SessionProvider) -> None:
    session = await provider.create_session()
    assert isinstance(await run(session, "stay", yield_time_ms=1), Yielded)
    outcomes: list[object] = []

    async def first_wait() -> None:
        outcomes.append((await session.wait(WaitRequest("1", 500))).response)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first_wait)
        await trio.testing.wait_all_tasks_blocked(0)
        with pytest.raises(CellBusy, match=r"^exec cell 1 already has an active observer$"), trio.fail_after(1):
            await session.wait(WaitRequest("1", 60_000))
    ended = await session.terminate("1")

    assert outcomes == [Yielded(cell_id="1")]
    assert ended == LiveCell(Terminated(cell_id="1"))


async def test_a_busy_host_says_so_in_its_own_words(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    text = "exec cell 1 already has an active observer"
    host.refuse_next("Wait", StatusCode.FAILED_PRECONDITION, text)
    with pytest.raises(HostCallFailed) as refused:
        await session.wait(WaitRequest("1", 1))

    assert str(refused.value).startswith("gRPC code-mode wait failed: ")
    assert text in str(refused.value)
    assert told(await run(session, "still_live")) == printed("1", "still live")


async def test_a_dropped_wait_is_withdrawn_before_the_next(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    await run(session, "stay", yield_time_ms=1)
    with trio.move_on_after(0.02):
        await session.wait(WaitRequest("1", 60_000))
    outcome = await session.wait(WaitRequest("1", 1))

    assert outcome == LiveCell(Yielded(cell_id="1"))
    methods = [name for name, _ in host.requests if name in {"Wait", "CancelWait"}]
    assert methods == ["Wait", "CancelWait", "Wait"]


async def test_a_wait_that_cannot_be_withdrawn_costs_the_session(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    await run(session, "stay", yield_time_ms=1)
    host.refuse_next("CancelWait", StatusCode.INTERNAL, "no")
    with trio.move_on_after(0.02):
        await session.wait(WaitRequest("1", 60_000))
    await trio.testing.wait_all_tasks_blocked(0.02)
    with pytest.raises(SessionsError, match=r"^failed to retire canceled gRPC code-mode wait: "):
        await session.terminate("1")

    with pytest.raises(SessionReset):
        await run(session, "recall")


async def test_a_clean_wait_is_followed_by_nothing(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    await run(session, "stay", yield_time_ms=1)
    await session.wait(WaitRequest("1", 1))
    seen = len(host.requests)
    await trio.testing.wait_all_tasks_blocked(0.05)

    assert len(host.requests) == seen
    assert host.count("CancelWait") == 0


async def test_a_session_dropped_in_another_thread_ends(host: Host, provider: SessionProvider) -> None:
    recorder = Recorder()
    holder = [await provider.create_session()]
    await run(holder[0], "stay", recorder, yield_time_ms=1)
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
    gc.collect()
    with trio.fail_after(5):
        await recorder.wait_closed("1")

    assert host.count("CloseSession") == 1


@pytest.mark.parametrize("form", ["unix:{}", "unix://{}"])
async def test_a_unix_socket_works_in_both_spellings(host: Host, tmp_path: object, form: str) -> None:
    path = f"{tmp_path}/host"
    [listener] = listen_unix(path)
    async with serving(host, listener=listener), open_provider(form.format(path)) as provider:
        response = await run(await provider.create_session(), "still_live")

    assert told(response) == printed("1", "still live")


async def run_host(
    host: Host, port: int, *, task_status: trio.TaskStatus[tuple[str, trio.CancelScope]] = trio.TASK_STATUS_IGNORED
) -> None:
    with trio.CancelScope() as killed:
        async with serving(host, port=port) as served:
            task_status.started((served.url, killed))
            await trio.sleep_forever()


async def test_a_killed_host_costs_one_notice_for_every_call_made_before(host: Host, nursery: trio.Nursery) -> None:
    url, killed = await nursery.start(run_host, host, 0)
    recorder = Recorder()
    async with open_provider(url) as provider:
        session = await provider.create_session()
        await run(session, "remember")
        await run(session, "stay", recorder, yield_time_ms=1)
        failures: list[str] = []

        async def pending_wait() -> None:
            with pytest.raises(SessionsError) as failed:
                await session.wait(WaitRequest("2", 60_000))
            failures.append(str(failed.value))

        async with trio.open_nursery() as callers:
            callers.start_soon(pending_wait)
            await trio.testing.wait_all_tasks_blocked(0.01)
            killed.cancel()
        closed_before_any_replacement = [*recorder.closed]
        await trio.testing.wait_all_tasks_blocked(0.01)
        await nursery.start(run_host, host, int(url.rpartition(":")[2]))
        openings = host.count("OpenSession")
        with pytest.raises(SessionsError):
            await session.terminate("2")
        reopened_by_terminate = host.count("OpenSession") - openings
        queued = [session.execute(request("overwrite", enabled_tools=[ECHO]), recorder) for _ in range(2)]
        queued_wait = session.wait(WaitRequest("2", 1))
        notices: list[str] = []

        async def expect_notice(call: object) -> None:
            with pytest.raises(SessionReset) as reset:
                await call  # type: ignore[misc]
            notices.append(str(reset.value))

        async with trio.open_nursery() as callers:
            for call in queued:
                callers.start_soon(expect_notice, call)
        late = session.execute(request("recall"))
        await expect_notice(queued_wait)
        response = await (await late).initial_response()
        stale = [session.wait(WaitRequest("2", 1)), session.terminate("2")]
        for call in stale:
            with pytest.raises(StaleGeneration, match="stale code-mode host generation") as gone:
                await call
            assert "cell '2' is not of generation 2" in gone.value.__notes__[0]
        yielded = await run(session, "stay", yield_time_ms=1)
        waited = await session.wait(WaitRequest(yielded.cell_id, 1))
        ended = await session.terminate(yielded.cell_id)

    assert len(failures) == 1
    assert closed_before_any_replacement == ["2"]
    assert reopened_by_terminate == 0
    assert len(notices) == 3
    assert len({*notices}) == 1
    assert "overwrite" not in host.seen_executions
    assert told(response) == printed("g2:1", "undefined")
    assert yielded == Yielded(cell_id="g2:2")
    assert waited == LiveCell(Yielded(cell_id="g2:2"))
    assert ended == LiveCell(Terminated(cell_id="g2:2"))
    assert recorder.calls == []
    assert host.count("OpenSession") == 2


async def test_a_reset_tells_what_was_running_and_what_was_unanswered(host: Host, provider: SessionProvider) -> None:
    async def never(*_: object) -> Json:
        await trio.sleep_forever()

    recorder = Recorder()
    recorder.on_call = never
    session = await provider.create_session()
    await run(session, "stay", recorder, yield_time_ms=1)
    cell = await session.execute(request("call_echo", enabled_tools=[ECHO]), recorder)
    await recorder.called.wait()
    host.refuse_next("Execute", StatusCode.NOT_FOUND, "gone")
    with pytest.raises(HostCallFailed):
        await run(session, "recall")
    with pytest.raises(SessionsError, match=r"^gRPC code-mode session closed$"):
        await cell.initial_response()
    with pytest.raises(SessionReset) as reset:
        await run(session, "recall")
    lost = reset.value.lost

    assert (lost.generation, reset.value.generation) == (1, 2)
    assert lost.running_cells == ("1", "2")
    assert [call.cell_id for call in lost.unanswered_tool_calls] == ["2"]
    assert "gone" in str(lost.cause)
    assert recorder.closed == ["1", "2"]
    assert recorder.cancelled == ["tool-1"]


async def test_terminating_gives_what_was_left(host: Host, provider: SessionProvider) -> None:
    @host.script
    async def print_and_stay(cell: Cell) -> None:
        cell.text("left")
        await trio.sleep_forever()

    recorder = Recorder()
    session = await provider.create_session()
    cell = await session.execute(request("print_and_stay"), recorder)
    await trio.testing.wait_all_tasks_blocked(0.01)
    ended = await session.terminate("1")
    first = await cell.initial_response()
    again = await session.terminate("1")

    assert texts(ended.response) == ["left"]
    assert isinstance(first, Terminated)
    assert isinstance(again, MissingCell)
    assert isinstance(again.response, Result)
    assert recorder.closed == ["1"]


async def test_a_failing_script_is_a_result(provider: SessionProvider) -> None:
    session = await provider.create_session()

    assert told(await run(session, "throw")) == ("1", ["before"], "broken")
