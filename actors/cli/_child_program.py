"""A command of ours as a real child process: how it is started, the line by which it says that it is up, its end."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import trio

__all__ = ["LINE_BYTES_MAX", "ProgramDied", "child_program", "first_line"]

LINE_BYTES_MAX: Final = 4096
# `-P`: a module in the folder we are called from must not be run in the place of a real one.
_COMMAND: Final = (sys.executable, "-P", "-m", "actors.cli")
_PACKAGES: Final = str(Path(__file__).parent.parent.parent)


class ProgramDied(Exception):
    """A child process ended by itself."""

    def __init__(self, what: str, pid: int, exit_code: int) -> None:
        how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        super().__init__(f"{what} process {pid} {how}")
        self.pid, self.exit_code = pid, exit_code


def child_program(
    *arguments: str, stdin: int, stderr: int, pass_fds: Sequence[int] = ()
) -> Callable[..., Awaitable[object]]:
    """Make what a nursery starts: this command line, its output a pipe; cancelled, it is asked to end, then killed."""
    return partial(
        trio.run_process,
        (*_COMMAND, *arguments),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        pass_fds=pass_fds,
        check=False,
        env={**os.environ, "PYTHONPATH": _PACKAGES},
        start_new_session=True,  # Ctrl-C is for us: we end it in order.
    )


async def first_line(output: trio.abc.ReceiveStream) -> bytes:
    """Read the line by which a program says that it is up; nothing when it ends before."""
    line = b""
    while not line.endswith(b"\n") and len(line) < LINE_BYTES_MAX:
        piece = await output.receive_some(LINE_BYTES_MAX - len(line))
        if not piece:
            return b""
        line += piece
    return line
