"""A streamed HTTP body as it comes in: pieces in order, held up to a bound, never silently short."""

from collections import deque

import trio

from actors.harness._flow import ReadValve
from actors.harness._limits import HarnessLimits
from actors.protocol import HttpBodyDelta


class IncomingBody:
    """One body. Pieces that are there are given before the reason why no more come."""

    def __init__(self, request_id: str, *, limits: HarnessLimits, valve: ReadValve) -> None:
        self.request_id = request_id
        self._limits, self._valve = limits, valve
        self._pieces: deque[bytes] = deque()
        self._held_bytes = 0
        # Counted by the valve as a buffer over its mark.
        self._is_full = False
        self._seq = 0
        self._lot = trio.lowlevel.ParkingLot()
        self.over: bool = False
        """Nothing more will come."""
        self.error: str | None = None
        """Why the body is not whole, once it is over."""

    def accept(self, delta: HttpBodyDelta) -> None:
        """Take a piece."""
        if self.over:
            return
        if delta.seq != self._seq + 1:
            self.fail(f"piece {self._seq + 1} is missing")
            return
        self._seq = delta.seq
        if delta.delta_base64:
            self._pieces.append(delta.delta_base64)
            self._held_bytes += len(delta.delta_base64)
        if delta.done:
            self._end(delta.error)
        elif self._held_bytes > self._limits.held_bytes:
            self.fail("it came faster than it was read, from an executor that cannot be told to wait")
        self._mark()
        self._lot.unpark_all()

    def fail(self, reason: str) -> None:
        """Say that the rest will not come."""
        if not self.over:
            self._end(reason)
            self._lot.unpark_all()

    def _end(self, error: str | None) -> None:
        self.over = True
        self.error = error

    async def take(self) -> bytes | None:
        """Give the next piece; None when there is no more, and `error` says whether that is the end.

        Cancelled:
            No piece is lost.
        """
        await trio.lowlevel.checkpoint()
        if not self._pieces and not self.over:
            with self._valve.someone_waits():
                while not self._pieces and not self.over:
                    await self._lot.park()
        if not self._pieces:
            return None
        piece = self._pieces.popleft()
        self._held_bytes -= len(piece)
        self._mark()
        return piece

    def forget(self) -> None:
        """Drop what is held, and whatever still comes."""
        self.fail("nobody reads it")
        self._pieces.clear()
        self._held_bytes = 0
        self._mark()

    def _mark(self) -> None:
        full = self._held_bytes > self._limits.unread_bytes
        if full != self._is_full:
            self._is_full = full
            if full:
                self._valve.grew_full()
            else:
                self._valve.has_room()
