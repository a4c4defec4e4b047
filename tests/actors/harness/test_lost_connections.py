"""A lost connection is never a success, and what can be continued is (cases P07 and P09)."""

import pytest
import trio
import trio.testing

from actors.harness import (
    AnswerLost,
    CallNotSent,
    Disconnected,
    HarnessError,
    HarnessLimits,
    OutputLost,
    ProcessFailed,
    ProcessStateUnknown,
    RecoveryFailed,
    RequestRejected,
    open_client,
)
from actors.harness.testing import Cut, FakeExecutor, FakeProcess, MemoryNetwork
from actors.protocol import OutputGap, Request
from tests.actors.harness.world import PROGRAMS, URL, open_world

HALF_MINUTE = "29"


@pytest.mark.parametrize("how", Cut)
async def test_a_cut_stream_goes_on_without_a_hole_to_the_real_end(how: Cut, autojump_clock: object) -> None:
    async with open_world() as world:
        lines: list[str] = []
        async with world.client.processes.start(["tick"]) as process:
            async for line in process.lines():
                lines.append(line)
                if line == HALF_MINUTE:
                    world.network.line.cut(how)
            code = await process.wait()

        assert lines == [str(second) for second in range(100)]
        assert code == 7
        assert [change.connected for change in world.changes] == [True, False, True]
        assert world.client.statistics().connections == 2


@pytest.mark.parametrize("how", Cut)
async def test_without_a_reconnect_the_outcome_is_unknown_and_never_an_exit(how: Cut, autojump_clock: object) -> None:
    async with open_world() as world:
        async with world.client.processes.start(["tick"]) as process:
            reader = process.lines()
            lines = [await anext(reader) for _ in range(30)]
            lost_s = trio.current_time()
            world.network.refusing = "connection refused"
            world.network.line.cut(how)
            with pytest.raises(ProcessStateUnknown) as caught:
                await anext(reader)
            with pytest.raises(ProcessStateUnknown):
                await process.wait()

        assert lines == [str(second) for second in range(30)]
        assert process.exit is None
        assert caught.value.position == 30
        assert "connection lost, process state unknown" in str(caught.value)
        # 15 s and 15 s to notice silence, 25 s to try to resume.
        assert trio.current_time() - lost_s <= 60
        assert world.changes[-1].final


async def test_a_harness_without_recovery_ends_at_the_first_loss(autojump_clock: object) -> None:
    async with open_world(recovery=None) as world:
        async with world.client.processes.start(["tick"]) as process:
            await anext(process.output())
            world.network.line.cut(Cut.RESET)
            with pytest.raises(ProcessStateUnknown, match="connection reset"):
                await process.wait()
        with pytest.raises(CallNotSent, match="exec-server transport disconnected: connection reset"):
            await world.client.status()

        assert not world.client.connected
        assert world.network.dials == 1


async def test_the_reason_of_the_end_tells_why_no_session_was_resumed(autojump_clock: object) -> None:
    async with open_world() as world:
        world.network.refusing = "connection refused"
        world.network.line.cut(Cut.RESET)
        with pytest.raises(CallNotSent) as caught:
            await world.client.status()

        assert isinstance(caught.value.reason, RecoveryFailed)
        assert str(caught.value.reason) == (
            "exec-server transport disconnected: connection reset; failed to resume exec-server session: "
            "recovery timed out after 25s"
        )
        assert world.network.dials == pytest.approx(251, abs=2)


async def test_a_session_that_is_gone_ends_recovery_at_once(autojump_clock: object) -> None:
    async with open_world() as world:
        started_s = trio.current_time()
        world.executor.sessions.clear()
        world.network.line.cut(Cut.RESET)
        with pytest.raises(CallNotSent, match="unknown session id session-1"):
            await world.client.status()

        assert trio.current_time() - started_s < 1


async def test_a_session_that_is_still_attached_is_tried_again(autojump_clock: object) -> None:
    async with open_world() as world:
        session = world.executor.sessions["session-1"]
        keeper = session.attached
        world.network.line.cut(Cut.RESET)
        await trio.testing.wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.client.status)
            session.attached = keeper
            await trio.sleep(1)
            session.attached = None

        assert world.client.connected


async def test_a_call_made_while_recovering_waits_for_the_outcome(autojump_clock: object) -> None:
    async with open_world() as world:
        world.network.refusing = "connection refused"
        world.network.line.cut(Cut.RESET)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.client.status)
            await trio.sleep(5)
            world.network.refusing = None

        assert world.client.connected
        assert (await world.client.run(["echo", "hi"])).stdout == b"hi\n"


@pytest.mark.parametrize("cut_at", range(27))
async def test_text_is_the_same_through_a_reconnect_at_every_byte(cut_at: int, autojump_clock: object) -> None:
    data = "aé漢🙂z\nfurther text".encode() + "漢".encode()[:2]
    cut = trio.Event()

    async def program(process: FakeProcess) -> int:
        process.write(data[:cut_at])
        await cut.wait()
        process.write(data[cut_at:])
        return 0

    async with open_world(programs={"program": program}) as world:
        async with world.client.processes.start(["program"]) as process:
            await trio.testing.wait_all_tasks_blocked()
            world.network.line.cut(Cut.RESET)
            cut.set()
            pieces = [piece async for piece in process.text()]

        assert "".join(pieces) == "aé漢🙂z\nfurther text�"


async def test_output_the_executor_no_longer_has_is_a_gap_and_the_rest_goes_on(autojump_clock: object) -> None:
    cut = trio.Event()

    async def program(process: FakeProcess) -> int:
        process.write(b"before")
        await cut.wait()
        for number in range(2048):
            process.write(number.to_bytes(2, "big") * 512)
        return 5

    async with open_world(programs={"program": program}) as world:
        async with world.client.processes.start(["program"]) as process:
            pieces = process.chunks()
            await anext(pieces)
            world.network.line.cut(Cut.RESET)
            cut.set()
            gap = await anext(pieces)
            rest = [piece async for piece in pieces]
            code = await process.wait()

        assert gap == OutputGap(process_id=process.id, first_seq=2, last_seq=1025)
        assert len(rest) == 1024
        assert code == 5


async def test_bytes_with_a_hole_raise_and_then_go_on_behind_it(autojump_clock: object) -> None:
    cut = trio.Event()

    async def program(process: FakeProcess) -> int:
        await cut.wait()
        for _ in range(2048):
            process.write(b"x" * 1024)
        return 0

    async with open_world(programs={"program": program}) as world:
        async with world.client.processes.start(["program"]) as process:
            world.network.line.cut(Cut.RESET)
            cut.set()
            with pytest.raises(OutputLost, match="from position 1 to 1024"):
                await anext(process.output())
            rest = b"".join([data async for data in process.output()])

        assert len(rest) == 1024 * 1024


async def test_a_process_the_executor_lost_fails_alone(autojump_clock: object) -> None:
    async with open_world() as world:
        async with world.client.processes.start(["tick"]) as lost, world.client.processes.start(["tick"]) as kept:
            del world.executor.sessions["session-1"].processes[lost.id]
            world.network.line.cut(Cut.RESET)
            with pytest.raises(ProcessFailed, match=f"unknown process id {lost.id}"):
                await lost.wait()
            code = await kept.wait()

        assert code == 7


async def test_many_processes_are_recovered_at_the_same_time(autojump_clock: object) -> None:
    async def slowly(request: Request) -> bool:
        await trio.sleep(1 if request.method == "process/read" else 0)
        return True

    async with open_world() as world:
        world.executor.before_request = slowly
        started_s = 0.0
        async with trio.open_nursery() as nursery:

            async def follow() -> None:
                async with world.client.processes.start(["sleep", "100"]) as process:
                    await process.wait()

            for _ in range(16):
                nursery.start_soon(follow)
            await trio.sleep(1)
            started_s = trio.current_time()
            world.network.line.cut(Cut.RESET)
            await world.client.status()
            recovered_s = trio.current_time()

        assert recovered_s - started_s < 2


async def test_writes_are_done_once_through_a_lost_answer(autojump_clock: object) -> None:
    async with open_world() as world:
        cuts = 0

        async def cut_before_answer(request: Request) -> bool:
            nonlocal cuts
            if request.method == "process/write" and cuts < 3:
                cuts += 1
                world.network.line.cut(Cut.RESET)
            return True

        world.executor.before_answer = cut_before_answer
        async with world.client.processes.start(["cat"], pipe_stdin=True) as process:
            for word in (b"one\n", b"two\n", b"three\n"):
                await process.stdin.write(word)
            await process.stdin.aclose()
            output = b"".join([data async for data in process.output()])

        assert cuts == 3
        assert output == b"one\ntwo\nthree\n"


async def test_another_session_in_answer_to_a_resume_is_refused(autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, PROGRAMS)
        network = MemoryNetwork(executor.serve)
        with pytest.raises(RequestRejected, match="unknown session id nope"):
            async with open_client(URL, dialer=network, resume_session_id="nope"):
                pass
        nursery.cancel_scope.cancel()


async def test_a_session_is_taken_over_by_its_id(autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, PROGRAMS)
        network = MemoryNetwork(executor.serve)
        async with open_client(URL, dialer=network) as first:
            session_id = first.session_id
        async with open_client(URL, dialer=network, resume_session_id=session_id) as second:
            assert second.session_id == session_id
        nursery.cancel_scope.cancel()


async def test_silence_is_noticed_and_a_quiet_living_peer_is_kept(autojump_clock: object) -> None:
    limits = HarnessLimits(keepalive_s=5, pong_s=5)
    async with open_world(limits=limits) as world:
        await trio.sleep(100)
        kept = world.client.statistics().connections
        world.network.line.cut(Cut.SILENCE)
        await trio.sleep(11)

        assert kept == 1
        assert world.client.statistics().connections == 2
        reason = world.changes[1].reason
        assert isinstance(reason, Disconnected)
        assert reason.reason == "no sign of life for 10 s"


async def test_initialize_without_an_answer_ends_after_its_time(autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, PROGRAMS)

        async def never(request: Request) -> bool:
            return False

        executor.before_answer = never
        with pytest.raises(HarnessError, match="timed out waiting for exec-server initialize handshake after 10s"):
            async with open_client(URL, dialer=MemoryNetwork(executor.serve)):
                pass
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("is_recovering", [False, True], ids=["connected", "recovering"])
async def test_a_retired_session_fails_all_its_work_with_the_reason_and_is_not_resumed(
    is_recovering: bool, autojump_clock: object
) -> None:
    """Mutants: `Core.retire` does not end the connection with the reason, or does not end the harness."""
    async with open_world() as world:
        async with world.client.processes.start(["long"]) as process:
            await anext(process.output())
            if is_recovering:
                world.network.refusing = "connection refused"
                world.network.line.cut(Cut.RESET)
                await trio.testing.wait_all_tasks_blocked()
            errors: list[HarnessError] = []

            async def wait() -> None:
                try:
                    await process.wait()
                except HarnessError as error:
                    errors.append(error)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked()
                dials, retired_s = world.network.dials, trio.current_time()
                world.client.retire("exec-server executor was replaced")
            assert trio.current_time() == retired_s
            assert isinstance(errors[0], ProcessStateUnknown)
            assert str(errors[0]).endswith(": exec-server executor was replaced")
        world.network.refusing = None
        with pytest.raises(CallNotSent, match="`environment/status` was not sent: exec-server executor was replaced"):
            await world.client.status()
        await trio.sleep(60)

        assert world.network.dials == dials
        assert not world.client.connected
        assert world.changes[-1].final
        assert str(world.changes[-1].reason) == "exec-server executor was replaced"


async def test_a_call_whose_answer_a_retirement_lost_says_that_it_may_have_run_and_why(autojump_clock: object) -> None:
    """Mutant: `Core.retire` leaves the end of the connection to the cancelled task, which knows no reason."""
    async with open_world() as world:

        async def never(_request: Request) -> bool:
            await trio.sleep_forever()
            return True

        async def ask() -> None:
            with pytest.raises(AnswerLost, match="its answer was lost: exec-server executor was replaced"):
                await world.client.run(["echo", "hi"])

        world.executor.before_answer = never
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            world.client.retire("exec-server executor was replaced")
