"""The seam between the executor and the operating system's processes.

A launcher turns a :class:`LaunchSpec` into a running process with its pipes. The real one is
:class:`actors.executor.PosixLauncher`; its in-memory twin is in ``actors.executor.testing``. Both pass one contract
suite.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from actors.executor._errors import SettingInvalid, SpawnFailed
from actors.executor._settings import check_kind, check_variables
from actors.protocol import SpawnFailureKind, Stream

__all__ = ["InputEnd", "LaunchSpec", "LaunchedProcess", "OutputEnd", "ProcessLauncher", "Sighting", "Terminal"]


# What the system's own record of a size can hold.
_LENGTH_MAX = 2**16 - 1


def _require_length(_: object, attribute: Any, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LENGTH_MAX:
        raise SettingInvalid(attribute.name, f"must be a whole number from 0 to {_LENGTH_MAX}, not {value!r}")


@attrs.frozen(kw_only=True)
class Terminal:
    """The size a pseudo terminal begins with.

    Attributes:
        rows: Lines.
        columns: Characters in a line.
    """

    rows: int = attrs.field(default=24, validator=_require_length)
    columns: int = attrs.field(default=80, validator=_require_length)


@attrs.frozen(kw_only=True)
class LaunchSpec:
    """One process to start. A spec that exists can be handed to the system.

    Attributes:
        argv: The program (a path, or a bare name to be looked up) and its arguments.
        cwd: Native path of the working directory.
        variables: The whole environment of the process; nothing is added.
        arg0: What the program sees as ``argv[0]``, when it is not its path.
        pipe_stdin: Whether standard input is a pipe; else it is at its end from the beginning.
        terminal: A pseudo terminal in place of the three pipes.
    """

    argv: tuple[str, ...]
    cwd: str
    variables: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    arg0: str | None = None
    pipe_stdin: bool = False
    terminal: Terminal | None = None

    def __attrs_post_init__(self) -> None:
        self._refuse_wrong_kinds()
        if not self.argv or not self.argv[0]:
            raise SpawnFailed(
                SpawnFailureKind.FAILED, f"missing program for {'PTY' if self.terminal else 'pipe'} spawn"
            )
        if any("\0" in text for text in (*self.argv, self.cwd, self.arg0 or "")):
            raise SpawnFailed(SpawnFailureKind.FAILED, "nul byte found in provided data")
        if any("\0" in text for pair in self.variables.items() for text in pair):
            raise SpawnFailed(SpawnFailureKind.FAILED, "data provided contains a nul byte")
        if any(not name or "=" in name for name in self.variables):
            raise SpawnFailed(SpawnFailureKind.FAILED, "a variable name is empty or holds an equals sign")

    def _refuse_wrong_kinds(self) -> None:
        check_kind("argv", self.argv, tuple)
        for place, text in enumerate(self.argv):
            check_kind(f"argv[{place}]", text, str)
        check_kind("cwd", self.cwd, str)
        check_variables("variables", self.variables)
        if self.arg0 is not None:
            check_kind("arg0", self.arg0, str)
        check_kind("pipe_stdin", self.pipe_stdin, bool)
        if self.terminal is not None:
            check_kind("terminal", self.terminal, Terminal)


@attrs.frozen(kw_only=True)
class Sighting:
    """A process as it was seen in the system's table; never mistaken for a later one with its number.

    Attributes:
        pid: Its number.
        name: Its program's short name, as the system shows it.
        started_ticks: When it started, in the system's own ticks: tells it from a later process with the same number.
        group: Its process group.
    """

    pid: int
    name: str
    started_ticks: int
    group: int = 0


class OutputEnd(Protocol):
    """The reading end of one output pipe (or of a pseudo terminal)."""

    @property
    def capacity_bytes(self) -> int:
        """The most that may have been written and not yet been read."""
        ...

    def read_nowait(self) -> bytes | None:
        """Read up to 60 KiB: ``None`` when nothing is there at the moment, empty at the end."""
        ...

    async def wait_readable(self) -> None:
        """Wait until there is something to read, or the end.

        Cancelled:
            Only the wait ends.
        """
        ...

    def close(self) -> None:
        """Give the pipe up; whoever still writes gets a broken pipe."""
        ...


class InputEnd(Protocol):
    """The writing end of standard input."""

    async def send_all(self, data: bytes) -> None:
        """Write everything.

        Raises:
            trio.BrokenResourceError: Nobody can read it any more.

        Cancelled:
            A part may have been written.
        """
        ...

    def close(self) -> None:
        """Give the process its end of input."""
        ...


class LaunchedProcess(Protocol):
    """A process that leads its own session and group."""

    @property
    def pid(self) -> int:
        """Its number, which is also the number of its group and session."""
        ...

    @property
    def stdin(self) -> InputEnd | None:
        """Its standard input, when that was asked for."""
        ...

    @property
    def outputs(self) -> Mapping[Stream, OutputEnd]:
        """Its output ends: standard output and error, or only the terminal."""
        ...

    async def wait(self) -> int:
        """Wait until it is dead and reaped; the exit status, or minus the signal that killed it.

        Cancelled:
            It lives on, or stays unreaped until the next call.
        """
        ...

    @property
    def left_members(self) -> bool:
        """Whether its group still had members at the moment it was reaped."""
        ...

    def signal_group(self, number: int) -> bool:
        """Send a signal to every member of the group; False when the group is empty or was given up."""
        ...

    async def find_survivors(self, *, holders: bool = True) -> tuple[Sighting, ...]:
        """Find living descendants and members of the group, the leader excepted.

        Args:
            holders: Also find who lost its parents but holds an output pipe; costs a look at every process's files.

        Cancelled:
            Only the look ends.
        """
        ...

    def kill_sighted(self, sighted: Sighting) -> bool:
        """Kill exactly the process that was seen, never another with its number."""
        ...

    def leave(self, *sighted: Sighting) -> None:
        """Let those that were seen run on after their command; they still must not outlive us."""
        ...


class ProcessLauncher(Protocol):
    """Starts processes."""

    async def launch(self, spec: LaunchSpec) -> LaunchedProcess:
        """Start a process.

        Raises:
            SpawnFailed: The system refused; nothing was left behind.

        Cancelled:
            Either nothing was started or the process is returned; never a process without a holder.
        """
        ...


def exit_code(status: int) -> int:
    """The exit code as the protocol counts it: 128 + n after a death by signal n."""
    return status if status >= 0 else 128 - status
