"""A host of code sessions as a real child process, brought back at the same address by its supervisor."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio

from actors.cli._executor_process import first_line
from supervision import ChildStatus

__all__ = ["CodeHost", "CodeHostDied", "CodeHostProcess"]

# `-P`: a module in the folder we are called from must not be run in the place of a real one.
_COMMAND: Final = (sys.executable, "-P", "-m", "actors.cli", "codemode-host", "--json", "--drain-s", "0")
_PACKAGES: Final = str(Path(__file__).parent.parent.parent)


@attrs.frozen(kw_only=True)
class CodeHostProcess:
    """A host process that serves, and which it is.

    Attributes:
        url: Where.
        pid: Its process id.
    """

    url: str
    pid: int


class CodeHostDied(Exception):
    """A host process ended by itself."""

    def __init__(self, pid: int, exit_code: int) -> None:
        how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        super().__init__(f"host process {pid} {how}")
        self.pid, self.exit_code = pid, exit_code


class CodeHost:
    """Runs one host process at a time, the later ones where the first one was."""

    def __init__(self) -> None:
        self._listen = "grpc://127.0.0.1:0"

    async def run(self, *, task_status: ChildStatus[CodeHostProcess]) -> None:
        """Start a host process, say where it serves, and stay until it ends.

        Args:
            task_status: Told the process once it serves.

        Raises:
            CodeHostDied: It ended by itself.

        Cancelled:
            The process is asked to end, then killed, and reaped.
        """
        command = partial(
            trio.run_process,
            (*_COMMAND, "--listen", self._listen),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            env={**os.environ, "PYTHONPATH": _PACKAGES},
            start_new_session=True,  # Ctrl-C is for us: we end it in order.
        )
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(command)
            assert process.stdout is not None, "its output is a pipe"
            line = await first_line(process.stdout)
            if line:
                url: str = json.loads(line)["url"]
                self._listen = "grpc://" + url.partition("://")[2]
                task_status.started(CodeHostProcess(url=url, pid=process.pid))
            died = CodeHostDied(process.pid, await process.wait())
            nursery.cancel_scope.cancel()
        raise died
