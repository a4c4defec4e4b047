"""Refusals, lost host sessions, lost connections and cancelled callers at any time, in any order.

Whatever happens: no script runs twice, every cell is reported closed exactly once, every call ends, nothing is left.
"""

import random
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from actors.sessions import Session, SessionsError, WaitRequest, open_provider
from actors.sessions.grpc import StatusCode
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.client.hosts import Host, serving
from tests.actors.sessions.client.recording import ECHO, Recorder, request

METHODS = [
    "OpenSession", "SubscribeToToolCalls", "Execute", "Wait", "Terminate", "CancelWait", "CompleteToolCall",
    "YieldObservation", "CloseSession",
]  # fmt: skip
CODES = [StatusCode.NOT_FOUND, StatusCode.UNAVAILABLE, StatusCode.INTERNAL, StatusCode.RESOURCE_EXHAUSTED]
SOURCES = ["recall", "stay", "notify", "call_echo", "throw"]
LONGEST_S = 400.0
FEW, MANY = range(20), range(20, 1_020)


class Storm:
    """One run of everything at once."""

    def __init__(self, host: Host, network: MemoryNetwork, seed: int) -> None:
        self.host, self.network, self.chance = host, network, random.Random(seed)
        self.recorder = Recorder()
        self.started: list[str] = []
        self.sent = 0
        self.ended: list[str] = []
        self.overdue = 0

    async def calls(self, session: Session) -> None:
        for _ in range(8):
            await trio.sleep(self.chance.random() * 0.02)
            call = self.chance.choice([self.execute, self.execute, self.wait, self.terminate])
            patience_s = self.chance.choice([1e-9, 0.001, 0.02, LONGEST_S, LONGEST_S])
            with trio.move_on_after(patience_s) as scope:
                try:
                    await call(session)
                except SessionsError as error:
                    self.ended.append(type(error).__name__)
            self.overdue += scope.cancelled_caught and patience_s == LONGEST_S

    async def execute(self, session: Session) -> None:
        self.sent += 1
        source = f"{self.chance.choice(SOURCES)}#{self.sent}"
        preempt = trio.Event()
        if self.chance.random() < 0.2:
            preempt.set()
        asked = request(source, yield_time_ms=self.chance.choice([0, 1, 50]), enabled_tools=[ECHO])
        cell = await session.execute(asked, self.recorder, preempt=preempt)
        self.started.append(cell.cell_id)
        if self.chance.random() < 0.8:
            await cell.initial_response()

    async def wait(self, session: Session) -> None:
        if self.started:
            await session.wait(WaitRequest(self.chance.choice(self.started), self.chance.choice([0, 1, 50])))

    async def terminate(self, session: Session) -> None:
        if self.started:
            await session.terminate(self.chance.choice(self.started))

    async def faults(self) -> None:
        for _ in range(6):
            await trio.sleep(self.chance.random() * 0.04)
            self.chance.choice([self.refuse, self.refuse, self.lose_session, self.lose_stream, self.lose_connection])()

    def refuse(self) -> None:
        self.host.refuse_next(self.chance.choice(METHODS), self.chance.choice(CODES), "at random")

    def lose_session(self) -> None:
        for there in [*self.host.sessions.values()]:
            there.end()

    def lose_stream(self) -> None:
        for there in [*self.host.sessions.values()]:
            self.chance.choice(there.scopes).cancel()

    def lose_connection(self) -> None:
        for here, _ in self.network.pairs:
            for half in (here.send_stream, here.receive_stream):
                half.close()


async def quietly(work: Callable[[], Awaitable[object]]) -> None:
    try:
        await work()
    except SessionsError:
        return


async def storm(host: Host, seed: int) -> Storm:
    network = MemoryNetwork()
    this = Storm(host, network, seed)
    async with serving(host, listener=network.listener) as served:
        await trio.testing.wait_all_tasks_blocked()
        before = trio.lowlevel.current_statistics().tasks_living
        with trio.fail_after(5_000):
            async with open_provider(served.url, dial=network.dial) as provider:
                session = await provider.create_session()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(this.faults)
                    for _ in range(3):
                        nursery.start_soon(this.calls, session)
                host.refusals.clear()
                await quietly(session.shutdown)
                live = provider.statistics().sessions_live
            with trio.fail_after(5):
                while host.sessions or served.server.statistics().connections_open:
                    await trio.testing.wait_all_tasks_blocked(0.01)
        await trio.testing.wait_all_tasks_blocked()
        left = trio.lowlevel.current_statistics().tasks_living - before

    assert len(host.seen_executions) == len({*host.seen_executions}), "a script ran twice"
    assert len(this.recorder.closed) == len({*this.recorder.closed}), "a cell was reported closed twice"
    assert {*this.started} <= {*this.recorder.closed}, "a cell was never reported closed"
    assert (live, left, this.overdue) == (0, 0, 0)
    return this


@pytest.mark.parametrize("seed", FEW)
async def test_any_fault_at_any_time(host: Host, autojump_clock: trio.testing.MockClock, seed: int) -> None:
    await storm(host, seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(MANY.start, MANY.stop, 100))
async def test_a_thousand_storms(host: Host, autojump_clock: trio.testing.MockClock, first: int) -> None:
    ended: set[str] = set()
    for seed in range(first, first + 100):
        host.seen_executions.clear()
        ended.update((await storm(host, seed)).ended)

    assert {"SessionReset", "SessionStopped", "StaleGeneration", "HostUnavailable", "HostCallFailed"} <= ended
