"""When to stop reading a connection.

A process whose output nobody reads fills its buffer. Then the connection is not read on, so that the executor stops
the process, as a pipe would; but only while nobody waits for anything else that could come: a call's answer or
another process's output must not wait behind output that no one takes.
"""

from collections.abc import Generator
from contextlib import contextmanager

import trio


class ReadValve:
    """Open while someone waits, or while nothing is too full."""

    def __init__(self) -> None:
        # Counts: parties that wait for something to arrive, and buffers that are over their mark.
        self._waiting = 0
        self._full = 0
        self._lot = trio.lowlevel.ParkingLot()
        self.pauses: int = 0
        """How often reading stopped."""

    @property
    def is_open(self) -> bool:
        """The connection may be read."""
        return self._full == 0 or self._waiting > 0

    @contextmanager
    def someone_waits(self) -> Generator[None, None, None]:
        """Keep the valve open while inside."""
        self._waiting += 1
        self._let_through()
        try:
            yield
        finally:
            self._waiting -= 1

    def grew_full(self) -> None:
        """Count one buffer that is over its mark."""
        self._full += 1

    def has_room(self) -> None:
        """Count one buffer less."""
        self._full -= 1
        self._let_through()

    async def wait_open(self) -> None:
        """Return when the connection may be read."""
        if not self.is_open:
            self.pauses += 1
        while not self.is_open:
            await self._lot.park()

    def _let_through(self) -> None:
        if self.is_open:
            self._lot.unpark_all()
