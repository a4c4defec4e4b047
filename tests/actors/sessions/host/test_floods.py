"""Cells that say more than anybody can hear: others have their turns, and the host hears of so many calls only."""

from typing import Any

import pytest
import trio

from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import Channel
from actors.sessions.host._cell import Cell
from actors.sessions.host._frames import TURN_WORK_MAX
from actors.sessions.host._tool_calls import ToolCalls
from tests.actors.sessions.host.peer import open_peer, tool

TOO_MANY = "code-mode session has too many pending delegate calls"


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the calls that the host hears of."""
    numbers: list[int] = []
    dispatch = ToolCalls.dispatch

    def counted(self: ToolCalls, caller: Any, call_id: int, *more: Any) -> None:
        numbers.append(call_id)
        dispatch(self, caller, call_id, *more)

    monkeypatch.setattr(ToolCalls, "dispatch", counted)
    return numbers


async def silent(_: wire.ToolCall) -> Any:
    return None


async def test_calls_beyond_all_that_can_wait_are_refused_before_the_host_hears_of_them(
    channel: Channel, nursery: trio.Nursery, heard: list[int]
) -> None:
    """And those after them reach it again."""
    peer = await open_peer(channel, nursery)
    await nursery.start(peer.answer_tools, silent)
    seen = await peer.run(
        f"""
        let refused = 0;
        const count = (error) => {{ if (error === '{TOO_MANY}') refused++; }};
        for (let i = 0; i < 10000; i++) tools.t(i).catch(count);
        while (refused < 10000 - 1024) await new Promise((next) => setTimeout(next, 1));
        try {{ await tools.t(); }} catch (error) {{ text(error); }}
        text(refused);
        """,
        enabled_tools=[tool("t")],
        yield_time_ms=60_000,
    )

    assert seen.texts == [TOO_MANY, "8976"]
    assert heard == [*range(1, 8193), 10_001]


async def test_a_cell_that_never_stops_calling_is_heard_so_often_only_and_others_go_on(
    channel: Channel, nursery: trio.Nursery, heard: list[int]
) -> None:
    peer, other = await open_peer(channel, nursery), await open_peer(channel, nursery)
    async with peer.executing("for (;;) tools.t(1).catch(() => 0)", enabled_tools=[tool("t")]) as (cell_id, _):
        while len(heard) < 8192:
            assert (await other.run("text(1)")).texts == ["1"]
        assert (await other.run("text(2)")).texts == ["2"]
        await peer.terminate(cell_id)

    assert len(heard) == 8192


class Steps(trio.abc.Instrument):
    def __init__(self) -> None:
        self.number = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.number += 1


async def test_what_one_cell_says_at_once_is_taken_in_turns(
    channel: Channel, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail with no checkpoint between the turns."""
    taken: dict[int, int] = {}
    steps, put = Steps(), Cell.put

    def counted(self: Cell, items: Any) -> None:
        taken[steps.number] = taken.get(steps.number, 0) + len(items)
        put(self, items)

    monkeypatch.setattr(Cell, "put", counted)
    peer = await open_peer(channel, nursery)
    trio.lowlevel.add_instrument(steps)
    try:
        seen = await peer.run("for (let i = 0; i < 20000; i++) text(i)", yield_time_ms=60_000)
    finally:
        trio.lowlevel.remove_instrument(steps)

    assert seen.texts == [str(i) for i in range(20_000)]
    assert max(taken.values()) <= TURN_WORK_MAX
