"""What only real processes can show: descriptors, zombies, terminals, and dying with us."""

import os
import signal
import subprocess
import sys

import attrs
import pytest
import trio

from actors.executor import LaunchSpec, SpawnFailed, Terminal, open_posix_launcher
from actors.executor._process_table import SharedTable, kill_exactly, read_table
from actors.protocol import Stream
from tests.actors.executor.test_launcher_contract import close, read_all
from tests.support.cancelling import cancel_at_each_step
from tests.support.settling import eventually, process_end


def descriptors() -> set[str]:
    return {name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


def children() -> set[int]:
    return {entry.pid for entry in read_table().values() if entry.parent == os.getpid()}


async def test_nothing_is_left_open_and_no_zombie_is_left() -> None:
    await trio.to_thread.run_sync(lambda: None)
    before, before_children = descriptors(), children()
    async with open_posix_launcher() as launcher:
        for argv in (["/bin/true"], ["/nonexistent"], ["/bin/sh", "-c", "exit 4"]):
            for terminal in (None, Terminal()):
                try:
                    process = await launcher.launch(
                        LaunchSpec(argv=tuple(argv), cwd="/tmp", terminal=terminal, pipe_stdin=True)
                    )
                except SpawnFailed:
                    continue
                await process.wait()
                close(process)

    assert descriptors() == before
    assert children() == before_children


async def test_a_launch_cancelled_at_any_step_leaves_no_process_and_no_pipe() -> None:
    async with open_posix_launcher() as launcher:
        before = descriptors()
        kept = []

        async def launch() -> None:
            kept.append(await launcher.launch(LaunchSpec(argv=("/bin/true",), cwd="/tmp", pipe_stdin=True)))

        async def put_away() -> None:
            while kept:
                process = kept.pop()
                await process.wait()
                close(process)
            assert descriptors() == before

        assert await cancel_at_each_step(launch, check=put_away) > 1


async def test_a_bare_name_is_found_without_a_path_and_the_environment_stays_empty() -> None:
    async with open_posix_launcher() as launcher:
        process = await launcher.launch(LaunchSpec(argv=("env",), cwd="/tmp"))

        assert await read_all(process, Stream.STDOUT) == b""
        await process.wait()
        close(process)


async def test_it_leads_its_own_group_and_session_with_our_umask_and_no_signal_blocked() -> None:
    async with open_posix_launcher() as launcher:
        script = "ps -o pid= -o pgid= -o sid= -p $$; umask; grep Sig[BI] /proc/self/status"
        process = await launcher.launch(
            LaunchSpec(argv=("/bin/sh", "-c", script), cwd="/tmp", variables={"PATH": "/usr/bin:/bin"})
        )
        lines = (await read_all(process, Stream.STDOUT)).decode().splitlines()
        await process.wait()
        umask = os.umask(0)
        os.umask(umask)

        assert lines[0].split() == [str(process.pid)] * 3
        assert int(lines[1], 8) == umask
        assert int(lines[2].split()[1], 16) == 0
        close(process)


async def test_a_terminal_has_its_size_and_the_program_its_exact_variables() -> None:
    async with open_posix_launcher() as launcher:
        script = "stty size; tty -s && echo terminal; env; echo $0; ps -o tpgid= -p $$"
        process = await launcher.launch(
            LaunchSpec(
                argv=("/bin/sh", "-c", script),
                cwd="/",
                arg0="me",
                variables={"PATH": "/usr/bin:/bin", "A": "ä"},
                terminal=Terminal(rows=30, columns=100),
            )
        )
        lines = (await read_all(process, Stream.PTY)).decode().splitlines()

        assert await process.wait() == 0
        assert lines[:2] == ["30 100", "terminal"]
        assert {line for line in lines[2:-2] if not line.startswith("PWD=")} == {"PATH=/usr/bin:/bin", "A=ä"}
        assert lines[-2] == "me"
        assert int(lines[-1]) == process.pid
        close(process)


async def test_a_terminal_turns_the_interrupt_character_into_a_signal() -> None:
    async with open_posix_launcher() as launcher:
        process = await launcher.launch(
            LaunchSpec(argv=("/bin/sleep", "60"), cwd="/", terminal=Terminal(), pipe_stdin=True)
        )
        assert process.stdin is not None
        await eventually(lambda: read_table()[process.pid].name == "sleep")
        await process.stdin.send_all(b"\x03")

        assert await process.wait() == -signal.SIGINT
        close(process)


@pytest.mark.parametrize(
    ("program", "cwd", "kind", "text"),
    [
        ("/etc/passwd", "/", "spawnPermissionDenied", "Permission denied (os error 13)"),
        ("/tmp", "/", "spawnPermissionDenied", "Permission denied (os error 13)"),
        ("/bin/true", "/nowhere", "spawnNotFound", "No such file or directory (os error 2)"),
        ("/bin/true", "/etc/passwd", "spawnFailed", "Not a directory (os error 20)"),
    ],
)
@pytest.mark.parametrize("terminal", [None, Terminal()])
async def test_a_refusal_is_told_in_the_words_of_the_protocol(
    program: str, cwd: str, kind: str, text: str, terminal: Terminal | None
) -> None:
    async with open_posix_launcher() as launcher:
        with pytest.raises(SpawnFailed) as failed:
            await launcher.launch(LaunchSpec(argv=(program,), cwd=cwd, terminal=terminal))

        assert (failed.value.kind.value, str(failed.value)) == (kind, text)


@pytest.mark.parametrize(
    ("argv", "variables", "text"),
    [
        (("",), {}, "missing program for pipe spawn"),
        (("/bin/echo", "a\0b"), {}, "nul byte found in provided data"),
        (("/bin/true",), {"A": "x\0y"}, "data provided contains a nul byte"),
        (("/bin/true",), {"A=B": "x"}, "a variable name is empty or holds an equals sign"),
    ],
)
def test_a_spec_that_cannot_be_handed_to_the_system_is_refused_at_birth(
    argv: tuple[str, ...], variables: dict[str, str], text: str
) -> None:
    with pytest.raises(SpawnFailed) as failed:
        LaunchSpec(argv=argv, cwd="/", variables=variables)

    assert str(failed.value) == text


async def test_text_the_system_cannot_take_is_refused_without_quoting_it() -> None:
    async with open_posix_launcher() as launcher:
        with pytest.raises(SpawnFailed) as failed:
            await launcher.launch(LaunchSpec(argv=("/bin/true",), cwd="/", variables={"A": "hush\ud800"}))

        assert "hush" not in str(failed.value)
        assert failed.value.__cause__ is None


def test_variables_are_not_in_the_representation_of_a_spec() -> None:
    assert "hush" not in repr(LaunchSpec(argv=("x",), cwd="/", variables={"A": "hush"}))


async def test_a_process_with_the_same_number_and_another_start_is_never_killed() -> None:
    async with open_posix_launcher() as launcher:
        process = await launcher.launch(LaunchSpec(argv=("/bin/sleep", "60"), cwd="/"))
        seen = read_table()[process.pid].as_sighting()
        assert not kill_exactly(attrs.evolve(seen, started_ticks=seen.started_ticks - 1))
        assert kill_exactly(seen)
        assert await process.wait() == -signal.SIGKILL
        close(process)


async def test_many_who_ask_for_the_table_share_its_readings() -> None:
    table = SharedTable()
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(table.fresh)

    assert table.readings <= 2


_SERVE = """
import sys, trio
from actors.executor import open_posix_launcher, LaunchSpec
async def main():
    async with open_posix_launcher() as launcher:
        process = await launcher.launch(LaunchSpec(argv=("/bin/sh", "-c", "sleep 1000 & echo; wait"), cwd="/"))
        with trio.fail_after(30):  # The shell has started its child by then.
            await next(iter(process.outputs.values())).wait_readable()
        ended = await launcher.launch(LaunchSpec(argv=("/bin/true",), cwd="/"))
        await ended.wait()
        print(process.pid, flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


async def test_processes_die_with_an_executor_that_is_killed() -> None:
    ours = await trio.lowlevel.open_process(
        [sys.executable, "-c", _SERVE], stdout=subprocess.PIPE, start_new_session=True
    )
    assert ours.stdout is not None
    leader = int((await ours.stdout.receive_some()).decode())
    group = [e.pid for e in read_table().values() if e.group == leader]
    os.killpg(ours.pid, signal.SIGKILL)
    await ours.wait()
    for pid in group:
        await process_end(pid)

    assert len(group) == 2
    await ours.stdout.aclose()


_DIE_STARTING = """
import os, signal, sys, trio
from actors.executor import open_posix_launcher, LaunchSpec
from actors.executor._guard import Guard
def die(self, group):
    os.write(1, b"%d\\n" % group)
    os.kill(os.getpid(), signal.SIGKILL)
async def main():
    async with open_posix_launcher() as launcher:
        ended = await launcher.launch(LaunchSpec(argv=("/bin/true",), cwd="/"))
        await ended.wait()
        Guard.watch = die
        await launcher.launch(LaunchSpec(argv=("/bin/sleep", "1000"), cwd="/"))
trio.run(main)
"""


async def test_a_process_dies_whose_executor_is_killed_before_it_could_tell_the_guard() -> None:
    ours = await trio.lowlevel.open_process([sys.executable, "-c", _DIE_STARTING], stdout=subprocess.PIPE)
    assert ours.stdout is not None
    started = int((await ours.stdout.receive_some()).decode())
    await ours.wait()

    await process_end(started)
    await ours.stdout.aclose()


_DIE_BETWEEN = """
import os, signal, trio
from actors.executor import open_posix_launcher, LaunchSpec
async def main():
    async with open_posix_launcher() as launcher:
        script = "sleep 1000 >/dev/null 2>&1 & echo $!"
        process = await launcher.launch(LaunchSpec(argv=("/bin/sh", "-c", script), cwd="/"))
        await process.wait()
        os.write(1, next(iter(process.outputs.values())).read_nowait())
        os.kill(os.getpid(), signal.SIGKILL)
trio.run(main)
"""


async def test_who_was_just_left_dies_with_an_executor_that_is_killed_before_it_could_look_for_them() -> None:
    """Seen failing with a guard that forgets a group with its leader."""
    ours = await trio.lowlevel.open_process([sys.executable, "-c", _DIE_BETWEEN], stdout=subprocess.PIPE)
    assert ours.stdout is not None
    left = int((await ours.stdout.receive_some()).decode())
    await ours.wait()

    await process_end(left)
    await ours.stdout.aclose()
