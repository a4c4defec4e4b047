"""An executor as a real child process that registers itself, kept alive by a supervisor."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import attrs
import trio

from actors.cli._child_program import LINE_BYTES_MAX, ProgramDied, child_program, first_line
from supervision import ChildStatus

__all__ = ["ExecutorDied", "ExecutorProcess", "RegistryPlace", "run_executor_process"]

_ARGUMENTS: Final = ("executor", "--json", "--exit-with-parent")


@attrs.frozen(kw_only=True)
class RegistryPlace:
    """Where an executor process registers, and as what.

    Attributes:
        registry_url: The registry.
        environment_id: What it serves.
        token: Its bearer token.
    """

    registry_url: str
    environment_id: str
    token: str = attrs.field(repr=False)

    def arguments(self, token_descriptor: int) -> tuple[str, ...]:
        """Say it on a command line; the token is read from a descriptor that the process inherits."""
        registry = ("--registry", self.registry_url)
        return (*registry, "--environment-id", self.environment_id, "--token-file", f"/dev/fd/{token_descriptor}")

    @contextmanager
    def open_token(self) -> Generator[int, None, None]:
        """Give a descriptor of a file without a name: however we end, the token is on no disk afterwards."""
        with tempfile.TemporaryFile() as file:
            file.write(self.token.encode())
            file.seek(0)
            yield file.fileno()


@attrs.frozen(kw_only=True)
class ExecutorProcess:
    """An executor process that is registered, and which it is.

    Attributes:
        environment_id: As which environment.
        pid: Its process id.
    """

    environment_id: str
    pid: int


class ExecutorDied(ProgramDied):
    """An executor process ended by itself."""


async def run_executor_process(
    place: RegistryPlace, tell: Callable[[str], None], *, task_status: ChildStatus[ExecutorProcess]
) -> None:
    """Start an executor process, say that harnesses can be brought to it, and stay until it ends.

    Args:
        place: Where and as what it registers.
        tell: Told each line that it writes to its error output, such as why it dials again.
        task_status: Told the process once it is registered and connected.

    Raises:
        ExecutorDied: It ended by itself.

    Cancelled:
        The process is asked to end, then killed, and reaped.
    """
    died: ExecutorDied | None = None
    async with trio.open_nursery() as nursery:
        with place.open_token() as token:
            arguments = (*_ARGUMENTS, *place.arguments(token))
            command = child_program(*arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(token,))
            process: trio.Process = await nursery.start(command)
        assert process.stdout is not None, "its output is a pipe"
        assert process.stderr is not None, "its error output is a pipe"
        nursery.start_soon(_pass_on_lines, process.stderr, tell)
        line = await first_line(process.stdout)
        if line:
            told = json.loads(line)
            task_status.started(ExecutorProcess(environment_id=told["environmentId"], pid=told["pid"]))
        died = ExecutorDied("executor", process.pid, await process.wait())
        # Whoever it left behind may still hold its outputs.
        nursery.cancel_scope.cancel()
    raise died


async def _pass_on_lines(output: trio.abc.ReceiveStream, tell: Callable[[str], None]) -> None:
    rest = b""
    async for piece in output:
        *lines, rest = (rest + piece).split(b"\n")
        rest = rest[-LINE_BYTES_MAX:]
        for line in lines:
            tell(line[:LINE_BYTES_MAX].decode(errors="replace"))
