"""Start engine processes: through the guard where there is Linux to build walls with, plainly elsewhere."""

import contextlib
import glob
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import attrs
import trio

from actors.sessions.host._engines import HARNESS, Engine
from supervision import ChildStatus

_GUARD: Final = Path(__file__).parent / "_guard.py"
_MESSAGE_BYTES: Final = 64 * 1024
_GUARD_END_S: Final = 2.0
_READ: Final = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/nodejs", "/usr/share/zoneinfo",
    "/etc/ld.so.cache", "/etc/ssl/openssl.cnf", "/dev/null", "/dev/urandom", "/proc/self", "/proc/cpuinfo",
    "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu", "/sys/fs/cgroup",
)  # fmt: skip
_LOADERS: Final = "/lib*/ld-*.so*"
WALLS: Final[tuple[str, ...]] = ("no_new_privs", "landlock", "seccomp")
"""What the guard builds; the limits of `_walls` come on top."""


@attrs.frozen
class Walls:
    """Which walls of the operating system stand around an engine process.

    Attributes:
        active: The names of those that hold.
        missing: The names of the others, each with the reason.
    """

    active: tuple[str, ...] = ()

    missing: Mapping[str, str] = attrs.field(factory=dict[str, str])


class Started(Protocol):
    """A process that was started, whichever way."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        ...

    @property
    def stdin(self) -> trio.abc.SendStream | None:
        """What it reads."""

    @property
    def stdout(self) -> trio.abc.ReceiveStream | None:
        """What it writes."""

    @property
    def stderr(self) -> trio.abc.ReceiveStream | None:
        """What it complains."""

    def kill(self) -> None:
        """End it now; harmless when it has ended."""

    async def wait(self) -> int:
        """Wait until it has ended."""
        ...


class Launcher(Protocol):
    """Starts processes."""

    async def start(self, argv: Sequence[str], env: Mapping[str, str], place: str, /) -> tuple[Started, Walls]:
        """Start a process in a folder, and say what stands around it.

        Raises:
            OSError: It cannot be started.
        """
        ...


class PlainLauncher:
    """Starts processes without walls."""

    def __init__(self, why: str) -> None:
        self._missing: Mapping[str, str] = {str(wall): why for wall in WALLS}

    async def probe(self, place: str) -> Walls:
        """Say what stands around a process."""
        return Walls((), self._missing)

    async def start(self, argv: Sequence[str], env: Mapping[str, str], place: str, /) -> tuple[Started, Walls]:
        """Start a process as a child of this one."""
        process = await trio.lowlevel.open_process(
            [*argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place,
            env={**env},
            start_new_session=True,
        )
        return process, Walls((), self._missing)


class GuardedProcess:
    """A child of the guard."""

    def __init__(self, pid: int, handle: int, pipes: Sequence[int]) -> None:
        self.pid, self._handle = pid, handle
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = map(trio.lowlevel.FdStream, pipes)
        self._ended = trio.Event()

    def kill(self) -> None:
        """End it now. Its handle names this process and no other, also when its number is used again."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def ended(self, code: int) -> None:
        """Note how it ended."""
        if self.returncode is None:
            self.returncode = code
            os.close(self._handle)
            self._ended.set()

    async def wait(self) -> int:
        """Wait until it has ended."""
        await self._ended.wait()
        assert self.returncode is not None, "`ended` notes the code before it says so"
        return self.returncode


@attrs.define(eq=False)
class _Order:
    """A process that was asked for."""

    pipes: tuple[int, int, int]
    answered: trio.Event = attrs.field(factory=trio.Event)
    process: GuardedProcess | None = None
    walls: Walls = attrs.field(factory=Walls)
    why: str = "the guard of the engine processes ended"
    given_up: bool = False

    def drop(self) -> None:
        """Close this end of its pipes."""
        for descriptor in self.pipes:
            os.close(descriptor)


class GuardLauncher:
    """Starts processes as children of a guard, which outlives this program by just as long as it takes to kill them."""

    def __init__(self, engine: Engine, place: str) -> None:
        path = os.path.realpath(engine.path)
        beside = str(Path(path).parent.parent / "lib")
        execute = [path, *glob.glob(_LOADERS)]
        self._config = json.dumps({"read": [*_READ, beside, str(HARNESS)], "execute": execute, "write": [place]})
        self._ids = itertools.count()
        self._orders: dict[int, _Order] = {}
        self._processes: dict[int, GuardedProcess] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def begin(self) -> None:
        """Start the guard; `run` listens to it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            # On this thread: Linux would end the guard with a thread that comes and goes.
            self._guard = subprocess.Popen(  # noqa: S603  # Our own file.
                [sys.executable, "-I", "-S", str(_GUARD), str(number), self._config],
                stdin=subprocess.DEVNULL,
                pass_fds=[number],
                start_new_session=True,
            )
        ours.setblocking(False)
        self._socket = ours

    async def run(self, *, task_status: ChildStatus[None]) -> None:
        """Listen to the guard, and begin another when it ends: its processes have ended with it.

        Cancelled:
            Every process is killed, by the guard, and the guard is reaped.
        """
        task_status.started()
        try:
            while True:
                if self._socket is None:
                    self.begin()
                await self._listen()
                self._lost()
        finally:
            self._lost()

    async def _listen(self) -> None:
        assert self._socket is not None, "`begin` comes first, and only the end of this loses it"
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                data, handles, _, _ = socket.recv_fds(self._socket, _MESSAGE_BYTES, 1)
            except BlockingIOError:
                continue
            except OSError:
                return
            if not data:
                return
            self._hear(json.loads(data), handles)

    def _hear(self, news: dict[str, Any], handles: list[int]) -> None:
        if "ended" in news:
            process = self._processes.pop(news["ended"], None)
            if process is not None:
                process.ended(news["code"])
            return
        order = self._orders.pop(news["id"])
        if "failed" in news:
            order.why = news["failed"]
            order.drop()
        elif order.given_up:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handles[0], signal.SIGKILL)
            os.close(handles[0])
            order.drop()
        else:
            order.process = GuardedProcess(news["pid"], handles[0], order.pipes)
            order.walls = Walls(tuple(news.get("active", ())), news.get("missing", {}))
            self._processes[news["pid"]] = order.process
        order.answered.set()

    def _lost(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._guard is not None:
            try:
                self._guard.wait(_GUARD_END_S)  # It ends by itself now that its socket is closed.
            except subprocess.TimeoutExpired:
                self._guard.kill()  # What it started asked to die with it.
                self._guard.wait()
            self._guard = None
        for process in self._processes.values():
            process.ended(-signal.SIGKILL)
        for order in self._orders.values():
            order.drop()
            order.answered.set()
        self._processes.clear()
        self._orders.clear()

    async def probe(self, place: str) -> Walls:
        """Say what stands around a process, by one that does nothing else."""
        process, walls = await self.start([], {}, place)
        await process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                await stream.aclose()
        return walls

    async def start(self, argv: Sequence[str], env: Mapping[str, str], place: str, /) -> tuple[Started, Walls]:
        """Start a process behind walls.

        Cancelled:
            It is killed as soon as it is there.
        """
        (stdin, feed), (drain, stdout), (complaints, stderr) = os.pipe(), os.pipe(), os.pipe()
        order = _Order((feed, drain, complaints))
        number = next(self._ids)
        message = {"id": number, "argv": [*argv], "env": {**env}, "cwd": place}
        try:
            await self._send(json.dumps(message).encode(), (stdin, stdout, stderr))
        except BaseException:
            order.drop()
            raise
        finally:
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)
        self._orders[number] = order
        try:
            await order.answered.wait()
        except trio.Cancelled:
            order.given_up = True  # It is there soon, and ended then; or it is there, and ended now.
            if order.process is not None:
                order.process.kill()
            raise
        if order.process is None:
            raise OSError(order.why)
        return order.process, order.walls

    async def _send(self, message: bytes, descriptors: Sequence[int]) -> None:
        while self._socket is not None:
            try:
                socket.send_fds(self._socket, [message], descriptors)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
            else:
                return
        raise OSError("the guard of the engine processes ended")


def launcher_for(engine: Engine, place: str) -> GuardLauncher | PlainLauncher:
    """Choose how processes are started here, and start the guard if there is to be one."""
    if sys.platform != "linux":
        return PlainLauncher(f"{sys.platform} has none of them")
    try:
        os.close(os.pidfd_open(os.getpid()))
        guarded = GuardLauncher(engine, place)
        guarded.begin()
    except OSError as refused:
        return PlainLauncher(str(refused))
    return guarded
