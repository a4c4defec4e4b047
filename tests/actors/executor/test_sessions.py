"""Lifecycle, sessions and requests of an executor, over memory and under a virtual clock."""

import base64
import gc
import json
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.executor import Executor, ExecutorEvent, Limits, SessionEnded, open_executor
from actors.executor._outbox import Outbox
from actors.executor.testing import MemoryLauncher, MemoryProcess, Program, memory_channel_pair, open_memory_launcher
from actors.protocol import ProcessLog
from tests.actors.executor.client import Client, Refused, memory_client
from tests.support.cancelling import cancel_at_each_step


async def hello(process: MemoryProcess) -> int:
    await process.write(b"hello\n")
    return 0


async def sleeper(process: MemoryProcess) -> int:
    await trio.sleep_forever()
    return 0


async def ticker(process: MemoryProcess) -> int:
    for number in range(1000):
        await process.write(b"%d\n" % number)
        await trio.sleep(1)
    return 0


async def flood(process: MemoryProcess) -> int:
    for _ in range(100):
        await process.write(bytes(32 * 1024))
    return 0


async def echo(process: MemoryProcess) -> int:
    while data := await process.read():
        await process.write(data)
    return 7


async def stubborn(process: MemoryProcess) -> int:
    process.ignore(signal.SIGTERM)
    await trio.sleep_forever()
    return 0


PROGRAMS: dict[str, Program] = {
    "hello": hello,
    "sleeper": sleeper,
    "ticker": ticker,
    "flood": flood,
    "echo": echo,
    "stubborn": stubborn,
}


@asynccontextmanager
async def memory_executor(
    *, limits: Limits | None = None, observer: Callable[[ExecutorEvent], None] = lambda _: None
) -> AsyncGenerator[tuple[Executor, MemoryLauncher], None]:
    async with (
        open_memory_launcher(PROGRAMS) as launcher,
        open_executor(launcher=launcher, limits=limits, observer=observer, variables={}) as executor,
    ):
        yield executor, launcher


@asynccontextmanager
async def one_client(limits: Limits | None = None) -> AsyncGenerator[Client, None]:
    async with memory_executor(limits=limits) as (executor, _), memory_client(executor) as client:
        yield client


async def test_a_method_before_initialize_says_what_to_do_first() -> None:
    async with memory_executor() as (executor, _), memory_client(executor, greet=False) as client:
        with pytest.raises(Refused) as before:
            await client.call("environment/status")
        await client.call("initialize", clientName="")
        with pytest.raises(Refused) as between:
            await client.call("process/read", processId="x")
        await client.notify("initialized")

        assert before.value.message == "client must call initialize before using environment status methods"
        assert between.value.message == "client must send initialized before using exec methods"
        assert await client.call("environment/status") == {"status": "ready"}


async def test_a_failed_initialize_allows_another_try_and_a_second_one_is_refused() -> None:
    async with memory_executor() as (executor, _), memory_client(executor, greet=False) as client:
        with pytest.raises(Refused, match="unknown session id nope"):
            await client.call("initialize", clientName="x", resumeSessionId="nope")
        await client.call("initialize", clientName="x")

        with pytest.raises(Refused, match="initialize may only be sent once per connection"):
            await client.call("initialize", clientName="x")


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ('{"method": "initialized"}', "initialized before initialize"),
        ('{"id": 9, "result": {}}', "answer to a request that was never made"),
    ],
)
async def test_a_peer_out_of_turn_is_told_why_its_connection_ends(first: str, reason: str) -> None:
    async with memory_executor() as (executor, _):
        ours, theirs = memory_channel_pair()
        await ours.send([first])
        await executor.serve_channel(theirs)

        assert theirs.closed_with == (1002, reason)


async def test_an_unknown_notification_is_ignored_and_counted() -> None:
    async with memory_executor() as (executor, _), memory_client(executor) as client:
        await client.notify("what/ever")

        assert await client.call("environment/status") == {"status": "ready"}
        assert executor.statistics().news_ignored == 1


async def test_a_malformed_message_is_answered_and_the_connection_goes_on() -> None:
    async with one_client() as client:
        await client.raw("[]")
        status = await client.call("environment/status")

        assert status == {"status": "ready"}
        assert client.stray[0]["error"]["message"].endswith("client: expected a JSON-RPC object")


async def test_output_exit_and_close_come_in_one_sequence_after_the_answer() -> None:
    async with one_client() as client:
        answer = await client.start("p", "hello")
        closed = await client.finish("p")

        assert answer == {"processId": "p", "sandboxType": "none"}
        assert client.story("p") == ["process/output", "process/exited", "process/closed"]
        assert [n["params"]["seq"] for n in client.news] == [1, 2, 3]
        assert closed == {"processId": "p", "seq": 3}


async def test_a_long_poll_delays_no_other_request_and_no_terminate(autojump_clock: MockClock) -> None:
    async with one_client() as client:
        await client.start("p", "sleeper")
        began_s = trio.current_time()
        polls = [await client.ask("process/read", {"processId": "p", "waitMs": 60_000}) for _ in range(50)]
        await client.call("environment/status")
        assert await client.call("process/terminate", processId="p") == {"running": True}
        answers = [await client.answer(poll) for poll in polls]

        assert trio.current_time() - began_s < 1
        assert all(answer["result"]["exited"] for answer in answers)
        assert answers[0]["result"]["exitCode"] == 137


async def test_too_many_waiting_requests_are_refused_and_counted_while_terminate_still_works() -> None:
    limits = Limits(in_flight_max=3)
    async with memory_executor(limits=limits) as (executor, _), memory_client(executor) as client:
        await client.start("p", "sleeper")
        for _ in range(3):
            await client.ask("process/read", {"processId": "p", "waitMs": 60_000})
        with pytest.raises(Refused, match="reached its limit of 3 pending requests"):
            await client.call("process/read", processId="p", waitMs=60_000)

        assert await client.call("process/terminate", processId="p") == {"running": True}
        assert executor.statistics().requests_refused == 1


async def test_a_reader_that_knows_of_the_exit_waits_for_the_close_and_does_not_spin(
    autojump_clock: MockClock,
) -> None:
    async def leaver(process: MemoryProcess) -> int:
        async def late(child: MemoryProcess) -> int:
            await trio.sleep(0.05)
            await child.write(b"late")
            await trio.sleep(3600)
            return 0

        process.leave_behind(late, name="late")
        return 0

    async with memory_executor() as (executor, launcher), memory_client(executor) as client:
        launcher.programs["leaver"] = leaver
        await client.start("p", "leaver")
        exited = await client.wait_news("process/exited", "p")
        seq = exited["seq"]
        second = await client.call("process/read", processId="p", afterSeq=seq, waitMs=60_000)
        last_seq = second["chunks"][-1]["seq"]
        began_s = trio.current_time()
        third = await client.call("process/read", processId="p", afterSeq=last_seq, waitMs=60_000)
        closed = await client.finish("p")

        assert client.output("p") == b"late"
        assert (second["exited"], second["closed"]) == (True, False)
        assert third["closed"]
        assert trio.current_time() - began_s == pytest.approx(0.95)
        assert closed["drainLimited"] is True
        assert [survivor["name"] for survivor in closed["survivors"]] == ["late"]


async def test_a_request_sent_in_one_breath_with_the_start_waits_for_it() -> None:
    async with one_client() as client:
        start = {"processId": "p", "argv": ["echo"], "cwd": "file:///tmp", "env": {}, "tty": False, "pipeStdin": True}
        await client.ask("process/start", start)
        write = await client.ask(
            "process/write", {"processId": "p", "chunk": base64.b64encode(b"hi").decode(), "writeId": "1"}
        )
        answer = await client.answer(write)
        await client.wait_news("process/output", "p")

        assert answer["result"] == {"status": "accepted"}
        assert client.output("p") == b"hi"


async def test_a_write_id_is_written_once_and_eof_ends_the_input() -> None:
    async with one_client() as client:
        await client.start("p", "echo", pipeStdin=True)
        for write_id, text in [("a", b"1"), ("a", b"X"), ("b", b"2")]:
            chunk = base64.b64encode(text).decode()
            assert await client.call("process/write", processId="p", chunk=chunk, writeId=write_id) == {
                "status": "accepted"
            }
        await client.call("process/write", processId="p", chunk="", writeId="c", eof=True)
        after = await client.call("process/write", processId="p", chunk="", writeId="d")
        exited = await client.wait_news("process/exited", "p")

        assert after == {"status": "stdinClosed"}
        assert exited["exitCode"] == 7
        assert client.output("p") == b"12"


async def test_a_process_that_does_not_read_bounds_what_is_accepted_and_the_rest_waits() -> None:
    limits = Limits(stdin_bytes_max=1000, stdin_waiting_max=2)
    async with one_client(limits) as client:
        await client.start("p", "sleeper", pipeStdin=True)
        chunk = base64.b64encode(bytes(100_000)).decode()
        # One is in the pipe and half written, the next waits behind it, and so do two answers.
        first = await client.call("process/write", processId="p", chunk=chunk, writeId="1")
        waiting = [
            await client.ask("process/write", {"processId": "p", "chunk": chunk, "writeId": str(n)}) for n in (2, 3)
        ]
        with pytest.raises(Refused, match="stdin is full"):
            await client.call("process/write", processId="p", chunk=chunk, writeId="4")
        await client.call("process/terminate", processId="p")
        answers = [await client.answer(request) for request in waiting]

        assert first == {"status": "accepted"}
        assert [answer["error"]["message"] for answer in answers] == ["failed to write to process stdin"] * 2


async def test_writes_that_wait_are_bounded_in_bytes_but_one_may_always_wait() -> None:
    limits = Limits(stdin_bytes_max=1000, stdin_waiting_bytes_max=2000)
    async with one_client(limits) as client:
        await client.start("p", "sleeper", pipeStdin=True)
        chunk = base64.b64encode(bytes(100_000)).decode()
        await client.call("process/write", processId="p", chunk=chunk, writeId="1")
        large = await client.ask("process/write", {"processId": "p", "chunk": chunk, "writeId": "2"})
        with pytest.raises(Refused, match="stdin is full"):
            await client.call("process/write", processId="p", chunk="AAAA", writeId="3")
        await client.call("process/terminate", processId="p")

        assert (await client.answer(large))["error"]["message"] == "failed to write to process stdin"


async def test_reads_answered_by_the_same_output_wait_for_room_among_the_answers() -> None:
    limits = Limits(outbox_bytes=100_000)
    async with memory_executor(limits=limits) as (executor, _), memory_client(executor, buffered=1) as client:
        await client.start("p", "echo", pipeStdin=True)
        reads = [await client.ask("process/read", {"processId": "p", "waitMs": 60_000}) for _ in range(100)]
        await wait_all_tasks_blocked()
        client.hold = trio.Event()
        chunk = base64.b64encode(bytes(30_000)).decode()
        await client.ask("process/write", {"processId": "p", "chunk": chunk, "writeId": "1"})
        await wait_all_tasks_blocked()
        (outbox,) = (thing for thing in gc.get_objects() if isinstance(thing, Outbox) and len(thing.answers))
        client.hold.set()
        answers = [await client.answer(request) for request in reads]

        assert all(answer["result"]["chunks"] for answer in answers)
        assert outbox.statistics().queued_bytes_peak < 3 * limits.outbox_bytes


async def test_a_session_is_resumed_with_its_processes_and_what_they_wrote_meanwhile(
    autojump_clock: MockClock,
) -> None:
    async with memory_executor() as (executor, _):
        async with memory_client(executor) as first:
            session_id = first.session_id
            await first.start("p", "ticker")
            await first.wait_news("process/output", "p")
        await trio.sleep(10.5)
        async with memory_client(executor, greet=False) as second:
            assert await second.greet(resume=session_id) == session_id
            seen = await second.call("process/read", processId="p")
            await second.wait_news("process/output", "p")

            assert [chunk["seq"] for chunk in seen["chunks"]] == list(range(1, 12))
            assert second.news[0]["params"]["seq"] == 12


async def test_an_attached_session_cannot_be_taken_by_another_connection() -> None:
    async with (
        memory_executor() as (executor, _),
        memory_client(executor) as first,
        memory_client(executor, greet=False) as second,
    ):
        with pytest.raises(Refused) as refused:
            await second.greet(resume=first.session_id)

        assert refused.value.code == -32010
        assert refused.value.message == f"session {first.session_id} is already attached to another connection"


async def test_sessions_do_not_see_each_others_processes() -> None:
    async with (
        memory_executor() as (executor, _),
        memory_client(executor) as first,
        memory_client(executor) as second,
    ):
        await first.start("p", "sleeper")
        with pytest.raises(Refused, match="unknown process id p"):
            await second.call("process/read", processId="p")

        assert await second.call("process/terminate", processId="p") == {"running": False}
        assert (await second.start("p", "hello"))["processId"] == "p"
        await second.finish("p")
        assert not first.news


@pytest.mark.parametrize(("away_s", "there"), [(79.5, True), (80.5, False)])
async def test_a_detached_session_and_its_processes_are_kept_for_80_seconds(
    autojump_clock: MockClock, away_s: float, there: bool
) -> None:
    events: list[ExecutorEvent] = []
    async with memory_executor(observer=events.append) as (executor, _):
        async with memory_client(executor) as first:
            await first.start("p", "sleeper")
            await first.start("q", "stubborn")
        await trio.sleep(away_s)
        async with memory_client(executor, greet=False) as second:
            if there:
                await second.greet(resume=first.session_id)
                assert executor.statistics().processes == 2
            else:
                with pytest.raises(Refused, match=f"unknown session id {first.session_id}"):
                    await second.greet(resume=first.session_id)
                assert executor.statistics().processes == 0
                assert SessionEnded(session_id=first.session_id, processes=2) in events


async def test_a_closed_process_is_forgotten_after_80_seconds_and_its_id_is_free(
    autojump_clock: MockClock,
) -> None:
    async with one_client() as client:
        await client.start("p", "hello")
        await client.finish("p")
        await trio.sleep(79.5)
        with pytest.raises(Refused, match="process p already exists"):
            await client.start("p", "hello")
        await trio.sleep(1)

        with pytest.raises(Refused, match="unknown process id p"):
            await client.call("process/read", processId="p")
        await client.start("p", "hello")


async def test_output_kept_by_closed_processes_is_bounded_for_the_session() -> None:
    limits = Limits(retained_bytes_max=2_500_000)
    async with memory_executor(limits=limits) as (executor, _), memory_client(executor) as client:
        for number in range(4):
            await client.start(f"p{number}", "flood")
            await client.finish(f"p{number}")
        await wait_all_tasks_blocked()

        with pytest.raises(Refused, match="unknown process id p0"):
            await client.call("process/read", processId="p0")
        assert (await client.call("process/read", processId="p3", maxBytes=1))["closed"]
        assert executor.statistics().processes_forgotten_early == 2


async def test_a_process_that_is_forgotten_early_is_given_free_at_once() -> None:
    limits = Limits(retained_bytes_max=100_000)
    before = logs_in_memory()
    async with memory_executor(limits=limits) as (executor, _), memory_client(executor) as client:
        for number in range(20):
            await client.start(f"p{number}", "hello")
            await client.finish(f"p{number}")
        await wait_all_tasks_blocked()
        forgotten = executor.statistics().processes_forgotten_early

        assert forgotten > 5
        assert logs_in_memory() - before == 20 - forgotten


def logs_in_memory() -> int:
    gc.collect()
    return sum(isinstance(thing, ProcessLog) for thing in gc.get_objects())


async def test_dropped_output_leaves_a_mark() -> None:
    async with one_client() as client:
        await client.start("p", "flood")
        await client.finish("p")
        kept = await client.call("process/read", processId="p")

        assert kept["firstRetainedSeq"] == kept["chunks"][0]["seq"] > 1


async def test_a_slow_client_holds_its_process_back_and_nobody_else(autojump_clock: MockClock) -> None:
    async with memory_executor() as (executor, _), memory_client(executor) as slow, memory_client(executor) as other:
        await slow.start("p", "flood")
        slow.hold = trio.Event()
        await wait_all_tasks_blocked()
        held_at = executor.statistics().output_bytes
        await other.start("p", "hello")
        await other.finish("p")
        slow.hold.set()
        await slow.finish("p")

        # The outbox's bound, two chunks over it, and the channel's own buffer of 16.
        assert held_at < 256 * 1024 + 20 * 60 * 1024
        assert executor.statistics().output_bytes == 100 * 32 * 1024 + len(b"hello\n")
        assert len(slow.output("p")) == 100 * 32 * 1024


async def test_an_answer_overtakes_queued_output() -> None:
    async with memory_executor() as (executor, _), memory_client(executor, buffered=1) as client:
        await client.start("p", "flood")
        client.hold = trio.Event()
        await wait_all_tasks_blocked()
        request = await client.ask("process/terminate", {"processId": "p"})
        await wait_all_tasks_blocked()
        before = len(client.news)
        client.hold.set()
        await client.answer(request)

        assert len(client.news) - before < 5


async def test_terminate_with_grace_asks_first_and_kills_after_it(autojump_clock: MockClock) -> None:
    async with one_client() as client:
        await client.start("polite", "sleeper")
        await client.start("stubborn", "stubborn")
        began_s = trio.current_time()
        for name in ("polite", "stubborn"):
            assert await client.call("process/terminate", processId=name, graceMs=5000) == {"running": True}
        polite = await client.wait_news("process/exited", "polite")
        polite_s = trio.current_time() - began_s
        stubborn_one = await client.wait_news("process/exited", "stubborn")

        assert (polite["exitCode"], stubborn_one["exitCode"]) == (143, 137)
        assert polite_s < 0.1
        assert trio.current_time() - began_s == pytest.approx(5.0, abs=0.2)


async def test_a_second_terminate_makes_the_kill_sooner(autojump_clock: MockClock) -> None:
    async with one_client() as client:
        await client.start("p", "stubborn")
        began_s = trio.current_time()
        await client.call("process/terminate", processId="p", graceMs=3_600_000)
        await client.call("process/terminate", processId="p")
        await client.finish("p")

        assert trio.current_time() - began_s < 1


async def test_a_start_that_fails_leaves_nothing_and_its_id_is_free() -> None:
    async with memory_executor() as (executor, _), memory_client(executor) as client:
        with pytest.raises(Refused) as refused:
            await client.start("p", "nosuch")

        assert refused.value.data == {"kind": "spawnNotFound", "path": "nosuch"}
        await client.start("p", "hello")
        assert executor.statistics().spawns_failed == 1


async def test_too_many_processes_and_sessions_are_refused_and_counted() -> None:
    limits = Limits(processes_max=2, sessions_max=1)
    async with memory_executor(limits=limits) as (executor, _), memory_client(executor) as client:
        for name in ("a", "b"):
            await client.start(name, "sleeper")
        with pytest.raises(Refused, match="limit of 2 processes"):
            await client.start("c", "sleeper")
        async with memory_client(executor, greet=False) as other:
            with pytest.raises(Refused, match="limit of 1 sessions"):
                await other.greet()

        statistics = executor.statistics()
        assert (statistics.processes_refused, statistics.sessions_refused) == (1, 1)


async def test_many_short_visits_keep_nobody_out_and_cost_no_session_in_which_something_runs() -> None:
    """Each visit left a session behind for 80 s: a thousand of them, and nobody got in."""
    limits = Limits(sessions_max=3)
    async with memory_executor(limits=limits) as (executor, _):
        async with memory_client(executor) as busy:
            await busy.start("p", "sleeper")
        visits: list[str] = []
        for _ in range(10):
            async with memory_client(executor) as client:
                visits.append(client.session_id)
        async with memory_client(executor, greet=False) as client:
            assert await client.greet(busy.session_id) == busy.session_id
        async with memory_client(executor, greet=False) as client:
            assert await client.greet(visits[-1]) == visits[-1]
        async with memory_client(executor, greet=False) as client:
            with pytest.raises(Refused, match="unknown session id"):
                await client.greet(visits[0])

        statistics = executor.statistics()
        assert (statistics.sessions, statistics.sessions_refused) == (3, 0)
        assert (statistics.sessions_ended_early, statistics.sessions_expired) == (8, 0)


@pytest.mark.parametrize(
    "more",
    [
        {"sandbox": {"permissions": {"type": "managed", "file_system": {"type": "restricted"}, "network": "enabled"}}},
        {"sandbox": {"permissions": {"type": "managed", "file_system": {"type": "unrestricted"}}}},
        {"sandbox": {"permissions": {"type": "external", "network": "restricted"}}},
        {"enforceManagedNetwork": True},
        {"networkProxy": {"proxy": {}}},
    ],
)
async def test_a_protection_we_do_not_have_is_refused_and_nothing_runs(more: dict[str, object]) -> None:
    async with one_client() as client:
        with pytest.raises(Refused, match="this executor does not offer"):
            await client.start("p", "hello", **more)


@pytest.mark.parametrize(
    "permissions",
    [
        {"type": "disabled"},
        {"type": "external", "network": "enabled"},
        {"type": "managed", "file_system": {"type": "unrestricted"}, "network": "enabled"},
    ],
)
async def test_a_sandbox_that_forbids_nothing_is_what_there_is_anyway(permissions: dict[str, object]) -> None:
    async with one_client() as client:
        sandbox = {"permissions": permissions, "windowsSandboxLevel": "disabled"}

        assert (await client.start("p", "hello", sandbox=sandbox))["sandboxType"] == "none"


async def test_a_sandbox_of_a_kind_that_does_not_exist_is_refused_in_the_words_of_the_wire() -> None:
    async with one_client() as client:
        with pytest.raises(Refused, match="unknown variant `x`, expected one of `managed`, `disabled`, `external`"):
            await client.start("p", "hello", sandbox={"permissions": {"type": "x"}})


async def test_a_message_over_the_limit_ends_the_connection_with_the_reason() -> None:
    async with memory_executor(limits=Limits(message_bytes_max=1000)) as (executor, _):
        ours, theirs = memory_channel_pair()
        await ours.send(["x" * 2000])
        await executor.serve_channel(theirs)

        assert theirs.closed_with is not None
        assert theirs.closed_with[0] == 1009
        assert "2000 bytes" in theirs.closed_with[1]


async def test_an_executor_that_is_cancelled_kills_what_it_started_within_its_limit(
    autojump_clock: MockClock,
) -> None:
    async with open_memory_launcher(PROGRAMS) as launcher:
        began_s = trio.current_time()
        with trio.CancelScope() as scope:
            async with (
                open_executor(launcher=launcher, limits=Limits(kill_s=2.0), variables={}) as executor,
                memory_client(executor) as client,
            ):
                for number in range(10):
                    await client.start(f"p{number}", "stubborn")
                scope.cancel()
                await trio.sleep_forever()

        assert trio.current_time() - began_s < 4
        assert len(launcher.launched) == 10


async def test_serving_a_channel_can_be_cancelled_at_each_step_and_leaves_its_session_detached() -> None:
    async with memory_executor() as (executor, _):
        pairs = []

        params = {"processId": "p", "argv": ["hello"], "cwd": "file:///tmp", "env": {}, "tty": False}
        start = json.dumps({"id": 2, "method": "process/start", "params": params})

        async def serve() -> None:
            ours, theirs = memory_channel_pair()
            pairs.append(theirs)
            await ours.send(['{"id": 1, "method": "initialize", "params": {"clientName": "x"}}'])
            await ours.send(['{"method": "initialized"}'])
            await ours.send([start])
            await ours.send(['{"id": 3, "method": "process/read", "params": {"processId": "p", "waitMs": 1000}}'])
            for _ in range(3):
                await ours.receive()
            ours.cut()

        async def both() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve)
                while not pairs:
                    await trio.lowlevel.checkpoint()
                await executor.serve_channel(pairs.pop())

        async def nothing_is_connected() -> None:
            pairs.clear()
            assert executor.statistics().connections == 0

        steps = await cancel_at_each_step(both, check=nothing_is_connected)

        assert steps > 5
