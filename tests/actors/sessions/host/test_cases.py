"""Cases whose history lies in another form of the host, in the form they have here."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from actors.sessions._wire import _methods as methods
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import CallFailed, Channel, open_channel
from actors.sessions.host import HostOptions, RunningHost, open_host
from tests.actors.sessions.host.peer import Peer, Seen, open_peer, tool

SILENT = "await new Promise(() => {})"


async def silent(_: wire.ToolCall) -> Any:
    return None


@asynccontextmanager
async def hosted() -> AsyncGenerator[tuple[RunningHost, Channel], None]:
    async with (
        open_host("grpc://127.0.0.1:0", options=HostOptions(warm_engines=0)) as running,
        open_channel(running.endpoint) as channel,
    ):
        yield running, channel


async def left_alone(running: RunningHost) -> None:
    """Wait until a host has no cell and no process of one."""
    with trio.fail_after(5):
        while running.statistics().cells or running.statistics().engines:
            await trio.testing.wait_all_tasks_blocked(0.01)


async def test_an_execution_given_up_at_any_moment_is_a_cell_that_ended_or_nothing(nursery: trio.Nursery) -> None:
    """Admission is one step here: there is no reservation that could be left behind.

    Killed: an execution that goes on when its caller was gone before its start was told.
    """
    async with hosted() as (running, channel):
        peer = await open_peer(channel, nursery)
        for steps in range(16):
            async with channel.stream(methods.EXECUTE, peer.request(SILENT)):
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
        with trio.fail_after(5):
            while running.statistics().cells:
                await trio.testing.wait_all_tasks_blocked(0.01)
        seen = await peer.run("text('next')")
        await peer.until_closed(int(seen.cell_id))
        closed = sorted(int(one.cell_id) for one in peer.closed)
        await peer.close()

    assert seen.texts == ["next"]
    assert len(closed) > 1
    assert closed == [*range(1, int(seen.cell_id) + 1)]


async def test_calls_go_to_the_other_stream_when_an_idle_one_disappears(
    channel: Channel, nursery: trio.Nursery
) -> None:
    """Killed: a stream that is gone and still takes its turn."""
    peer = await open_peer(channel, nursery)
    taken: list[str] = []

    async def echo(call: wire.ToolCall) -> Any:
        taken.append(call.runtime_tool_call_id)
        return 1

    async with trio.open_nursery() as first:
        await first.start(peer.answer_tools, silent)
        await nursery.start(peer.answer_tools, echo)
        first.cancel_scope.cancel()
    await peer.run("text(1)")  # Whatever of the first stream was on its way has come.
    seen = await peer.run("for (let i = 0; i < 4; i++) text(await tools.t())", enabled_tools=[tool("t")])

    assert seen.texts == ["1"] * 4
    assert taken == ["tool-1", "tool-2", "tool-3", "tool-4"]


async def test_a_full_stream_that_disappears_ends_its_session_and_no_call_is_made_twice(
    channel: Channel, nursery: trio.Nursery
) -> None:
    """What it had not read may have been seen: it is given to no other. Killed: calls handed on to the other stream."""
    peer = await open_peer(channel, nursery)
    seen: list[str] = []
    request = wire.SubscribeToToolCallsRequest(session_id=peer.session_id)
    async with channel.stream(methods.SUBSCRIBE_TO_TOOL_CALLS, request) as full:
        await full.headers()
        source = "const big = 'x'.repeat(65536); for (let i = 0; i < 400; i++) tools.t(big); notify('all'); " + SILENT
        await peer.run(source, enabled_tools=[tool("t")], yield_time_ms=100)
        await peer.until(lambda: bool(peer.notifications))

        async def other(call: wire.ToolCall) -> Any:
            seen.append(call.runtime_tool_call_id)
            return None

        nursery.start_soon(_until_it_ends, peer, other)
        await trio.testing.wait_all_tasks_blocked(0.02)
    with trio.fail_after(5):
        await peer.ended.wait()

    assert len(seen) == len({*seen})
    assert "tool-1" not in seen


async def _until_it_ends(peer: Peer, answer: Any) -> None:
    try:
        await peer.answer_tools(answer)
    except CallFailed:
        return


async def test_the_end_of_a_cell_nobody_waited_for_is_told_once_it_was_taken(
    channel: Channel, nursery: trio.Nursery
) -> None:
    """Killed: a closure told when the script ends."""
    peer = await open_peer(channel, nursery)
    first = await peer.run("notify('on'); text('kept')", yield_time_ms=0)
    await peer.until(lambda: bool(peer.notifications))
    await trio.testing.wait_all_tasks_blocked(0.02)
    before = len(peer.closed)
    _, second = await peer.wait(first.cell_id)
    closed = await peer.until_closed(1)

    assert before == 0
    assert (second.outcome, second.texts, closed.cell_id) == ("completed", ["kept"], first.cell_id)


async def test_a_client_that_goes_with_a_call_open_leaves_nothing_and_the_host_ends_when_asked() -> None:
    """Killed: a session that neither the end of its lease nor that of its stream of calls ends."""
    async with hosted() as (running, _):
        during = running.statistics()
        with pytest.RaisesGroup(CallFailed, flatten_subgroups=True):
            async with trio.open_nursery() as nursery, open_channel(running.endpoint) as own:
                peer = await open_peer(own, nursery)
                nursery.start_soon(_until_it_ends, peer, silent)
                await peer.run("await tools.t()", enabled_tools=[tool("t")], yield_time_ms=200)
                during = running.statistics()
        await left_alone(running)
        with trio.fail_after(5):
            await running.drain(grace_s=5)
        after = running.statistics()

    assert (during.cells, during.sessions) == (1, 1)
    assert (after.cells, after.sessions) == (0, 0)


MINUTE = 60.0


async def test_an_observation_of_an_hour_has_its_second_of_grace_and_no_more(
    channel: Channel, nursery: trio.Nursery, mock_clock: trio.testing.MockClock
) -> None:
    """On a virtual clock, with a real engine: a tool that ends in the grace is part of it, what comes later is not.

    Killed: no grace; a grace of two seconds.
    """
    peer = await open_peer(channel, nursery)
    await nursery.start(peer.answer_tools, silent)
    source = "for (let i = 0; i < 3; i++) text(await tools.t())"
    hour_ms = 3_600_000

    async def answered(number: int) -> None:
        await peer.until(lambda: len(peer.calls) >= number or not peer.events)
        while len(peer.calls) < number:
            await trio.testing.wait_all_tasks_blocked(0.01)
        await peer.complete(peer.calls[number - 1].invocation_id, number)

    seen: list[Seen] = []
    async with peer.executing(source, yield_time_ms=hour_ms, enabled_tools=[tool("t")]) as (cell_id, events):
        while not peer.calls:
            await trio.testing.wait_all_tasks_blocked(0.01)
        mock_clock.jump(60 * MINUTE + 0.5)
        await answered(1)
        while len(peer.calls) < 2:
            await trio.testing.wait_all_tasks_blocked(0.01)
        mock_clock.jump(0.6)
        seen.append(Seen((await events.receive()).outcome))

    async def wait() -> None:
        seen.append((await peer.wait(cell_id, hour_ms))[1])

    async with trio.open_nursery() as waiting:
        waiting.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked(0.05)
        mock_clock.jump(60 * MINUTE + 0.5)
        await answered(2)
        while len(peer.calls) < 3:
            await trio.testing.wait_all_tasks_blocked(0.01)
        mock_clock.jump(0.4)
        await trio.testing.wait_all_tasks_blocked(0.05)
        early = len(seen)
        mock_clock.jump(0.2)

    assert early == 1
    assert [(one.outcome, one.texts) for one in seen] == [("yielded", ["1"]), ("yielded", ["2"])]
