"""Whole paths with real processes: cases P08, P10 and P17."""

import contextlib
import itertools
import os
import signal
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from actors.executor import Executor, ExecutorEvent, Limits, ProcessEnded, ProcessStarted, open_executor
from actors.executor._process_table import read_table
from tests.actors.executor.client import Client, Refused, memory_client
from tests.support.settling import eventually, process_end, until

SH = "/bin/sh"
PATH = {"PATH": "/usr/bin:/bin"}


@asynccontextmanager
async def real_client(
    *,
    limits: Limits | None = None,
    observer: Callable[[ExecutorEvent], None] = lambda _: None,
    variables: dict[str, str] | None = None,
) -> AsyncGenerator[tuple[Client, Executor], None]:
    with trio.fail_after(60):
        async with (
            open_executor(limits=limits, observer=observer, variables=variables or {}) as executor,
            memory_client(executor) as client,
        ):
            yield client, executor


def children() -> set[int]:
    return {entry.pid for entry in read_table().values() if entry.parent == os.getpid()}


def alive_with(words: str) -> list[int]:
    """Who runs a command line; it must be like no other on this machine."""
    return [e.pid for e in read_table().values() if e.alive and words == command_line(e.pid)]


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as file:
        return file.read().replace("\0", " ").strip()
    return ""


@pytest.fixture
def nap() -> str:
    """A sleep like no other: its duration is its name."""
    return f"sleep 3{next(_NAPS)}.{os.getpid()}"


_NAPS = itertools.count(10)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = children()
    yield
    # Neither a running child nor a zombie.
    assert children() == before


@pytest.mark.slow
async def test_p08_all_output_comes_before_the_end_in_200_runs_with_a_slow_reader() -> None:
    async with real_client() as (client, _):
        for run in range(200):
            name = f"p{run}"
            await client.start(name, "/usr/bin/head", "-c", "1048576", "/dev/zero", env=PATH)
            # The reader is let go only once the program has long filled whatever there is to fill.
            client.hold = trio.Event()
            await trio.testing.wait_all_tasks_blocked(0.001)
            client.hold.set()
            closed = await client.finish(name)

            assert len(client.output(name)) == 1_048_576
            assert client.story(name)[-2:] == ["process/exited", "process/closed"]
            assert "drainLimited" not in closed
            client.news.clear()


async def test_p08_what_a_background_child_writes_late_is_delivered_and_the_close_says_who_held_it() -> None:
    async with real_client(limits=Limits(drain_s=0.3)) as (client, executor):
        script = "(sleep 0.05; echo late; exec sleep 3600) & echo first"
        await client.start("p", SH, "-c", script, env=PATH)
        began_s = trio.current_time()
        closed = await client.finish("p")
        took_s = trio.current_time() - began_s
        pids = [survivor["pid"] for survivor in closed["survivors"]]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

        assert client.output("p") == b"first\nlate\n"
        assert client.story("p") == ["process/output", "process/exited", "process/output", "process/closed"]
        assert 0.25 < took_s < 60  # who holds the pipe sleeps for an hour
        assert closed["drainLimited"] is True
        assert [survivor["name"] for survivor in closed["survivors"]] == ["sleep"]
        assert executor.statistics().drains_limited == 1


async def test_a_writer_that_never_stops_is_cut_off_at_the_drain_limit() -> None:
    async with real_client(limits=Limits(drain_s=0.2, kill_leftovers=True)) as (client, _):
        await client.start("p", SH, "-c", "yes & exit 5", env=PATH)
        closed = await client.finish("p")

        assert closed["drainLimited"] is True
        assert "survivors" not in closed
        assert (await client.wait_news("process/exited", "p"))["exitCode"] == 5


async def test_p10_a_timeout_kills_the_shell_and_its_background_child() -> None:
    async with real_client() as (client, _):
        await client.start("p", SH, "-c", "echo before; sleep 30 & wait", env=PATH)
        await client.wait_news("process/output", "p")
        began_s = trio.current_time()
        assert await client.call("process/terminate", processId="p", graceMs=2000) == {"running": True}
        closed = await client.finish("p")

        assert trio.current_time() - began_s < 20  # the background child takes 30
        assert client.output("p") == b"before\n"
        assert (await client.wait_news("process/exited", "p"))["exitCode"] == 143
        assert closed == {"processId": "p", "seq": 3}


async def test_p10_a_sleeper_in_a_session_of_its_own_is_killed_too_and_reported(nap: str) -> None:
    events: list[ExecutorEvent] = []
    async with real_client(observer=events.append) as (client, executor):
        await client.start("p", SH, "-c", f"setsid {nap} & echo started; wait", env=PATH)
        await client.wait_news("process/output", "p")
        await eventually(lambda: bool(alive_with(nap)))
        began_s = trio.current_time()
        await client.call("process/terminate", processId="p")
        await client.finish("p")

        assert trio.current_time() - began_s < 20  # the sleeper takes over 30
        assert not alive_with(nap)
        await until(lambda: any(isinstance(event, ProcessEnded) for event in events))
        ended = next(event for event in events if isinstance(event, ProcessEnded))
        assert [outsider.name for outsider in ended.killed_outside] == ["sleep"]
        assert executor.statistics().killed_outside == 1


async def test_p10_a_daemon_that_lost_its_parents_but_holds_the_pipe_is_found_by_the_pipe(nap: str) -> None:
    async with real_client() as (client, _):
        script = f"(setsid sh -c '{nap} & exit' &) ; sleep 0.1; echo started; {nap}"
        await client.start("p", SH, "-c", script, env=PATH)
        await client.wait_news("process/output", "p")
        await client.call("process/terminate", processId="p")
        closed = await client.finish("p")

        assert "drainLimited" not in closed
        assert not alive_with(nap)


async def test_p10_a_child_that_ignores_the_request_is_killed_after_the_grace() -> None:
    async with real_client() as (client, _):
        script = "trap '' TERM; echo ready; while :; do sleep 0.02; done"
        await client.start("p", SH, "-c", script, env=PATH)
        await client.wait_news("process/output", "p")
        began_s = trio.current_time()
        await client.call("process/terminate", processId="p", graceMs=300)
        exited = await client.wait_news("process/exited", "p")

        assert trio.current_time() - began_s >= 0.3
        assert exited["exitCode"] == 137
        await client.finish("p")


async def test_p10_a_member_that_ignores_what_its_leader_obeys_is_killed_after_the_grace() -> None:
    async with real_client() as (client, _):
        script = "(trap '' TERM; while :; do sleep 0.02; done) & echo ready; wait"
        await client.start("p", SH, "-c", script, env=PATH)
        await client.wait_news("process/output", "p")
        await client.call("process/terminate", processId="p", graceMs=300)
        closed = await client.finish("p")

        assert "survivors" not in closed
        assert (await client.wait_news("process/exited", "p"))["exitCode"] == 143


@pytest.mark.parametrize("kill", [False, True])
async def test_p10_what_a_command_leaves_running_is_handed_over_or_killed_and_recorded(kill: bool, nap: str) -> None:
    async with real_client(limits=Limits(kill_leftovers=kill, drain_s=0.2)) as (client, executor):
        await client.start("p", SH, "-c", f"{nap} >/dev/null 2>&1 & exit 0", env=PATH)
        closed = await client.finish("p")

        assert closed.get("drainLimited") is None
        if kill:
            assert "survivors" not in closed
            assert not alive_with(nap)
        else:
            (survivor,) = closed["survivors"]
            assert alive_with(nap) == [survivor["pid"]]
            assert executor.statistics().survivors == 1
            os.kill(survivor["pid"], signal.SIGKILL)


async def test_what_was_handed_over_is_killed_when_its_session_ends(nap: str) -> None:
    limits = Limits(detached_s=0.1, drain_s=0.1)
    async with open_executor(limits=limits, variables={}) as executor:
        async with memory_client(executor) as client:
            await client.start("p", SH, "-c", f"{nap} & exit 0", env=PATH)
            await client.finish("p")
            (left,) = alive_with(nap)
        await until(lambda: executor.statistics().sessions_expired == 1)

        await process_end(left)


async def test_what_was_handed_over_is_killed_with_its_session_also_when_its_command_is_forgotten(nap: str) -> None:
    limits = Limits(detached_s=0.1, drain_s=0.1, closed_s=0.05)
    async with open_executor(limits=limits, variables={}) as executor:
        async with memory_client(executor) as client:
            await client.start("p", SH, "-c", f"{nap} & exit 0", env=PATH)
            await client.finish("p")
            await read_until_forgotten(client, "p")
            (left,) = alive_with(nap)

        await process_end(left)


async def read_until_forgotten(client: Client, process_id: str) -> None:
    with contextlib.suppress(Refused):
        while True:
            await client.call("process/read", processId=process_id)


async def test_what_was_handed_over_does_not_outlive_the_executor(nap: str) -> None:
    async with real_client(limits=Limits(drain_s=0.1)) as (client, _):
        await client.start("p", SH, "-c", f"{nap} & exit 0", env=PATH)
        await client.finish("p")
        (left,) = alive_with(nap)

    await process_end(left)


async def test_beyond_the_limit_the_oldest_that_was_handed_over_is_killed(nap: str) -> None:
    async with real_client(limits=Limits(drain_s=0.1, leftovers_max=1)) as (client, _):
        pids: list[int] = []
        for name in ("old", "new"):
            await client.start(name, SH, "-c", f"{nap} & exit 0", env=PATH)
            # One after the other: of two that end at once either may be handed over first.
            pids.append((await client.finish(name))["survivors"][0]["pid"])
        oldest, newest = pids
        await process_end(oldest)

        assert alive_with(nap) == [newest]


async def test_an_executor_that_is_cancelled_leaves_nobody_alive(nap: str) -> None:
    with trio.CancelScope() as scope:
        async with real_client() as (client, _):
            await client.start("p", SH, "-c", f"setsid {nap} & {nap} & echo x; wait", env=PATH)
            await client.wait_news("process/output", "p")
            await eventually(lambda: len(alive_with(nap)) == 2)
            scope.cancel()
            await trio.sleep_forever()

    assert not alive_with(nap)


async def test_a_kill_cut_short_by_the_executors_end_is_still_done(nap: str) -> None:
    for steps in range(12):
        async with open_executor(variables={}) as executor, memory_client(executor) as client:
            await client.start("p", SH, "-c", f"echo x; exec {nap}", env=PATH)
            await client.wait_news("process/output", "p")
            await client.ask("process/terminate", {"processId": "p"})
            for _ in range(steps):
                await trio.lowlevel.checkpoint()

        assert not alive_with(nap)


async def test_start_to_close_of_many_at_once_leaves_no_descriptor() -> None:
    async with real_client() as (client, executor):
        before = len(os.listdir("/proc/self/fd"))
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(client.start, f"p{number}", "/bin/true")
        for number in range(50):
            await client.finish(f"p{number}")
        await trio.testing.wait_all_tasks_blocked(0.01)

        assert executor.statistics().processes == 0
        assert len(os.listdir("/proc/self/fd")) == before


SECRETS = {
    "TOKEN_X": "hush-1",
    "https_proxy": "http://user:hush-2@proxy",
    "LD_PRELOAD": "",
    "BASH_ENV": "/nonexistent/hush-3",
    "NOT_TEXT": os.fsdecode(b"hush-4\xff"),
}


async def test_p17_a_process_and_its_child_see_what_was_given_and_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    ours = dict(os.environ)
    async with real_client(variables=dict(os.environ)) as (client, _):
        await client.start("p", SH, "-c", "env; sh -c env", env={"A": "1"})
        await client.finish("p")
        seen = {line for line in client.output("p").decode().splitlines() if line.partition("=")[0] != "PWD"}

    assert seen - {"OLDPWD=/tmp", "SHLVL=0", "_=/usr/bin/env", "_=/usr/bin/sh"} == {"A=1"}
    assert dict(os.environ) == ours


async def test_p17_passing_ours_on_is_explicit_and_the_audit_names_names_not_values() -> None:
    events: list[ExecutorEvent] = []
    variables = {"HOME": "/root", "HUSH": "hush-value", "MY_TOKEN": "hush-token"}
    async with real_client(observer=events.append, variables=variables) as (client, _):
        policy = {"inherit": "all", "ignoreDefaultExcludes": False, "exclude": [], "set": {}, "includeOnly": []}
        await client.start("p", "/usr/bin/env", envPolicy=policy, env={"A": "1"})
        await client.finish("p")

    assert set(client.output("p").decode().splitlines()) == {"HOME=/root", "HUSH=hush-value", "A=1"}
    started = next(event for event in events if isinstance(event, ProcessStarted))
    assert started.inherited_names == ("HOME", "HUSH")
    assert "hush-value" not in repr(events)
    assert "hush-token" not in repr(events)


@pytest.mark.slow
async def test_p17_two_processes_started_at_once_never_see_each_others_variables() -> None:
    ours = dict(os.environ)
    async with real_client() as (client, _):
        for run in range(100):
            async with trio.open_nursery() as nursery:
                for name in ("a", "b"):
                    nursery.start_soon(client.start, f"{name}{run}", "/usr/bin/env")
            for name in ("a", "b"):
                await client.finish(f"{name}{run}")
                assert client.output(f"{name}{run}") == b""
            async with trio.open_nursery() as nursery:
                for name in ("c", "d"):
                    nursery.start_soon(_start_with, client, f"{name}{run}", {name.upper(): str(run)})
            for name in ("c", "d"):
                await client.finish(f"{name}{run}")
                assert client.output(f"{name}{run}").decode() == f"{name.upper()}={run}\n"
            assert dict(os.environ) == ours
            client.news.clear()


async def _start_with(client: Client, process_id: str, variables: dict[str, str]) -> None:
    await client.start(process_id, "/usr/bin/env", env=variables)


async def test_a_terminal_takes_its_size_and_ends_at_the_end_character() -> None:
    async with real_client() as (client, _):
        await client.start("p", SH, "-c", "stty size; cat", env=PATH, tty=True, rows=40, cols=120)
        await client.wait_news("process/output", "p")
        await client.call("process/write", processId="p", chunk="aGkK", writeId="1", eof=True)
        await client.finish("p")

        assert client.output("p", "pty").startswith(b"40 120\r\n")
        assert client.output("p", "pty").count(b"hi\r\n") == 2


async def test_interrupt_reaches_the_group() -> None:
    async with real_client() as (client, _):
        await client.start("p", "/bin/sleep", "30")
        assert await client.call("process/signal", processId="p", signal="interrupt") == {}
        exited = await client.wait_news("process/exited", "p")

        assert exited["exitCode"] == 130
        assert await client.call("process/signal", processId="p", signal="interrupt") == {}
        await client.finish("p")
