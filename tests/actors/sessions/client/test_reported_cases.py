"""Faults that users of other systems reported, in the shape they have for code sessions."""

from collections.abc import AsyncIterator, Callable

import pytest
import trio
import trio.testing

from actors.sessions import (
    HostCallFailed,
    HostUnavailable,
    Result,
    Session,
    SessionReset,
    SessionsError,
    StaleGeneration,
    WaitRequest,
    open_provider,
)
from actors.sessions.grpc import StatusCode
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.client.hosts import Cell, Host, serving
from tests.actors.sessions.client.recording import ECHO, Recorder, request, run, texts

MIB = 1024 * 1024


class World:
    """A host in memory and a session on it."""

    def __init__(self, host: Host, network: MemoryNetwork, session: Session) -> None:
        self.host, self.network, self.session = host, network, session

    def cut(self) -> None:
        for here, _ in self.network.pairs:
            for half in (here.send_stream, here.receive_stream):
                half.close()

    def hang_up(self) -> None:
        for _, there in self.network.pairs:
            there.send_stream.close()

    def fall_silent(self) -> None:
        for _, there in self.network.pairs:
            there.send_stream.send_all_hook = trio.sleep_forever

    def forget_sessions(self) -> None:
        for session in [*self.host.sessions.values()]:
            session.end()


@pytest.fixture
async def world(host: Host) -> AsyncIterator[World]:
    network = MemoryNetwork()
    async with serving(host, listener=network.listener) as served, open_provider(served.url, dial=network.dial) as made:
        yield World(host, network, await made.create_session())


FAULTS: dict[str, Callable[[World], None]] = {
    "clean close": World.hang_up,
    "reset": World.cut,
    "end of the session": World.forget_sessions,
    "silence": World.fall_silent,
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_p09_a_broken_stream_is_never_taken_for_a_result(
    world: World, fault: str, autojump_clock: trio.testing.MockClock
) -> None:
    outcomes: list[object] = []
    recorder = Recorder()

    async def execute() -> None:
        try:
            outcomes.append(await run(world.session, "stay", recorder, yield_time_ms=60_000))
        except SessionsError as error:
            outcomes.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(execute)
        await trio.testing.wait_all_tasks_blocked()
        FAULTS[fault](world)
    await trio.testing.wait_all_tasks_blocked()

    [outcome] = outcomes
    assert isinstance(outcome, SessionsError)
    assert recorder.closed == ["1"]


@pytest.mark.slow
async def test_p11_a_result_over_the_limit_fails_alone(host: Host, autojump_clock: trio.testing.MockClock) -> None:
    """Killed: an error that says no more than the limit; one that advises another try."""

    @host.script
    async def large(cell: Cell) -> None:
        cell.text("x" * sizes.pop(0))

    network = MemoryNetwork()
    sizes = [64 * MIB - 1_000, 64 * MIB, 70 * MIB]
    async with serving(host, listener=network.listener) as served, open_provider(served.url, dial=network.dial) as made:
        session, other = await made.create_session(), await made.create_session()
        whole = await run(session, "large")
        for _ in range(2):
            with pytest.raises(HostCallFailed, match=r"found \d+ bytes, the limit is: 67108864 bytes") as over:
                await run(session, "large")
            assert not isinstance(over.value, HostUnavailable)  # Trying again would not help.
            assert "the rest cannot be fetched" in "".join(over.value.__notes__)
            assert "wait for the parts" in "".join(over.value.__notes__)
            assert texts(await run(other, "still_live")) == ["still live"]
        with pytest.raises(HostCallFailed, match="67108864"):
            await run(session, "x" * (70 * MIB))

        assert len(texts(whole)[0]) == 64 * MIB - 1_000
        assert texts(await run(session, "still_live")) == ["still live"]
        assert host.seen_executions.count("large") == 3
        assert made.statistics().connections_dialled == 1


@pytest.mark.parametrize("moment", ["before it is sent", "after it was sent"])
async def test_p14_a_command_runs_at_most_once_and_the_caller_knows_which(
    world: World, moment: str, autojump_clock: trio.testing.MockClock
) -> None:
    recorder = Recorder()
    if moment == "before it is sent":
        world.cut()
    else:

        async def cut_in_the_middle(*_: object) -> None:
            world.cut()

        world.host.execute_hook = cut_in_the_middle
    with pytest.raises(SessionsError) as unknown:
        await run(world.session, "call_echo", recorder, enabled_tools=[ECHO])
    world.host.execute_hook = None
    with pytest.raises(SessionReset):
        await run(world.session, "call_echo", recorder, enabled_tools=[ECHO])
    await run(world.session, "call_echo", recorder, enabled_tools=[ECHO])

    assert not isinstance(unknown.value, SessionReset)
    assert len(recorder.calls) == 1
    assert len(world.host.seen_executions) == (1 if moment == "before it is sent" else 2)


async def lost_with_a_cell_running(world: World, recorder: Recorder) -> str:
    for _ in range(3):
        await run(world.session, "still_live", recorder)
    running = await run(world.session, "stay", recorder, yield_time_ms=1)
    world.forget_sessions()
    await trio.testing.wait_all_tasks_blocked()
    return running.cell_id


@pytest.mark.parametrize("action", ["wait", "execute", "terminate"])
async def test_p15_a_host_that_forgot_the_session_is_told_once_and_nothing_runs_again(
    world: World, action: str, autojump_clock: trio.testing.MockClock
) -> None:
    recorder = Recorder()
    cell_id = await lost_with_a_cell_running(world, recorder)
    session = world.session
    if action == "terminate":
        with pytest.raises(SessionsError):
            await session.terminate(cell_id)
        assert world.host.count("OpenSession") == 1
    call = session.wait(WaitRequest(cell_id, 1)) if action == "wait" else session.execute(request("recall"), recorder)
    with pytest.raises(SessionReset) as reset:
        await call
    with pytest.raises(StaleGeneration):
        await session.wait(WaitRequest(cell_id, 1))
    await run(session, "recall", recorder)

    assert reset.value.lost.running_cells == (cell_id,)
    assert recorder.closed == ["1", "2", "3", cell_id, "g2:1"]
    assert world.host.seen_executions == ["still_live"] * 3 + ["stay", "recall"]
    assert world.host.count("OpenSession") == 2


async def test_p15_a_new_session_that_is_unknown_at_once_is_an_error(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    world.forget_sessions()
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(SessionReset):
        await run(world.session, "recall")
    world.host.refuse_next("Execute", StatusCode.NOT_FOUND, "session was lost")
    with pytest.raises(HostCallFailed, match="session was lost"):
        await run(world.session, "recall")

    assert world.host.count("OpenSession") == 2
    assert world.host.seen_executions == []


async def test_p25_an_end_that_comes_twice_or_late_reaches_nobody(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    recorder = Recorder()
    cells = [await world.session.execute(request("stay", yield_time_ms=60_000), recorder) for _ in range(100)]
    [there] = world.host.sessions.values()
    seventh = there.cells["7"]
    for _ in range(2):
        seventh.closed = False
        seventh.close()
        there.cells["7"] = seventh
    seventh.end("completed")
    first = await cells[6].initial_response()
    for cell in there.cells.values():
        cell.end("completed")
    rest = [await cell.initial_response() for cell in cells if cell.cell_id != "7"]

    assert isinstance(first, Result)
    assert len(rest) == 99
    assert sorted(recorder.closed, key=int) == [str(number) for number in range(1, 101)]
