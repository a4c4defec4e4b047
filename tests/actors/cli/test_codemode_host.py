"""`greenroom codemode-host` as a user meets it."""

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.sessions.grpc import CallFailed, open_channel
from actors.sessions.host import WALLS
from tests.actors.sessions.host.peer import open_peer
from tests.support.skips import needs_engine

HOST = (sys.executable, "-W", "error", "-m", "actors.cli", "codemode-host")
LIMIT_S = 60

pytestmark = needs_engine()


def called(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HOST, *arguments], capture_output=True, text=True, timeout=LIMIT_S)


def health(url: str) -> int:
    with urllib.request.urlopen(f"{url}/healthz", timeout=LIMIT_S) as answer:
        return int(answer.status)


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    with subprocess.Popen([*HOST, "--json", *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_it_says_where_it_is_what_runs_javascript_and_at_its_end_which_signal_ended_it(
    nursery: trio.Nursery, number: signal.Signals, expected: int
) -> None:
    with running("--warm-engines", "1") as (process, told):
        healthy = await trio.to_thread.run_sync(health, told["url"])
        async with open_channel(told["url"]) as channel:
            peer = await open_peer(channel, nursery)
            seen = await peer.run("text(1)")
            await peer.close()
        process.send_signal(number)
        code = await trio.to_thread.run_sync(process.wait, LIMIT_S)

    assert (healthy, seen.texts, code) == (200, ["1"], expected)
    assert told["engine"]["kind"] in {"deno", "node"}
    assert {*told["walls"]["active"], *told["walls"]["missing"]} == {*WALLS}
    assert told["pid"] == process.pid


@pytest.mark.slow
async def test_asked_to_end_it_lets_a_cell_that_is_waited_for_end_first(nursery: trio.Nursery) -> None:
    """Killed: sessions ended at once; sessions that nobody waits for kept until the grace is over."""
    with running("--warm-engines", "1", "--drain-s", "300") as (process, told):
        async with open_channel(told["url"]) as channel:
            busy, quiet = await open_peer(channel, nursery), await open_peer(channel, nursery)
            async with trio.open_nursery() as answering:  # Its end waits for the host's end of the tool calls.
                await answering.start(busy.answer_tools, _never)
                async with busy.executing(
                    "notify('up'); await new Promise(r => setTimeout(r, 500)); text('whole')", yield_time_ms=60_000
                ) as (_, events):
                    await busy.until(lambda: bool(busy.notifications))
                    process.send_signal(signal.SIGTERM)
                    await quiet.ended.wait()
                    outcome = (await events.receive()).outcome
                await busy.ended.wait()
        code = await trio.to_thread.run_sync(process.wait, LIMIT_S)

    assert [item.text.text for item in outcome.content_items] == ["whole"]
    assert code == 143


async def _never(_: Any) -> Any:
    return None


@pytest.mark.slow
async def test_a_caller_without_the_token_is_refused(tmp_path: Path, nursery: trio.Nursery) -> None:
    token = tmp_path / "token"
    token.write_text("sesame\n")
    token.chmod(0o600)
    with running("--warm-engines", "0", "--token-file", str(token)) as (_, told):
        async with open_channel(told["url"]) as channel:
            with pytest.RaisesGroup(CallFailed, flatten_subgroups=True) as refused:
                async with trio.open_nursery() as inner:
                    await open_peer(channel, inner)

    assert "UNAUTHENTICATED" in str(refused.value.exceptions)
    assert "sesame" not in str(refused.value.exceptions)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--listen", "grpc://0.0.0.0:0"), "no token and no TLS certificate"),
        (("--listen", "http://127.0.0.1:0"), "a host listens on grpc://ADDRESS:PORT or unix:PATH"),
        (
            ("--engine", "/nowhere/deno"),
            "no JavaScript engine was found (the engine that was named, /nowhere/deno: not there)",
        ),
        (("--engine", "/nowhere/deno"), "or name one with `--engine`"),
        (("--tls-key", "/nowhere"), "belong together"),
        (
            ("--tls-certificate", "/nowhere", "--tls-key", "/nowhere"),
            "cannot be used: --tls-certificate /nowhere: No such file",
        ),
        (("--certificate", __file__, "--key", "/nowhere"), "cannot be used: --tls-key /nowhere: No such file"),
        (("--tls-certificate", __file__, "--tls-key", __file__), f"cannot be used: {__file__} with {__file__}: "),
        (("--heap-mib", "0"), "--heap-mib: must be above 0, not 0"),
        (("--stored-mib", "0"), "--stored-mib: must be above 0, not 0"),
        (("--cell-deadline-s", "-1"), "--cell-deadline-s: must be above 0, not -1.0"),
        (("--cells-max", "0"), "--cells-max: must be above 0, not 0"),
    ],
)
@pytest.mark.slow
def test_what_makes_no_sense_is_said_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    told = called(*arguments)

    assert told.returncode == 2
    assert said in told.stderr
    assert len(told.stderr.splitlines()) == 1


WITHOUT = "import sys; sys.modules['h2'] = None; "


@pytest.mark.slow
def test_without_the_extra_the_command_says_in_one_line_what_to_install() -> None:
    code = WITHOUT + "from actors.cli import main; sys.exit(main(['codemode-host']))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)

    assert told.returncode == 1
    assert told.stderr.startswith("greenroom codemode-host: code sessions need the extra `sessions` (h2")
    assert "pip install '.[sessions]'" in told.stderr
    assert len(told.stderr.splitlines()) == 1


@pytest.mark.slow
def test_without_the_extra_an_import_ends_with_what_to_install() -> None:
    code = WITHOUT + "from actors.sessions import open_provider"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)

    assert told.returncode == 1
    assert told.stderr.splitlines()[-1].startswith("ModuleNotFoundError: code sessions need the extra `sessions` (h2")
    assert "actors/sessions/grpc" not in told.stderr
