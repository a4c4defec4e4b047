"""Files of one environment: whole ones, folders, and trees. Nothing dangerous by default."""

import os
from collections.abc import AsyncGenerator
from pathlib import PurePath
from typing import Any, Final, TypeVar, cast, final

from actors.blocks import block
from actors.harness._arguments import checked_bytes
from actors.harness._core import Core
from actors.harness._errors import AnswerUnreadable, InvalidArgument, RequestRejected
from actors.harness._file_errors import FileError, FileTooLarge, NotADirectory, NotFound, file_error
from actors.harness._file_streams import FileReader, FileWriter, hold_reader, hold_writer
from actors.harness._file_texts import decoded_file, encoded_text
from actors.harness._file_values import FileEntry, FileKind, FileStatus, Tree, TreeEntry, TreeFault
from actors.protocol import (
    BLOCK_BYTES_MAX,
    FILE_BYTES_MAX,
    FS_CANONICALIZE,
    FS_COPY,
    FS_CREATE_DIRECTORY,
    FS_GET_METADATA,
    FS_READ_DIRECTORY,
    FS_READ_FILE,
    FS_REMOVE,
    FS_WALK,
    FS_WATCH_MISSING,
    FS_WRITE_FILE,
    CanonicalizeParams,
    CopyParams,
    CreateDirectoryParams,
    GetMetadataParams,
    Method,
    PathUriRefused,
    ReadDirectoryParams,
    ReadFileParams,
    RemoveParams,
    WalkKind,
    WalkOptions,
    WalkParams,
    WatchMissingParams,
    WriteFileParams,
    encode_bytes,
    path_from_uri,
    uri_from_path,
)

P = TypeVar("P")
R = TypeVar("R")
FilePath = str | PurePath
"""An absolute path in the environment, or a `file:` URI."""

# A request goes out in one frame, and base64 needs four bytes for three.
_WHOLE_BYTES_MAX: Final = 11 * 1024 * 1024


@final
class Files:
    """Files of one environment. Every path is absolute, or a `file:` URI.

    Each method raises `FileError` by its kind (`NotFound`, `OutsideRoots`, ...), `DidNotRun` when nothing was sent,
    `MayHaveRun` when a change was sent and its answer lost, and `InvalidArgument` when an argument breaks a rule.

    Cancelled:
        What only looks ends its wait; a change may be made all the same.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def read_bytes(self, path: FilePath, *, bytes_max: int = FILE_BYTES_MAX) -> bytes:
        """Read a whole plain file; a large one comes in blocks.

        Raises:
            FileTooLarge: It holds more than ``bytes_max``.

        Cancelled:
            Only the wait ends.
        """
        try:
            answer = await self._call(path, FS_READ_FILE, ReadFileParams(path=path_uri(path)), repeat=True)
            data = answer.data_base64
        except FileTooLarge as large:
            parts: list[bytes] = []
            size_bytes = 0
            async with self.open_read(path) as reader:
                async for block in reader:
                    parts.append(block)
                    size_bytes += len(block)
                    if size_bytes > bytes_max:
                        raise large from None
            return b"".join(parts)
        if len(data) > bytes_max:
            refused = RequestRejected(0, f"file of {len(data)} bytes is larger than {bytes_max} bytes")
            raise FileTooLarge(_shown(path), refused)
        return data

    async def read_text(self, path: FilePath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Read a whole plain file as text; as `read_bytes`.

        Raises:
            UnicodeDecodeError: It holds something else than this encoding; the reason names the path.
        """
        return decoded_file(_shown(path), await self.read_bytes(path), encoding, errors)

    async def write_bytes(self, path: FilePath, data: bytes) -> None:
        """Make or replace a whole plain file, in one step for whoever looks; its folder must be there.

        Cancelled:
            The file holds all of the old bytes or all of the new.
        """
        data = checked_bytes(data, instead="write_text() takes text")
        if len(data) > _WHOLE_BYTES_MAX:
            async with self.open_write(path) as writer:
                await writer.write(data)
            return
        await self._call(path, FS_WRITE_FILE, WriteFileParams(path=path_uri(path), data_base64=encode_bytes(data)))

    async def write_text(self, path: FilePath, text: str, *, encoding: str = "utf-8") -> None:
        """Make or replace a whole plain file; as `write_bytes`.

        Raises:
            UnicodeEncodeError: The text holds what this encoding cannot say; the reason names the path.
        """
        await self.write_bytes(path, encoded_text(_shown(path), text, encoding))

    async def stat(self, path: FilePath, *, follow_links: bool = True) -> FileStatus:
        """Say what stands at a path.

        Args:
            path: Where.
            follow_links: False tells of a link in the last place itself, if the executor is able to.
        """
        params = GetMetadataParams(path=path_uri(path), link_itself=not follow_links)
        found = await self._call(path, FS_GET_METADATA, params, repeat=True)
        is_bare_link = found.is_symlink and not found.is_file and not found.is_directory and not follow_links
        kind = FileKind.BROKEN_LINK if is_bare_link else _kind(is_file=found.is_file, is_directory=found.is_directory)
        return FileStatus(
            path=_shown(path),
            kind=kind,
            is_link=found.is_symlink,
            size_bytes=found.size,
            modified_at_ms=found.modified_at_ms,
        )

    async def exists(self, path: FilePath) -> bool:
        """Say whether anything stands at a path, links followed; a path that may not be seen raises."""
        try:
            await self.stat(path)
        except (NotFound, NotADirectory):
            return False
        return True

    async def wait_until_exists(self, path: FilePath) -> None:
        """Wait until something stands at a path, over lost connections too; its folder must be there.

        The executor looks for us, several times a second, and tells. At most 64 such waits are open at a time.

        Raises:
            NotFound: Its folder is not there.

        Cancelled:
            Only the wait ends; the executor looks on until the file is there or the connection ends.
        """
        folder = path_uri(path).rstrip("/").rpartition("/")[0] or "file:///"
        while not await self.exists(path):
            with self._core.expecting_change() as (watch_id, changed):
                params = WatchMissingParams(watch_id=watch_id, missing=(path_uri(path),), present=folder)
                answer = await self._call(path, FS_WATCH_MISSING, params, repeat=True)
                if answer.watching:
                    await changed.wait()
                else:
                    # Its folder is gone, which this says, or the file is there by now.
                    await self.stat(folder)

    async def list(self, path: FilePath) -> tuple[FileEntry, ...]:
        """Give the names in a folder, sorted, links that lead nowhere among them if the executor tells."""
        found = await self._call(path, FS_READ_DIRECTORY, ReadDirectoryParams(path=path_uri(path)), repeat=True)
        entries = [
            FileEntry(
                name=each.file_name,
                kind=_kind(is_file=each.is_file, is_directory=each.is_directory),
                is_link=each.is_symlink,
            )
            for each in found.entries
        ]
        entries += [FileEntry(name=name, kind=FileKind.BROKEN_LINK, is_link=True) for name in found.broken_links]
        return tuple(sorted(entries, key=lambda entry: entry.name))

    async def walk(
        self,
        path: FilePath,
        *,
        depth_max: int = 64,
        directories_max: int = 10_000,
        entries_max: int = 10_000,
        follow_links: bool = False,
        enter_hidden: bool = True,
    ) -> Tree:
        """List a tree, breadth first.

        Args:
            path: Its top.
            depth_max: Folders below the top to go down; 0 lists the top alone.
            directories_max: Folders to read.
            entries_max: Entries to give.
            follow_links: Enter links to folders, each folder once.
            enter_hidden: Enter folders whose name begins with a dot.
        """
        options = WalkOptions(
            max_depth=depth_max,
            max_directories=directories_max,
            max_entries=entries_max,
            follow_directory_symlinks=follow_links,
            prune_hidden_directories=not enter_hidden,
        )
        found = await self._call(path, FS_WALK, WalkParams(path=path_uri(path), options=options), repeat=True)
        return Tree(
            entries=tuple(TreeEntry(path=self._path(each.path), kind=_KIND_OF[each.kind]) for each in found.entries),
            faults=tuple(TreeFault(path=self._path(each.path), reason=each.message) for each in found.errors),
            truncated=found.truncated,
        )

    async def canonicalize(self, path: FilePath) -> str:
        """Resolve every link of a path that exists."""
        answer = await self._call(path, FS_CANONICALIZE, CanonicalizeParams(path=path_uri(path)), repeat=True)
        return self._path(answer.path)

    async def make_directory(self, path: FilePath, *, parents: bool = False) -> None:
        """Make a folder.

        Args:
            path: Which.
            parents: Make those on the way as well, and be content with one that is there.
        """
        await self._call(path, FS_CREATE_DIRECTORY, CreateDirectoryParams(path=path_uri(path), recursive=parents))

    async def remove(self, path: FilePath, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """Remove a file, a link (not what it leads to), or an empty folder.

        Args:
            path: Which.
            recursive: Remove what a folder holds as well.
            missing_ok: Be content when nothing is there.
        """
        await self._call(path, FS_REMOVE, RemoveParams(path=path_uri(path), recursive=recursive, force=missing_ok))

    async def copy(self, source: FilePath, destination: FilePath, *, recursive: bool = False) -> None:
        """Copy a file, a link as a link, or a folder.

        Args:
            source: What.
            destination: The new path itself, not the folder to put it in; a folder that is there is merged into.
            recursive: Copy a folder with what it holds.
        """
        params = CopyParams(source_path=path_uri(source), destination_path=path_uri(destination), recursive=recursive)
        try:
            await self._call(source, FS_COPY, params)
        except FileError as error:
            if not recursive and "recursive" in error.message:
                error.args = (f"{error.path} is a folder: write copy(..., recursive=True) ({error.message})",)
            raise

    @block
    async def open_read(
        self, path: FilePath, *, offset: int = 0, block_bytes: int = BLOCK_BYTES_MAX
    ) -> AsyncGenerator[FileReader, None]:
        """Open a plain file to read it block by block: ``async for block in reader``.

        Raises:
            FileStreamLost: The connection was lost; a file is never silently short.
            InvalidArgument: `block_bytes` is out of bounds.

        Cancelled:
            The executor is told to close it.
        """
        if not 1 <= block_bytes <= BLOCK_BYTES_MAX:
            raise InvalidArgument("block_bytes", f"must be between 1 and {BLOCK_BYTES_MAX}")
        async with hold_reader(self._core, path_uri(path), _shown(path), offset, block_bytes) as reader:
            yield reader

    @block
    async def open_write(self, path: FilePath) -> AsyncGenerator[FileWriter, None]:
        """Make a plain file anew, block by block. It takes its place when the block ends well, else nothing changes.

        Raises:
            FileStreamLost: The connection was lost; the file is as it was.

        Cancelled:
            The executor is told to drop what was written.
        """
        async with hold_writer(self._core, path_uri(path), _shown(path)) as writer:
            yield writer

    async def _call(self, path: FilePath, method: Method[P, R], params: P, *, repeat: bool = False) -> R:
        try:
            return await self._core.call(method, params, identity=_shown(path), repeat=repeat)
        except RequestRejected as rejected:
            raise file_error(_shown(path), rejected) from None

    def _path(self, uri: str) -> str:
        platform: Any = self._core.info.platform_os if self._core.info else None
        try:
            return path_from_uri(uri, platform=platform or "linux")
        except PathUriRefused as fault:
            raise AnswerUnreadable("fs", fault.rule) from None


_KIND_OF: Final = {WalkKind.FILE: FileKind.FILE, WalkKind.DIRECTORY: FileKind.DIRECTORY}


def _kind(*, is_file: bool, is_directory: bool) -> FileKind:
    return FileKind.FILE if is_file else FileKind.DIRECTORY if is_directory else FileKind.SPECIAL


def _shown(path: FilePath) -> str:
    text: object = os.fspath(path) if isinstance(cast("object", path), os.PathLike) else path
    if not isinstance(text, str):
        raise InvalidArgument("path", f"must be text or a path, not {type(text).__name__}")
    return text


def path_uri(path: FilePath) -> str:
    """Give a path as it travels."""
    text = _shown(path)
    if text.startswith("file:"):
        return text
    try:
        return uri_from_path(text)
    except PathUriRefused as fault:
        raise InvalidArgument("path", fault.rule) from None
