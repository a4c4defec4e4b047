"""What the contract says of a host, case by case, where no other test says it."""

import functools
import os
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from actors.sessions._wire import _methods as methods
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import CallFailed, Channel, StatusCode, open_channel
from actors.sessions.host import HostOptions, serve_host
from tests.actors.sessions.host.peer import Peer, Seen, open_peer, tool
from tests.support.skips import needs_system

SILENT = "await new Promise(() => {})"


async def echo(call: wire.ToolCall) -> Any:
    return call.input_json if call.HasField("input_json") else "no-input"


async def silent(_: wire.ToolCall) -> Any:
    return None


def named(name: str, namespace: str | None) -> wire.ToolName:
    return wire.ToolName(name=name) if namespace is None else wire.ToolName(name=name, namespace=namespace)


@pytest.mark.parametrize("filtered", [None, "", "functions"])
async def test_no_namespace_an_empty_one_and_functions_are_one_and_the_name_comes_as_defined(
    channel: Channel, nursery: trio.Nursery, filtered: str | None
) -> None:
    peer = await open_peer(channel, nursery)
    await nursery.start(peer.answer_tools, echo, [named("echo", filtered)])
    for defined in (None, "", "functions"):
        await peer.run("await tools.echo(1)", enabled_tools=[tool("echo", tool_name=named("echo", defined))])

    assert [call.tool_name for call in peer.calls] == [named("echo", defined) for defined in (None, "", "functions")]


async def test_a_notification_comes_before_the_end_of_its_cell_and_holds_nothing_up(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    seen = await peer.run("notify('n'); text('done')")
    await peer.until_closed(1)
    kinds = [event.WhichOneof("event") for event in peer.events]
    request = wire.AcknowledgeNotificationRequest(
        session_id=peer.session_id, notification_id=peer.notifications[0].notification_id
    )
    await channel.unary(methods.ACKNOWLEDGE_NOTIFICATION, request)

    assert seen.texts == ["done"]
    assert kinds == ["opened", "notification", "cell_closed"]
    assert peer.notifications[0].call_id == "call-1"


async def refused(peer: Peer, request: wire.ExecuteRequest) -> tuple[StatusCode | int | None, str]:
    with pytest.raises(CallFailed) as failed:
        async with peer.channel.stream(methods.EXECUTE, request) as events:
            await events.receive()
    return failed.value.status.code, failed.value.status.message


async def test_ids_and_names_that_are_too_long_are_refused_and_the_session_lives_on(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    long = "x" * 257
    requests = [
        peer.request("text(1)", execution_id=long),
        peer.request("text(1)", execution_id=""),
        peer.request("text(1)", tool_call_id=long),
        peer.request("text(1)", session_id="no uuid"),
        peer.request("text(1)", enabled_tools=[tool(long)]),
        peer.request("text(1)", enabled_tools=[tool("t", tool_name=wire.ToolName(name=long))]),
        peer.request("text(1)", enabled_tools=[tool("t", tool_name=wire.ToolName(name="t", namespace=long))]),
        peer.request("text(1)", enabled_tools=[tool("t", input_schema_json=b"{")]),
    ]
    answers = [await refused(peer, request) for request in requests]
    with pytest.raises(CallFailed) as filters:
        await peer.answer_tools(silent, [wire.ToolName(name=f"t{index}") for index in range(65)])
    after = await peer.run("text(1)")

    assert {code for code, _ in answers} == {StatusCode.INVALID_ARGUMENT}
    assert [text for _, text in answers[:7]] == [
        "code-mode execution ID exceeds 256 bytes",
        "code-mode execution ID must not be empty",
        "code-mode tool call ID exceeds 256 bytes",
        "code-mode session ID must be a UUID",
        "code-mode tool definition name exceeds 256 bytes",
        "code-mode tool name exceeds 256 bytes",
        "code-mode tool namespace exceeds 256 bytes",
    ]
    assert answers[7][1].startswith("invalid tool input schema: ")
    assert filters.value.status.message == "code-mode tool subscription exceeds 64 filters"
    assert (after.cell_id, after.texts) == ("1", ["1"])


async def test_closing_a_session_gives_its_cells_back_to_the_host(nursery: trio.Nursery) -> None:
    serve = functools.partial(serve_host, options=HostOptions(cells_max=2))
    endpoint: str = await nursery.start(serve, "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        first = await open_peer(channel, nursery)
        await first.run(SILENT, yield_time_ms=0)
        await first.run(SILENT, yield_time_ms=0)
        await first.close()
        second = await open_peer(channel, nursery)
        seen = await second.run("text(1)")
        await second.close()

    assert seen.texts == ["1"]


async def test_a_session_has_its_own_limit_of_cells(nursery: trio.Nursery) -> None:
    serve = functools.partial(serve_host, options=HostOptions(cells_per_session_max=1))
    endpoint: str = await nursery.start(serve, "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        peer, other = await open_peer(channel, nursery), await open_peer(channel, nursery)
        await peer.run(SILENT, yield_time_ms=0)
        code, text = await refused(peer, peer.request("text(1)"))
        seen = await other.run("text(1)")
        await peer.close()
        await other.close()

    assert (code, text) == (StatusCode.RESOURCE_EXHAUSTED, "code-mode session has too many active cells")
    assert seen.texts == ["1"]


@pytest.mark.slow
async def test_a_tool_call_that_fits_no_message_fails_alone_and_uses_no_number(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    await nursery.start(peer.answer_tools, echo)
    seen = await peer.run(
        "try { await tools.echo('x'.repeat(64 * 1024 * 1024)) } catch (e) { text(e) } text(await tools.echo(1))",
        enabled_tools=[tool("echo")],
        yield_time_ms=9_000,
    )
    closed = await peer.until_closed(1)

    assert seen.texts == ["code-mode tool invocation exceeds the 67108864-byte gRPC message limit", "1"]
    assert [call.sequence for call in peer.calls] == [1]
    assert closed.final_tool_call_sequence == 1


async def test_calls_over_the_session_s_limit_are_refused_and_the_others_go_on(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery, max_pending_delegate_calls=2)
    await nursery.start(peer.answer_tools, silent)
    seen = await peer.run(
        "tools.t(); tools.t(); try { await tools.t() } catch (e) { text(e) }", enabled_tools=[tool("t")]
    )
    with pytest.raises(CallFailed) as none:
        await open_peer_alone(channel, max_pending_delegate_calls=0)

    assert seen.texts == ["code-mode session has too many pending delegate calls"]
    assert none.value.status.message == "callback capacity must be positive"


async def open_peer_alone(channel: Channel, **request: Any) -> None:
    async with channel.stream(methods.OPEN_SESSION, wire.OpenSessionRequest(**request)) as events:
        await events.receive()


async def test_a_full_stream_holds_up_only_its_own_tools_and_is_drained_in_order(
    channel: Channel, nursery: trio.Nursery
) -> None:
    """One subscriber reads nothing: 64 KiB calls fill its window and its queue."""
    peer = await open_peer(channel, nursery)
    await nursery.start(peer.answer_tools, echo, [wire.ToolName(name="quick")])
    request = wire.SubscribeToToolCallsRequest(session_id=peer.session_id, tool_names=[wire.ToolName(name="slow")])
    async with channel.stream(methods.SUBSCRIBE_TO_TOOL_CALLS, request) as calls:
        await calls.headers()
        seen = await peer.run(
            "const big = 'x'.repeat(65536); for (let i = 0; i < 400; i++) tools.slow(big + i);"
            "text(await tools.quick('through')); yield_control(); " + SILENT,
            enabled_tools=[tool("slow"), tool("quick")],
        )
        numbers = [(await calls.receive()).runtime_tool_call_id for _ in range(400)]

    assert seen.texts == ["through"]
    assert numbers == [f"tool-{index}" for index in range(1, 401)]


async def test_a_duration_is_the_host_s_own_and_not_the_reader_s(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    began_s = time.monotonic()
    source = "const until = Date.now() + 50; while (Date.now() < until); await new Promise(r => setTimeout(r, 50));"
    async with peer.executing(source) as (_, events):
        await trio.testing.wait_all_tasks_blocked(0.02)
        seen = Seen((await events.receive()).outcome)
    elapsed_ms = (time.monotonic() - began_s) * 1e3
    state, missing = await peer.wait("77")

    assert 95 <= seen.duration_ns / 1e6 <= elapsed_ms
    assert state == "missing_cell"
    assert 0 <= missing.duration_ns < 1e9


async def test_a_result_that_lay_ready_is_told_with_how_long_and_costs_its_own_time_only(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    first = await peer.run("notify('on'); text('kept')", yield_time_ms=0)
    await peer.until(lambda: bool(peer.notifications))
    await trio.testing.wait_all_tasks_blocked(0.02)
    request = wire.WaitRequest(session_id=peer.session_id, cell_id=first.cell_id, wait_id="w", yield_time_ms=5_000)
    reply = await channel.unary_reply(methods.WAIT, request)
    seen = Seen(reply.message.live_cell)

    assert (seen.outcome, seen.texts) == ("completed", ["kept"])
    assert int(reply.headers.text("codex-code-mode-result-buffered-for-ns") or "") > 0
    assert seen.duration_ns < 1e9


async def test_calls_nobody_waited_for_are_cancelled_before_the_end_is_told(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    await nursery.start(peer.answer_tools, silent)
    seen = await peer.run(
        "tools.t(); await new Promise(r => setTimeout(r, 20)); text('done')", enabled_tools=[tool("t")]
    )
    await peer.until_closed(1)

    assert seen.texts == ["done"]
    assert [event.WhichOneof("event") for event in peer.events] == ["opened", "tool_call_cancelled", "cell_closed"]
    assert peer.cancelled[0].invocation_id == peer.calls[0].invocation_id


async def test_of_four_terminations_at_once_one_is_told_the_end(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    endless = await peer.run("text('a'); yield_control(); text('b'); for (;;);")
    answers: list[tuple[str, Seen]] = []

    async def terminate() -> None:
        answers.append(await peer.terminate(endless.cell_id))

    async with trio.open_nursery() as inner:
        for _ in range(4):
            inner.start_soon(terminate)

    assert sorted(state for state, _ in answers) == ["live_cell", *["missing_cell"] * 3]
    assert [seen.texts for state, seen in answers if state == "live_cell"] in (["b"], [[]], [["b"]])


async def test_closing_a_session_interrupts_an_endless_loop(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    await peer.run("yield_control(); for (;;);")
    with trio.fail_after(5):
        await peer.close()
    code, text = await refused(peer, peer.request("text(1)"))

    assert code is StatusCode.NOT_FOUND
    assert text == f"unknown code-mode session {peer.session_id}"


async def test_waits_of_a_session_that_closes_are_cancelled_and_executions_end_without_an_outcome(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    waited = await peer.run(SILENT, yield_time_ms=0)
    failures: list[CallFailed] = []
    ends: list[Any] = []

    async def wait() -> None:
        with pytest.raises(CallFailed) as failed:
            await peer.wait(waited.cell_id, 60_000)
        failures.append(failed.value)

    async def execute() -> None:
        async with peer.executing(SILENT, yield_time_ms=60_000) as (_, events):
            nursery.start_soon(peer.close)
            ends.extend([event async for event in events])

    async with trio.open_nursery() as inner:
        inner.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked(0.02)
        inner.start_soon(execute)

    assert [str(failure.status.message) for failure in failures] == ["code-mode wait was cancelled"]
    assert ends == []


@pytest.mark.parametrize("spins", ["for (;;);", "while (true) { try { for (;;); } catch {} }"])
async def test_a_loop_inside_a_getter_that_a_helper_reads_is_ended_and_cannot_be_caught(
    channel: Channel, nursery: trio.Nursery, spins: str
) -> None:
    peer, other = await open_peer(channel, nursery), await open_peer(channel, nursery)
    await other.run("store('k', 1)")
    source = (
        "let reads = 0; const value = { get image_url() { if (reads++ === 0) { try { image(value) } catch {} "
        "throw 'first' } notify('spins'); " + spins + " } };"
        "try { image(value) } catch { text('caught') } finally { text('finally') } text('after')"
    )
    async with peer.executing(source, yield_time_ms=60_000) as (cell_id, events):
        await peer.until(lambda: bool(peer.notifications))
        with trio.fail_after(5):
            _, terminated = await peer.terminate(cell_id)
        observed = Seen((await events.receive()).outcome)
    kept = await other.run("text(load('k'))")

    assert (terminated.outcome, terminated.items) == ("terminated", [])
    assert (observed.outcome, observed.items) == ("terminated", [])
    assert kept.texts == ["1"]


def engines() -> set[int]:
    """The children of the guard, which is our child."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            found |= {int(one) for one in Path(f"/proc/{child}/task/{child}/children").read_text().split()}
    return found


@needs_system(Path("/proc/self/task").exists(), "/proc")
async def test_an_engine_that_crashes_ends_its_cell_with_what_it_had_put_out_and_nothing_else(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    await peer.run("store('k', 1)")
    async with peer.executing("text('before'); notify('on'); " + SILENT, yield_time_ms=60_000) as (_, events):
        await peer.until(lambda: bool(peer.notifications))
        ends = [os.pidfd_open(engine) for engine in engines()]
        for end in ends:
            signal.pidfd_send_signal(end, signal.SIGKILL)
        seen = Seen((await events.receive()).outcome)
    # One that waited for work was killed too: until the host has heard of its end, a cell could be given to it.
    with trio.fail_after(10):
        for end in ends:
            await trio.lowlevel.wait_readable(end)
            os.close(end)
    await trio.testing.wait_all_tasks_blocked(0.05)
    after = await peer.run("text(load('k'))")

    assert (seen.outcome, seen.texts, seen.error) == ("completed", ["before"], "exec runtime ended unexpectedly")
    assert after.texts == ["1"]


async def test_a_lower_revision_of_a_catalogue_is_used_once_and_not_kept(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    listed = "text(ALL_TOOLS.map(t => t.name).join())"
    first = await peer.run(listed, enabled_tools=[tool("new")], catalog_revision=5)
    lower = await peer.run(listed, enabled_tools=[tool("old")], catalog_revision=4)
    inline = await peer.run(listed, enabled_tools=[tool("inline")])
    kept = await peer.run(listed, catalog_revision=5)

    assert [seen.texts for seen in (first, lower, inline, kept)] == [["new"], ["old"], ["inline"], ["new"]]


async def test_a_stream_of_calls_has_heartbeats_of_its_own(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    request = wire.SubscribeToToolCallsRequest(session_id=peer.session_id, heartbeat_interval_s=1)
    async with channel.stream(methods.SUBSCRIBE_TO_TOOL_CALLS, request) as calls:
        beat = await calls.receive()

    assert beat.HasField("heartbeat")
    assert (beat.session_id, beat.invocation_id) == (peer.session_id, "")


async def test_a_session_id_is_read_in_any_spelling_and_an_unknown_one_wins_over_other_faults(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    spellings = [peer.session_id.upper(), peer.session_id.replace("-", ""), f"{{{peer.session_id}}}"]
    seen = [await peer.run("text(1)", session_id=spelling) for spelling in spellings]
    unknown = str(uuid.uuid4())
    code, text = await refused(peer, peer.request("text(1)", session_id=unknown, execution_id=""))

    assert [one.texts for one in seen] == [["1"]] * 3
    assert (code, text) == (StatusCode.NOT_FOUND, f"unknown code-mode session {unknown}")


async def test_an_answer_that_is_no_json_leaves_its_call_open_and_a_late_one_is_ignored(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    await nursery.start(peer.answer_tools, silent)
    running: list[Seen] = []

    async def run() -> None:
        running.append(await peer.run("text(await tools.t())", enabled_tools=[tool("t")]))

    async with trio.open_nursery() as inner:
        inner.start_soon(run)
        with trio.fail_after(10):
            while not peer.calls:
                await trio.testing.wait_all_tasks_blocked(0.01)
        invocation = peer.calls[0].invocation_id
        with pytest.raises(CallFailed) as invalid:
            await peer.complete(invocation, b"{")
        await peer.complete(invocation, b'"good"')
    await peer.complete(invocation, b'"late"')
    with pytest.raises(CallFailed) as unknown:
        await peer.complete(str(uuid.uuid4()), b"1")

    assert invalid.value.status.message.startswith("invalid code-mode tool output JSON: ")
    assert running[0].texts == ["good"]
    assert unknown.value.status.code is StatusCode.NOT_FOUND


async def test_metrics_and_unknown_methods_are_refused_as_deployed_hosts_do(channel: Channel) -> None:
    with pytest.raises(CallFailed) as metrics:
        await channel.unary(methods.GET_PROCESS_METRICS, wire.GetProcessMetricsRequest())

    assert metrics.value.status.code is StatusCode.UNIMPLEMENTED
    assert metrics.value.status.message == "process metrics are unsupported"
