"""What the cells of a session store has a bound, and whatever does not fit leaves what was stored as it is."""

import functools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio

from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import open_channel
from actors.sessions.host import HostOptions, RunningHost, open_host, serve_host
from actors.sessions.host._stored import StoredValues, size_of
from tests.actors.sessions.host.peer import Peer, open_peer, tool

BYTES_MAX = 1000
TRIED = "try {{ store({key}, {value}) }} catch (e) {{ text(e) }}"


@asynccontextmanager
async def small(nursery: trio.Nursery) -> AsyncGenerator[tuple[RunningHost, Peer], None]:
    options = HostOptions(stored_bytes_max=BYTES_MAX)
    async with open_host("grpc://127.0.0.1:0", options=options) as running, open_channel(running.endpoint) as channel:
        peer = await open_peer(channel, nursery)
        yield running, peer
        peer.leased.cancel()
        await peer.ended.wait()


def test_keys_and_values_count_as_they_are_spelled_and_a_replaced_value_only_once() -> None:
    """Killed: keys that cost nothing; code points for bytes; a value that counts again when it is replaced."""
    values = StoredValues(20)
    fits = values.commit({"k": '"' + "\u20ac" * 5 + '"'})
    again = values.commit({"k": '"' + "\u20ac" * 5 + '"'})
    over = values.commit({"k": '"' + "\u20ac" * 5 + ' "'})

    assert size_of("\n", "1") == 5
    assert (fits, again, values.bytes, values.refused) == (None, None, 20, 1)
    assert over == (
        "exec cell's stored values were not kept: they take 21 bytes, and its session stores 0 bytes beside them,"
        " of at most 20"
    )


def test_the_values_of_a_cell_are_taken_all_or_none_and_each_reader_learns_what_is_new_to_it() -> None:
    """Killed: values that are taken until one does not fit."""
    values = StoredValues(20)
    values.commit({"a": "1"})
    first, _ = values.since(0)
    values.commit({"b": "2", "c": "3" * 40})
    nothing = values.since(first)
    values.commit({"b": "2"})

    assert nothing == (first, [])
    assert values.since(first)[1] == [("b", "2")]
    assert values.since(0)[1] == [("a", "1"), ("b", "2")]


async def test_a_value_that_has_no_room_is_refused_with_the_limit_and_the_cell_goes_on(nursery: trio.Nursery) -> None:
    """Killed: no look at the bound in the engine process; values of earlier cells left out of the sum; a refusal that
    is not counted; a refused value that the cell itself reads back."""
    async with small(nursery) as (running, peer):
        await peer.run("store('a', 'x'.repeat(500))")
        second = await peer.run(
            TRIED.format(key="'b'", value="'x'.repeat(600)")
            + TRIED.format(key="'a'", value="'y'.repeat(2000)")
            + "store('c', 3); text(typeof load('b')); text(load('a').length)"
        )
        third = await peer.run("text(typeof load('b')); text(load('a').length); text(load('c'))")
        statistics = running.statistics()

    assert second.error is None
    assert second.texts == [
        'Unable to store "b". It takes 605 bytes, and its session stores 505 bytes beside it, of at most 1000.',
        'Unable to store "a". It takes 2005 bytes, and its session stores 0 bytes beside it, of at most 1000.',
        "undefined",
        "500",
    ]
    assert third.texts == ["undefined", "500", "3"]
    assert (statistics.stored_bytes, statistics.stores_refused) == (505 + 4, 2)


async def test_of_two_cells_that_fit_only_one_by_one_the_second_to_end_is_told_and_loses_its_values(
    nursery: trio.Nursery,
) -> None:
    """Killed: a commit that looks at nothing; a refusal that nobody is told; refusals forgotten with their session."""
    answered = trio.Event()

    async def late(_: wire.ToolCall) -> str:
        await answered.wait()
        return "now"

    async with small(nursery) as (running, peer):
        await nursery.start(peer.answer_tools, late)
        slow = await peer.run(
            "store('a', 'x'.repeat(600)); yield_control(); text(await tools.t())", enabled_tools=[tool("t")]
        )
        await peer.run("store('b', 'x'.repeat(600))")
        answered.set()
        _, ended = await peer.wait(slow.cell_id)
        after = await peer.run("text(typeof load('a')); text(load('b').length); store('c', 1); text(load('c'))")
        await peer.close()
        statistics = running.statistics()

    assert ended.texts == ["now"]
    assert ended.error == (
        "exec cell's stored values were not kept: they take 605 bytes, and its session stores 605 bytes beside them,"
        " of at most 1000"
    )
    assert after.texts == ["undefined", "600", "1"]
    assert (statistics.stored_bytes, statistics.stores_refused) == (0, 1)


@pytest.mark.slow
async def test_a_session_with_little_heap_stores_an_eighth_of_it_and_every_process_can_still_take_it(
    nursery: trio.Nursery,
) -> None:
    """Killed: a bound that knows nothing of the heap: no process of the session can start another cell then."""
    serve = functools.partial(serve_host, options=HostOptions(cells_per_engine_max=1))
    endpoint: str = await nursery.start(serve, "grpc://127.0.0.1:0")
    limits = wire.SessionCellExecutionLimits(max_heap_size_bytes=16 * 1024 * 1024)
    async with open_channel(endpoint) as channel:
        peer = await open_peer(channel, nursery, cell_execution_limits=limits)
        filled = await peer.run(
            "let n = 0; try { for (;;) store('k' + n++, '\\u20ac'.repeat(30_000)) } catch (e) { text(e) }"
        )
        after = [await peer.run("text(load('k0').length)") for _ in range(3)]
        peer.leased.cancel()
        await peer.ended.wait()

    assert filled.error is None
    assert filled.texts[0].endswith("of at most 2097152.")
    assert [one.texts for one in after] == [["30000"]] * 3
