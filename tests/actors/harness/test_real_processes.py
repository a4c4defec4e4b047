"""The harness on a real executor: output, exits and time limits as a user meets them (cases P08, P10, P17)."""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from actors.executor import serve_executor
from actors.harness import Client, CommandTimedOut, ProgramNotFound, WorkingFolderNotFound, open_client
from tests.support.settling import process_end

pytestmark = pytest.mark.slow

ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with trio.open_nursery() as nursery:
        endpoint = await nursery.start(serve_executor)
        async with open_client(endpoint.url) as client:
            yield client
        nursery.cancel_scope.cancel()


async def test_a_mebibyte_arrives_whole_from_a_command_that_exits_at_once(client: Client) -> None:
    for _ in range(20):
        total = 0
        async with client.processes.start(["/usr/bin/head", "-c", "1048576", "/dev/zero"]) as process:
            async for data in process.output():
                total += len(data)
                await trio.testing.wait_all_tasks_blocked()
            code = await process.wait()

        assert (total, code) == (1024 * 1024, 0)


async def test_late_output_of_a_descendant_comes_and_the_end_says_why_it_came(client: Client) -> None:
    script = "(sleep 0.05; echo late; exec sleep 30) & echo early"
    async with client.processes.start(["/bin/sh", "-c", script], env=ENV) as process:
        with trio.fail_after(10):
            lines = [line async for line in process.lines()]
            code = await process.wait()

    assert (lines, code) == (["early", "late"], 0)
    assert process.exit is not None
    assert process.exit.drain_limited


@pytest.mark.parametrize(
    "script",
    [
        "echo $$; sleep 30 & echo $!; wait",
        "trap '' TERM INT HUP; echo $$; while :; do sleep 0.1; done",
    ],
    ids=["a sleeper in the background", "signals ignored"],
)
async def test_a_time_limit_kills_the_whole_group_and_keeps_what_was_written(client: Client, script: str) -> None:
    started_s = trio.current_time()
    with pytest.raises(CommandTimedOut) as caught:
        await client.run(["/bin/sh", "-c", script], env=ENV, timeout_s=1)
    took_s = trio.current_time() - started_s

    pids = [int(line) for line in caught.value.completed.stdout_text.split()]
    assert pids
    assert caught.value.killed
    assert took_s < 20  # the sleeper takes 30
    for pid in pids:
        await process_end(pid)


async def test_a_sleeper_outside_the_group_is_killed_or_named(client: Client) -> None:
    script = "setsid sh -c 'echo $$; exec sleep 30' & wait"
    started_s = trio.current_time()
    with pytest.raises(CommandTimedOut) as caught:
        await client.run(["/bin/sh", "-c", script], env=ENV, timeout_s=1)
    took_s = trio.current_time() - started_s

    (pid,) = (int(line) for line in caught.value.completed.stdout_text.split())
    named = pid in {survivor.pid for survivor in caught.value.completed.survivors}
    assert took_s < 20  # the sleeper takes 30
    if not named:
        await process_end(pid)


async def test_variables_are_not_inherited_unless_asked_for(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENROOM_SECRET", "x")

    completed = await client.run(["/usr/bin/env"], env={"A": "b"})

    assert completed.stdout == b"A=b\n"


async def test_a_terminal_is_one_stream(client: Client) -> None:
    script = "import sys; print(sys.stdout.isatty(), flush=True); print('err', file=sys.stderr)"

    completed = await client.run([sys.executable, "-c", script], tty=True, env=ENV)

    assert completed.stdout_text.splitlines() == ["True", "err"]


async def test_the_folder_is_the_one_asked_for(client: Client, tmp_path: Path) -> None:
    completed = await client.run(["/bin/pwd"], cwd=tmp_path)

    assert Path(completed.stdout_text.strip()).samefile(tmp_path)  # noqa: ASYNC240 (nothing else runs here)


async def test_what_is_missing_at_a_start_is_told_apart_by_type(client: Client, tmp_path: Path) -> None:
    with pytest.raises(ProgramNotFound, match="it is in no folder of the PATH that env gives"):
        await client.run(["no-such-program"], env=ENV)
    with pytest.raises(ProgramNotFound, match="for what its first line names if it is a script"):
        await client.run([str(tmp_path / "none")], env=ENV)
    with pytest.raises(WorkingFolderNotFound, match="make this folder on the executor's machine"):
        await client.run(["true"], env=ENV, cwd=tmp_path / "none")


async def test_what_commands_left_running_dies_with_an_executor_that_is_killed(tmp_path: Path) -> None:
    """Seen failing with a guard told of groups only, one that reads another field, one that takes a name for fields."""
    sleep = tmp_path / "a) 1 (\nb"  # Its name is a field of what the guard reads.
    shutil.copy("/bin/sleep", sleep)
    command = [sys.executable, "-m", "actors.cli", "executor", "--listen", "ws://127.0.0.1:0"]
    executor = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    assert executor.stdout is not None
    left: list[int] = []
    try:
        async with open_client((await executor.stdout.receive_some()).decode().strip()) as client:
            for script in ("sleep 0.1", "sleep 1000", f"'{sleep}' 1000"):
                told = await client.run(["/bin/sh", "-c", f"{script} >/dev/null 2>&1 & echo $!"], env=ENV)
                left.append(int(told.stdout_text))
            await process_end(left[0])
            executor.kill()
            for pid in left:
                await process_end(pid)
    finally:
        executor.kill()
        await executor.wait()
        await executor.stdout.aclose()
