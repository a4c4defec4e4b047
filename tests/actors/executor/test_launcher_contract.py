"""One contract, two bodies: real processes, and functions in memory."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio

from actors.executor import LaunchedProcess, LaunchSpec, ProcessLauncher, Sighting, SpawnFailed, open_posix_launcher
from actors.executor.testing import MemoryProcess, open_memory_launcher
from actors.protocol import SpawnFailureKind, Stream
from tests.support.settling import eventually

SCRIPTS = {
    "hello": "echo out; echo err >&2",
    "three": "exit 3",
    "cat": "exec cat",
    "sleep": "echo ready; exec sleep 60",
    "stubborn": "trap '' TERM; echo ready; while :; do sleep 0.02; done",
    "flood": "head -c 300000 /dev/zero",
    "leave": "sleep 60 & exit 0",
    "leave-own": "setsid sleep 60 & exit 0",
    "variables": "echo $A; echo $0",
}


async def hello(process: MemoryProcess) -> int:
    await process.write(b"out\n")
    await process.write(b"err\n", stream=Stream.STDERR)
    return 0


async def three(process: MemoryProcess) -> int:
    return 3


async def cat(process: MemoryProcess) -> int:
    while data := await process.read():
        await process.write(data)
    return 0


async def sleep(process: MemoryProcess) -> int:
    await process.write(b"ready\n")
    await trio.sleep_forever()
    return 0


async def stubborn(process: MemoryProcess) -> int:
    process.ignore(signal.SIGTERM)
    return await sleep(process)


async def flood(process: MemoryProcess) -> int:
    await process.write(bytes(300_000))
    return 0


async def silent(process: MemoryProcess) -> int:
    await trio.sleep_forever()
    return 0


async def leave(process: MemoryProcess) -> int:
    process.leave_behind(silent, name="sleep")
    return 0


async def leave_own(process: MemoryProcess) -> int:
    process.leave_behind(silent, name="sleep", own_session=True)
    return 0


async def variables(process: MemoryProcess) -> int:
    await process.write(f"{process.spec.variables.get('A', '')}\n{process.spec.arg0}\n".encode())
    return 0


FUNCTIONS = {
    "hello": hello,
    "three": three,
    "cat": cat,
    "sleep": sleep,
    "stubborn": stubborn,
    "flood": flood,
    "leave": leave,
    "leave-own": leave_own,
    "variables": variables,
}


class Body:
    def __init__(self, launcher: ProcessLauncher, *, real: bool) -> None:
        self.launcher, self.real = launcher, real

    async def launch(self, what: str, **more: object) -> LaunchedProcess:
        argv = ("/bin/sh", "-c", SCRIPTS[what]) if self.real and what in SCRIPTS else (what,)
        return await self.launcher.launch(LaunchSpec(argv=argv, cwd="/tmp", **more))


@asynccontextmanager
async def real() -> AsyncGenerator[Body, None]:
    async with open_posix_launcher() as launcher:
        yield Body(launcher, real=True)


@asynccontextmanager
async def memory() -> AsyncGenerator[Body, None]:
    async with open_memory_launcher(FUNCTIONS) as launcher:
        yield Body(launcher, real=False)


@pytest.fixture(params=[real, memory])
async def body(request: pytest.FixtureRequest) -> AsyncGenerator[Body, None]:
    with trio.fail_after(20):
        async with request.param() as one:
            yield one


async def read_all(process: LaunchedProcess, stream: Stream) -> bytes:
    end, read = process.outputs[stream], bytearray()
    while True:
        data = end.read_nowait()
        if data is None:
            await end.wait_readable()
        elif data:
            read += data
        else:
            return bytes(read)


async def read_until(process: LaunchedProcess, text: bytes) -> None:
    end, read = process.outputs[Stream.STDOUT], bytearray()
    while text not in read:
        read += end.read_nowait() or b""
        if text not in read:
            await end.wait_readable()


def close(process: LaunchedProcess) -> None:
    for end in process.outputs.values():
        end.close()
    if process.stdin is not None:
        process.stdin.close()


async def test_outputs_end_apart_and_the_status_is_the_programs(body: Body) -> None:
    process = await body.launch("hello")
    out, err = await read_all(process, Stream.STDOUT), await read_all(process, Stream.STDERR)

    assert (out, err) == (b"out\n", b"err\n")
    assert await process.wait() == 0
    assert not process.left_members
    close(process)


async def test_wait_may_be_asked_again(body: Body) -> None:
    process = await body.launch("three")

    assert [await process.wait(), await process.wait()] == [3, 3]
    close(process)


async def test_input_reaches_the_program_and_closing_it_is_its_end(body: Body) -> None:
    process = await body.launch("cat", pipe_stdin=True)
    assert process.stdin is not None
    await process.stdin.send_all(b"in")
    await read_until(process, b"in")
    process.stdin.close()

    assert await read_all(process, Stream.STDOUT) == b""
    assert await process.wait() == 0
    close(process)


async def test_without_a_pipe_the_input_is_at_its_end(body: Body) -> None:
    process = await body.launch("cat")

    assert process.stdin is None
    assert await process.wait() == 0
    close(process)


async def test_writing_to_a_program_that_is_gone_says_so(body: Body) -> None:
    process = await body.launch("three", pipe_stdin=True)
    await process.wait()
    assert process.stdin is not None

    with pytest.raises(trio.BrokenResourceError):
        await process.stdin.send_all(bytes(1_000_000))
    close(process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_a_signal_to_the_group_ends_it_and_shows_in_the_status(body: Body, number: signal.Signals) -> None:
    process = await body.launch("sleep")
    await read_until(process, b"ready")

    assert process.signal_group(number)
    assert await process.wait() == -number
    close(process)


async def test_a_program_may_ignore_a_request_but_not_a_kill(body: Body) -> None:
    process = await body.launch("stubborn")
    await read_until(process, b"ready")
    process.signal_group(signal.SIGTERM)
    with trio.move_on_after(0.1) as waiting:
        await process.wait()
    process.signal_group(signal.SIGKILL)

    assert waiting.cancelled_caught
    assert await process.wait() == -signal.SIGKILL
    close(process)


async def test_after_it_was_reaped_its_number_is_signalled_no_more(body: Body) -> None:
    process = await body.launch("leave")
    await process.wait()

    assert not process.signal_group(signal.SIGKILL)
    for sighted in await process.find_survivors():
        process.kill_sighted(sighted)
    close(process)


async def test_a_full_pipe_holds_the_writer_and_nothing_is_lost(body: Body) -> None:
    process = await body.launch("flood")
    with trio.move_on_after(0.1) as waiting:
        await process.wait()

    assert waiting.cancelled_caught
    assert process.outputs[Stream.STDOUT].capacity_bytes < 300_000
    assert len(await read_all(process, Stream.STDOUT)) == 300_000
    assert await process.wait() == 0
    close(process)


@pytest.mark.parametrize(("what", "in_group"), [("leave", True), ("leave-own", False)])
async def test_whoever_is_left_behind_is_found_and_killed_by_what_it_is(body: Body, what: str, in_group: bool) -> None:
    process = await body.launch(what)
    await process.wait()
    found: list[Sighting] = []

    async def is_itself() -> bool:
        # A shell forks before its child takes another name or session.
        found[:] = await process.find_survivors()
        return [s.name for s in found] == ["sleep"] and (found[0].group == process.pid) == in_group

    async def is_buried() -> bool:
        return not await process.find_survivors()

    await eventually(is_itself)

    assert process.left_members or not in_group
    assert process.outputs[Stream.STDOUT].read_nowait() is None
    assert process.kill_sighted(found[0])
    assert await read_all(process, Stream.STDOUT) == b""
    await eventually(is_buried)
    assert not process.kill_sighted(found[0])
    close(process)


async def test_a_given_up_pipe_reads_as_ended(body: Body) -> None:
    process = await body.launch("sleep")
    end = process.outputs[Stream.STDOUT]
    end.close()
    end.close()

    assert end.read_nowait() == b""
    process.signal_group(signal.SIGKILL)
    await process.wait()
    close(process)


async def test_variables_and_arg0_are_what_was_asked(body: Body) -> None:
    process = await body.launch("variables", variables={"A": "1"}, arg0="me")

    assert await read_all(process, Stream.STDOUT) == b"1\nme\n"
    await process.wait()
    close(process)


async def test_a_missing_program_is_told_by_kind_and_path(body: Body) -> None:
    with pytest.raises(SpawnFailed) as failed:
        await body.launch("no-such-program")

    assert failed.value.kind is SpawnFailureKind.NOT_FOUND
    assert failed.value.path == "no-such-program"
    assert str(failed.value) == "No such file or directory (os error 2)"
