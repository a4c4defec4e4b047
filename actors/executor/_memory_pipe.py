"""A pipe in memory, as a process of `actors.executor.testing` has three of them."""

import trio

__all__ = ["MemoryInput", "MemoryPipe"]

_READ_BYTES_MAX = 60 * 1024


class MemoryPipe:
    """A bounded pipe with any number of writers; it ends when the last one is gone."""

    def __init__(self, *, capacity_bytes: int = 64 * 1024) -> None:
        self.capacity_bytes = capacity_bytes
        self.writers: int = 0
        """Who may still write."""
        self._held = bytearray()
        self._closed = False
        self._changed = trio.lowlevel.ParkingLot()

    def _note_change(self) -> None:
        self._changed.unpark_all()

    async def write(self, data: bytes) -> None:
        """Write everything, waiting while it is full.

        Raises:
            trio.BrokenResourceError: The reader gave it up.

        Cancelled:
            A part may have been written.
        """
        rest = memoryview(data)
        await trio.lowlevel.checkpoint()
        while True:
            if self._closed:
                raise trio.BrokenResourceError("nobody reads this pipe")
            room = self.capacity_bytes - len(self._held)
            self._held += rest[:room]
            rest = rest[room:]
            self._note_change()
            if not rest:
                return
            await self._changed.park()

    def drop_writer(self) -> None:
        """One writer is gone."""
        self.writers -= 1
        self._note_change()

    def read_nowait(self) -> bytes | None:
        """Read up to 60 KiB: ``None`` when nothing is there at the moment, empty at the end."""
        if self._closed or (not self._held and self.writers == 0):
            return b""
        if not self._held:
            return None
        data = bytes(self._held[:_READ_BYTES_MAX])
        del self._held[:_READ_BYTES_MAX]
        self._note_change()
        return data

    async def wait_readable(self) -> None:
        """Wait until there is something to read, or the end.

        Cancelled:
            Only the wait ends.
        """
        await trio.lowlevel.checkpoint()
        while not self._held and self.writers > 0 and not self._closed:
            await self._changed.park()

    def close(self) -> None:
        """Give it up as its reader."""
        self._closed = True
        self._note_change()


class MemoryInput:
    """The writing end of a memory pipe, as a process's standard input."""

    def __init__(self, pipe: MemoryPipe) -> None:
        self._pipe = pipe
        self._closed = False

    async def send_all(self, data: bytes) -> None:
        """Write everything, as `MemoryPipe.write`."""
        if self._closed:
            raise trio.ClosedResourceError
        await self._pipe.write(data)

    def close(self) -> None:
        """Write no more; to close twice is quiet."""
        if not self._closed:
            self._closed = True
            self._pipe.drop_writer()
