"""Write what the schedule says, and let senders wait for room.

One task per connection writes, and waits for the connection when it has to. Whoever has something ready writes past
it while nothing has to be waited for: one turn of the scheduler less for each answer.
"""

from collections.abc import Callable, Sequence

import trio

from actors.relay._connection import EagerConnection, PhysicalConnection
from actors.relay._errors import MessageTooLarge
from actors.relay._frames import TraceContext
from actors.relay._limits import RelayLimits
from actors.relay._schedule import Lane, LaneFailed, OutgoingSchedule

__all__ = ["Outgoing"]

# How much goes out in one piece: fewer calls of the system, and no stream waits long for its turn.
_BATCH_BYTES = 256 * 1024


class Outgoing:
    """The sending half of one physical connection."""

    def __init__(self, limits: RelayLimits, on_lane_failed: Callable[[LaneFailed], None]) -> None:
        self._limits = limits
        self._on_lane_failed = on_lane_failed
        self.schedule: OutgoingSchedule = OutgoingSchedule(limits)
        # Set while there may be something to write.
        self._work = trio.Event()
        # Where senders of one lane wait for room in it; a lane without waiters has no place.
        self._lots: dict[str, trio.lowlevel.ParkingLot] = {}
        # Where senders wait for room on the connection.
        self._connection_lot = trio.lowlevel.ParkingLot()
        # Set, and renewed, each time the last waiting frame has been written.
        self._drained = trio.Event()
        # Whether nothing will be written any more: the connection is gone.
        self._has_ended = False
        # The connection, while frames may be written past the task that writes.
        self._eager: EagerConnection | None = None

    def wake(self) -> None:
        """Say that the schedule may have work. Called after every change of it."""
        self._work.set()

    async def run(self, connection: PhysicalConnection) -> None:
        """Write frames as they become ready, until the connection is lost or this is cancelled."""
        eager = connection if isinstance(connection, EagerConnection) else None
        try:
            if eager is None:
                await self._write(connection)
            else:
                await self._write_pieces(eager)
        finally:
            self._has_ended, self._eager = True, None
            self._drained.set()

    async def _write(self, connection: PhysicalConnection) -> None:
        while True:
            if (frame := self._next_frame()) is None:
                await self._wait_for_work()
            else:
                await connection.send(frame)

    async def _write_pieces(self, connection: EagerConnection) -> None:
        self._eager = connection
        while True:
            await connection.wait_free()
            if not self.write_now():
                await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        self._drained.set()
        await self._work.wait()
        self._work = trio.Event()

    def write_now(self) -> bool:
        """Write what is ready, as much as makes one piece, if that can be done without waiting.

        Returns:
            Whether anything was ready. What is left, or was not written, is the writing task's.
        """
        if (eager := self._eager) is None or not eager.is_free:
            self.wake()
            return True
        frames: list[bytes] = []
        size_bytes = 0
        while size_bytes < _BATCH_BYTES and (frame := self._next_frame()) is not None:
            frames.append(frame)
            size_bytes += len(frame)
        if frames:
            eager.send_now(frames)
        if size_bytes >= _BATCH_BYTES or not eager.is_free:
            self.wake()
        return bool(frames)

    def _next_frame(self) -> bytes | None:
        while True:
            try:
                turn = self.schedule.next()
            except LaneFailed as failed:
                self._on_lane_failed(failed)
                continue
            if turn is None:
                return None
            frame, lane = turn
            if lane is not None:
                self._make_room(lane)
            return frame

    def _make_room(self, lane: Lane) -> None:
        if lane.packer.queued_bytes < self._limits.lane_bytes and (lot := self._lots.get(lane.stream_id)) is not None:
            lot.unpark_all()
        if self._connection_lot and self.schedule.queued_bytes < self._limits.connection_bytes:
            self._connection_lot.unpark_all()

    async def send(
        self, lane: Lane, message: bytes, trace: TraceContext | None, still_open: Callable[[], None]
    ) -> None:
        """Queue a message once there is room for it.

        Args:
            lane: The stream's lane.
            message: From 1 byte to the message limit.
            trace: Trace context of a request.
            still_open: Raises when the stream has ended; asked whenever it may have.

        Raises:
            MessageTooLarge: Nothing was queued.

        Cancelled:
            Nothing was queued.
        """
        self._check_size(message)
        if lane.window.heeded:
            # Not a whole turn of the scheduler: whoever sends without end comes to wait for room.
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            # A peer in the field ends the stream when more than 128 messages reach it in a burst: let each one go.
            await trio.lowlevel.checkpoint()
        still_open()
        while (lot := self._crowded(lane, len(message))) is not None:
            await lot.park()
            still_open()
        self.schedule.put_message(lane, message, trace)
        self.wake()

    def send_nowait(
        self, lane: Lane, message: bytes, trace: TraceContext | None, still_open: Callable[[], None]
    ) -> None:
        """Queue a message if there is room for it; see `send`.

        Raises:
            trio.WouldBlock: There is none.
        """
        self._check_size(message)
        still_open()
        if self._crowded(lane, len(message)) is not None:
            raise trio.WouldBlock
        self.schedule.put_message(lane, message, trace)
        self.wake()

    def send_some(self, lane: Lane, messages: Sequence[bytes], still_open: Callable[[], None]) -> int:
        """Queue as many messages as there is room for, and write what can be written now; see `send`.

        Returns:
            How many were queued.

        Raises:
            MessageTooLarge: The first one; nothing was queued.
        """
        still_open()
        for number, message in enumerate(messages):
            if number == 0:
                self._check_size(message)
            if not self._is_sendable(message) or self._crowded(lane, len(message)) is not None:
                self.write_now()
                return number
            self.schedule.put_message(lane, message)
        self.write_now()
        return len(messages)

    def _check_size(self, message: bytes) -> None:
        if not self._is_sendable(message):
            raise MessageTooLarge(len(message), self._limits.max_message_bytes)

    def _is_sendable(self, message: bytes) -> bool:
        return 0 < len(message) <= self._limits.max_message_bytes

    def _crowded(self, lane: Lane, size_bytes: int) -> trio.lowlevel.ParkingLot | None:
        """Give the place to wait in, if there is no room. A message never waits for more than others to leave."""
        if lane.packer.queued_bytes >= self._limits.lane_bytes:
            return self._lots.setdefault(lane.stream_id, trio.lowlevel.ParkingLot())
        queued = self.schedule.queued_bytes
        return self._connection_lot if queued and queued + size_bytes > self._limits.connection_bytes else None

    def lane_closed(self, stream_id: str) -> None:
        """Wake the senders of a stream that has ended, and those that its bytes kept waiting."""
        if (lot := self._lots.pop(stream_id, None)) is not None:
            lot.unpark_all()
        self._connection_lot.unpark_all()

    def all_closed(self) -> None:
        """Wake every sender: the connection is gone."""
        for stream_id in list(self._lots):
            self.lane_closed(stream_id)
        self._connection_lot.unpark_all()

    async def wait_empty(self, lane: Lane, has_ended: Callable[[], bool]) -> None:
        """Wait until a lane has nothing more to send."""
        await trio.lowlevel.checkpoint()
        while lane.packer.queued_bytes > 0 and not has_ended():
            await self._lots.setdefault(lane.stream_id, trio.lowlevel.ParkingLot()).park()

    async def drain(self) -> None:
        """Wait until nothing waits to be written or can be any more, or never if a window stays shut: bound it."""
        if self._has_ended:
            await trio.lowlevel.checkpoint()
            return
        self._drained = trio.Event()
        self.wake()
        await self._drained.wait()
