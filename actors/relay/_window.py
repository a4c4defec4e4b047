"""Keep a sender from running ahead of its receiver. Counts records and bytes; knows nothing of what they hold.

Peers in the field never acknowledge and ignore acknowledgements, so the window only closes for a peer that has sent
one. Acknowledgements travel in the `ack` field that every peer accepts: how many records, from the first, the
application has made room for. They are not authenticated: a false one can stall or end a stream, as anybody who
carries the frames can in any case, and can do nothing else.
"""

from collections import deque

from actors.relay._errors import AckBeyondSent
from actors.relay._limits import RelayLimits

__all__ = ["ReceiveWindow", "SendWindow"]

_RECORDS_PER_ACK = 64


class SendWindow:
    """How much is on its way."""

    __slots__ = ("_limit", "_sizes", "acked", "flying_bytes", "heeded", "sent")

    def __init__(self, limits: RelayLimits) -> None:
        self._limit = limits.window_bytes
        # The size of each record after the last acknowledged one. Empty until the peer has acknowledged once.
        self._sizes: deque[int] = deque()
        self.acked: int = 0
        self.sent: int = 0
        self.flying_bytes: int = 0
        self.heeded: bool = False

    @property
    def is_open(self) -> bool:
        """Whether another record may go out now."""
        return not self.heeded or self.flying_bytes < self._limit

    def record_sent(self, size_bytes: int) -> None:
        """Count one more record on its way."""
        self.sent += 1
        if self.heeded:
            self._sizes.append(size_bytes)
            self.flying_bytes += size_bytes

    def acknowledge(self, ack: int) -> None:
        """Take an acknowledgement. A repeated or an old one changes nothing.

        Raises:
            AckBeyondSent: It names records that were never sent. Nothing has changed.
        """
        if ack > self.sent:
            raise AckBeyondSent(ack, self.sent)
        if not self.heeded:
            # What flew before the peer showed that it acknowledges was not counted, and is not waited for.
            self.heeded = True
            self.acked = self.sent
        while self.acked < ack:
            self.flying_bytes -= self._sizes.popleft()
            self.acked += 1


class ReceiveWindow:
    """How much the application has made room for, and when it is worth telling."""

    __slots__ = ("_bytes_untold", "_every_bytes", "received", "told")

    def __init__(self, limits: RelayLimits) -> None:
        self._every_bytes = max(1, limits.window_bytes // 4)
        self._bytes_untold = 0
        self.received = 0
        self.told = 0

    def record_received(self, size_bytes: int) -> None:
        """Count one more record."""
        self.received += 1
        self._bytes_untold += size_bytes

    @property
    def is_due(self) -> bool:
        """Whether enough has come since the last acknowledgement to be worth a frame."""
        return self._bytes_untold >= self._every_bytes or self.received - self.told >= _RECORDS_PER_ACK

    def take_ack(self) -> int:
        """Give the number to acknowledge now."""
        self.told = self.received
        self._bytes_untold = 0
        return self.received
