"""Our executor, relay and channel on real sockets in an unkind world: pauses, resets, crowds, shuffled records."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from actors.harness import ConnectionChange, open_client

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, trio
from actors.executor import Limits, serve_executor
async def main():
    async with trio.open_nursery() as nursery:
        limits = Limits(keepalive_s=0.2, pong_s=0.2)
        endpoint = await nursery.start(lambda task_status: serve_executor(limits=limits, task_status=task_status))
        print(endpoint.url, flush=True)
trio.run(main)
"""


@asynccontextmanager
async def executor_process() -> AsyncGenerator[tuple[int, str], None]:
    """An executor in a process of its own that gives silent peers up after 0.4 s."""
    async with trio.open_nursery() as nursery:
        run = partial(trio.run_process, [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, check=False)
        process = await nursery.start(run)
        yield process.pid, (await process.stdout.receive_some(1000)).decode().strip()
        nursery.cancel_scope.cancel()


async def test_a_paused_executor_does_not_take_its_own_pause_for_the_silence_of_its_peers() -> None:
    """Mutant: no `was_stopped`. As when a machine is frozen and thawed: every client was cut, and lost its files."""
    changes: list[ConnectionChange] = []
    with trio.fail_after(30):
        async with executor_process() as (pid, url), open_client(url, on_change=changes.append) as client:
            for _ in range(3):
                os.kill(pid, signal.SIGSTOP)
                await trio.sleep(0.8)
                os.kill(pid, signal.SIGCONT)
                assert (await client.run(["/bin/echo", "here"])).stdout == b"here\n"

    assert [change.connected for change in changes][:1] == [True]
    assert not [change for change in changes[1:] if not change.final]
