"""Start hosts of code sessions as their users do, as processes: the existing one, and ours."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio

PROGRAM: Final = os.environ.get("GREENROOM_INTEROP_CODEMODE", "")
"""Path of `codex-code-mode-host`; the tests are skipped without it."""

OURS: Final = (sys.executable, "-m", "tests.interop.codemode.our_host", "grpc://127.0.0.1:0")


def theirs() -> tuple[str, ...]:
    return (PROGRAM, "--listen", "grpc://127.0.0.1:0")


@asynccontextmanager
async def running(command: tuple[str, ...]) -> AsyncIterator[tuple[str, trio.Process]]:
    """Run a host for the length of a block; gives its URL, which is the first line it prints, and its process."""
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            partial(
                trio.run_process,
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        )
        try:
            with trio.fail_after(20):
                line = b""
                while not line.endswith(b"\n"):
                    more = await process.stdout.receive_some(1)
                    assert more, f"{command[0]} ended before it told its address"
                    line += more
            yield line.decode().strip(), process
        finally:
            process.kill()
            nursery.cancel_scope.cancel()
