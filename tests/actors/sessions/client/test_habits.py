"""What a session does beyond what it must: heartbeats, tool lists sent once, ends heard of without polling."""

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from actors.sessions import (
    HostCallFailed,
    HostTimedOut,
    LiveCell,
    Result,
    Session,
    SessionOptions,
    SessionProvider,
    SessionReset,
    ToolDefinition,
    ToolName,
    Yielded,
    open_provider,
)
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import StatusCode
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.client.hosts import Cell, Host, serving
from tests.actors.sessions.client.recording import ECHO, run, texts, told

BEAT = wire.SessionEvent(heartbeat=wire.Heartbeat())
OTHER = ToolDefinition(name="other", tool_name=ToolName("other"))


@pytest.fixture
async def quick(host: Host) -> AsyncIterator[SessionProvider]:
    network = MemoryNetwork()
    async with serving(host, listener=network.listener) as served, open_provider(served.url, dial=network.dial) as made:
        yield made


def host_session(host: Host) -> wire.SessionEvent:
    [only] = host.sessions.values()
    return only


# --- heartbeats


async def test_heartbeats_are_asked_for_on_both_streams_only_when_wanted(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    await quick.create_session()
    await quick.create_session(SessionOptions(heartbeat_interval_s=7))

    assert [opening.heartbeat_interval_s for opening in host.openings] == [0, 7]
    assert [calls.heartbeat_interval_s for calls in host.subscriptions] == [0, 7]
    assert not host.openings[0].ByteSize()


async def test_a_host_that_misses_three_heartbeats_is_lost(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    session = await quick.create_session(SessionOptions(heartbeat_interval_s=10))
    for _ in range(5):
        host_session(host).tell(BEAT)
        await trio.sleep(25)
    response = await run(session, "still_live")
    await trio.sleep(31)
    with pytest.raises(HostTimedOut, match="session lease"):
        await session.terminate("1")
    with pytest.raises(SessionReset) as reset:
        await run(session, "still_live")

    assert told(response)[1] == ["still live"]
    assert isinstance(reset.value.lost.cause, HostTimedOut)


async def test_the_silence_of_a_host_that_knows_no_heartbeats_means_nothing(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    session = await quick.create_session(SessionOptions(heartbeat_interval_s=1))
    await trio.sleep(1_000)

    assert told(await run(session, "still_live")) == ("1", ["still live"], None)


# --- tool lists


def lists(host: Host) -> list[tuple[int, list[str]]]:
    return [(one.catalog_revision, [tool.name for tool in one.enabled_tools]) for one in host.executions]


async def test_a_tool_list_travels_once_where_the_host_keeps_it(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    host.keeps_catalogues = True
    session = await quick.create_session()
    for tools in ([ECHO], [ECHO], [], [ECHO, OTHER], [ECHO, OTHER], [ECHO]):
        await run(session, "still_live", enabled_tools=tools)

    assert lists(host) == [
        (1, ["echo"]), (1, []), (0, []), (2, ["echo", "other"]), (2, []), (3, ["echo"]),
    ]  # fmt: skip


async def test_a_refused_tool_list_travels_again(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    host.keeps_catalogues = True
    session = await quick.create_session()
    await run(session, "still_live", enabled_tools=[ECHO])
    host.refuse_next("Execute", StatusCode.FAILED_PRECONDITION, "unknown code-mode catalog revision")
    with pytest.raises(HostCallFailed, match="unknown code-mode catalog revision"):
        await run(session, "still_live", enabled_tools=[ECHO])
    await run(session, "still_live", enabled_tools=[ECHO])

    assert lists(host) == [(1, ["echo"]), (1, ["echo"])]


async def test_a_host_that_keeps_no_lists_gets_each_one_whole(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    session = await quick.create_session()
    for _ in range(2):
        await run(session, "still_live", enabled_tools=[ECHO])

    assert lists(host) == [(0, ["echo"])] * 2


# --- hearing of the end


async def begin(session: Session, host: Host) -> str:
    @host.script
    async def slow(cell: Cell) -> None:
        for hour in range(3):
            await trio.sleep(3_600)  # First, so that nothing is said in the answer to the call that begins it.
            cell.text(hour)
        cell.text("done")

    response = await run(session, "slow", yield_time_ms=0)
    assert isinstance(response, Yielded)
    return response.cell_id


async def test_the_end_of_a_cell_is_heard_of_without_polling(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    session = await quick.create_session()
    outcome = await session.completion(await begin(session, host))

    assert isinstance(outcome, LiveCell)
    assert isinstance(outcome.response, Result)
    assert texts(outcome.response) == ["0", "1", "2", "done"]
    assert host.count("Wait") <= 4


async def test_output_before_the_end_is_handed_out_as_it_comes(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    session = await quick.create_session()
    seen: list[Yielded] = []
    outcome = await session.completion(await begin(session, host), on_output=seen.append)

    assert [text for one in seen for text in texts(one)] + texts(outcome.response) == ["0", "1", "2", "done"]
    assert seen


async def test_a_session_limited_to_short_observations_is_not_asked_without_pause(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    session = await quick.create_session()

    @host.script
    async def restless(cell: Cell) -> None:
        for _ in range(500):
            cell.yield_control()
            await trio.sleep(0.01)

    response = await run(session, "restless", yield_time_ms=0)
    await session.completion(response.cell_id)

    assert host.count("Wait") < 60


async def test_more_than_may_be_held_is_handed_out_and_the_cell_goes_on(
    host: Host, quick: SessionProvider, autojump_clock: trio.testing.MockClock
) -> None:
    session = await quick.create_session()

    @host.script
    async def loud(cell: Cell) -> None:
        for _ in range(3):
            await trio.sleep(1)
            cell.text("x" * 9_000_000)
            cell.yield_control()

    response = await run(session, "loud", yield_time_ms=0)
    first = await session.completion(response.cell_id)
    second = await session.completion(response.cell_id)

    assert isinstance(first.response, Yielded)
    assert isinstance(second.response, Result)
    assert len("".join(texts(first.response) + texts(second.response))) == 27_000_000
