"""Decide which frame goes out next on a connection that many streams share. Knows lanes and sizes, not sockets.

Resets, handshake replies and acknowledgements go first and in their order; then the streams take turns, one record
each, so that a message of 64 MiB delays another stream by one record. A record is cut and sealed only when its turn
has come: nothing is encrypted that may still be dropped, and what waits is packed together.
"""

from collections import deque
from collections.abc import Callable

from actors.relay._frames import TraceContext, encode_ack, encode_data, encode_reset
from actors.relay._limits import RelayLimits
from actors.relay._ordering import SequenceCounter
from actors.relay._records import RecordPacker
from actors.relay._window import SendWindow

__all__ = ["Lane", "LaneFailed", "OutgoingSchedule"]


class Lane:
    """What one stream has to send."""

    __slots__ = ("_seal", "_sequence", "packer", "stream_id", "window")

    def __init__(self, stream_id: str, seal: Callable[[bytes], bytes], limits: RelayLimits) -> None:
        self.stream_id: str = stream_id
        self._seal = seal
        self._sequence = SequenceCounter()
        self.packer: RecordPacker = RecordPacker(limits)
        self.window: SendWindow = SendWindow(limits)

    @property
    def is_ready(self) -> bool:
        """Whether a record could go out now."""
        return self.packer.queued_bytes > 0 and self.window.is_open

    def next_frame(self) -> bytes | None:
        """Seal and give the next record as a frame, if there is one and the window is open.

        Raises:
            SequenceExhausted: The stream has carried all the records it can.
            Exception: What ``seal`` raises.
        """
        if not self.window.is_open or (taken := self.packer.take()) is None:
            return None
        record, trace = taken
        seq = self._sequence.take()
        ciphertext = self._seal(record)
        self.window.record_sent(len(ciphertext))
        return encode_data(self.stream_id, seq, ciphertext, trace=trace)


class OutgoingSchedule:
    """All that waits to be written on one connection."""

    def __init__(self, limits: RelayLimits) -> None:
        self._limits = limits
        self._lanes: dict[str, Lane] = {}
        # Each lane that is ready stands here once, by its stream; one that is not ready may stand here too, and is
        # skipped. A stream that is closed and opened again keeps its turn.
        self._turns: deque[str] = deque()
        self._in_turn: set[str] = set()
        # Frames of the control lane, by stream and kind: a newer one of the same kind replaces an older.
        self._control: dict[tuple[str, str], bytes] = {}
        self.resets_refused: int = 0
        # Plaintext that waits in all lanes.
        self.queued_bytes: int = 0

    @property
    def control_frames(self) -> int:
        """Frames that wait in the control lane."""
        return len(self._control)

    @property
    def has_room_for_handshake(self) -> bool:
        """Whether a new stream may be admitted: its reply, acknowledgement and reset will all find a place."""
        return len(self._control) + 3 * (len(self._lanes) + 1) <= self._limits.max_control_frames

    def open_lane(self, lane: Lane) -> None:
        """Let a stream take part."""
        assert lane.stream_id not in self._lanes, f"two lanes for stream {lane.stream_id!r}"
        self._lanes[lane.stream_id] = lane

    def close_lane(self, stream_id: str) -> None:
        """Drop a stream and all that it had to send, acknowledgements included."""
        if (lane := self._lanes.pop(stream_id, None)) is not None:
            self.queued_bytes -= lane.packer.queued_bytes
        self._control.pop((stream_id, "ack"), None)

    def put_message(self, lane: Lane, message: bytes, trace: TraceContext | None = None) -> None:
        """Queue a message behind those of its stream.

        Raises:
            MessageTooLarge: Nothing was queued.
        """
        assert self._lanes.get(lane.stream_id) is lane, f"the lane of stream {lane.stream_id!r} is closed"
        before = lane.packer.queued_bytes
        lane.packer.put(message, trace)
        self.queued_bytes += lane.packer.queued_bytes - before
        self.wake(lane)

    def put_reply(self, stream_id: str, frame: bytes) -> None:
        """Queue a handshake reply."""
        self._control[stream_id, "reply"] = frame

    def put_ack(self, stream_id: str, ack: int) -> None:
        """Queue an acknowledgement; only the newest of a stream is ever written."""
        self._control[stream_id, "ack"] = encode_ack(stream_id, ack)

    def put_reset(self, stream_id: str, *, was_known: bool) -> bool:
        """End a stream: drop what it had to send and queue a reset, which is never lost once the stream was known.

        Args:
            stream_id: The stream.
            was_known: Whether the peer may be waiting for news of it. Resets of ids that were never heard of could be
                asked for without end; they are dropped, and counted, once half of the control lane is taken.

        Returns:
            Whether the reset was queued.
        """
        self.close_lane(stream_id)
        if not was_known and len(self._control) >= self._limits.max_control_frames // 2:
            self.resets_refused += 1
            return False
        self._control.pop((stream_id, "reply"), None)
        self._control.pop((stream_id, "reset"), None)
        self._control[stream_id, "reset"] = encode_reset(stream_id)
        return True

    def wake(self, lane: Lane) -> None:
        """Give a lane its turn when it has become ready: a message was put, or its window has opened."""
        if lane.is_ready and self._lanes.get(lane.stream_id) is lane and lane.stream_id not in self._in_turn:
            self._turns.append(lane.stream_id)
            self._in_turn.add(lane.stream_id)

    def next(self) -> tuple[bytes, Lane | None] | None:
        """Give the next frame and the lane it came from (None for the control lane), or None when nothing may go out.

        Raises:
            LaneFailed: A lane could not seal its record; it has lost its turn.
        """
        if self._control:
            key = next(iter(self._control))
            return self._control.pop(key), None
        while self._turns:
            stream_id = self._turns.popleft()
            self._in_turn.discard(stream_id)
            lane = self._lanes.get(stream_id)
            if lane is not None and (frame := self._frame_of(lane)) is not None:
                self.wake(lane)
                return frame, lane
        return None

    def _frame_of(self, lane: Lane) -> bytes | None:
        before = lane.packer.queued_bytes
        try:
            return lane.next_frame()
        except Exception as error:  # Whatever ends this lane must not end the others'.
            raise LaneFailed(lane, error) from error
        finally:
            self.queued_bytes -= before - lane.packer.queued_bytes


class LaneFailed(Exception):
    """A lane could not go on. The other lanes are as they were."""

    def __init__(self, lane: Lane, error: Exception) -> None:
        super().__init__(f"stream {lane.stream_id!r}: {error}")
        self.lane, self.error = lane, error
