"""Turn the records of one stream back into messages: order, open, reassemble, and say when to acknowledge.

Knows ciphertext only as something that a function it was given can open. Any error is the stream's last word.
"""

from collections.abc import Callable

from actors.relay._limits import RelayLimits
from actors.relay._ordering import OrderedCiphertext
from actors.relay._records import MessageAssembler
from actors.relay._window import ReceiveWindow

__all__ = ["InboundRecords"]


class InboundRecords:
    """The receiving half of one stream."""

    __slots__ = ("_assembler", "_open", "_ordered", "window")

    def __init__(self, open_record: Callable[[bytes], bytes], limits: RelayLimits) -> None:
        self._open = open_record
        self._ordered = OrderedCiphertext(limits)
        self._assembler = MessageAssembler(limits)
        self.window = ReceiveWindow(limits)

    def push(self, seq: int, ciphertext: bytes, now_s: float) -> list[bytes]:
        """Take one record; give the messages that are complete now.

        Raises:
            OrderingError: The record cannot be put in order.
            FramingError: The plaintext cannot be cut into messages.
            Exception: What the opening function raises.
        """
        messages: list[bytes] = []
        for record in self._ordered.push(seq, ciphertext, now_s):
            self.window.record_received(len(record))
            messages += self._assembler.feed(self._open(record))
        return messages

    @property
    def held_bytes(self) -> int:
        """Bytes that wait for other bytes."""
        return self._ordered.held_bytes + self._assembler.held_bytes

    @property
    def gap_deadline_s(self) -> float | None:
        """When an open gap ends the stream, or None while there is none."""
        return self._ordered.gap_deadline_s

    def check_gap(self, now_s: float) -> None:
        """Say whether a gap has been open for too long.

        Raises:
            GapNotFilled: It has; the stream cannot go on.
        """
        self._ordered.check_gap(now_s)
