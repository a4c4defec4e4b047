"""One engine process: started, fed, read, killed and reaped by a task of its own."""

import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import trio

from actors.sessions.host._engines import PRELUDE, Engine
from actors.sessions.host._frames import BadFrame, Frame, FrameDecoder, encode
from actors.sessions.host._launching import Launcher, Started
from actors.sessions.host._walls import confine, resident_bytes
from supervision import ChildStatus

_READ_BYTES: Final = 64 * 1024
_PIPE_BYTES: Final = 1024 * 1024
_STDERR_BYTES_MAX: Final = 16 * 1024
_PENDING_BYTES_MAX: Final = 256 * 1024 * 1024
_REAP_S: Final = 10.0
_MEMORY_SIGNS: Final = ("heap", "out of memory", "invalid size error")
"""What V8 writes when it dies of a heap that is full, or of one thing that fits none."""


Around = tuple[Callable[[], object], Callable[[], object]]
_NOTHING: Final[Around] = (lambda: None, lambda: None)


class Listener(Protocol):
    """What a process speaks to: the cell it runs, or nobody."""

    def frame(self, frame: Frame, /) -> None:
        """Take one frame of the running cell."""

    def process_ended(self, why: str, /) -> None:
        """Learn that the process is gone, with the text of the error that this is for its cell."""


class EngineProcess:
    """Runs cells one after the other, of one session only. Everything but `run` is a plain function."""

    def __init__(
        self,
        launcher: Launcher,
        engine: Engine,
        heap_bytes: int,
        place: str,
        *,
        on_ready: "Callable[[EngineProcess], object]",
        on_end: "Callable[[EngineProcess], object]",
    ) -> None:
        self._launcher, self._engine, self._place = launcher, engine, place
        self._on_ready, self._on_end = on_ready, on_end
        self._process: Started | None = None
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._more = trio.lowlevel.ParkingLot()
        self._decoder = FrameDecoder()
        self._stderr = bytearray()
        self._why: str | None = None
        self.heap_bytes = heap_bytes
        """Its room for JavaScript."""
        self.listener: Listener | None = None
        """The cell it runs."""
        self.on_idle: Callable[[int], object] | None = None
        """Called with the number of a cell when nothing of it runs any more."""
        self.around_reads: Around | None = None
        """Called before and after all that was read at a time is told."""
        self.cells = 0
        """How many cells it was given."""
        self.stored_seen = 0
        """Up to which change it knows the stored values of its session."""
        self.ready: bool = False
        self.dead: bool = False
        self.began_s: float = trio.current_time()
        """When it was asked for."""
        self.walls: tuple[str, ...] = ()
        """Which limits of the operating system hold for it."""
        self.resident_start_bytes: int = 0
        """What it took before its first cell."""

    @property
    def pid(self) -> int | None:
        """Its process id, once started."""
        return None if self._process is None else self._process.pid

    @property
    def stderr(self) -> str:
        """The end of what it wrote to standard error."""
        return self._stderr.decode("utf-8", "replace")

    async def run(self, *, task_status: "ChildStatus[EngineProcess]") -> None:
        """Start it and serve it until it has ended.

        Cancelled:
            It is killed and reaped.
        """
        task_status.started(self)
        try:
            self._process, walls = await self._launcher.start(
                self._engine.command(self.heap_bytes),
                {"TZ": "UTC", "LANG": "en_US.UTF-8", "NO_COLOR": "1", "DENO_DIR": self._place, "HOME": self._place},
                self._place,
            )
            self.walls = walls.active
            _widen(self._process)
            await self._serve(self._process)
        except OSError as error:
            self._stderr += str(error).encode()
        finally:
            self.dead = True
            with trio.CancelScope(shield=True, deadline=trio.current_time() + _REAP_S):
                await self._reap()
            self._ended()

    async def _serve(self, process: Started) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write_pending)
            nursery.start_soon(self._keep_errors)
            self.send(["hello", PRELUDE.read_text()])
            if self.dead:  # Killed before it was there.
                process.kill()
            await self._read_frames(process)
            nursery.cancel_scope.cancel()

    async def _read_frames(self, process: Started) -> None:
        assert process.stdout is not None, "it was started with a pipe"
        size = _READ_BYTES
        while True:
            try:
                data = await _receive(process.stdout, size)
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                return
            if not data:
                return
            # Room is made for every read anew: much of it only while there is much to read.
            size = _PIPE_BYTES if len(data) == size else _READ_BYTES
            self._take_told(data)
            while self._decoder.more:
                # A process that says much at a time takes as many turns; others have theirs between.
                await trio.lowlevel.checkpoint()
                self._take_told(b"")

    def _take_told(self, data: bytes) -> None:
        before, after = self.around_reads or _NOTHING
        before()
        try:
            self._take(data)
        finally:
            after()

    def _take(self, data: bytes) -> None:
        broken = False
        try:
            frames = self._decoder.feed(data)
        except BadFrame as bad:
            frames, broken = bad.before, True
        try:
            for frame in frames:
                self._take_frame(frame)
        except (TypeError, ValueError, LookupError, AttributeError):
            broken = True
        if broken:
            # Whatever it wrote, it is not what the harness writes: the cell has broken it, and it is not used again.
            self.kill("exec runtime ended unexpectedly")

    def _take_frame(self, frame: Frame) -> None:
        kind, number = frame[0], frame[1]
        if not self.ready:
            if kind == "ready":
                self._became_ready()
        elif number != self.cells:
            return  # Of a cell that is over.
        elif kind == "idle":
            if self.on_idle is not None:
                self.on_idle(number)
        elif self.listener is not None:
            self.listener.frame(frame)

    def _became_ready(self) -> None:
        assert self._process is not None, "this begins once the process has started"
        self.ready = True
        self.walls += confine(self._process.pid, self.heap_bytes)
        self.resident_start_bytes = resident_bytes(self._process.pid)
        self._on_ready(self)

    def send(self, frame: Frame) -> None:
        """Write a frame as `write` does."""
        self.write(encode(frame))

    def write(self, data: bytes) -> None:
        """Queue a frame, or write it at once where there is room. A process that does not read is killed."""
        if self.dead:
            return
        if not self._pending and self._process is not None:
            data = self._write_now(data)
        if data:
            self._pending.append(data)
            self._pending_bytes += len(data)
            self._more.unpark()
            if self._pending_bytes > _PENDING_BYTES_MAX:
                self._pending.clear()
                self._pending_bytes = 0
                self.kill("exec runtime did not take what it was sent")

    def _write_now(self, data: bytes) -> bytes:
        """Write what the pipe takes, and return the rest."""
        stdin = None if self._process is None else self._process.stdin
        if not isinstance(stdin, trio.lowlevel.FdStream):
            return data
        try:
            return data[os.write(stdin.fileno(), data) :]
        except BlockingIOError:
            return data
        except OSError:
            return b""  # It is gone; whoever reads from it finds out.

    async def _write_pending(self) -> None:
        assert self._process is not None, "this begins once the process has started"
        assert self._process.stdin is not None, "it was started with a pipe"
        while True:
            while not self._pending:
                await self._more.park()
            try:
                await self._process.stdin.send_all(self._pending[0])
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            if self.dead:
                return
            self._pending_bytes -= len(self._pending.popleft())

    async def _keep_errors(self) -> None:
        assert self._process is not None, "this begins once the process has started"
        assert self._process.stderr is not None, "it was started with a pipe"
        while True:
            try:
                data = await self._process.stderr.receive_some(_STDERR_BYTES_MAX)
            except trio.BrokenResourceError:
                return
            if not data:
                return
            self._stderr += data
            del self._stderr[:-_STDERR_BYTES_MAX]

    def kill(self, why: str | None = None) -> None:
        """End it now, whatever it does; `why` is what its cell is told."""
        if self._why is None:
            self._why = why
        self.dead = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def take_what_is_written(self) -> None:
        """Read what lies in the pipe already, without waiting."""
        stdout = None if self._process is None else self._process.stdout
        if isinstance(stdout, trio.lowlevel.FdStream):
            try:
                self._take_all(b"")
                for _ in range(16):
                    if not (data := os.read(stdout.fileno(), _PIPE_BYTES)):
                        return
                    self._take_all(data)
            except (BlockingIOError, OSError):
                return

    def _take_all(self, data: bytes) -> None:
        self._take(data)
        while self._decoder.more:
            self._take(b"")

    async def _reap(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        await self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                await stream.aclose()

    def _ended(self) -> None:
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.process_ended(self._why or self._reason())
        self._on_end(self)

    def _reason(self) -> str:
        code = None if self._process is None else self._process.returncode
        words = self.stderr.lower()
        fatal = code in {-signal.SIGTRAP, -signal.SIGABRT, -signal.SIGILL, 133, 134}
        if fatal and any(sign in words for sign in _MEMORY_SIGNS):
            return f"exec cell ran out of memory: its JavaScript heap is limited to {self.heap_bytes} bytes"
        return "exec runtime ended unexpectedly"


async def _receive(stream: trio.abc.ReceiveStream, size: int) -> bytes:
    """Read in one turn of the loop where it is a plain pipe; trio's own way takes one more before it looks."""
    if not isinstance(stream, trio.lowlevel.FdStream):
        return bytes(await stream.receive_some(size))
    while True:
        number = stream.fileno()
        await trio.lowlevel.wait_readable(number)
        try:
            return os.read(number, size)
        except BlockingIOError:
            continue


def _widen(process: Started) -> None:
    """Let more lie in its pipes at a time, where the system allows that: fewer turns for large texts."""
    if sys.platform != "linux":
        return
    import fcntl

    for stream in (process.stdin, process.stdout):
        if isinstance(stream, trio.lowlevel.FdStream):
            with contextlib.suppress(OSError):
                fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
