"""Cut messages into plaintext records, and put them together again. Bytes in, bytes out; the cuts do not show.

In the stream of plaintext each message stands behind its length (4 bytes, big-endian). A record is any piece of that
stream up to 60 KiB: it may hold several messages, and a message may span many records, its length included.
"""

from collections import deque

from actors.relay._errors import MessageLengthInvalid, MessageTooLarge, RecordTooLarge
from actors.relay._frames import TraceContext
from actors.relay._limits import RelayLimits

__all__ = ["MessageAssembler", "RecordPacker"]

_LENGTH_BYTES = 4


class RecordPacker:
    """The sender's side: messages go in, records come out, as full as they can be."""

    __slots__ = ("_limits", "_offset", "_queue", "queued_bytes")

    def __init__(self, limits: RelayLimits) -> None:
        self._limits = limits
        self._queue: deque[tuple[bytes, TraceContext | None]] = deque()
        # How much of the first message, its length included, is in records already.
        self._offset = 0
        self.queued_bytes: int = 0

    def put(self, message: bytes, trace: TraceContext | None = None) -> None:
        """Queue a message.

        Raises:
            MessageTooLarge: It is empty or above the limit. Nothing was queued.
        """
        if not 0 < len(message) <= self._limits.max_message_bytes:
            raise MessageTooLarge(len(message), self._limits.max_message_bytes)
        self._queue.append((message, trace))
        self.queued_bytes += _LENGTH_BYTES + len(message)

    def take(self) -> tuple[bytes, TraceContext | None] | None:
        """Give the next record and the trace context of the message it starts with, or None when all is sent.

        A message with a trace context always starts a record of its own: the context lies beside the record in clear,
        and must not be read as that of a message packed before it.
        """
        if not self._queue:
            return None
        trace = self._queue[0][1] if self._offset == 0 else None
        parts: list[bytes | memoryview] = []
        room = self._limits.max_record_bytes
        for number in range(self._limits.max_messages_per_record):
            if not self._queue or room == 0 or (number > 0 and self._queue[0][1] is not None):
                break
            message = self._queue[0][0]
            if self._offset == 0 and (size := _LENGTH_BYTES + len(message)) <= room:
                # Whole, as nearly all small ones go.
                parts += (len(message).to_bytes(_LENGTH_BYTES, "big"), message)
                self._queue.popleft()
                room -= size
            else:
                room -= self._cut_first(parts, room)
        record = b"".join(parts)
        self.queued_bytes -= len(record)
        return record, trace

    def _cut_first(self, parts: list[bytes | memoryview], room: int) -> int:
        """Move up to ``room`` bytes of the first message into ``parts``; drop the message when it is through."""
        message, _ = self._queue[0]
        taken = 0
        if self._offset < _LENGTH_BYTES:
            length = len(message).to_bytes(_LENGTH_BYTES, "big")[self._offset : self._offset + room]
            parts.append(length)
            taken += len(length)
            self._offset += len(length)
        start = self._offset - _LENGTH_BYTES
        if taken < room:
            piece = memoryview(message)[start : start + room - taken]
            parts.append(piece)
            taken += len(piece)
            self._offset += len(piece)
        if self._offset == _LENGTH_BYTES + len(message):
            self._queue.popleft()
            self._offset = 0
        return taken


class MessageAssembler:
    """The receiver's side: records go in, whole messages come out. Holds at most one unfinished message."""

    __slots__ = ("_left", "_length", "_limits", "_parts", "held_bytes")

    def __init__(self, limits: RelayLimits) -> None:
        self._limits = limits
        self._length = b""
        # 0 while the length is not known; else what is missing of the message.
        self._left = 0
        self._parts: list[bytes] = []
        self.held_bytes = 0

    def feed(self, record: bytes) -> list[bytes]:
        """Take one record, give the messages it completes.

        Raises:
            FramingError: The record is too large, or declares a length that no message can have. The length is judged
                at once, before its message has arrived.
        """
        if len(record) > self._limits.max_record_bytes:
            raise RecordTooLarge(len(record))
        if self._left == 0 and not self._length and len(record) > _LENGTH_BYTES:
            # One whole message, as nearly all small ones come.
            declared = int.from_bytes(record[:_LENGTH_BYTES], "big")
            if declared == len(record) - _LENGTH_BYTES and declared <= self._limits.max_message_bytes:
                return [record[_LENGTH_BYTES:]]
        messages: list[bytes] = []
        position = 0
        while position < len(record):
            if self._left == 0:
                position = self._read_length(record, position)
            else:
                position = self._read_piece(record, position, messages)
        return messages

    def _read_length(self, record: bytes, position: int) -> int:
        piece = record[position : position + _LENGTH_BYTES - len(self._length)]
        self._length += piece
        if len(self._length) == _LENGTH_BYTES:
            declared = int.from_bytes(self._length, "big")
            if not 0 < declared <= self._limits.max_message_bytes:
                raise MessageLengthInvalid(declared)
            self._left, self._length = declared, b""
        return position + len(piece)

    def _read_piece(self, record: bytes, position: int, messages: list[bytes]) -> int:
        piece = record[position : position + self._left]
        self._left -= len(piece)
        if self._left > 0:
            self._parts.append(piece)
            self.held_bytes += len(piece)
        elif self._parts:
            self._parts.append(piece)
            messages.append(b"".join(self._parts))
            self._parts, self.held_bytes = [], 0
        else:
            messages.append(piece)
        return position + len(piece)
