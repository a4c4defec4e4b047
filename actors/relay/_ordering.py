"""Put encrypted records back in order before anybody decrypts them. Knows sequence numbers and sizes.

Records must be decrypted in exact order, the relay may deliver them out of it, and nothing sends a lost one again:
so what comes early waits inside a window, and a gap that stays open past its deadline ends the stream.
"""

from actors.relay._errors import CiphertextBufferFull, GapNotFilled, ReorderWindowExceeded, SequenceExhausted
from actors.relay._limits import RelayLimits

__all__ = ["OrderedCiphertext", "SequenceCounter"]

_UNUSABLE = 2**32 - 1


class SequenceCounter:
    """Numbers the records of one direction: from 0, by one, never around."""

    __slots__ = ("issued",)

    def __init__(self) -> None:
        self.issued = 0

    def take(self) -> int:
        """Give the next number.

        Raises:
            SequenceExhausted: All numbers below 2**32 - 1 are used up.
        """
        if self.issued >= _UNUSABLE:
            raise SequenceExhausted
        self.issued += 1
        return self.issued - 1


class OrderedCiphertext:
    """The receiver's side: records in any order within the window go in, in their order they come out."""

    __slots__ = ("_gap_s", "_held", "_max_bytes", "_window", "expected", "gap_deadline_s", "held_bytes")

    def __init__(self, limits: RelayLimits) -> None:
        self._window, self._max_bytes, self._gap_s = limits.reorder_window, limits.reorder_bytes, limits.gap_s
        # Every key is above `expected`, and at most `window` above it.
        self._held: dict[int, bytes] = {}
        self.held_bytes = 0
        self.expected = 0
        # Not None exactly while something is held; counted from the first record that had to wait.
        self.gap_deadline_s: float | None = None

    def push(self, seq: int, ciphertext: bytes, now_s: float) -> list[bytes]:
        """Take one record; give all that are now in order.

        A record that came before, or that is held already, is ignored: the first copy wins.

        Raises:
            OrderingError: It is too far ahead, or there is no room to hold it. Nothing has changed.
        """
        if seq == self.expected:
            return self._release(ciphertext)
        if seq > self.expected and seq not in self._held:
            self._hold(seq, ciphertext, now_s)
        return []

    def _hold(self, seq: int, ciphertext: bytes, now_s: float) -> None:
        if seq - self.expected > self._window:
            raise ReorderWindowExceeded(seq, self.expected)
        if len(self._held) >= self._window or self.held_bytes + len(ciphertext) > self._max_bytes:
            raise CiphertextBufferFull(len(self._held), self.held_bytes)
        self._held[seq] = ciphertext
        self.held_bytes += len(ciphertext)
        if self.gap_deadline_s is None:
            self.gap_deadline_s = now_s + self._gap_s

    def _release(self, ciphertext: bytes) -> list[bytes]:
        released = [ciphertext]
        self.expected += 1
        while (following := self._held.pop(self.expected, None)) is not None:
            released.append(following)
            self.held_bytes -= len(following)
            self.expected += 1
        if not self._held:
            self.gap_deadline_s = None
        return released

    def check_gap(self, now_s: float) -> None:
        """Say whether the gap has been open for too long.

        Raises:
            GapNotFilled: It has; the stream cannot go on.
        """
        if self.gap_deadline_s is not None and now_s >= self.gap_deadline_s:
            raise GapNotFilled(self.expected, self._gap_s)
