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
from actors.sessions.host import WALLS, EngineNotFound, find_engine
from tests.actors.sessions.host.peer import open_peer

HOST = (sys.executable, "-W", "error", "-m", "actors.cli", "codemode-host")
LIMIT_S = 60

try:
    find_engine()
except EngineNotFound as missing:
    pytestmark = pytest.mark.skip(reason=str(missing))


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
async def test_it_says_where_it_is_what_runs_javascript_and_what_stands_around_it(nursery: trio.Nursery) -> None:
    with running("--warm-engines", "1") as (process, told):
        healthy = await trio.to_thread.run_sync(health, told["url"])
        async with open_channel(told["url"]) as channel:
            peer = await open_peer(channel, nursery)
            seen = await peer.run("text(1)")
            await peer.close()
        process.send_signal(signal.SIGTERM)
        code = await trio.to_thread.run_sync(process.wait, LIMIT_S)

    assert (healthy, seen.texts, code) == (200, ["1"], 0)
    assert told["engine"]["kind"] in {"deno", "node"}
    assert {*told["walls"]["active"], *told["walls"]["missing"]} == {*WALLS}
    assert told["pid"] == process.pid


@pytest.mark.slow
async def test_asked_to_end_it_lets_a_cell_that_is_waited_for_end_first(nursery: trio.Nursery) -> None:
    """Killed: sessions ended at once; sessions that nobody waits for kept until the grace is over."""
    with running("--warm-engines", "1", "--drain-s", "300") as (process, told):
        async with open_channel(told["url"]) as channel:
            busy, quiet = await open_peer(channel, nursery), await open_peer(channel, nursery)
            await nursery.start(busy.answer_tools, _never)
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
    assert code == 0


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
        (("--engine", "/nowhere/deno"), "no JavaScript engine was found"),
        (("--tls-key", "/nowhere"), "belong together"),
        (("--tls-certificate", "/nowhere", "--tls-key", "/nowhere"), "certificate cannot be used"),
        (("--heap-mib", "0"), "heap_bytes is 0"),
    ],
)
@pytest.mark.slow
def test_what_makes_no_sense_is_said_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    told = called(*arguments)

    assert told.returncode == 2
    assert said in told.stderr
    assert len(told.stderr.splitlines()) == 1
