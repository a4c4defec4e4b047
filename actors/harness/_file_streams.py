"""Open files, block by block. An open file lives as long as the connection it was opened on."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

from actors.harness._arguments import checked_bytes
from actors.harness._core import Core
from actors.harness._errors import AnswerLost, RequestRejected
from actors.harness._file_errors import FileStreamLost, file_error
from actors.protocol import (
    BLOCK_BYTES_MAX,
    FS_CLOSE,
    FS_OPEN,
    FS_READ_BLOCK,
    FS_WRITE_BLOCK,
    CloseParams,
    ErrorCode,
    OpenMode,
    OpenParams,
    ReadBlockParams,
    WriteBlockParams,
    file_handle_is_unknown,
)


class _Handle:
    """One open file at the executor."""

    def __init__(self, core: Core, path: str) -> None:
        self.core: Core = core
        self.path: str = path
        self.handle_id: Final = core.new_id()

    async def open(self, uri: str, mode: OpenMode) -> None:
        params = OpenParams(handle_id=self.handle_id, path=uri, mode=mode)
        try:
            await self.core.call(FS_OPEN, params, identity=self.path)
        except RequestRejected as rejected:
            raise file_error(self.path, rejected) from None

    def error(self, rejected: RequestRejected, offset: int) -> Exception:
        """Say what a refused block means."""
        if rejected.code == ErrorCode.NOT_FOUND and file_handle_is_unknown(rejected.message):
            return FileStreamLost(self.path, offset)
        return file_error(self.path, rejected)

    def drop(self) -> None:
        """Have it closed by the client, whatever becomes of us; what was written is dropped."""
        self.core.call_soon(FS_CLOSE, CloseParams(handle_id=self.handle_id, discard=True), identity=self.path)


@final
class FileReader:
    """A file that is being read. Handed out by `Files.open_read`.

    Cancelled:
        The block that was asked for may be read again: the offset has not moved.
    """

    def __init__(self, handle: _Handle, offset: int, block_bytes: int) -> None:
        self._handle, self._block_bytes = handle, block_bytes
        self.offset: int = offset
        """Where the next block begins."""

    async def read(self, bytes_max: int | None = None) -> bytes:
        """Read the next block; empty at the end.

        Raises:
            FileStreamLost: The connection was lost, and the open file with it; its offset is told.
            HarnessError: The executor refused, or cannot be reached.

        Cancelled:
            The block may be read again: the offset has not moved.
        """
        length = min(bytes_max or self._block_bytes, BLOCK_BYTES_MAX)
        params = ReadBlockParams(handle_id=self._handle.handle_id, offset=self.offset, len=length)
        try:
            block = await self._handle.core.call(FS_READ_BLOCK, params, identity=self._handle.path)
        except RequestRejected as rejected:
            raise self._handle.error(rejected, self.offset) from None
        except AnswerLost as lost:
            raise FileStreamLost(self._handle.path, self.offset) from lost
        self.offset += len(block.chunk)
        return block.chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while block := await self.read():
            yield block


@final
class FileWriter:
    """A file that is being made. Handed out by `Files.open_write`."""

    def __init__(self, handle: _Handle) -> None:
        self._handle = handle
        self.offset: int = 0
        """Where the next bytes go."""

    async def write(self, data: bytes) -> None:
        """Write bytes, behind those before.

        Raises:
            FileStreamLost: The connection was lost, and the open file with it; its offset is told.
            HarnessError: The executor refused, or cannot be reached.

        Cancelled:
            Part may be written; the offset says up to where it is certain.
        """
        view = memoryview(checked_bytes(data))
        while view:
            block = view[:BLOCK_BYTES_MAX]
            params = WriteBlockParams(handle_id=self._handle.handle_id, offset=self.offset, chunk=bytes(block))
            try:
                await self._handle.core.call(FS_WRITE_BLOCK, params, identity=self._handle.path)
            except RequestRejected as rejected:
                raise self._handle.error(rejected, self.offset) from None
            except AnswerLost as lost:
                raise FileStreamLost(self._handle.path, self.offset) from lost
            self.offset += len(block)
            view = view[len(block) :]


@asynccontextmanager
async def hold_reader(
    core: Core, uri: str, path: str, offset: int, block_bytes: int
) -> AsyncGenerator[FileReader, None]:
    """Have a file open for a block, and closed after it by the client."""
    handle = _Handle(core, path)
    try:
        await handle.open(uri, OpenMode.READ)
        yield FileReader(handle, offset, block_bytes)
    finally:
        handle.drop()


@asynccontextmanager
async def hold_writer(core: Core, uri: str, path: str) -> AsyncGenerator[FileWriter, None]:
    """Have a file made for a block: it takes its place when the block ends well."""
    handle = _Handle(core, path)
    is_done = False
    try:
        await handle.open(uri, OpenMode.REPLACE)
        writer = FileWriter(handle)
        yield writer
        await _finish(writer, handle)
        is_done = True
    finally:
        if not is_done:
            handle.drop()


async def _finish(writer: FileWriter, handle: _Handle) -> None:
    try:
        params = CloseParams(handle_id=handle.handle_id)
        result = await handle.core.call(FS_CLOSE, params, identity=handle.path)
    except RequestRejected as rejected:
        raise handle.error(rejected, writer.offset) from None
    # An unknown handle is closed without a word. Where writing is in place, nothing is lost by that.
    tells = handle.core.info is not None and handle.core.info.capabilities.fs_close_discard
    if tells and not result.replaced:
        raise FileStreamLost(handle.path, writer.offset)
