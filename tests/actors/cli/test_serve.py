"""`greenroom serve` beyond the plain case: TLS, a token for each role, limits, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.actors.cli.refusing import refused
from tests.support.certificates import self_signed

GREENROOM = (sys.executable, "-W", "error", "-m", "actors.cli")
LIMIT_S = 60


def written(place: Path, content: bytes) -> str:
    place.write_bytes(content)
    place.chmod(0o600)
    return str(place)


@pytest.fixture
def tokens(tmp_path: Path) -> tuple[str, str]:
    """A token file of executors, and one of harnesses."""
    return (
        written(tmp_path / "executors", b"secret-of-all-executors\n"),
        written(tmp_path / "harnesses", b"secret-of-all-harnesses\n"),
    )


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """A certificate of this machine for itself, and its key."""
    certificate, key = self_signed()
    return written(tmp_path / "certificate.pem", certificate), written(tmp_path / "key.pem", key)


@contextmanager
def running(*arguments: str, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A command that serves, and is gone at the end of the block."""
    with subprocess.Popen(
        [*GREENROOM, *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def told_by(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    told: dict[str, str] = json.loads(process.stdout.readline())
    return told


@pytest.mark.slow
def test_tls_and_a_token_for_each_role(tokens: tuple[str, str], certificate: tuple[str, str], tmp_path: Path) -> None:
    trusting = {"SSL_CERT_FILE": certificate[0]}
    roles = ("--executor-token-file", tokens[0], "--harness-token-file", tokens[1])
    secure = ("--listen", "https://127.0.0.1:0", "--certificate", certificate[0], "--key", certificate[1])
    with running("serve", *roles, *secure) as serving:
        url = told_by(serving)["url"]
        here = ("--registry", url, "--environment-id", "box", "--token-file", tokens[0], "--file-root", str(tmp_path))
        with running("executor", *here, env=trusting) as executor:
            told_by(executor)
            run = (*GREENROOM, "run", "box", "--registry", url)
            harness = [*run, "--token-file", tokens[1]]
            told = {
                name: subprocess.run(
                    [*command, "--", "pwd"],
                    env={**os.environ, **trusting},
                    capture_output=True,
                    text=True,
                    timeout=LIMIT_S,
                )
                for name, command in {
                    "inside": [*harness, "--cwd", str(tmp_path)],
                    "outside": [*harness, "--cwd", "/"],
                    "executor": [*run, "--token-file", tokens[0]],
                }.items()
            }

    assert url.startswith("https://127.0.0.1:")
    assert (told["inside"].returncode, told["inside"].stdout) == (0, f"{tmp_path}\n"), told["inside"].stderr
    assert "outside of the roots of this executor" in told["outside"].stderr
    assert "this token may not do that" in told["executor"].stderr
    assert told["outside"].returncode == told["executor"].returncode == 1


@pytest.mark.slow
def test_sigterm_lets_streams_end_takes_nothing_new_and_is_told_in_numbers(tmp_path: Path) -> None:
    token = written(tmp_path / "token", b"secret-of-the-whole-house\n")
    with running("serve", "--token-file", token, "--drain-s", "30") as serving:
        over = ("--registry", told_by(serving)["url"], "--token-file", token)
        with running("executor", *over, "--environment-id", "box") as executor:
            told_by(executor)
            script = "echo begun; while ! [ -e go ]; do sleep 0.05; done; echo done"
            with subprocess.Popen(
                [*GREENROOM, "run", "box", *over, "--cwd", str(tmp_path), "--", "sh", "-c", script],
                stdout=subprocess.PIPE,
                text=True,
            ) as old:
                assert old.stdout is not None
                assert old.stdout.readline() == "begun\n"
                serving.send_signal(signal.SIGTERM)
                assert serving.stderr is not None
                draining = serving.stderr.readline()
                new = subprocess.run(
                    [*GREENROOM, "run", "box", *over, "--", "true"], capture_output=True, text=True, timeout=LIMIT_S
                )
                (tmp_path / "go").touch()
                rest, _ = old.communicate(timeout=LIMIT_S)
            out, errors = serving.communicate(timeout=LIMIT_S)

    assert draining == "greenroom serve: taking nothing new; 1 streams may end within 30 s\n"
    assert new.returncode == 1
    assert "this rendezvous is about to stop" in new.stderr
    assert (old.returncode, rest) == (0, "done\n")
    assert (serving.returncode, errors) == (128 + signal.SIGTERM, "greenroom: terminated\n")
    status = json.loads(out.splitlines()[-1])["status"]
    assert (status["draining"], status["streams"]) == (True, 0)
    assert status["counters"]["requests_refused"] >= 1


@pytest.mark.slow
def test_a_second_signal_does_not_wait_for_anybody(tmp_path: Path) -> None:
    token = written(tmp_path / "token", b"secret-of-the-whole-house\n")
    with running("serve", "--token-file", token, "--drain-s", "600") as serving:
        over = ("--registry", told_by(serving)["url"], "--token-file", token)
        with running("executor", *over, "--environment-id", "box") as executor:
            told_by(executor)
            with subprocess.Popen(
                [*GREENROOM, "run", "box", *over, "--", "sh", "-c", "echo begun; sleep 60"],
                stdout=subprocess.PIPE,
                text=True,
            ) as run:
                assert run.stdout is not None
                run.stdout.readline()
                serving.send_signal(signal.SIGTERM)
                assert serving.stderr is not None
                serving.stderr.readline()
                serving.send_signal(signal.SIGTERM)

                assert serving.wait(timeout=LIMIT_S) == 128 + signal.SIGTERM
                run.kill()


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("--certificate", "x"), "--certificate and --key belong together"),
        (
            ("--certificate", "/nosuch", "--key", "y"),
            "--certificate '/nosuch' cannot be used: No such file",
        ),
        (("--certificate", "TOKEN", "--key", "/nosuch"), "--key '/nosuch' cannot be used: No such file or directory"),
        (("--certificate", "TOKEN", "--key", "TOKEN"), "cannot be used"),
        (("--public-url", "nonsense"), "--public-url takes http://HOST:PORT"),
        (("--public-url", "https://relay.example:0"), "--public-url takes the address that clients dial"),
        (
            ("--listen", "http://127.0.0.1:99999"),
            "--listen 'http://127.0.0.1:99999': the port must be a number from 0 to 65535",
        ),
        (("--listen", "http://127.0.0.1:0/path"), "and nothing behind it"),
        (("--executor-token-file", "TOKEN"), "two of the token files hold the same token"),
        (("--listen", "https://127.0.0.1:0"), "--listen takes http://HOST:PORT"),
        (("--listen", "https://127.0.0.1:0"), "; https:// needs --certificate and --key"),
        (("--drain-s", "-1"), "argument --drain-s: must be 0 or more, not -1"),
        (("--drain-s", "nan"), "argument --drain-s: must be 0 or more, not nan"),
        (("--status-every-s", "inf"), "argument --status-every-s: must be 0 or more and not endless"),
        (("--max-connections", "0"), "argument --max-connections: must be above 0, not 0"),
        (("--max-streams", "1.5"), "argument --max-streams: must be a whole number, not '1.5'"),
        (("--requests-per-s", "nan"), "argument --requests-per-s: must be above 0, not nan"),
    ],
)
def test_a_call_that_makes_no_sense_ends_with_2_and_says_why(
    arguments: tuple[str, ...], rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = written(tmp_path / "token", b"secret-of-the-whole-house\n")
    given = [token if argument == "TOKEN" else argument for argument in arguments]

    assert refused("serve", "--token-file", token, *given) == 2
    said = capsys.readouterr().err
    assert rule in said
    assert said.count("\n") == 1
    assert "secret" not in said


def test_executors_without_a_harness_make_no_sense(tmp_path: Path) -> None:
    token = written(tmp_path / "token", b"secret-of-the-whole-house\n")
    told = subprocess.run(
        [*GREENROOM, "serve", "--executor-token-file", token], capture_output=True, text=True, timeout=LIMIT_S
    )

    assert told.returncode == 2
    assert "both --executor-token-file and --harness-token-file" in told.stderr
