"""What a harness holds of one process: events put in order, output not read yet, and how it ended.

Output beyond the limit is skipped, not piled up: the reader finds a `Skipped` in its place and can ask the executor
for what it still has. Exit and end are never skipped. Knows no connection and does not wait.
"""

from collections import deque
from collections.abc import Iterable

import attrs

from actors.protocol import (
    EventOrder,
    OrderedEvent,
    OutputChunk,
    OutputGap,
    ProcessClosed,
    ProcessEvent,
    ProcessExited,
    ProcessOutput,
    ReadResult,
)


@attrs.frozen
class Skipped:
    """Output that came while the buffer was full; the executor may still have it."""

    first_seq: int
    """The first skipped position."""
    last_seq: int
    """The last skipped position."""


# What a chunk costs beside its bytes: without it, a million empty chunks would be free.
_CHUNK_COST_BYTES = 128

Unread = OutputChunk | OutputGap | Skipped
"""What a reader takes."""


class Backlog:
    """One process's events on their way to its reader. Mutable, for it is on the path of every chunk."""

    __slots__ = (
        "_held_bytes_max",
        "_order",
        "_unread",
        "closed",
        "exited",
        "held_bytes",
        "position",
        "skipped_bytes",
    )

    def __init__(self, process_id: str, *, held_bytes_max: int) -> None:
        self._order = EventOrder(process_id)
        self._held_bytes_max = held_bytes_max
        # Positions rise from left to right; `held_bytes` is the sum of the chunks' costs.
        self._unread: deque[Unread] = deque()
        self.held_bytes: int = 0
        """Output not read yet, with what it costs to hold it."""
        self.skipped_bytes: int = 0
        """Output that came while there was no room for it."""
        self.position: int = 0
        """The last position the reader took."""
        self.exited: ProcessExited | None = None
        """The exit, once known."""
        self.closed: ProcessClosed | None = None
        """The end, once known."""

    @property
    def arrived_seq(self) -> int:
        """The last position that came in order."""
        return self._order.delivered_seq

    @property
    def duplicates(self) -> int:
        """Events that came again."""
        return self._order.duplicates

    def accept(self, event: ProcessEvent) -> bool:
        """Take one event and tell whether the reader has something new; raises `EventRefused`."""
        return self._keep(self._order.accept(event))

    def recover(self, answer: ReadResult) -> bool:
        """Take the answer to a read after `arrived_seq`; raises `RecoveryRefused`."""
        return self._keep(self._order.recover(answer))

    def take(self) -> Unread | None:
        """Give the reader what comes next, or None when nothing is there yet."""
        if not self._unread:
            return None
        unread = self._unread.popleft()
        if isinstance(unread, OutputChunk):
            self.held_bytes -= _cost(unread)
            self.position = unread.seq
        elif isinstance(unread, OutputGap):
            self.position = unread.last_seq
        return unread

    def discard(self) -> None:
        """Hold no output any more, neither what is here nor what comes."""
        self._unread.clear()
        self.held_bytes, self._held_bytes_max = 0, 0

    def take_back(self, skipped: Skipped) -> None:
        """Leave a skipped range where it was."""
        self._unread.appendleft(skipped)

    def put_back(self, skipped: Skipped, answer: ReadResult) -> None:
        """Put in the place of a skipped range what the executor still had of it, and a gap for what it had not."""
        chunks = [c for c in answer.chunks if skipped.first_seq <= c.seq <= skipped.last_seq]
        first_had = chunks[0].seq if chunks else skipped.last_seq + 1
        if chunks and chunks[-1].seq < skipped.last_seq:
            self._unread.appendleft(Skipped(chunks[-1].seq + 1, skipped.last_seq))
        self._unread.extendleft(reversed(chunks))
        self.held_bytes += sum(map(_cost, chunks))
        if first_had > skipped.first_seq:
            process_id = self._order.process_id
            gap = OutputGap(process_id=process_id, first_seq=skipped.first_seq, last_seq=first_had - 1)
            self._unread.appendleft(gap)

    def _keep(self, events: Iterable[OrderedEvent]) -> bool:
        news = False
        for event in events:
            news = True
            match event:
                case ProcessOutput():
                    self._keep_output(OutputChunk(event.seq, event.stream, event.chunk))
                case OutputGap():
                    self._unread.append(event)
                case ProcessExited():
                    self.exited = self.exited or event  # The first counts, as with answers: a process ends once.
                case ProcessClosed():
                    self.closed = event
        return news

    def _keep_output(self, chunk: OutputChunk) -> None:
        if self.held_bytes + _cost(chunk) <= self._held_bytes_max:
            self._unread.append(chunk)
            self.held_bytes += _cost(chunk)
            return
        self.skipped_bytes += len(chunk.chunk)
        last = self._unread[-1] if self._unread else None
        if isinstance(last, Skipped):
            self._unread[-1] = Skipped(last.first_seq, chunk.seq)
        else:
            self._unread.append(Skipped(chunk.seq, chunk.seq))


def _cost(chunk: OutputChunk) -> int:
    return len(chunk.chunk) + _CHUNK_COST_BYTES
