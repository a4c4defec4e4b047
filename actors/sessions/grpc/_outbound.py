"""What leaves a connection: header blocks at once, messages in rotation, one batch of bytes after another.

Nothing here waits. `_connection` owns the one task that takes batches and writes them, since a cancelled
`send_all` leaves half a frame on the wire.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import trio
from h2.errors import ErrorCodes

from actors.sessions.grpc._framing import PREFIX_BYTES, message_prefix
from actors.sessions.grpc._http2 import Http2
from actors.sessions.grpc._limits import KIB, MIB
from actors.sessions.grpc._metadata import Headers
from actors.sessions.grpc._stream import Stream

# A stream sends so much before the next one has its turn, and a batch holds so much before it is written:
# together they bound what a small call waits for beside a bulk stream
# (test_12_a_small_call_is_not_stuck_behind_a_bulk_stream).
_TURN_BYTES: Final = 64 * KIB
_BATCH_BYTES: Final = 128 * KIB
# Below this a message is copied behind its prefix: one frame costs more than the copy (benchmarks/grpc.py).
_COPY_BYTES: Final = 1 * MIB
# As much of a message that comes in pieces: the copy would be of all the pieces, and its pages are new each time.
_COPY_PIECE_BYTES: Final = 64 * KIB


class Outbound:
    """The sending half of a connection."""

    def __init__(self, http2: Http2, *, client: bool, on_over: Callable[[Stream], None]) -> None:
        self._http2, self._client, self._on_over = http2, client, on_over
        # A stream with something to send is in exactly one of these, or is waiting for its first turn.
        self._rotation: deque[Stream] = deque()
        self._blocked: dict[int, Stream] = {}
        http2.waiting_for_window = self._blocked
        self._writer = trio.lowlevel.ParkingLot()
        self.corked: bool = False
        """Whether somebody writes what is ready in this very step: the writer need not wake for it."""

    def wake(self) -> None:
        """Let the writer look again."""
        if self._writer and not self.corked:
            self._writer.unpark_all()

    @property
    def waiting(self) -> bool:
        """Whether there is more to write."""
        return bool(self._rotation or self._http2.waiting_bytes)

    async def wait(self) -> None:
        """Wait until somebody calls `wake`."""
        await self._writer.park()

    def send_headers(self, stream: Stream, headers: Headers) -> None:
        """Write a block that opens a request or a response. Call it before the first message."""
        if not stream.over and not stream.local_ended:
            self._http2.write_headers(stream.number, headers)
            self.wake()

    def send_message(self, stream: Stream, *payload: bytes, wake: bool = True) -> None:
        """Queue a message, given in any pieces; the writer is left asleep for whoever flushes at once."""
        if stream.over or stream.local_ended:
            return
        size = sum(map(len, payload))
        small = [message_prefix(size)]
        copied_bytes = _COPY_BYTES if len(payload) == 1 else _COPY_PIECE_BYTES
        for piece in payload:
            if len(piece) <= copied_bytes:
                small.append(piece)
                continue
            stream.outbox += (memoryview(b"".join(small)), memoryview(piece))
            small = []
        if small:
            stream.outbox.append(memoryview(b"".join(small)))
        stream.queued_bytes += size + PREFIX_BYTES
        self._schedule(stream, wake=wake)

    def answer(self, stream: Stream, head: Headers, payload: bytes, closing: Headers) -> None:
        """Write a whole response: at once where there is room for it, else queued like any other."""
        http2, number, size = self._http2, stream.number, len(payload) + PREFIX_BYTES
        room = min(http2.local_flow_control_window(number), http2.max_outbound_frame_size)
        if size > room or stream.outbox:
            self.send_headers(stream, head)
            self.send_message(stream, payload)
            self.finish(stream, closing)
            return
        http2.write_headers(number, head)
        http2.write_data(number, memoryview(message_prefix(len(payload)) + payload))
        http2.write_headers(number, closing, end_stream=True)
        self._ended(stream)
        self.wake()

    def finish(self, stream: Stream, closing: Headers) -> None:
        """End this half after what is queued: with trailers, or bare when the list is empty."""
        if not stream.over and not stream.local_ended:
            stream.closing = closing
            self._schedule(stream)

    def reset(self, stream: Stream, code: ErrorCodes) -> None:
        """End both halves at once."""
        stream.drop_outbox()
        h2_stream = self._http2.streams.get(stream.number)
        if h2_stream is not None and not h2_stream.closed:
            self._http2.reset_stream(stream.number, code)
            self.wake()

    def window_opened(self, number: int) -> None:
        """Let one stream go on, or every blocked one for number 0."""
        if number == 0:
            blocked = [*self._blocked.values()]
            self._blocked.clear()
            for stream in blocked:
                self._schedule(stream)
        elif number in self._blocked:
            self._schedule(self._blocked.pop(number))

    def _schedule(self, stream: Stream, *, wake: bool = True) -> None:
        if not stream.scheduled and stream.number not in self._blocked:
            stream.scheduled = True
            self._rotation.append(stream)
        if wake:
            self.wake()

    def next_batch(self) -> bytearray:
        """Take what may be written now; empty when there is nothing."""
        rotation, http2 = self._rotation, self._http2
        while rotation and http2.waiting_bytes < _BATCH_BYTES:
            stream = rotation.popleft()
            stream.scheduled = False
            self._take_turn(stream)
        return http2.take()

    def _take_turn(self, stream: Stream) -> None:
        if stream.over or stream.local_ended:
            return
        if stream.outbox:
            self._send_some(stream)
        if not stream.outbox:
            self._close(stream)

    def _send_some(self, stream: Stream) -> None:
        http2, number, outbox = self._http2, stream.number, stream.outbox
        turn = _TURN_BYTES + PREFIX_BYTES
        window = http2.local_flow_control_window(number)
        while outbox and turn > 0 and window > 0:
            chunk = outbox[0]
            size = min(len(chunk), window, http2.max_outbound_frame_size, turn)
            whole = size == len(chunk)
            bare_end = whole and len(outbox) == 1 and stream.closing == []
            http2.write_data(number, chunk if whole else chunk[:size], end_stream=bare_end)
            turn, window = turn - size, window - size
            stream.queued_bytes -= size
            if whole:
                outbox.popleft()
            else:
                outbox[0] = chunk[size:]
            if bare_end:
                self._ended(stream)
        if stream.room:
            stream.room.unpark_all()
        if outbox and window <= 0:
            self._blocked[number] = stream
        elif outbox:
            stream.scheduled = True
            self._rotation.append(stream)

    def _close(self, stream: Stream) -> None:
        if stream.closing is None or stream.local_ended:
            return
        if stream.closing:
            self._http2.write_headers(stream.number, stream.closing, end_stream=True)
        else:
            self._http2.end_stream(stream.number)
        self._ended(stream)

    def _ended(self, stream: Stream) -> None:
        stream.local_ended, stream.closing = True, None
        if not self._client and not stream.remote_ended:
            # The answer is complete: whatever else the client wanted to say is not needed (RFC 9113, 8.1).
            self._http2.reset_stream(stream.number, ErrorCodes.NO_ERROR)
            stream.remote_ended = True
        if stream.over:
            self._on_over(stream)

    def forget(self, stream: Stream) -> None:
        """Drop a stream that is over."""
        self._blocked.pop(stream.number, None)
