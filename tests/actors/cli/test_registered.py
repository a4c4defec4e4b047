"""A registry, an executor and a command over it: three real processes, as in three terminals."""

import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.actors.cli.refusing import refused

GREENROOM = (sys.executable, "-W", "error", "-m", "actors.cli")
LIMIT_S = 60
TOKEN = "secret-of-the-whole-house"


def greenroom(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GREENROOM, *arguments], capture_output=True, text=True, timeout=LIMIT_S)


def written(place: Path, token: str) -> str:
    place.write_text(f"{token}\n")
    place.chmod(0o600)
    return str(place)


@contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that serves, and ends with us however we end."""
    command = [*GREENROOM, *arguments, "--json", "--exit-with-parent"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0


def told_by(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    told: dict[str, str] = json.loads(process.stdout.readline())
    return told


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("registered") / "token", TOKEN)


@pytest.fixture(scope="module")
def registry(token: str) -> Iterator[str]:
    with serving("serve", "--token-file", token) as process:
        yield told_by(process)["url"]


@pytest.mark.slow
def test_three_terminals_make_one_command_run_through_the_registry(registry: str, token: str, tmp_path: Path) -> None:
    keys = tmp_path / "identity"
    over = ("--registry", registry, "--token-file", token)
    with serving("executor", *over, "--environment-id", "tools", "--identity-file", str(keys)) as process:
        assert told_by(process)["environmentId"] == "tools"
        streamed = greenroom("run", "tools", *over, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
        whole = greenroom("run", "tools", *over, "--json", "--", "echo", "hello")

    assert (streamed.returncode, streamed.stdout, streamed.stderr) == (7, "out\n", "err\n")
    assert json.loads(whole.stdout)["stdout"] == "hello\n"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600


@pytest.mark.slow
def test_an_environment_without_an_executor_is_one_line_on_the_error_output(registry: str, token: str) -> None:
    told = greenroom("run", "nobody", "--registry", registry, "--token-file", token, "--", "true")

    assert told.returncode == 1
    assert told.stderr.count("\n") == 1
    assert "environment_offline" in told.stderr
    assert "look whether 'nobody' is the right id" in told.stderr
    assert "`greenroom executor --registry ... --environment-id nobody` runs" in told.stderr
    assert "try again" not in told.stderr


@pytest.mark.slow
def test_a_stranger_gets_neither_in_nor_through(registry: str, tmp_path: Path) -> None:
    wrong = written(tmp_path / "wrong", "a-token-of-somebody-else")

    runs = greenroom("run", "tools", "--registry", registry, "--token-file", wrong, "--", "true")
    serves = greenroom("executor", "--registry", registry, "--token-file", wrong, "--environment-id", "tools")

    for told in (runs, serves):
        assert told.returncode == 1
        assert "environment registry authentication failed (401)" in told.stderr
        assert told.stderr.endswith(f"; it does not take the token in {wrong!r}\n")
        assert "somebody" not in told.stderr
        assert "Traceback" not in told.stderr


@pytest.mark.slow
def test_a_registry_that_is_not_there_is_one_line_on_the_error_output(token: str) -> None:
    said = "environment registry request failed: http://127.0.0.1:9: connection refused: nothing listens there; "
    over = ("--registry", "http://127.0.0.1:9", "--token-file", token)
    told = greenroom("run", "tools", *over, "--", "true")

    assert told.returncode == 1
    assert told.stderr == f"greenroom run: {said}check the address, and that it was started\n"
    command = [*GREENROOM, "executor", *over, "--environment-id", "tools", "--exit-with-parent"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(f"greenroom executor tools: registration failed: {said}")
        process.communicate(timeout=LIMIT_S)


def test_what_can_be_no_registry_is_called_a_wrong_call(token: str) -> None:
    over = ("--registry", "ws://127.0.0.1:9", "--token-file", token)
    for told in (
        greenroom("run", "tools", *over, "--", "true"),
        greenroom("executor", *over, "--environment-id", "tools"),
    ):
        assert told.returncode == 2
        assert "must be an http or https URL with a host, not 'ws://127.0.0.1:9'" in told.stderr


@pytest.mark.slow
def test_a_signal_ends_a_registry_in_order(token: str) -> None:
    command = [*GREENROOM, "serve", "--token-file", token]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")

        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 128 + signal.SIGTERM
    assert errors == "greenroom: terminated\n"


REGISTERED = ("--registry", "http://h", "--environment-id", "tools", "--token-file", "x")


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("serve", "--token-file", "/no/such/file"), "cannot be read"),
        (("serve",), "--token-file"),
        (("executor", "--registry", "http://127.0.0.1:9"), "--registry needs --environment-id and --token-file"),
        (("run", "tools", "--registry", "http://127.0.0.1:9", "--", "true"), "--registry needs --token-file"),
        (("run", "tools", "--", "true"), "'tools' is no ws:// address; to reach environment 'tools' by its id"),
        (("run", "http://127.0.0.1:9", "--", "true"), "EXECUTOR must be ws://host:port or wss://host:port"),
        (("run", "ws://h:1", "--registry", "http://h", "--", "true"), "an environment id and not an address"),
        (("executor", "--environment-id", "tools"), "--environment-id needs --registry"),
        (("executor", "--identity-file", "keys"), "--identity-file needs --registry"),
        (("executor", "--listen", "ws://h:1", *REGISTERED), "--listen and --registry exclude each other"),
        (("demo", "--plain", "--json"), "argument --json: not allowed with argument --plain"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_dialled(
    arguments: tuple[str, ...], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(*arguments) == 2
    said = capsys.readouterr().err
    assert rule in said
    assert said.count("\n") == 1


def test_an_identity_file_that_cannot_be_made_is_named(token: str) -> None:
    over = ("--registry", "http://127.0.0.1:9", "--environment-id", "tools", "--token-file", token)
    told = greenroom("executor", *over, "--identity-file", "/no/such/folder/keys")

    expected = "greenroom executor: --identity-file '/no/such/folder/keys': No such file or directory\n"
    assert (told.returncode, told.stderr) == (1, expected)


def test_an_address_that_is_none_and_a_token_that_is_too_short_are_refused(token: str, tmp_path: Path) -> None:
    nowhere = greenroom("serve", "--token-file", token, "--listen", "ws://127.0.0.1:0")
    short = greenroom("serve", "--token-file", written(tmp_path / "short", "short"))

    assert (nowhere.returncode, short.returncode) == (2, 2)
    assert "--listen takes http://HOST:PORT" in nowhere.stderr
    assert "at least 16" in short.stderr
