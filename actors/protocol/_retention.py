"""What an executor keeps of one process: its numbered events, and the newest of its output.

One sequence from 1 covers output, exit and close. Output is kept up to 1 MiB and 50,000 chunks, oldest dropped
first, and what was dropped is said: `first_retained_seq`. Knows no clock: how long a closed process is remembered is
its owner's business.

Mutable, for it is on the path of every chunk; each method either does all it says or raises and changes nothing.
"""

from collections import deque
from itertools import takewhile
from typing import Final

from actors.protocol._faults import EventRefused
from actors.protocol._process_events import ProcessClosed, ProcessExited, ProcessOutput, Survivor
from actors.protocol._process_messages import OutputChunk, ReadResult, Stream

RETAINED_BYTES_MAX: Final = 1024 * 1024
RETAINED_CHUNKS_MAX: Final = 50_000


class RetainedOutput:
    """The newest chunks of output, bounded in bytes and in number.

    Raises:
        ValueError: There would be no room for one byte, or for one chunk.
    """

    __slots__ = ("_bytes_max", "_chunks", "_chunks_max", "_dropped_bytes", "_held_bytes", "_last_dropped_seq")

    def __init__(self, *, bytes_max: int = RETAINED_BYTES_MAX, chunks_max: int = RETAINED_CHUNKS_MAX) -> None:
        if bytes_max < 1 or chunks_max < 1:
            raise ValueError("retained output needs room for at least one byte and one chunk")
        self._bytes_max, self._chunks_max = bytes_max, chunks_max
        # Positions rise from left to right; `_held_bytes` is the sum of their lengths.
        self._chunks: deque[OutputChunk] = deque()
        self._held_bytes = 0
        self._dropped_bytes = 0
        self._last_dropped_seq = 0

    @property
    def held_bytes(self) -> int:
        """How much is kept."""
        return self._held_bytes

    @property
    def dropped_bytes(self) -> int:
        """How much was dropped so far."""
        return self._dropped_bytes

    @property
    def first_retained_seq(self) -> int:
        """Output before this position is gone; 1 while nothing was dropped."""
        return self._last_dropped_seq + 1

    def append(self, chunk: OutputChunk) -> None:
        """Keep a chunk, dropping the oldest while there is too much.

        Raises:
            EventRefused: Its position is not after the last one.
        """
        last_seq = self._chunks[-1].seq if self._chunks else self._last_dropped_seq
        if chunk.seq <= last_seq:
            raise EventRefused(f"output {chunk.seq} comes after output {last_seq}", seq=chunk.seq)
        self._chunks.append(chunk)
        self._held_bytes += len(chunk.chunk)
        while self._held_bytes > self._bytes_max or len(self._chunks) > self._chunks_max:
            oldest = self._chunks.popleft()
            self._held_bytes -= len(oldest.chunk)
            self._dropped_bytes += len(oldest.chunk)
            self._last_dropped_seq = oldest.seq

    def after(self, seq: int, *, max_bytes: int | None = None) -> tuple[tuple[OutputChunk, ...], bool]:
        """Give the chunks after a position, at least one if there is one, and whether ``max_bytes`` cut them off."""
        given: list[OutputChunk] = []
        total = 0
        for chunk in self._newer_than(seq):
            total += len(chunk.chunk)
            if given and max_bytes is not None and total > max_bytes:
                return tuple(given), True
            given.append(chunk)
        return tuple(given), False

    def newer_than(self, seq: int) -> bool:
        """Tell whether there is output after a position."""
        return bool(self._chunks) and self._chunks[-1].seq > seq

    def _newer_than(self, seq: int) -> list[OutputChunk]:
        # From the new end: a reader that keeps up looks at what is new only, not at 50,000 old chunks.
        newer = list(takewhile(lambda chunk: chunk.seq > seq, reversed(self._chunks)))
        newer.reverse()
        return newer


class ProcessLog:
    """One process's sequence: numbers its events, keeps its output, answers reads."""

    __slots__ = ("_closed", "_exited", "_failure", "_next_seq", "_output", "process_id")

    def __init__(self, process_id: str, *, output: RetainedOutput | None = None) -> None:
        self.process_id: str = process_id
        self._output = output or RetainedOutput()
        self._next_seq = 1
        self._exited: ProcessExited | None = None
        self._closed: ProcessClosed | None = None
        self._failure: str | None = None

    @property
    def next_seq(self) -> int:
        """The position the next event will get."""
        return self._next_seq

    @property
    def exit(self) -> ProcessExited | None:
        """The exit, once known."""
        return self._exited

    @property
    def closed(self) -> bool:
        """Nothing more will come."""
        return self._closed is not None or self._failure is not None

    @property
    def output(self) -> RetainedOutput:
        """What is kept."""
        return self._output

    def add_output(self, stream: Stream, chunk: bytes) -> ProcessOutput:
        """Number and keep bytes; gives the news to send.

        Raises:
            EventRefused: The process has ended.
        """
        seq = self._take_seq("output")
        self._output.append(OutputChunk(seq, stream, chunk))
        return ProcessOutput(process_id=self.process_id, seq=seq, stream=stream, chunk=chunk)

    def add_exit(self, exit_code: int, *, sandbox_denied: bool = False) -> ProcessExited:
        """Number the exit; gives the news to send.

        Raises:
            EventRefused: It has exited or ended already.
        """
        if self._exited is not None:
            raise EventRefused(f"process {self.process_id} has exited already", seq=self._next_seq)
        seq = self._take_seq("exit")
        self._exited = ProcessExited(
            process_id=self.process_id, seq=seq, exit_code=exit_code, sandbox_denied=sandbox_denied
        )
        return self._exited

    def add_close(self, *, drain_limited: bool = False, survivors: tuple[Survivor, ...] = ()) -> ProcessClosed:
        """Number the end; gives the news to send. Only after the exit.

        Raises:
            EventRefused: It has not exited, or has ended already.
        """
        if self._exited is None:
            raise EventRefused(f"process {self.process_id} cannot close before it exits", seq=self._next_seq)
        seq = self._take_seq("close")
        self._closed = ProcessClosed(
            process_id=self.process_id, seq=seq, drain_limited=drain_limited, survivors=survivors
        )
        return self._closed

    def fail(self, failure: str) -> None:
        """End the process without an exit of its own: reads answer exited, closed and the failure."""
        if not self.closed:
            self._failure = failure

    def has_news(self, after_seq: int | None) -> bool:
        """Tell whether a read after this position is answered at once: output, a newer exit, or the end.

        A reader that knows of the exit and asks again waits for output or the end.
        """
        seq = after_seq or 0
        if self.closed or (self._exited is not None and self._exited.seq > seq):
            return True
        return self._output.newer_than(seq)

    def read(self, after_seq: int | None = None, max_bytes: int | None = None) -> ReadResult:
        """Answer `process/read` with what there is now."""
        chunks, cut = self._output.after(after_seq or 0, max_bytes=max_bytes)
        failed = self._failure is not None
        first = self._output.first_retained_seq
        return ReadResult(
            chunks=chunks,
            next_seq=chunks[-1].seq + 1 if cut else self._next_seq,
            exited=self._exited is not None or failed,
            exit_code=self._exited.exit_code if self._exited else None,
            closed=self.closed,
            failure=self._failure,
            sandbox_denied=self._exited is not None and self._exited.sandbox_denied,
            first_retained_seq=first if first > 1 else None,
        )

    def _take_seq(self, what: str) -> int:
        if self.closed:
            raise EventRefused(f"{what} of process {self.process_id} comes after its end", seq=self._next_seq)
        seq = self._next_seq
        self._next_seq += 1
        return seq
