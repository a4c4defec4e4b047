"""What became of a call is told by type, and nothing is done twice (cases P14 and P25)."""

import json
from typing import Any

import pytest
import trio

from actors.harness import (
    LIMITS,
    AnswerLost,
    AnswerUnreadable,
    CallNotSent,
    CallTimedOut,
    ChannelClosed,
    Client,
    DidNotRun,
    Disconnected,
    HarnessLimits,
    InvalidArgument,
    MayHaveRun,
    ProcessNeverStarted,
    ProtocolBroken,
    RequestRejected,
    TooManyCalls,
    WebSocketConnectFailed,
    open_client,
)
from actors.harness._connection import Connection
from actors.harness._flow import ReadValve
from actors.harness.testing import Cut, FakeExecutor, MemoryChannel, MemoryLine, MemoryNetwork
from actors.protocol import ENVIRONMENT_STATUS, PROCESS_TERMINATE, Nothing, Request, TerminateParams
from tests.actors.harness.world import PROGRAMS, URL, World, open_world

COMMAND = ("echo", "hi")


def cut_once(world: World, method: str) -> Any:
    """Cut the connection at the first request of a method."""
    left = [1]

    async def hook(request: Request) -> bool:
        if request.method == method and left:
            left.clear()
            world.network.line.cut(Cut.RESET)
            return False
        return True

    return hook


async def test_a_command_is_not_run_when_nothing_can_be_connected(autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        network = MemoryNetwork(FakeExecutor(nursery, PROGRAMS).serve)
        network.refusing = "connection refused"
        with pytest.raises(WebSocketConnectFailed, match="`ws://memory`: connection refused"):
            async with open_client(URL, dialer=network):
                pass
        nursery.cancel_scope.cancel()


async def test_a_command_whose_request_was_not_written_is_sent_again_and_runs_once(autojump_clock: object) -> None:
    async with open_world() as world:
        world.network.line.cut(Cut.RESET)
        completed = await world.client.run(COMMAND)

        assert completed.stdout == b"hi\n"
        assert world.executor.started[COMMAND] == 1


async def test_a_lost_answer_is_asked_for_and_the_true_result_is_given(autojump_clock: object) -> None:
    async with open_world() as world:
        world.executor.before_answer = cut_once(world, "process/start")
        completed = await world.client.run(COMMAND)

        assert (completed.stdout, completed.exit_code) == (b"hi\n", 0)
        assert world.executor.started[COMMAND] == 1


async def test_a_lost_request_is_asked_for_and_did_not_run(autojump_clock: object) -> None:
    async with open_world() as world:
        world.executor.before_request = cut_once(world, "process/start")
        with pytest.raises(ProcessNeverStarted):
            await world.client.run(COMMAND)

        assert world.executor.started[COMMAND] == 0


@pytest.mark.parametrize("ran", [True, False])
async def test_a_lost_answer_that_nobody_can_ask_for_may_have_run(ran: bool, autojump_clock: object) -> None:
    async with open_world(recovery=None) as world:
        hook = cut_once(world, "process/start")
        if ran:
            world.executor.before_answer = hook
        else:
            world.executor.before_request = hook
        with pytest.raises(AnswerLost) as caught:
            async with world.client.processes.start(COMMAND, process_id="mine"):
                pass

        assert isinstance(caught.value, MayHaveRun)
        assert (caught.value.method, caught.value.identity) == ("process/start", "mine")
        assert world.executor.started[COMMAND] == ran


async def test_an_error_answer_is_the_error_once(autojump_clock: object) -> None:
    async with open_world() as world:
        with pytest.raises(RequestRejected, match=r"exec-server rejected request \(-32603\)"):
            await world.client.run(["nothing"])

        assert world.client.statistics().connections == 1


async def test_a_connection_that_always_breaks_ends_with_an_error_and_no_second_run(autojump_clock: object) -> None:
    async with open_world() as world:

        async def always(request: Request) -> bool:
            if request.method == "process/start":
                world.network.line.cut(Cut.RESET)
                world.network.refusing = "connection refused"
            return True

        world.executor.before_answer = always
        with pytest.raises(AnswerLost):
            await world.client.run(COMMAND)

        assert world.executor.started[COMMAND] == 1


class Peer:
    """The other end of a connection, played by a test."""

    def __init__(self, channel: MemoryChannel, connection: Connection) -> None:
        self.channel, self.connection = channel, connection

    async def request(self) -> dict[str, Any]:
        return json.loads(await self.channel.receive())

    async def send(self, text: object) -> None:
        await self.channel.send(text.encode() if isinstance(text, str) else json.dumps(text).encode())

    async def answer(self, request_id: object) -> None:
        await self.send({"id": request_id, "result": {"status": "ready"}})


async def play(connection_test: Any, *, limits: HarnessLimits = LIMITS) -> None:
    line = MemoryLine()
    connection = Connection(line.near, limits=limits, valve=ReadValve(), on_news=lambda news: None)
    async with trio.open_nursery() as nursery:
        await nursery.start(connection.run)
        await connection_test(Peer(line.far, connection))
        nursery.cancel_scope.cancel()


async def test_strays_hurt_no_other_call(autojump_clock: object) -> None:
    answered: list[int] = []
    limits = HarnessLimits(offences=8)

    async def call(connection: Connection, number: int) -> None:
        timeout_s = 5 if number in {8, 9} else None
        with trio.move_on_after(1 if number == 10 else 1000):
            try:
                await connection.call(ENVIRONMENT_STATUS, Nothing(), timeout_s=timeout_s)
            except CallTimedOut:
                return
            answered.append(number)

    async def scene(peer: Peer) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(call, peer.connection, number)
                await trio.testing.wait_all_tasks_blocked()
            ids = [(await peer.request())["id"] for _ in range(100)]
            await trio.sleep(10)
            await peer.answer(ids[7])
            await peer.answer(ids[7])
            await peer.send({"id": ids[7], "error": {"code": 1, "message": "no"}})
            await peer.answer(ids[8])  # after it timed out
            await peer.answer(ids[10])  # after it was cancelled
            await peer.answer(12345)
            await peer.answer("seven")
            await peer.send("{not json")
            for number in [n for n in range(100) if n not in {7, 8, 9, 10}]:
                await peer.answer(ids[number])
        statistics = peer.connection.statistics()
        assert (statistics.duplicate_answers, statistics.late_answers, statistics.offences) == (2, 2, 3)
        assert peer.connection.lost is None

    await play(scene, limits=limits)

    assert sorted(answered) == [n for n in range(100) if n not in {8, 9, 10}]


async def test_a_malformed_peer_is_cut_off_with_a_reason_after_eight_offences(autojump_clock: object) -> None:
    async def scene(peer: Peer) -> None:
        async with trio.open_nursery() as nursery:
            outcome: list[Exception] = []

            async def call() -> None:
                try:
                    await peer.connection.call(ENVIRONMENT_STATUS, Nothing(), timeout_s=None)
                except AnswerLost as lost:
                    outcome.append(lost)

            nursery.start_soon(call)
            await peer.request()
            for _ in range(8):
                assert peer.connection.lost is None
                await peer.send("[]")
                await trio.testing.wait_all_tasks_blocked()
        assert isinstance(peer.connection.lost, ProtocolBroken)
        assert "cut off after 8 messages that have no place; the last: expected a JSON-RPC object" in str(outcome[0])

    await play(scene)


async def test_an_answer_nobody_can_read_ends_its_call(autojump_clock: object) -> None:
    async def scene(peer: Peer) -> None:
        for answer in ({"id": 1, "error": {"code": "x", "message": "m"}}, {"id": 2, "result": {"status": 5}}):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer_next, peer, answer)
                with pytest.raises(AnswerUnreadable):
                    await peer.connection.call(ENVIRONMENT_STATUS, Nothing(), timeout_s=None)

    async def answer_next(peer: Peer, answer: object) -> None:
        await peer.request()
        await peer.send(answer)

    await play(scene)


async def test_a_request_of_the_peer_is_refused_politely(autojump_clock: object) -> None:
    async def scene(peer: Peer) -> None:
        await peer.send({"id": "n", "method": "network/policyRequest", "params": {}})
        refusal = await peer.request()
        assert refusal["error"]["code"] == -32601
        assert refusal["id"] == "n"

    await play(scene)


async def test_calls_end_at_their_limit_and_one_place_is_kept_for_cleanup(autojump_clock: object) -> None:
    async def scene(peer: Peer) -> None:
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(AnswerLost):
                    await peer.connection.call(ENVIRONMENT_STATUS, Nothing(), timeout_s=None)

            async def swallow() -> None:
                while True:
                    request = await peer.request()
                    if request["method"] == "process/terminate":
                        await peer.send({"id": request["id"], "result": {"running": True}})

            for _ in range(1024):
                nursery.start_soon(call)
            nursery.start_soon(swallow)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(TooManyCalls, match="exec-server has reached its limit of 1024 pending requests"):
                await peer.connection.call(ENVIRONMENT_STATUS, Nothing(), timeout_s=None)
            for _ in range(3):
                result = await peer.connection.call(
                    PROCESS_TERMINATE, TerminateParams(process_id="p"), timeout_s=None, cleanup=True
                )
                assert result.running
            assert peer.connection.statistics().open_calls_peak == 1025
            peer.connection.end(Disconnected())
            nursery.cancel_scope.cancel()

    await play(scene)


async def test_each_call_of_the_client_has_its_time(autojump_clock: object) -> None:
    async with open_world() as world:

        async def never(request: Request) -> bool:
            return False

        world.executor.before_answer = never
        times: list[float] = []

        async def time(call: Any, text: str) -> None:
            started_s = trio.current_time()
            with pytest.raises(CallTimedOut, match=text):
                await call()
            times.append(trio.current_time() - started_s)

        await time(world.client.status, "timed out waiting for exec-server `environment/status` response after 10s")
        await time(world.client.info, "timed out waiting for exec-server `environment/info` response after 30s")

        assert times == [10, 30]


async def test_a_call_that_never_left_the_queue_did_not_run(autojump_clock: object) -> None:
    async def scene(peer: Peer) -> None:
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with trio.move_on_after(5):
                    await peer.connection.call(ENVIRONMENT_STATUS, Nothing(), timeout_s=None)

            # The peer reads nothing: sixteen messages fit the line, the seventeenth is half way.
            for _ in range(17):
                nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(CallNotSent):
                await peer.connection.call(ENVIRONMENT_STATUS, Nothing(), timeout_s=1)

    await play(scene)


async def test_two_clients_do_not_share_their_fate(autojump_clock: object) -> None:
    async with open_world() as one, open_world() as other:
        one.network.refusing = "gone"
        one.network.line.cut(Cut.RESET)

        async def is_well(client: Client) -> bool:
            return (await client.status()).status == "ready"

        assert await is_well(other.client)


async def test_a_start_in_the_middle_of_which_the_client_ends_may_have_run(autojump_clock: object) -> None:
    outcome: list[Exception] = []

    async def never(request: Request) -> bool:
        return request.method != "process/start"

    async def start(client: Client) -> None:
        try:
            await client.run(COMMAND)
        except MayHaveRun as error:
            outcome.append(error)

    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, PROGRAMS)
        executor.before_answer = never
        async with open_client(URL, dialer=MemoryNetwork(executor.serve)) as client:
            nursery.start_soon(start, client)
            await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert isinstance(outcome[0], AnswerLost)


async def test_a_client_that_has_ended_starts_nothing(autojump_clock: object) -> None:
    async with open_world() as world:
        client = world.client

    with pytest.raises(CallNotSent, match="exec-server transport closed"):
        await client.run(COMMAND)
    assert world.executor.started[COMMAND] == 0


async def test_a_context_of_a_start_is_entered_once(autojump_clock: object) -> None:
    async with open_world() as world:
        starting = world.client.processes.start(COMMAND)
        async with starting as process:
            await process.wait()
        with pytest.raises(InvalidArgument, match="once"):
            async with starting:
                pass


async def test_no_more_processes_are_followed_than_the_limit(autojump_clock: object) -> None:
    async with open_world(limits=HarnessLimits(processes=1)) as world, world.client.processes.start(["long"]):
        with pytest.raises(DidNotRun, match="its limit"):
            await world.client.run(COMMAND)


class DeadChannel:
    """Ends while a message is about to be written."""

    def __init__(self, *, written: bool) -> None:
        self._written = written

    async def send(self, message: bytes) -> None:
        await trio.lowlevel.checkpoint()
        raise ChannelClosed("reset", written=self._written)

    async def receive(self) -> bytes | str:
        await trio.sleep_forever()
        raise AssertionError("sleep_forever has an end")

    async def ping(self) -> None:
        await trio.sleep_forever()


@pytest.mark.parametrize(("written", "outcome"), [(False, CallNotSent), (True, AnswerLost)])
async def test_a_write_that_fails_tells_whether_anything_left(written: bool, outcome: type[Exception]) -> None:
    connection = Connection(DeadChannel(written=written), limits=LIMITS, valve=ReadValve(), on_news=lambda news: None)
    async with trio.open_nursery() as nursery:
        await nursery.start(connection.run)
        with pytest.raises(outcome, match="reset"):
            await connection.call(ENVIRONMENT_STATUS, Nothing(), timeout_s=None)

    assert isinstance(connection.lost, Disconnected)
