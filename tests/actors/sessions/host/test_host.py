"""The service over a real socket with real engine processes: what callers may rely on."""

import functools
import gc
import shutil
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
from actors.sessions.host._running_cell import RunningCell
from tests.actors.sessions.host.peer import Seen, open_peer, tool
from tests.support.skips import needs_node, needs_system

SERVER: dict[str, Any] = {"output_truncation": wire.OUTPUT_TRUNCATION_SERVER}


async def echo(call: wire.ToolCall) -> Any:
    return call.input_json if call.HasField("input_json") else "no-input"


async def silent(_: wire.ToolCall) -> Any:
    return None


async def test_a_cell_starts_before_it_yields_goes_on_and_is_closed(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    first = await peer.run("text('before');yield_control();await new Promise(r=>setTimeout(r,20));text('after')")
    state, second = await peer.wait(first.cell_id)
    closed = await peer.until_closed(1)
    missing, unknown = await peer.wait("1")

    assert (first.cell_id, first.outcome, first.texts) == ("1", "yielded", ["before"])
    assert (state, second.outcome, second.texts) == ("live_cell", "completed", ["after"])
    assert (closed.cell_id, closed.final_tool_call_sequence) == ("1", 0)
    assert (missing, unknown.error) == ("missing_cell", "exec cell 1 not found")


async def test_a_limit_of_0_ms_yields_at_once_and_the_cell_goes_on(channel: Channel, nursery: trio.Nursery) -> None:
    limits = wire.SessionCellExecutionLimits(max_yield_time_ms=0)
    peer = await open_peer(channel, nursery, cell_execution_limits=limits)
    first = await peer.run("text('a'); notify('there'); await new Promise(()=>{})")
    await peer.until(lambda: bool(peer.notifications))
    _, second = await peer.wait(first.cell_id, 60_000)

    assert (first.outcome, first.texts) == ("yielded", [])
    assert (second.outcome, second.texts) == ("yielded", ["a"])


async def test_a_deadline_ends_a_cell_with_an_error_that_names_it(nursery: trio.Nursery) -> None:
    serve = functools.partial(serve_host, options=HostOptions(cell_deadline_s=1.0))
    endpoint: str = await nursery.start(serve, "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        peer = await open_peer(channel, nursery)
        ended = await peer.run("for(;;);", yield_time_ms=60_000)
        await peer.close()

    assert ended.error == "exec cell ran longer than its deadline of 1.0 s"


async def test_a_deadline_keeps_no_cell_that_has_ended(nursery: trio.Nursery) -> None:
    """Seen failing with an alarm that nobody cancels: each cell stayed, with all that it had put out."""
    serve = functools.partial(serve_host, options=HostOptions(cell_deadline_s=3600.0))
    endpoint: str = await nursery.start(serve, "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        peer = await open_peer(channel, nursery)
        for _ in range(3):
            await peer.run("text(1)")
        gc.collect()
        kept = [thing for thing in gc.get_objects() if type(thing) is RunningCell]
        await peer.close()

    assert kept == []


async def test_a_process_for_each_cell_serves_no_second_one(nursery: trio.Nursery) -> None:
    serve = functools.partial(serve_host, options=HostOptions(cells_per_engine_max=1, warm_engines=1))
    endpoint: str = await nursery.start(serve, "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        peer = await open_peer(channel, nursery)
        await peer.run("store('k', 1)")
        seen = await peer.run("text(load('k'))")
        await peer.close()

    assert seen.texts == ["1"]


async def test_cells_over_the_limit_of_the_host_are_refused(nursery: trio.Nursery) -> None:
    serve = functools.partial(serve_host, options=HostOptions(cells_max=1))
    endpoint: str = await nursery.start(serve, "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        peer = await open_peer(channel, nursery)
        await peer.run("await new Promise(()=>{})", yield_time_ms=0)
        with pytest.raises(CallFailed) as full:
            await peer.run("text(1)")
        await peer.terminate("1")
        await peer.until_closed(1)
        after = await peer.run("text(1)")
        await peer.close()

    assert full.value.status.message == "code-mode host has too many active cells"
    assert after.texts == ["1"]


async def test_values_are_shared_in_a_session_and_dropped_with_a_terminated_cell(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer, other = await open_peer(channel, nursery), await open_peer(channel, nursery)
    await peer.run("store('k', 1)")
    endless = await peer.run("store('k', 2); text('written'); for(;;);", yield_time_ms=300)
    state, ended = await peer.terminate(endless.cell_id)
    again, gone = await peer.terminate(endless.cell_id)
    here, there = await peer.run("text(load('k'))"), await other.run("text(load('k'))")

    assert (state, ended.outcome, again, gone.outcome) == ("live_cell", "terminated", "missing_cell", "completed")
    assert (endless.texts, here.texts, there.texts) == (["written"], ["1"], ["undefined"])


async def test_a_second_observer_is_refused_and_the_first_is_told_of_the_end(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    async with peer.executing("await new Promise(()=>{})", yield_time_ms=60_000) as (cell_id, events):
        with pytest.raises(CallFailed) as busy:
            await peer.wait(cell_id)
        state, terminated = await peer.terminate(cell_id)
        observed = Seen((await events.receive()).outcome)

    assert busy.value.status.code is StatusCode.FAILED_PRECONDITION
    assert busy.value.status.message == "exec cell 1 already has an active observer"
    assert (state, terminated.outcome, observed.outcome) == ("live_cell", "terminated", "terminated")


async def test_tool_calls_are_numbered_matched_and_counted(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    unmatched = await peer.run("try{await tools.echo(1)}catch(e){text(e)}", enabled_tools=[tool("echo")])
    names = [wire.ToolName(name="echo", namespace="functions")]
    await nursery.start(peer.answer_tools, echo, names)
    await nursery.start(peer.answer_tools, silent, [wire.ToolName(name="other")])
    seen = await peer.run(
        "text(await tools.echo({a:1})); text(await tools.echo()); notify('done')", enabled_tools=[tool("echo")]
    )
    closed = await peer.until_closed(2)
    order = [event.WhichOneof("event") for event in peer.events]

    assert unmatched.texts == ["no code-mode tool subscription matches the requested tool"]
    assert seen.texts == ['{"a":1}', "no-input"]
    assert [(call.sequence, call.runtime_tool_call_id) for call in peer.calls] == [(1, "tool-1"), (2, "tool-2")]
    assert closed.final_tool_call_sequence == 2
    assert order == ["opened", "cell_closed", "notification", "cell_closed"]


async def test_a_cancelled_call_is_told_before_its_cell_is_closed(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    await nursery.start(peer.answer_tools, silent)
    seen = await peer.run("await tools.t()", enabled_tools=[tool("t")], yield_time_ms=500)
    await peer.terminate(seen.cell_id)
    await peer.until_closed(1)
    invocation_id = peer.calls[0].invocation_id
    await peer.complete(invocation_id, 1)
    with pytest.raises(CallFailed) as unknown:
        await peer.complete(str(uuid.uuid4()), 1)

    assert [event.WhichOneof("event") for event in peer.events] == ["opened", "tool_call_cancelled", "cell_closed"]
    assert peer.cancelled[0].invocation_id == invocation_id
    assert unknown.value.status.code is StatusCode.NOT_FOUND


async def test_ids_are_used_once_and_refused_requests_use_none_up(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    bad = [
        ({"execution_id": ""}, "code-mode execution ID must not be empty"),
        ({"tool_call_id": "x" * 257}, "code-mode tool call ID exceeds 256 bytes"),
        (
            {"execution_id": "mine", "enabled_tools": [wire.ToolDefinition(name="n")]},
            "tool definition is missing its tool name",
        ),
    ]
    texts: list[str] = []
    for fields, _ in bad:
        with pytest.raises(CallFailed) as refused:
            await peer.run("text(1)", **fields)
        texts.append(refused.value.status.message)
    ran = await peer.run("text(1)", execution_id="mine")
    with pytest.raises(CallFailed) as reused:
        await peer.run("text(1)", execution_id="mine")

    assert texts == [text for _, text in bad]
    assert ran.texts == ["1"]
    assert reused.value.status.message == "code-mode execution ID `mine` was reused"


async def test_a_wait_can_be_cancelled_and_yielded_before_it_begins(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    cell = await peer.run("await new Promise(()=>{})", yield_time_ms=0)
    cancel = wire.CancelWaitRequest(session_id=peer.session_id, wait_id="w1")
    await channel.unary(methods.CANCEL_WAIT, cancel)
    with pytest.raises(CallFailed) as cancelled:
        await peer.wait(cell.cell_id, wait_id="w1")
    early = wire.YieldObservationRequest(session_id=peer.session_id, wait_id="w2")
    await channel.unary(methods.YIELD_OBSERVATION, early)
    _, yielded = await peer.wait(cell.cell_id, 60_000, wait_id="w2")

    assert cancelled.value.status.code is StatusCode.CANCELLED
    assert yielded.outcome == "yielded"


async def test_a_session_ends_with_its_lease_and_is_unknown_then(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    cell = await peer.run("await new Promise(()=>{})", yield_time_ms=0)
    async with trio.open_nursery() as waiting:
        failures: list[CallFailed] = []

        async def wait() -> None:
            try:
                await peer.wait(cell.cell_id, 60_000, wait_id="w")
            except CallFailed as failed:
                failures.append(failed)

        waiting.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await peer.wait("9")  # Calls of one connection are heard in their order.
        peer.leased.cancel()
    with pytest.raises(CallFailed) as unknown:
        await peer.run("text(1)")

    assert failures[0].status.message == "code-mode wait was cancelled"
    assert unknown.value.status.code is StatusCode.NOT_FOUND
    assert unknown.value.status.message == f"unknown code-mode session {peer.session_id}"


async def test_a_caller_that_leaves_before_the_outcome_takes_its_cell_along(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    async with peer.executing("for(;;);", yield_time_ms=60_000):
        pass
    closed = await peer.until_closed(1)
    after = await peer.run("text('alive')")

    assert closed.cell_id == "1"
    assert (after.cell_id, after.texts) == ("2", ["alive"])


async def test_a_lost_stream_with_an_open_call_ends_the_session_and_an_idle_one_does_not(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    async with trio.open_nursery() as idle:
        await idle.start(peer.answer_tools, silent)
        idle.cancel_scope.cancel()
    alive = await peer.run("text('alive')")
    async with trio.open_nursery() as reading:
        await reading.start(peer.answer_tools, silent)
        await peer.run("await tools.t()", enabled_tools=[tool("t")], yield_time_ms=500)
        reading.cancel_scope.cancel()
    with trio.fail_after(5):
        await peer.ended.wait()

    assert alive.texts == ["alive"]


@pytest.mark.parametrize(
    "source",
    [
        "const a=[];for(;;)a.push(new Array(1000).fill(a.length))",
        "'x'.repeat(5e8).split('')",
        "const a=[];for(;;)a.push(new Uint8Array(50e6).fill(1))",
    ],
    ids=["arrays", "split", "buffers"],
)
@pytest.mark.slow
async def test_a_cell_that_takes_too_much_memory_ends_and_nothing_else_does(
    channel: Channel, nursery: trio.Nursery, source: str
) -> None:
    limits = wire.SessionCellExecutionLimits(max_heap_size_bytes=64 * 1024 * 1024)
    peer, other = await open_peer(channel, nursery, cell_execution_limits=limits), await open_peer(channel, nursery)
    await peer.run("store('k', 1)")
    await other.run("store('k', 2)")
    ended = await peer.run(f"text('before');{source}", yield_time_ms=9_000)
    here, there = await peer.run("text(load('k'))"), await other.run("text(load('k'))")

    assert ended.outcome == "completed"
    assert ended.error is not None
    assert ended.texts == ["before"]
    assert (here.texts, there.texts) == (["1"], ["2"])


async def test_an_endless_loop_of_microtasks_after_the_end_costs_its_process_only(
    channel: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(channel, nursery)
    first = await peer.run("text('done'); (async () => { for (;;) await null })(); exit()")
    second = await peer.run("text('next')")

    assert (first.texts, first.error, second.texts) == (["done"], None, ["next"])


@pytest.mark.slow
async def test_65_mib_of_error_are_cut_as_recorded(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery, **SERVER)
    opened = peer.events[0].opened
    seen = await peer.run(
        "throw 'begin:' + 'X'.repeat(65 * 1024 * 1024) + ':end'", yield_time_ms=60_000, max_output_tokens=5
    )

    assert opened.output_truncation == wire.OUTPUT_TRUNCATION_SERVER
    assert seen.texts == [
        (
            "Warning: truncated output (original token count: 262144)\nTotal output lines: 2\n\nScript err"
            "\u2026262139 tokens truncated\u2026"
        ),
        (
            "[Code Mode session output limit reached: omitted 67108888 text bytes; discarded 0 text segments, "
            "0 images, 0 audio items]"
        ),
        "XXXXXX:end",
    ]
    assert seen.error is not None
    assert len(seen.error.encode()) == 65_536


@pytest.mark.slow
async def test_client_mode_gives_everything_or_says_why_not(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    whole = await peer.run("text('x'.repeat(2*1024*1024))", max_output_tokens=5)
    over = await peer.run("for(let i=0;i<70;i++)text('x'.repeat(1024*1024))", yield_time_ms=60_000)

    assert [len(text) for text in whole.texts] == [2 * 1024 * 1024]
    assert over.items == []
    assert over.error is not None
    assert "67108864-byte gRPC message limit" in over.error


async def test_catalogue_revisions_are_kept_and_checked(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery)
    listed = "text(JSON.stringify(ALL_TOOLS.map(t=>t.name)))"
    first = await peer.run(listed, enabled_tools=[tool("a-b")], catalog_revision=2)
    again = await peer.run(listed, catalog_revision=2)
    texts: list[str] = []
    for revision, tools in ((0, []), (3, []), (2, [tool("c")])):
        with pytest.raises(CallFailed) as refused:
            await peer.run(listed, catalog_revision=revision, enabled_tools=tools)
        texts.append(refused.value.status.message)

    assert first.texts == again.texts == ['["a_b"]']
    assert texts == [f"{why} code-mode catalog revision" for why in ("invalid", "unknown", "conflicting")]


async def test_half_a_code_point_is_replaced_wherever_it_comes_from(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery, **SERVER)
    put_out = await peer.run("text('a\\ud800'); throw 'b\\ud800'")
    imported = await peer.run("import 'c\\ud800'")

    assert put_out.texts == ["a\ufffd", "Script error:\nb\ufffd"]
    assert put_out.error == "b\ufffd"
    assert imported.error is not None


async def test_heartbeats_come_when_asked_for(channel: Channel, nursery: trio.Nursery) -> None:
    peer = await open_peer(channel, nursery, heartbeat_interval_s=1)
    await peer.until(lambda: any(event.HasField("heartbeat") for event in peer.events))

    assert peer.events[-1].SerializeToString() == b"2\x00"


async def test_health_is_told_over_http1_and_nothing_else_is(nursery: trio.Nursery) -> None:
    serve = functools.partial(serve_host, options=HostOptions(warm_engines=0))
    endpoint: str = await nursery.start(serve, "grpc://127.0.0.1:0")
    host, port = endpoint.removeprefix("http://").split(":")
    answers: list[bytes] = []
    for line in (b"GET /healthz", b"POST /healthz", b"GET /"):
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(line + b" HTTP/1.1\r\nhost: x\r\n\r\n")
            answers.append(b"".join([bytes(part) async for part in stream]).split(b"\r\n")[0])

    assert [answer.split()[1] for answer in answers] == [b"200", b"505", b"505"]


def children_of_this_program() -> set[str]:
    tasks = Path("/proc/self/task").iterdir()
    return {child for task in tasks for child in (task / "children").read_text().split()}


@needs_system(Path("/proc/self/task").exists(), "/proc")
async def test_no_process_is_left_when_a_host_is_cancelled() -> None:
    before = children_of_this_program()
    async with trio.open_nursery() as nursery:
        endpoint: str = await nursery.start(serve_host, "grpc://127.0.0.1:0")
        async with open_channel(endpoint) as channel:
            peer = await open_peer(channel, nursery)
            await peer.run("for(;;);", yield_time_ms=50)
            during = children_of_this_program()
            nursery.cancel_scope.cancel()

    assert during - before
    assert children_of_this_program() <= before


@needs_node(shutil.which("node"))
async def test_node_runs_cells_and_is_stopped_as_the_engine_that_is_found_is(nursery: trio.Nursery) -> None:
    serve = functools.partial(serve_host, options=HostOptions(engine_path="node", warm_engines=1))
    endpoint: str = await nursery.start(serve, "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        peer = await open_peer(channel, nursery)
        await nursery.start(peer.answer_tools, echo)
        plain = await peer.run("text(await tools.t({a: 1})); store('k', 1)", enabled_tools=[tool("t")])
        endless = await peer.run("text(load('k')); for(;;);", yield_time_ms=500)
        _, ended = await peer.terminate(endless.cell_id)
        await peer.close()

    assert (plain.texts, plain.error) == (['{"a":1}'], None)
    assert (endless.texts, ended.outcome) == (["1"], "terminated")
