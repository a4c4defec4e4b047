"""Put one process's events in order, as the harness gets them: from notifications and from read answers.

Events come in any order and more than once; they leave in order, each once. What waits for an earlier event is
bounded; the event that closes the hole is always taken. An answer to `process/read` fills holes after a connection
was lost; what is gone for good leaves as an `OutputGap`, never in silence.

Not in any table: the answer to a read has no place for the exit. It is the newest hole below the answer's end, for
output is dropped oldest first and only the exit has a number but no chunk.

Mutable, for it is on the path of every chunk; each method either does all it says or raises and changes nothing.
"""

from collections.abc import Iterator
from typing import Final

import attrs

from actors.protocol._faults import EventRefused, RecoveryRefused
from actors.protocol._process_events import ProcessClosed, ProcessEvent, ProcessExited, ProcessOutput
from actors.protocol._process_messages import ReadResult

REORDER_EVENTS_MAX: Final = 256
REORDER_BYTES_MAX: Final = 1024 * 1024
EVENT_BYTES_MAX: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class OutputGap:
    """Output that is gone: the executor no longer had it when it was asked for.

    Attributes:
        process_id: Whose output.
        first_seq: The first lost position.
        last_seq: The last lost position.
    """

    process_id: str
    first_seq: int
    last_seq: int


OrderedEvent = ProcessEvent | OutputGap
"""What leaves in order."""


class EventOrder:
    """One process's events on their way to whoever reads them."""

    __slots__ = (
        "_bytes_max",
        "_closed",
        "_delivered_seq",
        "_events_max",
        "_exit_known",
        "_waiting",
        "_waiting_bytes",
        "duplicates",
        "process_id",
    )  # fmt: skip

    def __init__(
        self, process_id: str, *, events_max: int = REORDER_EVENTS_MAX, bytes_max: int = REORDER_BYTES_MAX
    ) -> None:
        self.process_id: str = process_id
        self.duplicates: int = 0
        """Events dropped because they came again, or after the end."""
        self._events_max, self._bytes_max = events_max, bytes_max
        self._delivered_seq = 0
        self._exit_known = False
        self._closed = False
        # Every position here is after `_delivered_seq + 1`; the bytes are the sum of their sizes.
        self._waiting: dict[int, ProcessEvent] = {}
        self._waiting_bytes = 0

    @property
    def delivered_seq(self) -> int:
        """The last position that left; 0 before the first."""
        return self._delivered_seq

    @property
    def closed(self) -> bool:
        """The end has left."""
        return self._closed

    @property
    def waiting(self) -> int:
        """How many events wait for an earlier one."""
        return len(self._waiting)

    def accept(self, event: ProcessEvent) -> tuple[OrderedEvent, ...]:
        """Take one event and give those that are in order now.

        Raises:
            EventRefused: The event is over 1 MiB, or there is no room for another that must wait.
        """
        size = _size(event)
        if size > EVENT_BYTES_MAX:
            raise EventRefused(f"process event exceeds {EVENT_BYTES_MAX} bytes", seq=event.seq)
        if self._closed or event.seq <= self._delivered_seq or event.seq in self._waiting:
            self.duplicates += 1
            return ()
        if event.seq > self._delivered_seq + 1:
            if len(self._waiting) >= self._events_max:
                raise EventRefused(f"process event reorder buffer exceeds {self._events_max} events", seq=event.seq)
            if self._waiting_bytes + size > self._bytes_max:
                raise EventRefused(f"process event reorder buffer exceeds {self._bytes_max} bytes", seq=event.seq)
            self._waiting[event.seq] = event
            self._waiting_bytes += size
            return ()
        self._waiting[event.seq] = event
        self._waiting_bytes += size
        return tuple(self._drain())

    def recover(self, answer: ReadResult, *, allow_gaps: bool = True) -> tuple[OrderedEvent, ...]:
        """Fill holes from the answer to a read without byte limit, and give the events that are in order now.

        Raises:
            RecoveryRefused: The answer contradicts itself or the sequence; or, without ``allow_gaps``, a hole stays.
        """
        if answer.failure is not None:
            raise RecoveryRefused(f"process failed while recovering: {answer.failure}")
        target = answer.next_seq - 1
        if self._closed or target <= self._delivered_seq:
            return ()
        known = {**self._from_answer(answer, target), **self._waiting}
        if answer.closed and not isinstance(known[target], ProcessClosed):
            raise RecoveryRefused(f"process close sequence {target} conflicts with recovered output")
        if answer.exited and not self._exit_is_known(known):
            self._place_exit(answer, known, target)
        if answer.sandbox_denied:
            _deny(known)
        gaps = dict(self._holes(known, target))
        if gaps and not allow_gaps:
            raise RecoveryRefused(f"process events are no longer retained while recovering through sequence {target}")
        self._waiting = known
        self._waiting_bytes = sum(map(_size, known.values()))
        return tuple(self._drain(gaps))

    def _from_answer(self, answer: ReadResult, target: int) -> dict[int, ProcessEvent]:
        found: dict[int, ProcessEvent] = {}
        for chunk in answer.chunks:
            if chunk.seq > target:
                raise RecoveryRefused(f"recovered output {chunk.seq} is beyond the answer's end {target}")
            if answer.closed and chunk.seq == target:
                raise RecoveryRefused(f"process close sequence {target} conflicts with recovered output")
            if chunk.seq > self._delivered_seq:
                found[chunk.seq] = ProcessOutput(
                    process_id=self.process_id, seq=chunk.seq, stream=chunk.stream, chunk=chunk.chunk
                )
        if answer.closed:
            found[target] = ProcessClosed(process_id=self.process_id, seq=target)
        return found

    def _exit_is_known(self, known: dict[int, ProcessEvent]) -> bool:
        return self._exit_known or any(isinstance(event, ProcessExited) for event in known.values())

    def _place_exit(self, answer: ReadResult, known: dict[int, ProcessEvent], target: int) -> None:
        newest_hole = max((last for _, last in self._holes(known, target)), default=None)
        if newest_hole is None:
            return  # The exit lies beyond an answer that was cut.
        if answer.exit_code is None:
            raise RecoveryRefused("the answer says that the process exited, and gives no exit code")
        known[newest_hole] = ProcessExited(process_id=self.process_id, seq=newest_hole, exit_code=answer.exit_code)

    def _holes(self, known: dict[int, ProcessEvent], target: int) -> Iterator[tuple[int, int]]:
        # By the known positions, never by counting up: a peer that lies may name any target.
        before = self._delivered_seq
        for seq in [*sorted(seq for seq in known if seq <= target), target + 1]:
            if seq > before + 1:
                yield before + 1, seq - 1
            before = seq

    def _drain(self, gaps: dict[int, int] | None = None) -> Iterator[OrderedEvent]:
        while not self._closed:
            seq = self._delivered_seq + 1
            if gaps and seq in gaps:
                self._delivered_seq = gaps[seq]
                yield OutputGap(process_id=self.process_id, first_seq=seq, last_seq=gaps[seq])
                continue
            event = self._waiting.pop(seq, None)
            if event is None:
                return
            self._waiting_bytes -= _size(event)
            self._delivered_seq = seq
            self._exit_known = self._exit_known or isinstance(event, ProcessExited)
            self._closed = isinstance(event, ProcessClosed)
            yield event
        self.duplicates += len(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0


def _size(event: ProcessEvent) -> int:
    return len(event.chunk) if isinstance(event, ProcessOutput) else 0


def _deny(known: dict[int, ProcessEvent]) -> None:
    for seq, event in known.items():
        if isinstance(event, ProcessExited):
            known[seq] = attrs.evolve(event, sandbox_denied=True)
