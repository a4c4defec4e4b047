"""Cancel each public async function at each of its steps: nothing runs twice, nothing is left, the session goes on."""

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from actors.sessions import Session, SessionProvider, StartedCell, WaitRequest, open_provider
from actors.sessions.grpc import StatusCode
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.client.hosts import Host, Serving, serving
from tests.actors.sessions.client.recording import Recorder, request, run, told
from tests.support.cancelling import cancel_at_each_step

# Over the in-memory network every task settles; over sockets, bytes may still be on their way.


@pytest.fixture
def network() -> MemoryNetwork:
    return MemoryNetwork()


@pytest.fixture
async def served(host: Host, network: MemoryNetwork) -> AsyncIterator[Serving]:
    async with serving(host, listener=network.listener) as served:
        yield served


@pytest.fixture
async def provider(served: Serving, network: MemoryNetwork) -> AsyncIterator[SessionProvider]:
    async with open_provider(served.url, dial=network.dial) as provider:
        yield provider


async def still_works(session: Session) -> None:
    assert told(await run(session, "still_live"))[1:] == (["still live"], None)


async def test_creating_a_session_can_be_cancelled_anywhere(host: Host, provider: SessionProvider) -> None:
    made: list[Session] = []

    async def create() -> None:
        made.append(await provider.create_session())

    async def check() -> None:
        await trio.testing.wait_all_tasks_blocked()
        assert provider.statistics().sessions_live == len(host.sessions) == len(made)

    assert await cancel_at_each_step(create, check=check) > 2
    await still_works(made[-1])


async def test_opening_a_provider_can_be_cancelled_anywhere(served: Serving, network: MemoryNetwork) -> None:
    async def open_and_run() -> None:
        async with open_provider(served.url, dial=network.dial) as provider:
            await run(await provider.create_session(), "still_live")

    async def check() -> None:
        await trio.testing.wait_all_tasks_blocked()
        assert served.server.statistics().connections_open == 0

    assert await cancel_at_each_step(open_and_run, check=check) > 4


async def test_executing_can_be_cancelled_anywhere(host: Host, provider: SessionProvider) -> None:
    session, recorder = await provider.create_session(), Recorder()
    started: list[StartedCell] = []
    checks: list[None] = []

    async def execute() -> None:
        started.append(await session.execute(request("stay"), recorder))

    async def check() -> None:
        for cell in started:
            cell.abandon()
        await trio.testing.wait_all_tasks_blocked()
        [there] = host.sessions.values()
        assert there.cells == {}
        assert len(recorder.closed) == len({*recorder.closed}) == host.count("Execute") - len(checks)
        await still_works(session)
        checks.append(None)

    assert await cancel_at_each_step(execute, check=check) > 2
    assert host.count("OpenSession") == 1


async def test_the_first_response_can_be_given_up_anywhere(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()

    async def respond() -> None:
        with await session.execute(request("recall")) as cell:
            await cell.initial_response()

    async def check() -> None:
        [there] = host.sessions.values()
        assert there.cells == {}
        await still_works(session)

    assert await cancel_at_each_step(respond, check=check) > 3


async def test_waiting_can_be_cancelled_anywhere(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    cell = await session.execute(request("stay", yield_time_ms=0))
    cell_id = (await cell.initial_response()).cell_id

    async def wait() -> None:
        await session.wait(WaitRequest(cell_id, 0))

    async def check() -> None:
        await wait()
        await trio.testing.wait_all_tasks_blocked()
        assert host.count("OpenSession") == 1

    assert await cancel_at_each_step(wait, check=check) > 2


async def test_terminating_can_be_cancelled_anywhere(provider: SessionProvider) -> None:
    session = await provider.create_session()

    async def terminate() -> None:
        await session.terminate("1")

    assert await cancel_at_each_step(terminate, check=lambda: still_works(session)) > 2


async def test_a_reopening_can_be_cancelled_anywhere_and_the_notice_is_never_lost(
    host: Host, provider: SessionProvider
) -> None:
    session = await provider.create_session()
    outcomes: list[str] = []

    async def lose_and_return() -> None:
        try:
            await run(session, "recall")
        except Exception as error:
            outcomes.append(type(error).__name__)
            return
        outcomes.append("ran")

    async def check() -> None:
        # Whatever was cancelled, the next call that ends is the notice, unless the cancelled one had it already.
        if not outcomes:
            await lose_and_return()
        assert outcomes.pop() == "SessionReset"
        outcomes.clear()
        await lose()

    async def lose() -> None:
        host.refuse_next("Execute", StatusCode.NOT_FOUND, "gone")
        await lose_and_return()
        assert outcomes.pop() == "HostCallFailed"

    await lose()

    assert await cancel_at_each_step(lose_and_return, check=check) > 2


async def test_waiting_for_a_shutdown_can_be_cancelled_anywhere(host: Host, provider: SessionProvider) -> None:
    async def shut() -> None:
        session = await provider.create_session()
        shutdown = session.shutdown()
        await shutdown

    async def check() -> None:
        await trio.testing.wait_all_tasks_blocked()
        assert host.sessions == {}
        assert provider.statistics().sessions_live == 0

    assert await cancel_at_each_step(shut, check=check) > 3
