"""A harness under a supervisor."""

import pytest
import trio

import supervision
from actors.harness import CallNotSent, Client, HarnessError, TransportClosed, run_harness
from actors.harness.testing import Cut, FakeExecutor, MemoryNetwork
from supervision import ChildSpec, Restart
from tests.actors.harness.world import PROGRAMS, URL


async def test_a_child_is_started_once_it_can_serve_and_is_restarted_with_a_new_session(autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, PROGRAMS)
        network = MemoryNetwork(executor.serve)

        async def harness(*, task_status: supervision.ChildStatus[Client]) -> None:
            await run_harness(URL, dialer=network, recovery=None, task_status=task_status)

        async with supervision.open_root() as root:
            child = await root.start_child(ChildSpec("harness", harness, restart=Restart.PERMANENT))
            first = child.value
            await first.status()
            network.line.cut(Cut.RESET)
            await trio.testing.wait_all_tasks_blocked()
            second = child.value
            await second.status()
            with pytest.raises(CallNotSent):
                await first.status()
            await root.stop_child("harness")
            with pytest.raises(CallNotSent) as caught:
                await second.status()
        nursery.cancel_scope.cancel()

    assert (first.session_id, second.session_id) == ("session-1", "session-2")
    assert isinstance(caught.value.reason, TransportClosed)


async def test_what_ends_a_harness_comes_out_plain(autojump_clock: object) -> None:
    class Broken:
        def dial(self, url: str) -> object:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        await run_harness(URL, dialer=Broken(), task_status=trio.TASK_STATUS_IGNORED)  # type: ignore[arg-type]


async def test_a_harness_ends_with_the_reason_its_connection_ended(autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        network = MemoryNetwork(FakeExecutor(nursery, PROGRAMS).serve)

        async def cut() -> None:
            await trio.testing.wait_all_tasks_blocked()
            network.line.cut(Cut.CLEAN)

        nursery.start_soon(cut)
        with pytest.raises(HarnessError, match="exec-server transport disconnected: closed by the peer with code 1000"):
            await run_harness(URL, dialer=network, recovery=None, task_status=trio.TASK_STATUS_IGNORED)
        nursery.cancel_scope.cancel()
