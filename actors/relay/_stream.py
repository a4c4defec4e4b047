"""One message stream as its user holds it, on either end. Where its frames travel is its connection's business."""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

import attrs
import trio

from actors.relay._errors import RelayError, StreamClosed, StreamFailed
from actors.relay._frames import TraceContext
from actors.relay._inbound import InboundRecords
from actors.relay._limits import RelayLimits
from actors.relay._outgoing import Outgoing
from actors.relay._schedule import Lane

__all__ = ["Channel", "RelayStream", "StreamStatistics"]

_TAKEN_IN_A_ROW = 16
_QUEUE_FULL = "Noise virtual stream inbound queue is full or closed"


class Channel(Protocol):
    """Both directions of a secure channel: what this package needs of one."""

    def encrypt(self, plaintext: bytes) -> bytes:
        """Seal the next record."""
        ...

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Open the next record."""
        ...

    def close(self) -> None:
        """Drop the keys."""
        ...


@attrs.frozen(kw_only=True)
class StreamStatistics:
    """What one stream has carried and holds, at one moment.

    Attributes:
        records_sent: Records written, or about to be.
        records_received: Records taken in order.
        queued_messages: Messages that wait for `receive`.
        queued_bytes: Their size.
        queued_bytes_peak: The most their size has been.
        unsent_bytes: Plaintext that waits to be sent.
        peer_acknowledges: Whether the peer takes part in the flow control.
    """

    records_sent: int
    records_received: int
    queued_messages: int
    queued_bytes: int
    queued_bytes_peak: int
    unsent_bytes: int
    peer_acknowledges: bool


class RelayStream:
    """A stream of whole messages, encrypted end to end. Given by the two ends; never made by hand.

    It may be used by one sender and one receiver at a time, or several senders: a message is never torn.
    """

    def __init__(self, stream_id: str, number: int, channel: Channel, outgoing: Outgoing, limits: RelayLimits) -> None:
        self.stream_id = stream_id
        """Names the stream on its connection. Ids may come again."""
        self.number = number
        """Tells two streams of one id apart."""
        self._limits = limits
        self._channel = channel
        self._outgoing = outgoing
        self._lane = Lane(stream_id, channel.encrypt, limits)
        self._inbound = InboundRecords(channel.decrypt, limits)
        self._messages: deque[bytes] = deque()
        self._queued_bytes = 0
        self._peak_bytes = 0
        self._taken_in_a_row = 0
        self._error: RelayError | None = None
        self._changed = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()
        outgoing.schedule.open_lane(self._lane)

    async def send(self, message: bytes, *, trace: TraceContext | None = None) -> None:
        """Queue a message for the peer; waits while too much is queued already.

        Args:
            message: From 1 byte to 64 MiB. It is kept, not copied.
            trace: Trace context of a request; travels in clear beside its first record.

        Raises:
            MessageTooLarge: The message is empty or too large. The stream is as it was.
            RelayError: The stream has ended; the error says how.

        Cancelled:
            The message was not queued.
        """
        await self._outgoing.send(self._lane, message, trace, self._raise_if_ended)

    def send_some(self, messages: Sequence[bytes]) -> int:
        """Queue as many messages as there is room for now, and write at once what the connection takes without waiting.

        Returns:
            How many were queued; for the rest there was no room, or the next one may not be sent.

        Raises:
            MessageTooLarge: The first message is empty or too large. The stream is as it was.
            RelayError: The stream has ended; the error says how.
        """
        return self._outgoing.send_some(self._lane, messages, self._raise_if_ended)

    def send_nowait(self, message: bytes, *, trace: TraceContext | None = None) -> None:
        """Queue a message if there is room for it now.

        Raises:
            trio.WouldBlock: There is none.
            MessageTooLarge: The message is empty or too large. The stream is as it was.
            RelayError: The stream has ended; the error says how.
        """
        self._outgoing.send_nowait(self._lane, message, trace, self._raise_if_ended)

    @property
    def is_idle(self) -> bool:
        """Whether `receive` would wait now, or say that the stream has ended."""
        return not self._messages

    async def receive(self) -> bytes:
        """Wait for the next message. What arrived before the stream's end is still given.

        Raises:
            StreamReset: The peer gave the stream up.
            StreamFailed: The peer broke a rule; the cause says which.
            ConnectionLost: The physical connection is gone.
            StreamClosed: The stream was closed on this side.

        Cancelled:
            No message is lost.
        """
        # Not a whole turn of the scheduler for each message of a crowd: the others have theirs after a few.
        self._taken_in_a_row += 1
        if self._taken_in_a_row > _TAKEN_IN_A_ROW:
            self._taken_in_a_row = 0
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint_if_cancelled()
        while not self._messages:
            self._raise_if_ended()
            self._taken_in_a_row = 0
            await self._changed.park()
        message = self._messages.popleft()
        self._queued_bytes -= len(message)
        if self._error is None:
            self._acknowledge()
        if self._room:
            self._room.unpark_all()
        return message

    @property
    def error(self) -> RelayError | None:
        """How the stream ended, or None while it lives."""
        return self._error

    def statistics(self) -> StreamStatistics:
        """Tell what the stream has carried and holds."""
        return StreamStatistics(
            records_sent=self._lane.window.sent,
            records_received=self._inbound.window.received,
            queued_messages=len(self._messages),
            queued_bytes=self._queued_bytes,
            queued_bytes_peak=self._peak_bytes,
            unsent_bytes=self._lane.packer.queued_bytes,
            peer_acknowledges=self._lane.window.heeded,
        )

    def __repr__(self) -> str:
        """Show the id and whether it lives."""
        return f"<RelayStream {self.stream_id!r} {'open' if self._error is None else type(self._error).__name__}>"

    def _raise_if_ended(self) -> None:
        if self._error is not None:
            raise self._error

    # What the connection's loop calls. Nothing below waits, except for room.

    def take_record(self, seq: int, ciphertext: bytes, now_s: float) -> None:
        """Take a record from the wire. Any error is the stream's last word.

        Raises:
            StreamFailed: The stream cannot go on; the cause says why.
        """
        # The backlog is never more than what is queued.
        if self._queued_bytes > self._limits.queue_bytes and self._backlog_bytes() > self._limits.queue_bytes:
            raise StreamFailed(_QUEUE_FULL)
        try:
            messages = self._inbound.push(seq, ciphertext, now_s)
        except Exception as error:  # Whatever a record does to the stream, the connection and its other streams go on.
            raise StreamFailed(str(error)) from error
        if messages:
            self._messages += messages
            self._queued_bytes += sum(map(len, messages))
            self._peak_bytes = max(self._peak_bytes, self._queued_bytes)
            if self._changed:
                self._changed.unpark_all()
        self._acknowledge()

    def _backlog_bytes(self) -> int:
        """Give what waits behind the message to be received next, which may be large by right."""
        return self._queued_bytes - len(self._messages[0]) if self._messages else 0

    def _acknowledge(self) -> None:
        """Tell the peer that there is room, when there is and when it is worth a frame."""
        if self._inbound.window.is_due and self._queued_bytes < self._limits.lane_bytes:
            self.send_ack()

    def send_ack(self) -> None:
        """Acknowledge what has come. The first one, of nothing, tells the peer that this end takes part."""
        self._outgoing.schedule.put_ack(self.stream_id, self._inbound.window.take_ack())
        self._outgoing.wake()

    def take_ack(self, ack: int) -> None:
        """Take an acknowledgement from the wire.

        Raises:
            StreamFailed: It names records that were never sent.
        """
        try:
            self._lane.window.acknowledge(ack)
        except RelayError as error:
            raise StreamFailed(str(error)) from error
        self._outgoing.schedule.wake(self._lane)
        self._outgoing.wake()

    async def wait_until_written(self) -> None:
        """Wait until all that was sent is written or the stream has ended. May be never: bound it.

        Cancelled:
            Only the wait ends.
        """
        await self._outgoing.wait_empty(self._lane, lambda: self._error is not None)

    async def wait_for_room(self) -> None:
        """Wait until another record may be taken.

        Cancelled:
            Only the wait ends.
        """
        while self._error is None and self._backlog_bytes() > self._limits.queue_bytes // 2:
            await self._room.park()

    @property
    def held_bytes(self) -> int:
        """All that the stream holds of what the peer has sent."""
        return self._queued_bytes + self._inbound.held_bytes

    @property
    def gap_deadline_s(self) -> float | None:
        """When an open gap ends the stream, or None while there is none."""
        return self._inbound.gap_deadline_s

    def check_gap(self, now_s: float) -> None:
        """Say whether a gap has been open for too long.

        Raises:
            StreamFailed: It has.
        """
        try:
            self._inbound.check_gap(now_s)
        except RelayError as error:
            raise StreamFailed(str(error)) from error

    def end(self, error: RelayError) -> None:
        """End the stream; its keys are dropped. The first ending stays."""
        if self._error is not None:
            return
        self._error = error
        self._channel.close()
        self._outgoing.lane_closed(self.stream_id)
        self._changed.unpark_all()
        self._room.unpark_all()

    def close(self) -> None:
        """End the stream on this side."""
        self.end(StreamClosed())
