"""In-memory twins of what the executor touches: a launcher whose programs are functions, and a pair of channels.

The launcher passes the same contract suite as the real one. Nothing here starts a process or opens a socket, so a whole
executor runs under a virtual clock.
"""

import signal
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from itertools import count

import trio

from actors.blocks import block, open_helpers
from actors.executor._channel import CloseReason
from actors.executor._errors import SpawnFailed
from actors.executor._launching import LaunchedProcess, LaunchSpec, OutputEnd, Sighting
from actors.executor._memory_pipe import MemoryInput, MemoryPipe
from actors.protocol import SpawnFailureKind, Stream

__all__ = [
    "MemoryChannel",
    "MemoryLauncher",
    "MemoryPipe",
    "MemoryProcess",
    "Program",
    "memory_channel_pair",
    "open_memory_launcher",
]

Program = Callable[["MemoryProcess"], Awaitable[int]]
"""What a process does; returns its exit status."""


class MemoryProcess:
    """A process as its program sees it."""

    def __init__(self, launched: "_Launched", spec: LaunchSpec, pid: int, *, group: int, name: str) -> None:
        self._launched, self._scope = launched, trio.CancelScope()
        self._ignored: set[int] = set()
        self.spec = spec
        """How it was started."""
        self.pid: int = pid
        self.group: int = group
        self.name: str = name
        self.killed_by: int = 0
        """The signal that ended it, or 0."""

    async def write(self, data: bytes, *, stream: Stream | None = None) -> None:
        """Write to an output; standard output (or the terminal) unless told otherwise.

        Cancelled:
            A part may have been written.
        """
        default = Stream.PTY if self.spec.terminal is not None else Stream.STDOUT
        await self._launched.pipes[stream or default].write(data)

    async def read(self) -> bytes:
        """Read from standard input; empty at its end.

        Cancelled:
            Nothing is lost.
        """
        pipe = self._launched.stdin_pipe
        if pipe is None:
            return b""
        while (data := pipe.read_nowait()) is None:
            await pipe.wait_readable()
        return data

    def ignore(self, number: int) -> None:
        """Do not end at this signal."""
        self._ignored.add(number)

    def leave_behind(self, program: Program, *, own_session: bool = False, name: str = "child") -> None:
        """Start a descendant that holds the outputs."""
        self._launched.start_member(program, own_session=own_session, name=name)

    def take_signal(self, number: int) -> bool:
        """Be sent a signal."""
        if number == signal.SIGKILL or number not in self._ignored:
            self.killed_by = self.killed_by or number
            self._scope.cancel()
        return True

    async def run(self, program: Program) -> int:
        """Run to the end; the status, or minus the signal.

        Cancelled:
            The program is cancelled; there is no status.
        """
        status = 0
        with self._scope:
            try:
                status = await program(self)
            except trio.BrokenResourceError:
                self.killed_by = signal.SIGPIPE
        return -self.killed_by if self.killed_by else status


class _Launched:
    """A process as its launcher's caller sees it."""

    def __init__(self, launcher: "MemoryLauncher", spec: LaunchSpec) -> None:
        self._launcher, self._spec = launcher, spec
        self.pid: int = launcher.next_pid()
        streams = (Stream.PTY,) if spec.terminal else (Stream.STDOUT, Stream.STDERR)
        self.pipes: dict[Stream, MemoryPipe] = {
            stream: MemoryPipe(capacity_bytes=launcher.capacity_bytes) for stream in streams
        }
        self.outputs: Mapping[Stream, OutputEnd] = self.pipes
        self.stdin_pipe: MemoryPipe | None = (
            MemoryPipe(capacity_bytes=launcher.capacity_bytes) if spec.pipe_stdin else None
        )
        self.stdin: MemoryInput | None = MemoryInput(self.stdin_pipe) if self.stdin_pipe is not None else None
        if self.stdin_pipe is not None:
            self.stdin_pipe.writers = 1
        self.left_members: bool = False
        self._status: int | None = None
        self._exited = trio.Event()
        # Everybody alive: the leader and those it left behind.
        self._members: dict[int, MemoryProcess] = {}

    def start_leader(self, program: Program) -> None:
        self._start(program, self.pid, group=self.pid, name=self._spec.argv[0])

    def start_member(self, program: Program, *, own_session: bool, name: str) -> None:
        pid = self._launcher.next_pid()
        self._start(program, pid, group=pid if own_session else self.pid, name=name)

    def _start(self, program: Program, pid: int, *, group: int, name: str) -> None:
        member = MemoryProcess(self, self._spec, pid, group=group, name=name)
        self._members[pid] = member
        for pipe in self.pipes.values():
            pipe.writers += 1
        self._launcher.nursery.start_soon(self._run, member, program)

    async def _run(self, member: MemoryProcess, program: Program) -> None:
        try:
            status = await member.run(program)
        finally:
            del self._members[member.pid]
            for pipe in self.pipes.values():
                pipe.drop_writer()
        if member.pid == self.pid:
            self._status = status
            if self.stdin_pipe is not None and not self._members:
                self.stdin_pipe.close()
            self._exited.set()

    async def wait(self) -> int:
        await self._exited.wait()
        assert self._status is not None, "an exited process has a status"
        self.left_members = any(member.group == self.pid for member in self._members.values())
        return self._status

    def signal_group(self, number: int) -> bool:
        if self._exited.is_set():
            return False
        members = [member for member in self._members.values() if member.group == self.pid]
        for member in members:
            member.take_signal(number)
        return bool(members)

    async def find_survivors(self, *, holders: bool = True) -> tuple[Sighting, ...]:
        del holders  # Here everybody knows its parents.
        await trio.lowlevel.checkpoint()
        return tuple(
            Sighting(pid=member.pid, name=member.name, started_ticks=0, group=member.group)
            for member in self._members.values()
            if member.pid != self.pid and not member.killed_by
        )

    def leave(self, *sighted: Sighting) -> None:
        """Nobody here outlives anybody: all of it is one program."""

    def kill_sighted(self, sighted: Sighting) -> bool:
        member = self._members.get(sighted.pid)
        return member is not None and not member.killed_by and member.take_signal(signal.SIGKILL)


class MemoryLauncher:
    """Starts functions as if they were programs. Given by :func:`open_memory_launcher`."""

    def __init__(self, nursery: trio.Nursery, programs: Mapping[str, Program], *, capacity_bytes: int) -> None:
        self.nursery: trio.Nursery = nursery
        self.capacity_bytes: int = capacity_bytes
        self.programs: dict[str, Program] = dict(programs)
        """By the name that stands in ``argv[0]``."""
        self.launched: deque[LaunchSpec] = deque(maxlen=1000)
        """What was started, newest last."""
        self._pids = count(1000)

    def next_pid(self) -> int:
        """Give a number that was never given before."""
        return next(self._pids)

    async def launch(self, spec: LaunchSpec) -> LaunchedProcess:
        """Start a program by its name.

        Raises:
            SpawnFailed: There is none.

        Cancelled:
            Nothing was started.
        """
        await trio.lowlevel.checkpoint()
        program = self.programs.get(spec.argv[0])
        if program is None:
            raise SpawnFailed(SpawnFailureKind.NOT_FOUND, "No such file or directory (os error 2)", path=spec.argv[0])
        self.launched.append(spec)
        process = _Launched(self, spec)
        process.start_leader(program)
        return process


@block
async def open_memory_launcher(
    programs: Mapping[str, Program], *, capacity_bytes: int = 64 * 1024
) -> AsyncGenerator[MemoryLauncher, None]:
    """Open a launcher for the duration of a block; what still runs at its end is cancelled.

    Cancelled:
        As at its end: what still runs is cancelled.
    """
    async with open_helpers() as nursery:
        yield MemoryLauncher(nursery, programs, capacity_bytes=capacity_bytes)


class MemoryChannel:
    """One end of a connection in memory."""

    def __init__(
        self,
        peer: str,
        send: trio.MemorySendChannel[bytes | str],
        receive: trio.MemoryReceiveChannel[bytes | str],
    ) -> None:
        self.peer = peer
        self.answers_malformed = True
        self.closed_with: CloseReason | None = None
        """What this end said when it closed."""
        self._send, self._receive = send, receive

    async def receive(self) -> bytes | str:
        """Wait for the next message.

        Raises:
            trio.EndOfChannel: The connection is over, for whatever reason.

        Cancelled:
            No message is lost.
        """
        try:
            return await self._receive.receive()
        except trio.ClosedResourceError:
            raise trio.EndOfChannel from None

    async def send(self, messages: Sequence[bytes | str]) -> None:
        """Send messages, one by one.

        Raises:
            trio.BrokenResourceError: The connection is over.

        Cancelled:
            The first of them are sent, each whole; the others are not.
        """
        try:
            for data in messages:
                await self._send.send(data)
        except trio.ClosedResourceError:
            raise trio.BrokenResourceError("the channel is closed") from None

    async def close(self, reason: CloseReason) -> None:
        """End the connection.

        Cancelled:
            Never: it does not wait.
        """
        self.closed_with = self.closed_with or reason
        self.cut()

    def cut(self) -> None:
        """End the connection without a word."""
        self._send.close()
        self._receive.close()


def memory_channel_pair(*, buffered: int = 16) -> tuple[MemoryChannel, MemoryChannel]:
    """Give both ends of a connection: the client's and the executor's.

    Args:
        buffered: How many messages each direction holds before its sender waits.
    """
    to_executor, from_client = trio.open_memory_channel[bytes | str](buffered)
    to_client, from_executor = trio.open_memory_channel[bytes | str](buffered)
    return (
        MemoryChannel("executor", to_executor, from_executor),
        MemoryChannel("client", to_client, from_client),
    )


for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith("actors.executor."):
        _object.__module__ = __name__
