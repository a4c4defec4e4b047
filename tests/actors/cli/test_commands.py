"""The command line as a user meets it: real processes, exit codes that mean something."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given as having
from hypothesis import strategies as st

from actors.cli._arguments import parse
from tests.support.skips import needs_system

GREENROOM = (sys.executable, "-W", "error", "-m", "actors.cli")
LIMIT_S = 60


def greenroom(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GREENROOM, *arguments], capture_output=True, text=True, timeout=LIMIT_S)


@pytest.fixture(scope="module")
def executor() -> Iterator[str]:
    """The address of a real executor, which ends with us however we end."""
    process = subprocess.Popen(
        [*GREENROOM, "executor", "--exit-with-parent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0


@pytest.mark.parametrize("command", [(), ("demo",), ("serve",), ("executor",), ("run",), ("doctor",)])
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    told = greenroom(*command, "--help")

    assert told.returncode == 0
    assert told.stdout.startswith("usage: greenroom")


def test_a_wrong_call_ends_with_2_and_says_why() -> None:
    told = greenroom("runn")

    assert told.returncode == 2
    assert "invalid choice: 'runn'" in told.stderr
    assert told.stderr.count("\n") == 1


def test_the_version_is_one_line() -> None:
    told = greenroom("--version")

    assert told.returncode == 0
    assert re.fullmatch(r"greenroom \S.*, Python \d+\.\d+\.\d+\n", told.stdout)


@pytest.mark.parametrize(
    ("given", "ours", "theirs"),
    [
        ("run URL -- sh -c x", {"cwd": None}, "sh -c x"),
        ("run URL sh -c x", {"cwd": None}, "sh -c x"),
        (
            "run --json --cwd /a URL --env A=1 sh --cwd /b -- c",
            {"json": True, "cwd": "/a"},
            "sh --cwd /b -- c",
        ),
        ("run --cwd=/a URL sh -- -- x", {"cwd": "/a", "json": False}, "sh -- -- x"),
        ("run URL --env A=-- -- x", {"env": ["A=--"]}, "x"),
    ],
)
def test_the_command_of_run_begins_at_the_dashes_or_at_the_second_word(
    given: str, ours: dict[str, object], theirs: str
) -> None:
    chosen = parse(given.split())

    assert chosen.executor == "URL"
    assert chosen.argv == theirs.split()
    assert vars(chosen).items() >= ours.items()


@pytest.mark.parametrize("given", ["run", "run URL", "run URL --", "run -- sh", "run URL --nosuch -- x", "--nosuch"])
def test_a_run_that_lacks_something_is_one_line(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(given.split())

    assert ended.value.code == 2
    assert re.fullmatch(r"greenroom( run)?: .*; see greenroom( run)? --help\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("run X --timeout 3 -- uname", "there is no option --timeout; perhaps --timeout-s is meant"),
        ("run --time 3 X -- uname", "there is no option --time; perhaps --timeout-s is meant"),
        ("run X --token F -- uname", "there is no option --token; perhaps --token-file is meant"),
        ("run X --e A=1 -- uname", "there is no option --e; perhaps --env is meant"),
        ("run X --envv=SECRET -- uname", "there is no option --envv; perhaps --env is meant"),
        ("run X --timeout-s -- uname", "--timeout-s needs a value"),
        ("run --timeout-s -- uname", "--timeout-s needs a value"),
        ("run X --timeout-s", "--timeout-s needs a value"),
        ("run X --cwd --json -- uname", "--cwd needs a value; one that begins with a dash is written --cwd=VALUE"),
        ("run X --json=1 -- uname", "ignored explicit argument '1'"),
        ("run --token-file F -- uname", "EXECUTOR is missing"),
        ("run -- uname", "EXECUTOR is missing"),
        ("run X --", "the command is missing"),
        ("run X", "the command is missing"),
        ("run", "EXECUTOR is missing"),
        ("serve --registy U", "there is no option --registy"),
        ("executor --registy U", "there is no option --registy; perhaps --registry is meant"),
        ("executor --reg U", "there is no option --reg; perhaps --registry is meant"),
        ("codemode-host --cert F", "there is no option --cert; perhaps --certificate is meant"),
        ("serve --token F", "perhaps --token-file is meant"),
        ("serve --listen", "expected one argument"),
        ("serve --json --tok F", "there is no option --tok; perhaps --token-file is meant"),
        ("doctor --json now", "nothing takes the word 'now'"),
        ("doctor -- now", "nothing takes the word 'now'"),
        ("--josn doctor", "there is no option --josn"),
        ("--versio", "there is no option --versio; perhaps --version is meant"),
    ],
)
def test_a_wrong_word_is_named_with_what_is_near_and_the_page_that_helps(
    given: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: abbreviations are taken; an option's value is skipped though it is `--`; the main parser refuses."""
    with pytest.raises(SystemExit) as ended:
        parse(given.split())

    said, command = capsys.readouterr().err, given.split()[0]
    page = "greenroom" if command.startswith("-") else f"greenroom {command}"
    assert ended.value.code == 2
    assert said.startswith(f"{page}: ")
    assert said.endswith(f"; see {page} --help\n")
    assert rule in said
    assert "SECRET" not in said
    assert "COMMAND" not in said


OURS = ("--json", "--no-stdin", "--env=A=1", "--env A=1", "--cwd /a", "--timeout-s 3", "--registry=u", "--token-file f")


@having(before=st.lists(st.sampled_from(OURS)), after=st.lists(st.sampled_from(OURS)), is_marked=st.booleans())
def test_whatever_the_order_of_options_the_command_is_taken_as_it_stands(
    before: list[str], after: list[str], is_marked: bool
) -> None:
    command = ["sh", "--json", "--", "-c", "--env", "x"]
    chosen = parse(["run", *" ".join(before).split(), "X", *" ".join(after).split(), *["--"][:is_marked], *command])

    assert (chosen.executor, chosen.argv) == ("X", command)
    assert len(chosen.env) == sum(option.startswith("--env") for option in (*before, *after))
    assert chosen.json is ("--json" in (*before, *after))


@pytest.mark.parametrize("given", ["run --help", "run X --help", "run -h -- x", "run X --cwd / -h"])
def test_help_is_given_wherever_it_is_asked_for_before_the_command(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(given.split())

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: greenroom run ")


@pytest.mark.slow
def test_run_streams_output_and_ends_with_the_code_of_the_command(executor: str) -> None:
    told = greenroom("run", executor, "--env", "A=1", "--", "sh", "-c", "echo out $A $HOME; echo err >&2; exit 7")

    assert (told.returncode, told.stdout, told.stderr) == (7, "out 1\n", "err\n")


@pytest.mark.slow
def test_run_passes_bytes_on_untouched(executor: str) -> None:
    told = subprocess.run(
        [*GREENROOM, "run", executor, "--", "printf", r"\377\000\n"], capture_output=True, timeout=LIMIT_S
    )

    assert (told.returncode, told.stdout) == (0, b"\xff\x00\n")


@pytest.mark.slow
def test_run_as_json_gives_everything_at_once(executor: str) -> None:
    told = greenroom("run", "--json", executor, "--", "sh", "-c", "echo out; exit 3")

    done = json.loads(told.stdout)
    assert told.returncode == 3
    assert (done["exitCode"], done["stdout"], done["timedOut"]) == (3, "out\n", False)


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_killed_and_its_output_kept(executor: str) -> None:
    told = greenroom("run", executor, "--timeout-s", "1", "--", "sh", "-c", "echo early; sleep 60")

    assert told.returncode == 124
    assert told.stdout == "early\n"
    assert "its process group was killed" in told.stderr


@pytest.mark.slow
def test_a_program_that_is_not_there_is_told_from_one_that_failed(executor: str) -> None:
    told = greenroom("run", executor, "--", "no-such-program")

    assert told.returncode == 127
    assert told.stderr.startswith("greenroom run: ")
    assert "No such file or directory (os error 2): program 'no-such-program'; it is in no folder" in told.stderr
    assert told.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--", "/etc/passwd"), 126),
        (("--cwd", "/no/such", "--", "true"), 1),
        (("--cwd", "not-absolute", "--", "true"), 2),
        (("--", "sh", "-c", "kill -9 $$"), 137),
        (("sh", "-c", "exit 41"), 41),
    ],
)
def test_run_ends_with_the_code_that_its_help_lists(executor: str, arguments: tuple[str, ...], code: int) -> None:
    assert greenroom("run", executor, *arguments).returncode == code


@pytest.mark.slow
def test_an_executor_that_is_not_there_is_one_line_on_the_error_output() -> None:
    told = greenroom("run", "ws://127.0.0.1:9", "--", "true")

    assert told.returncode == 1
    assert told.stderr.count("\n") == 1
    assert "failed to connect to exec-server websocket `ws://127.0.0.1:9`" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("--env", "A"), "--env takes NAME=VALUE"),
        (("--env", "=1"), "--env takes NAME=VALUE"),
        (("--timeout-s", "0"), "argument --timeout-s: must be above 0, not 0"),
        (("--timeout-s", "inf"), "must be above 0 and not endless; leave it out where there is no limit"),
        (("--timeout-s", "3s"), "argument --timeout-s: must be a number, not '3s'"),
        (("--token-file", "/no/such/file"), "cannot be read"),
    ],
)
def test_bad_options_of_run_are_refused_before_anything_is_dialled(arguments: tuple[str, ...], rule: str) -> None:
    told = greenroom("run", *arguments, "ws://127.0.0.1:9", "--", "true")

    assert told.returncode == 2
    assert rule in told.stderr


@pytest.mark.parametrize("command", ["executor --listen ws://", "codemode-host --listen grpc://"])
def test_a_port_that_is_taken_is_told_with_what_can_be_done(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        told = greenroom(*f"{command}{address}".split())

    assert told.returncode == 1
    assert told.stderr.count(address) == 1
    assert told.stderr.endswith(
        "; another program listens there: end it, or take another port (0 for any that is free)\n"
    )


def test_listening_beyond_loopback_without_a_token_is_refused() -> None:
    told = greenroom("executor", "--listen", "ws://0.0.0.0:0")

    assert told.returncode == 2
    assert "token" in told.stderr
    assert told.stdout == ""


@pytest.mark.slow
def test_a_token_opens_an_executor_to_those_who_have_it_alone(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret-of-the-house\n")
    token.chmod(0o600)
    serving = [*GREENROOM, "executor", "--exit-with-parent", "--token-file", str(token)]
    with subprocess.Popen(serving, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()

        stranger = greenroom("run", url, "--", "echo", "hello")
        friend = greenroom("run", url, "--token-file", str(token), "--", "echo", "hello")
        process.communicate(timeout=LIMIT_S)

    assert (stranger.returncode, stranger.stdout) == (1, "")
    assert stranger.stderr.endswith("; it wants a token: name the file that holds it with --token-file\n")
    assert (friend.returncode, friend.stdout) == (0, "hello\n")
    assert "secret" not in stranger.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_executor_in_order_with_what_it_runs(executor: str, number: signal.Signals) -> None:
    with subprocess.Popen(
        [*GREENROOM, "executor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        greenroom("run", url, "--", "true")

        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 128 + number
    assert errors == f"greenroom: {'interrupted' if number == signal.SIGINT else 'terminated'}\n"


@pytest.mark.slow
def test_the_demo_ends_well_and_every_claim_it_makes_holds() -> None:
    told = greenroom("demo", "--json")

    lines = [json.loads(line) for line in told.stdout.splitlines()]
    summary = lines[-1]
    assert told.returncode == 0, told.stderr
    assert summary["kind"] == "summary"
    assert summary["held"] == summary["claims"] >= 17  # 24 where JavaScript can run
    assert told.stderr == ""


@pytest.mark.slow
def test_the_demo_is_interrupted_cleanly_and_leaves_no_process_behind() -> None:
    with subprocess.Popen(
        [*GREENROOM, "demo", "--plain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = next(line for line in process.stdout if "is registered as" in line)
        pid = int(first.split()[2])

        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    assert errors == "greenroom demo: interrupted; everything it had started is stopped\n"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_a_reader_that_has_enough_ends_the_demo_without_a_word() -> None:
    with subprocess.Popen(
        [*GREENROOM, "demo", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(timeout=LIMIT_S)

    assert process.returncode == 128 + signal.SIGPIPE
    assert errors == ""


@needs_system(os.path.exists("/dev/full"), "/dev/full")
def test_output_that_cannot_be_written_is_one_line_on_the_error_output() -> None:
    with open("/dev/full", "w") as full:
        told = subprocess.run([*GREENROOM, "doctor"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)

    assert told.returncode == 1
    assert told.stderr == "greenroom: [Errno 28] No space left on device\n"


@pytest.mark.slow
def test_a_module_in_the_folder_the_demo_is_called_from_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('a stranger was run')")
    here = str(Path(__file__).parents[3])
    command = [sys.executable, "-P", "-m", "actors.cli", "demo", "--json"]

    told = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": here}, capture_output=True, text=True, timeout=LIMIT_S
    )

    assert told.returncode == 0, told.stderr
    assert "stranger" not in told.stdout + told.stderr


def test_an_executor_keeps_working_folders_in_its_roots(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    serving = [*GREENROOM, "executor", "--exit-with-parent", "--file-root", str(tmp_path / "in")]
    with subprocess.Popen(serving, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        inside = greenroom("run", url, "--cwd", str(tmp_path / "in"), "--", "pwd")
        outside = greenroom("run", url, "--cwd", str(tmp_path), "--", "pwd")
        process.stdin.close()

    assert inside.stdout == f"{tmp_path}/in\n"
    assert outside.returncode != 0
    assert "outside of the roots" in outside.stderr


def test_a_root_that_is_not_there_is_one_line_on_the_error_output(tmp_path: Path) -> None:
    told = greenroom("executor", "--file-root", str(tmp_path / "missing"))

    assert told.returncode == 2
    assert told.stderr.count("\n") == 1
    assert "name a folder that exists" in told.stderr
