"""What a harness promises, on an executor in memory and on a real one over real sockets: one suite, two bodies."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from actors.executor import serve_executor
from actors.harness import (
    Client,
    CommandFailed,
    CommandTimedOut,
    CompletedCommand,
    DidNotRun,
    InvalidArgument,
    RequestRejected,
    StdinUnavailable,
    open_client,
)
from actors.protocol import OutputChunk, OutputGap, Stream
from tests.actors.harness.world import open_world

SAMPLE = "aé漢🙂z\nfurther text".encode() + "漢".encode()[:2]
SAMPLE_TEXT = "aé漢🙂z\nfurther text�"


@attrs.frozen(kw_only=True)
class Body:
    """Command lines that do the same in both worlds."""

    client: Client
    echo: tuple[str, ...]
    fail: tuple[str, ...]
    cat: tuple[str, ...]
    long: tuple[str, ...]
    mebibyte: tuple[str, ...]
    sample: tuple[str, ...]
    both: tuple[str, ...]


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


@asynccontextmanager
async def in_memory() -> AsyncIterator[Body]:
    async with open_world() as world:
        yield Body(
            client=world.client,
            echo=("echo", "hi"),
            fail=("fail", "3"),
            cat=("cat",),
            long=("long",),
            mebibyte=("flood", "1024"),
            sample=("sample",),
            both=("both",),
        )


@asynccontextmanager
async def for_real() -> AsyncIterator[Body]:
    octal = "".join(f"\\{byte:03o}" for byte in SAMPLE)
    async with trio.open_nursery() as nursery:
        endpoint = await nursery.start(serve_executor)
        async with open_client(endpoint.url) as client:
            yield Body(
                client=client,
                echo=("/bin/echo", "hi"),
                fail=shell("echo wrong >&2; exit 3"),
                cat=("/bin/cat",),
                long=shell("echo 0; exec sleep 100"),
                mebibyte=("/usr/bin/head", "-c", str(1024 * 1024), "/dev/zero"),
                sample=shell(f"printf '{octal}'"),
                both=shell("printf out; printf err >&2"),
            )
        nursery.cancel_scope.cancel()


@pytest.fixture(params=[in_memory, for_real])
async def body(request: pytest.FixtureRequest) -> AsyncIterator[Body]:
    async with request.param() as body:
        yield body


async def test_a_command_gives_its_output_and_its_exit_code(body: Body) -> None:
    completed = await body.client.run(body.echo)

    assert (completed.stdout, completed.stderr, completed.exit_code) == (b"hi\n", b"", 0)
    assert completed.stdout_text == "hi\n"
    assert not completed.drain_limited


async def test_the_two_outputs_of_a_command_are_kept_apart(body: Body) -> None:
    completed = await body.client.run(body.both)

    assert (completed.stdout, completed.stderr) == (b"out", b"err")


async def test_a_checked_command_that_fails_raises_with_its_output(body: Body) -> None:
    unchecked = await body.client.run(body.fail)
    with pytest.raises(CommandFailed) as caught:
        await body.client.run(body.fail, check=True)

    assert unchecked.exit_code == 3
    assert caught.value.completed.stderr == b"wrong\n"
    assert str(caught.value) == f"{list(body.fail)!r} ended with exit code 3; its standard error: 'wrong'"


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        (b" \n", ""),
        (b"a\nb\x1b[2J\xff\n", r"; its standard error: 'a\nb\x1b[2J\ufffd'"),
        (b"start" + b"x" * 500 + b"\n", f"; its standard error ends with '{'x' * 500}'"),
    ],
)
def test_the_error_of_a_checked_command_shows_the_end_of_its_standard_error_on_one_line(
    stderr: bytes, told: str
) -> None:
    """Killed the mutants that show the beginning, and that show it raw."""
    completed = CompletedCommand(argv=("make",), exit_code=2, stdout=b"", stderr=stderr)

    assert str(CommandFailed(completed)) == f"['make'] ended with exit code 2{told}"


async def test_input_of_a_command_is_given_whole_and_then_ends(body: Body) -> None:
    data = bytes(range(256)) * 1000

    completed = await body.client.run(body.cat, stdin=data)

    assert completed.stdout == data


async def test_output_over_the_limit_is_counted_and_not_kept(body: Body) -> None:
    completed = await body.client.run(body.mebibyte, output_bytes_max=1000)

    assert len(completed.stdout) == 1000
    assert completed.left_out_bytes == 1024 * 1024 - 1000


async def test_a_command_that_takes_too_long_is_killed_and_keeps_its_output(body: Body) -> None:
    with pytest.raises(CommandTimedOut) as caught:
        await body.client.run(body.long, timeout_s=1.5)

    assert caught.value.killed
    assert caught.value.completed.stdout.startswith(b"0\n")
    assert caught.value.completed.exit_code == 137


async def test_a_program_that_is_not_there_was_not_started(body: Body) -> None:
    with pytest.raises(RequestRejected) as caught:
        await body.client.run(["/nonexistent/program"])

    assert caught.value.data["kind"] == "spawnNotFound"
    assert "(-32603): No such file or directory (os error 2): program '/nonexistent/program'" in str(caught.value)
    assert body.client.statistics().followed_processes == 0


async def test_output_comes_as_text_whatever_the_pieces(body: Body) -> None:
    async with body.client.processes.start(body.sample) as process:
        text = [piece async for piece in process.text()]

    assert "".join(text) == SAMPLE_TEXT


async def test_output_comes_as_lines(body: Body) -> None:
    async with body.client.processes.start(body.sample) as process:
        lines = [line async for line in process.lines()]

    assert lines == SAMPLE_TEXT.split("\n")


async def test_output_comes_with_streams_and_rising_positions(body: Body) -> None:
    async with body.client.processes.start(body.mebibyte) as process:
        chunks = [piece async for piece in process.chunks()]
        code = await process.wait()

    assert code == 0
    assert all(isinstance(chunk, OutputChunk) and chunk.stream is Stream.STDOUT for chunk in chunks)
    seqs = [chunk.seq for chunk in chunks if isinstance(chunk, OutputChunk)]
    assert seqs == sorted(set(seqs))
    assert sum(len(chunk.chunk) for chunk in chunks if not isinstance(chunk, OutputGap)) == 1024 * 1024
    assert process.position == seqs[-1]


async def test_one_output_is_read_without_the_other(body: Body) -> None:
    async with body.client.processes.start(body.both) as process:
        errors = b"".join([data async for data in process.output(Stream.STDERR)])

    assert errors == b"err"


async def test_the_end_is_known_after_the_last_output(body: Body) -> None:
    async with body.client.processes.start(body.echo) as process:
        assert process.exit is None or process.position == 0
        code = await process.wait()
        output = b"".join([data async for data in process.output()])

    assert (code, output) == (0, b"hi\n")
    assert process.exit is not None
    assert process.exit.code == 0


async def test_a_conversation_goes_both_ways_until_input_is_closed(body: Body) -> None:
    heard: list[str] = []
    async with body.client.processes.start(body.cat, pipe_stdin=True) as process:
        lines = process.lines()
        for word in ("one", "two", "three"):
            await process.stdin.write(f"{word}\n".encode())
            heard.append(await anext(lines))
        await process.stdin.aclose()
        await process.stdin.aclose()
        code = await process.wait()

    assert (heard, code) == (["one", "two", "three"], 0)


async def test_a_process_without_input_says_so(body: Body) -> None:
    async with body.client.processes.start(body.long) as process:
        with pytest.raises(StdinUnavailable, match="pipe_stdin"):
            await process.stdin.write(b"x")


async def test_input_of_a_process_that_has_ended_is_closed(body: Body) -> None:
    async with body.client.processes.start(body.cat, pipe_stdin=True) as process:
        await process.terminate()
        await process.wait()
        with pytest.raises(StdinUnavailable):
            await process.stdin.write(b"x")


async def test_an_interrupt_reaches_the_process(body: Body) -> None:
    async with body.client.processes.start(body.long) as process:
        await anext(process.lines())
        await process.signal()

        assert await process.wait() == 130


async def test_terminating_tells_whether_it_was_running(body: Body) -> None:
    async with body.client.processes.start(body.long) as process:
        running = [await process.terminate()]
        code = await process.wait()
        running.append(await process.terminate())

    assert (running, code) == ([True, False], 137)


async def test_leaving_the_context_ends_the_process(body: Body) -> None:
    async with body.client.processes.start(body.long) as process:
        await anext(process.output())

    async with body.client.processes.start(body.echo) as other:
        assert other.id != process.id
    assert body.client.statistics().followed_processes == 0
    assert body.client.statistics().cleanups_failed == 0


async def test_an_error_in_the_context_comes_out_as_it_was_raised(body: Body) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with body.client.processes.start(body.long):
            raise KeyError("mine")


async def test_two_processes_of_one_name_cannot_be(body: Body) -> None:
    async with body.client.processes.start(body.long, process_id="same"):
        with pytest.raises(InvalidArgument, match="same"):
            async with body.client.processes.start(body.long, process_id="same"):
                pass


async def test_many_commands_at_once_do_not_mix(body: Body) -> None:
    outputs: dict[int, bytes] = {}

    async def run(number: int) -> None:
        outputs[number] = (await body.client.run(body.cat, stdin=b"%d" % number)).stdout

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(run, number)

    assert outputs == {number: b"%d" % number for number in range(20)}


async def test_status_and_info_answer(body: Body) -> None:
    status = await body.client.status()
    info = await body.client.info()

    assert status.status == "ready"
    assert info == body.client.environment_info
    assert body.client.connected


@pytest.mark.parametrize(
    ("argv", "options", "field"),
    [
        ([], {}, "argv"),
        ("echo hi", {}, "argv"),
        (["x", 1], {}, r"argv\[1\]"),
        (["x\0"], {}, r"argv\[0\]"),
        (["x"], {"env": {"A": 1}}, "env"),
        (["x"], {"env": {"A=B": "1"}}, "env"),
        (["x"], {"cwd": "relative"}, "cwd"),
        (["x"], {"timeout_s": 0}, "timeout_s"),
    ],
)
async def test_bad_arguments_are_refused_by_name_before_anything_is_sent(
    argv: list[str], options: dict[str, object], field: str
) -> None:
    async with open_world() as world:
        with pytest.raises(InvalidArgument, match=field):
            await world.client.run(argv, **options)  # type: ignore[arg-type]

        assert not world.executor.started


async def test_a_request_over_the_limit_is_refused_here_and_hurts_nobody(autojump_clock: object) -> None:
    async with open_world() as world:
        with pytest.raises(DidNotRun, match="over the limit of 16777216 bytes"):
            await world.client.run(["echo", "x" * (70 * 1024 * 1024)])

        assert (await world.client.run(["echo", "hi"])).stdout == b"hi\n"
        assert len(world.network.lines) == 1
