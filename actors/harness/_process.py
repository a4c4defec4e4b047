"""A process in an environment, as its user holds it."""

from collections.abc import Sequence
from typing import Final

import attrs
import trio

from actors.harness._arguments import check_kind, check_seconds, check_signal, checked_bytes
from actors.harness._backlog import Skipped
from actors.harness._core import Core
from actors.harness._errors import ProcessFailed, RequestRejected, StdinUnavailable
from actors.harness._followed import Followed
from actors.harness._reading import OutputBytes, OutputLines, OutputPieces, OutputText
from actors.protocol import (
    PROCESS_READ,
    PROCESS_SIGNAL,
    PROCESS_TERMINATE,
    PROCESS_WRITE,
    OutputChunk,
    OutputGap,
    ReadParams,
    Signal,
    SignalParams,
    StartParams,
    Stream,
    Survivor,
    TerminateParams,
    TextDecoder,
    WriteParams,
    WriteStatus,
    stdin_write_failed,
)

_WRITE_BYTES: Final = 64 * 1024
# Longer than anybody waits, short enough for every wire.
_GRACE_S_MAX: Final = 24 * 3600.0
_REFETCH_BYTES: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class ProcessExit:
    """How a process ended.

    Attributes:
        code: Its exit code; 128 + n after signal n.
        sandbox_denied: The sandbox stopped it.
        drain_limited: A descendant still held the output when the executor stopped waiting for its end.
        survivors: Descendants that a kill of the group could not reach.
    """

    code: int
    sandbox_denied: bool
    drain_limited: bool
    survivors: tuple[Survivor, ...]


class Process:
    """A running process: its output, its input, its end. Handed out by `Processes.start`."""

    def __init__(self, core: Core, followed: Followed, params: StartParams) -> None:
        self._core = core
        self._followed = followed
        self._params = params
        self._decoders: dict[Stream, TextDecoder] = {}
        self.stdin: ProcessStdin = ProcessStdin(core, followed, params)
        """Standard input; of use when the process was started with ``pipe_stdin`` or ``tty``."""

    def __repr__(self) -> str:
        return f"<Process {self.id!r} {self._params.argv[0]!r} at position {self.position}>"

    @property
    def id(self) -> str:
        """What the executor calls it."""
        return self._params.process_id

    @property
    def argv(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return self._params.argv

    @property
    def position(self) -> int:
        """The last position of output that was read here."""
        return self._followed.backlog.position

    @property
    def exit(self) -> ProcessExit | None:
        """How it ended; None while output may still come."""
        exited, closed = self._followed.backlog.exited, self._followed.backlog.closed
        if exited is None or closed is None:
            return None
        return ProcessExit(
            code=exited.exit_code,
            sandbox_denied=exited.sandbox_denied,
            drain_limited=closed.drain_limited,
            survivors=closed.survivors,
        )

    def chunks(self) -> OutputPieces:
        """Iterate output with stream and position; a gap comes as an `OutputGap`.

        Iterating, here and below, ends when the process has closed its output and exited, and raises
        `ProcessStateUnknown` or `ProcessFailed` when that can no longer be learnt: never an end that did not happen.
        """
        return OutputPieces(self._take)

    def output(self, *streams: Stream) -> OutputBytes:
        """Iterate output as bytes, of all streams or of those named; what others wrote is passed over."""
        _check_streams(streams)
        return OutputBytes(self._take, streams)

    def text(self, *streams: Stream) -> OutputText:
        """Iterate output as text; what is not UTF-8 becomes replacement marks, wherever the bytes were cut."""
        _check_streams(streams)
        return OutputText(self._take, streams, self._decoders)

    def lines(self, *streams: Stream) -> OutputLines:
        """Iterate output as lines, without their ends."""
        _check_streams(streams)
        return OutputLines(self._take, streams, self._decoders)

    async def wait(self) -> int:
        """Wait for the end, after the last output, and give the exit code.

        Output nobody reads is held up to a limit; read it before, or beside, if there may be much.

        Raises:
            ProcessStateUnknown: The connection was lost for good.
            ProcessFailed: The process can no longer be followed.

        Cancelled:
            Only the wait ends.
        """
        await self._followed.wait_over()
        if self._followed.failure is not None:
            raise self._followed.failure
        ended = self.exit
        if ended is None:
            raise ProcessFailed(self.id, self._followed.backlog.arrived_seq, "it closed without an exit code")
        return ended.code

    async def signal(self, signal: Signal = Signal.INTERRUPT) -> None:
        """Send an interrupt to the process's group, as Ctrl-C does; no error when it has ended.

        Args:
            signal: `actors.protocol.Signal.INTERRUPT`, the one signal that the protocol has; `terminate` kills.

        Cancelled:
            The signal may have been sent.
        """
        check_signal(signal)
        await self._core.call(PROCESS_SIGNAL, SignalParams(process_id=self.id, signal=signal), identity=self.id)

    async def terminate(self, *, grace_s: float | None = None) -> bool:
        """Kill the process's group; tell whether it was running.

        Args:
            grace_s: Ask first, and kill after this time, where the executor can.

        Cancelled:
            The kill may have been sent.
        """
        if grace_s is not None:
            check_seconds("grace_s", grace_s, zero=True)
            grace_s = min(grace_s, _GRACE_S_MAX)
        can_ask = self._core.info is not None and self._core.info.capabilities.process_terminate_grace
        grace_ms = round(grace_s * 1000) if grace_s is not None and can_ask else None
        params = TerminateParams(process_id=self.id, grace_ms=grace_ms)
        result = await self._core.call(PROCESS_TERMINATE, params, identity=self.id, cleanup=True, repeat=True)
        return result.running

    async def _take(self) -> OutputChunk | OutputGap | None:
        while True:
            unread = await self._followed.take()
            if not isinstance(unread, Skipped):
                return unread
            await self._refetch(unread)

    async def _refetch(self, skipped: Skipped) -> None:
        after_seq = skipped.first_seq - 1
        params = ReadParams(process_id=self.id, after_seq=after_seq, max_bytes=_REFETCH_BYTES, wait_ms=0)
        try:
            answer = await self._core.call(PROCESS_READ, params, identity=self.id, repeat=True)
        except BaseException:
            self._followed.backlog.take_back(skipped)
            raise
        self._followed.put_back(skipped, answer)


class ProcessStdin:
    """Standard input of a process."""

    def __init__(self, core: Core, followed: Followed, params: StartParams) -> None:
        self._core = core
        self._followed = followed
        self._process_id = params.process_id
        self._program = params.argv[0]
        self._open = params.pipe_stdin or params.tty
        self._was_closed = False
        self._lock = trio.Lock()
        self._written = 0

    async def write(self, data: bytes) -> None:
        """Write bytes; returns when the executor has taken them all. A lost connection does not write twice.

        Raises:
            StdinUnavailable: The process has no standard input, or no longer.

        Cancelled:
            A part may have been written.
        """
        data = checked_bytes(data)
        async with self._lock:
            for start in range(0, len(data), _WRITE_BYTES):
                await self._write(data[start : start + _WRITE_BYTES], eof=False)

    async def aclose(self) -> None:
        """Close standard input, so that the process reads its end.

        Raises:
            StdinUnavailable: This executor cannot close it.

        Cancelled:
            It may have been closed.
        """
        async with self._lock:
            if self._open:
                if not self.can_close:
                    raise self._unavailable("cannot be closed: its executor has no way to")
                await self._write(b"", eof=True)
                self._open, self._was_closed = False, True

    @property
    def can_close(self) -> bool:
        """This executor can close standard input."""
        return self._core.info is not None and self._core.info.capabilities.process_stdin_eof

    async def _write(self, chunk: bytes, *, eof: bool) -> None:
        if not self._open:
            never = "is not open; start it with pipe_stdin=True or tty=True"
            raise self._unavailable("was closed here, by its aclose()" if self._was_closed else never)
        # The same id on every try: the executor does a write once, however often it is told.
        self._written += 1
        params = WriteParams(process_id=self._process_id, chunk=chunk, write_id=str(self._written), eof=eof)
        try:
            result = await self._core.call(PROCESS_WRITE, params, identity=self._process_id, repeat=True)
        except RequestRejected as rejected:
            if rejected.message != stdin_write_failed().message:
                raise
            ended = (
                "its process has ended" if self._followed.backlog.exited is not None else "its process reads no more"
            )
            raise self._unavailable(f"is closed: {ended}") from rejected
        match result.status:
            case WriteStatus.ACCEPTED:
                return
            case WriteStatus.STDIN_CLOSED:
                raise self._unavailable("is closed: its process reads no more")
            case WriteStatus.UNKNOWN_PROCESS:
                raise self._unavailable("is gone with its process")

    def _unavailable(self, why: str) -> StdinUnavailable:
        return StdinUnavailable(self._process_id, why, program=self._program)


def _check_streams(streams: Sequence[Stream]) -> None:
    for stream in streams:
        check_kind("streams", stream, Stream)
