"""A host of code sessions as a real child process, brought back at the same address by its supervisor."""

import json
import subprocess
from typing import Final

import attrs
import trio

from actors.cli._child_program import ProgramDied, child_program, first_line
from supervision import ChildStatus

__all__ = ["CodeHost", "CodeHostDied", "CodeHostProcess"]

_ARGUMENTS: Final = ("codemode-host", "--json", "--drain-s", "0")


@attrs.frozen(kw_only=True)
class CodeHostProcess:
    """A host process that serves, and which it is.

    Attributes:
        url: Where.
        pid: Its process id.
    """

    url: str
    pid: int


class CodeHostDied(ProgramDied):
    """A host process ended by itself."""


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
        command = child_program(
            *_ARGUMENTS, "--listen", self._listen, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(command)
            assert process.stdout is not None, "its output is a pipe"
            line = await first_line(process.stdout)
            if line:
                url: str = json.loads(line)["url"]
                self._listen = "grpc://" + url.partition("://")[2]
                task_status.started(CodeHostProcess(url=url, pid=process.pid))
            died = CodeHostDied("host", process.pid, await process.wait())
            nursery.cancel_scope.cancel()
        raise died
