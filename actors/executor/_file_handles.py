"""Open files of one connection. What is done to one is done in the order in which it was asked for."""

import errno
import os
from binascii import b2a_base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import trio

from actors.executor._file_reading import open_plain
from actors.executor._file_tree import FileTree, Links, os_error
from actors.executor._file_writing import Replacement, write_all
from actors.executor._refusals import RequestRefused
from actors.protocol import FILE_HANDLES_MAX, OpenMode, handle_exists, handle_unknown, handles_full

__all__ = ["FileHandle", "FileHandles", "Turn"]

_OFFSET_MAX = 2**63 - 1


@attrs.frozen(eq=False)
class Turn:
    """A place in the line before an open file."""

    before: trio.Event | None
    mine: trio.Event = attrs.Factory(trio.Event)

    @asynccontextmanager
    async def taken(self) -> AsyncGenerator[None, None]:
        """Wait until it comes, and pass it on at the end of the block."""
        try:
            if self.before is not None:
                await self.before.wait()
            yield
        finally:
            self.mine.set()


class FileHandle:
    """One open file. Its methods block; `line_up` does not."""

    def __init__(self, handle_id: str, tree: FileTree) -> None:
        self.handle_id = handle_id
        self._tree = tree
        self._last: trio.Event | None = None
        self._reading: int | None = None
        self._replacement: Replacement | None = None

    def line_up(self) -> Turn:
        """Take the next place in the line."""
        turn = Turn(self._last)
        self._last = turn.mine
        return turn

    def step_out(self, turn: Turn) -> None:
        """Leave the line again, as the last in it."""
        if turn.before is None:
            turn.mine.set()
        self._last = turn.before

    def open(self, path: str, mode: OpenMode) -> None:
        """Open a plain file, or begin a new one beside the one it will replace."""
        with self._tree.at(path, Links.FOLLOW) as spot:
            if mode is OpenMode.READ:
                self._reading = open_plain(spot, path)
            else:
                self._replacement = Replacement(spot, path)

    @property
    def _file(self) -> int:
        if self._reading is not None:
            return self._reading
        if self._replacement is not None:
            return self._replacement.file
        raise RequestRefused(handle_unknown(self.handle_id))  # Asked for before its opening failed.

    def read(self, offset: int, length: int) -> tuple[bytes, bool]:
        """Read a block; tell whether there was less than was asked for."""
        if offset > _OFFSET_MAX - length:
            raise os_error(errno.EINVAL)
        parts: list[bytes] = []
        left = length
        while left and (part := os.pread(self._file, left, offset + length - left)):
            parts.append(part)
            left -= len(part)
        return b2a_base64(b"".join(parts), newline=False), left > 0

    def write(self, offset: int, chunk: bytes) -> None:
        """Write a block."""
        if offset > _OFFSET_MAX - len(chunk):
            raise os_error(errno.EINVAL)
        write_all(self._file, chunk, offset)

    def close(self, *, discard: bool) -> bool:
        """Let go of it; what was written becomes the file, unless it is discarded. Twice is quiet.

        Returns:
            Whether it became the file.
        """
        reading, self._reading = self._reading, None
        if reading is not None:
            os.close(reading)
        replacement, self._replacement = self._replacement, None
        if replacement is None:
            return False
        if discard:
            replacement.discard()
        else:
            replacement.commit()
        return not discard


class FileHandles:
    """Those of one connection."""

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree
        self._known: dict[str, FileHandle] = {}
        # Also those that are on their way to being closed.
        self._live: set[FileHandle] = set()

    def reserve(self, handle_id: str) -> FileHandle:
        """Take a name.

        Raises:
            RequestRefused: It is taken, or there are too many.
        """
        if handle_id in self._known:
            raise RequestRefused(handle_exists(handle_id))
        if len(self._live) >= FILE_HANDLES_MAX:
            raise RequestRefused(handles_full())
        handle = self._known[handle_id] = FileHandle(handle_id, self._tree)
        self._live.add(handle)
        return handle

    def find(self, handle_id: str) -> FileHandle:
        """Find one by name.

        Raises:
            RequestRefused: There is none.
        """
        if handle_id not in self._known:
            raise RequestRefused(handle_unknown(handle_id))
        return self._known[handle_id]

    def unname(self, handle_id: str) -> FileHandle | None:
        """Free a name; what is under way still holds the file."""
        return self._known.pop(handle_id, None)

    def forget(self, handle: FileHandle) -> None:
        """It is closed, or was never opened."""
        self._live.discard(handle)
        if self._known.get(handle.handle_id) is handle:
            del self._known[handle.handle_id]

    def close(self) -> None:
        """The connection has ended: let go of all, and leave files that were being written as they were."""
        for handle in self._live:
            handle.close(discard=True)
        self._known.clear()
        self._live.clear()
