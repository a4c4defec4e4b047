"""Commands at their edges: outputs that fill, break or are full, no input, signals, arguments that look like ours."""

import fcntl
import json
import os
import resource
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actors.cli.test_commands import GREENROOM, LIMIT_S, greenroom
from tests.support.skips import package

PAGE_BYTES = resource.getpagesize()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where a real executor listens, which ends with us however we end."""
    with subprocess.Popen(
        [*GREENROOM, "executor", "--exit-with-parent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate(timeout=LIMIT_S)


@pytest.mark.slow
def test_run_hands_every_argument_after_the_first_dashes_to_the_command(address: str) -> None:
    told = greenroom("run", address, "--", "printf", "%s,", "--", "--json", "-x", "--", "--help")

    assert told.stdout == "--,--json,-x,--,--help,"


@pytest.mark.slow
def test_run_whose_reader_leaves_ends_in_silence_and_ends_its_command(address: str) -> None:
    with subprocess.Popen(
        [*GREENROOM, "run", address, "--", "sh", "-c", "echo $$; exec yes"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        pid = int(process.stdout.readline())
        process.stdout.close()
        errors = process.stderr.read()
        code = process.wait(LIMIT_S)

    assert (code, errors) == (128 + signal.SIGPIPE, b"")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_run_that_cannot_write_says_so_in_one_line(address: str, options: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        told = subprocess.run(
            [*GREENROOM, "run", address, *options, "--", "echo", "hi"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
        )

    assert told.returncode == 1
    assert told.stderr == "greenroom run: the output cannot be written: No space left on device\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_kills_its_command_even_when_nobody_reads_its_output(
    address: str, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [*GREENROOM, "run", address, "--", "sh", "-c", "trap '' INT TERM; echo $$; exec cat /dev/zero"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PAGE_BYTES)
        pid = int(process.stdout.readline())
        wait_until_full(process.stdout.fileno())

        process.send_signal(number)
        code = process.wait(LIMIT_S)

    assert code == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def wait_until_full(pipe: int) -> None:
    """Wait until a pipe of a single page holds something: its writer writes 60 KiB at a time, so it is full then."""
    assert fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) == PAGE_BYTES
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    assert poll.poll(LIMIT_S * 1000), "the pipe does not fill"


def test_an_executor_that_ends_with_its_parent_ends_at_once_when_started_without_input() -> None:
    told = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *GREENROOM, "executor", "--exit-with-parent"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )

    assert (told.returncode, told.stderr) == (0, "")


def fed(data: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*GREENROOM, "run", *arguments], input=data, capture_output=True, timeout=LIMIT_S)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_run_passes_its_input_on_to_the_end(address: str, options: tuple[str, ...], tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    (tmp_path / "data").write_bytes(data)
    told = fed(data, *options, address, "--", "cksum")
    with (tmp_path / "data").open("rb") as file:
        from_file = subprocess.run(
            [*GREENROOM, "run", address, "--", "cat"], stdin=file, capture_output=True, timeout=LIMIT_S
        )

    assert subprocess.run(["cksum"], input=data, capture_output=True).stdout.strip() in told.stdout
    assert from_file.stdout == data


@pytest.mark.slow
def test_a_command_that_wants_no_more_input_ends_run_whoever_still_writes(address: str) -> None:
    """The writer is never done: what holds the run up is back-pressure, and what ends it is the command's end."""
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        told = subprocess.run(
            [*GREENROOM, "run", address, "--", "head", "-n", "1"],
            stdin=endless.stdout,
            capture_output=True,
            timeout=LIMIT_S,
        )
        endless.kill()

    assert (told.returncode, told.stdout, told.stderr) == (0, b"y\n", b"")


@pytest.mark.slow
def test_an_input_that_never_ends_holds_up_no_command_that_does_not_read_it(address: str) -> None:
    with subprocess.Popen(
        [*GREENROOM, "run", address, "--", "echo", "done"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"done\n"
        assert process.wait(LIMIT_S) == 0


@pytest.mark.slow
def test_without_input_the_command_has_an_empty_one_and_ours_is_left_alone(address: str) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"left")
    os.close(theirs)
    with open(ours, "rb") as left:
        told = subprocess.run(
            [*GREENROOM, "run", "--no-stdin", address, "cat"], stdin=left, capture_output=True, timeout=LIMIT_S
        )
        assert left.read() == b"left"

    assert (told.returncode, told.stdout, told.stderr) == (0, b"", b"")


@pytest.mark.slow
def test_run_without_a_standard_input_at_all_runs_its_command(address: str) -> None:
    command = " ".join([*GREENROOM, "run", address, "--", "cat"])
    told = subprocess.run(["sh", "-c", f"{command} <&-"], capture_output=True, timeout=LIMIT_S)

    assert (told.returncode, told.stdout, told.stderr) == (0, b"", b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "argv", "code"),
    [("there", ["/nosuch/program"], 127), ("nowhere", ["true"], 1), ("senseless", ["true"], 2)],
)
def test_run_that_cannot_run_its_command_tells_programs_why_as_well(
    address: str, place: str, argv: list[str], code: int
) -> None:
    """Mutant: only the error output tells."""
    places = {"there": address, "nowhere": "ws://127.0.0.1:1", "senseless": "tools"}

    told = greenroom("run", places[place], "--json", "--", *argv)

    (line,) = told.stdout.splitlines()
    facts = json.loads(line)
    assert told.returncode == code
    assert facts.pop("error") in told.stderr
    assert facts == {"argv": argv, "exitCode": None, "timedOut": False}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "line"),
    [(signal.SIGINT, "greenroom: interrupted\n"), (signal.SIGTERM, "greenroom: terminated\n")],
)
@pytest.mark.parametrize("command", ["run", "executor", "serve", "codemode-host"])
def test_a_command_that_a_signal_ends_says_so_in_one_line(
    address: str, tmp_path: Path, command: str, number: int, line: str
) -> None:
    """Mutant: the exit code alone tells."""
    if command == "codemode-host":
        package("actors.sessions.host", ".[sessions]")
    token_file = tmp_path / "token"
    token_file.write_text("t" * 32)
    token_file.chmod(0o600)
    options = {
        "run": [address, "--", "sh", "-c", "echo up; exec sleep 60"],
        "serve": ["--token-file", str(token_file)],
    }.get(command, [])
    with subprocess.Popen(
        [*GREENROOM, command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 128 + number
    assert errors.splitlines(keepends=True)[-1] == line
