"""Start real processes: own session and group, exact environment, own pipes.

Knows the operating system. Does not know sessions, the protocol or what a process is for.
"""

import fcntl
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial

import trio

from actors.executor._errors import SpawnFailed
from actors.executor._file_tree import FileTree
from actors.executor._guard import Guard, open_guard
from actors.executor._launching import InputEnd, LaunchedProcess, LaunchSpec, OutputEnd, Sighting
from actors.executor._process_table import SharedTable, kill_exactly, look_until_it_can, relatives_of, writers_of
from actors.executor._routes import LeftRoots
from actors.executor._spawning import Child, Spawner
from actors.executor._terminal import open_terminal, terminal_command
from actors.protocol import SpawnFailureKind, Stream, outside_roots

__all__ = ["PosixLauncher", "PosixProcess", "open_posix_launcher"]

READ_BYTES_MAX = 60 * 1024


@asynccontextmanager
async def open_posix_launcher(tree: FileTree | None = None) -> AsyncGenerator["PosixLauncher", None]:
    """Open a launcher whose processes do not outlive us, even when we are killed; with a tree they start in there.

    Cancelled:
        As at its end: what still runs is killed.
    """
    async with open_guard() as guard:
        yield PosixLauncher(guard, tree)


class PosixLauncher:
    """Starts processes of this system."""

    def __init__(self, guard: Guard | None = None, tree: FileTree | None = None) -> None:
        self._guard, self._tree = guard, tree
        self._table = SharedTable()
        self._spawner = Spawner()

    async def launch(self, spec: LaunchSpec) -> LaunchedProcess:
        """Start a process as the leader of a session and a group of its own.

        Raises:
            SpawnFailed: The system refused; no process and no pipe was left behind.

        Cancelled:
            Only before the process exists. Once the system was asked, its answer is waited for.
        """
        with ExitStack() as ours_on_failure, ExitStack() as theirs:
            cwd = spec.cwd if self._tree is None else theirs.enter_context(_confined(self._tree, spec.cwd))
            program, argv = _command_of(spec)
            try:
                # Here already the system may refuse: it has only so many descriptors and terminals.
                streams = _Streams(spec, ours_on_failure, theirs)
                child = await self._spawner.spawn(
                    argv,
                    about_to_start=partial(self._expect, streams),
                    executable=program,
                    stdin=streams.child_stdin,
                    stdout=streams.child_stdout,
                    stderr=streams.child_stderr,
                    env=spec.variables,
                    cwd=cwd,
                )
            except OSError as error:
                raise SpawnFailed.from_os_error(error) from error
            except ValueError as error:  # Text the system cannot take; its message would quote it.
                raise SpawnFailed(SpawnFailureKind.FAILED, f"invalid text: {type(error).__name__}") from None
            ours_on_failure.pop_all()
        if self._guard is not None:
            self._guard.watch(child.pid)
        return PosixProcess(child, streams, self._guard, self._table)

    def _expect(self, streams: "_Streams") -> None:
        if self._guard is not None:
            self._guard.expect(next(iter(streams.pipe_names), ""))


@contextmanager
def _confined(tree: FileTree, path: str) -> Generator[str, None, None]:
    """Hold a working folder open, and give a name by which a child enters exactly this one."""
    try:
        with tree.at(path) as spot:
            folder = spot.open(os.O_RDONLY | os.O_DIRECTORY)
            where = "/" + "/".join(spot.where)
    except LeftRoots:
        raise SpawnFailed(SpawnFailureKind.PERMISSION_DENIED, outside_roots(path).message, path=path) from None
    except OSError as error:
        error.filename = path
        raise SpawnFailed.from_os_error(error) from error
    try:
        # The child enters it between fork and exec, where it still has our descriptors.
        by_number = f"/proc/self/fd/{folder}"
        yield by_number if os.path.isdir(by_number) else where
    finally:
        os.close(folder)


def _command_of(spec: LaunchSpec) -> tuple[str, tuple[str, ...]]:
    """What to execute, and what it sees as its arguments."""
    if spec.terminal is not None:
        command = terminal_command(spec)
        return command[0], command
    first = spec.argv[0] if spec.arg0 is None else spec.arg0
    return spec.argv[0], (first, *spec.argv[1:])


class _Streams:
    """The pipes of one process: our ends, and the ends handed to the child."""

    def __init__(self, spec: LaunchSpec, ours_on_failure: ExitStack, theirs: ExitStack) -> None:
        self.stdin: InputEnd | None = None
        self.outputs: dict[Stream, OutputEnd] = {}
        self.child_stdin = self.child_stdout = self.child_stderr = subprocess.DEVNULL
        if spec.terminal is not None:
            self._open_terminal(spec, ours_on_failure, theirs)
            return
        self.child_stdout = self._open_output(Stream.STDOUT, ours_on_failure, theirs)
        self.child_stderr = self._open_output(Stream.STDERR, ours_on_failure, theirs)
        if spec.pipe_stdin:
            self.child_stdin, writing = os.pipe()
            theirs.callback(os.close, self.child_stdin)
            self.stdin = trio.lowlevel.FdStream(writing)
            ours_on_failure.callback(self.stdin.close)

    @property
    def pipe_names(self) -> tuple[str, ...]:
        """What the system calls the output pipes; none for a terminal."""
        names = (end.system_name for end in self.outputs.values() if isinstance(end, PipeEnd))
        return tuple(name for name in names if name.startswith("pipe:"))

    def _open_output(self, stream: Stream, ours_on_failure: ExitStack, theirs: ExitStack) -> int:
        reading, writing = os.pipe()
        theirs.callback(os.close, writing)
        end = self.outputs[stream] = PipeEnd(reading)
        ours_on_failure.callback(end.close)
        return writing

    def _open_terminal(self, spec: LaunchSpec, ours_on_failure: ExitStack, theirs: ExitStack) -> None:
        assert spec.terminal is not None, "only a process with a terminal comes here"
        controller, child = open_terminal(spec.terminal)
        theirs.callback(os.close, child)
        output = self.outputs[Stream.PTY] = PipeEnd(controller)
        ours_on_failure.callback(output.close)
        self.stdin = trio.lowlevel.FdStream(os.dup(controller))
        ours_on_failure.callback(self.stdin.close)
        self.child_stdin = self.child_stdout = self.child_stderr = child


class PipeEnd:
    """The reading end of a pipe, or the controlling end of a pseudo terminal."""

    __slots__ = ("_fd", "capacity_bytes", "system_name")

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self.capacity_bytes = _capacity_of(fd)
        self.system_name = _system_name_of(fd)

    def read_nowait(self) -> bytes | None:
        """Read what is there, up to 60 KiB."""
        if self._fd < 0:
            return b""
        try:
            return os.read(self._fd, READ_BYTES_MAX)
        except BlockingIOError:
            return None
        except OSError:  # A terminal whose last user is gone answers with an input/output error.
            return b""

    async def wait_readable(self) -> None:
        """Wait for output, or for the end."""
        await trio.lowlevel.wait_readable(self._fd)

    def close(self) -> None:
        """Give the pipe up."""
        if self._fd >= 0:
            trio.lowlevel.notify_closing(self._fd)
            os.close(self._fd)
            self._fd = -1


def _capacity_of(fd: int) -> int:
    try:
        return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    except (OSError, AttributeError):  # A terminal, or a system that does not tell.
        return 64 * 1024


def _system_name_of(fd: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


class PosixProcess:
    """A process of this system that leads its own session and group."""

    def __init__(self, child: Child, streams: _Streams, guard: Guard | None, table: SharedTable) -> None:
        self._child = child
        self._reaped = False
        self.left_members = False
        self._guard = guard
        self._table = table
        self._pipes = streams.pipe_names
        self.pid: int = child.pid
        self.stdin: InputEnd | None = streams.stdin
        self.outputs: Mapping[Stream, OutputEnd] = streams.outputs

    async def wait(self) -> int:
        """Wait until the leader is dead and reaped.

        Cancelled:
            It lives on, or stays unreaped until the next call.
        """
        status = await self._child.wait()
        if not self._reaped:
            # In the same breath, so that the number cannot be anybody else's yet.
            self._reaped = True
            self.left_members = _group_has_members(self.pid)
            if self._guard is not None:
                (self._guard.orphan if self.left_members else self._guard.forget)(self.pid)
        return status

    def signal_group(self, number: int) -> bool:
        """Signal the group, as long as its number cannot have become somebody else's."""
        if self._reaped:
            return False  # The number may be given out again. Those left are survivors, found by what they are.
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    async def find_survivors(self, *, holders: bool = True) -> tuple[Sighting, ...]:
        """Find living relatives, and holders of the output pipes, the leader excepted."""
        table = await self._table.fresh()
        found = relatives_of(self.pid, table)
        if holders and self._pipes:
            found |= await look_until_it_can(partial(writers_of, self._pipes, table))
        found.pop(self.pid, None)
        return tuple(entry.as_sighting() for _, entry in sorted(found.items()))

    def kill_sighted(self, sighted: Sighting) -> bool:
        """Kill exactly the process that was seen."""
        return kill_exactly(sighted, signal.SIGKILL)

    def leave(self, *sighted: Sighting) -> None:
        """Have those that were seen die with us, also if we are killed; their group is nobody's any more."""
        if self._guard is not None:
            for one in sighted:
                self._guard.watch_left(one)
            if self.left_members:
                self._guard.forget(self.pid)


def _group_has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
