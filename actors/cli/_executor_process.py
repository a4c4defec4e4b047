"""An executor as a real child process, kept alive by a supervisor."""

import json
import subprocess
import sys
from functools import partial
from typing import Final

import attrs
import trio

from supervision import ChildStatus

__all__ = ["ExecutorDied", "ExecutorProcess", "run_executor_process"]

_COMMAND: Final = (sys.executable, "-m", "actors.cli", "executor", "--json", "--exit-with-parent")
_LINE_BYTES_MAX: Final = 4096


@attrs.frozen
class ExecutorProcess:
    """Where an executor process can be reached, and which it is."""

    url: str
    """Such as ``ws://127.0.0.1:40123``."""
    pid: int
    """Its process id."""


class ExecutorDied(Exception):
    """An executor process ended by itself."""

    def __init__(self, pid: int, exit_code: int) -> None:
        how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        super().__init__(f"executor process {pid} {how}")
        self.pid, self.exit_code = pid, exit_code


async def run_executor_process(*, task_status: ChildStatus[ExecutorProcess]) -> None:
    """Start an executor process on a free port of loopback, say where it is, and stay until it ends.

    Raises:
        ExecutorDied: It ended by itself.

    Cancelled:
        The process is asked to end, then killed, and reaped.
    """
    command = partial(trio.run_process, _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
    died: ExecutorDied | None = None
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(command)
        assert process.stdout is not None, "its output is a pipe"
        line = await _first_line(process.stdout)
        if line:
            told = json.loads(line)
            task_status.started(ExecutorProcess(url=told["url"], pid=told["pid"]))
        died = ExecutorDied(process.pid, await process.wait())
    raise died


async def _first_line(output: trio.abc.ReceiveStream) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) < _LINE_BYTES_MAX:
        piece = await output.receive_some(_LINE_BYTES_MAX - len(line))
        if not piece:
            return b""
        line += piece
    return line
