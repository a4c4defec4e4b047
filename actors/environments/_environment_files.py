"""Files of one environment, as users reach them: the harness's, connecting if need be."""

import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Protocol, Unpack, final

from actors.blocks import block
from actors.environments._demands import must_be_options
from actors.environments._given import Given
from actors.environments._options import WalkRules
from actors.environments._seams import Client, FileAccess
from actors.harness import FileEntry, FilePath, FileReader, FileStatus, FileWriter, Tree


class _Usable(Protocol):
    """What has an open link for a block."""

    def operation(self, name: str) -> AbstractAsyncContextManager[Client]:
        """Have it."""
        ...


@final
class EnvironmentFiles(metaclass=Given):
    """Files of one environment, which it keeps alive. Every path is absolute, or a ``file:`` URI.

    Each method connects if need be and raises as `Environment.wait_until_ready` does, or what the harness says:
    `actors.harness.FileError` by its kind, that it did not run, or that it may have run.

    Cancelled:
        What only looks ends its wait; a change may be made all the same. An attempt to connect goes on for the others.
    """

    __slots__ = ("_environment",)

    def __init__(self, environment: _Usable) -> None:
        self._environment = environment

    @contextlib.asynccontextmanager
    async def _files(self, name: str) -> AsyncGenerator[FileAccess, None]:
        async with self._environment.operation(f"files.{name}") as client:
            yield client.files

    async def read_bytes(self, path: FilePath) -> bytes:
        """Read a whole plain file."""
        async with self._files("read_bytes") as files:
            return await files.read_bytes(path)

    async def read_text(self, path: FilePath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Read a whole plain file as text.

        Raises:
            UnicodeDecodeError: It holds something else than this encoding; the reason names the path.
        """
        async with self._files("read_text") as files:
            return await files.read_text(path, encoding=encoding, errors=errors)

    async def write_bytes(self, path: FilePath, data: bytes) -> None:
        """Make or replace a whole plain file, in one step for whoever looks; its folder must be there."""
        async with self._files("write_bytes") as files:
            await files.write_bytes(path, data)

    async def write_text(self, path: FilePath, text: str, *, encoding: str = "utf-8") -> None:
        """Make or replace a whole plain file."""
        async with self._files("write_text") as files:
            await files.write_text(path, text, encoding=encoding)

    async def stat(self, path: FilePath, *, follow_links: bool = True) -> FileStatus:
        """Say what stands at a path; without following, of a link in the last place itself."""
        async with self._files("stat") as files:
            return await files.stat(path, follow_links=follow_links)

    async def exists(self, path: FilePath) -> bool:
        """Say whether anything stands at a path, links followed."""
        async with self._files("exists") as files:
            return await files.exists(path)

    async def wait_until_exists(self, path: FilePath) -> None:
        """Wait until something stands at a path, over lost connections too; its folder must be there."""
        async with self._files("wait_until_exists") as files:
            await files.wait_until_exists(path)

    async def list(self, path: FilePath) -> tuple[FileEntry, ...]:
        """Give the names in a folder, sorted."""
        async with self._files("list") as files:
            return await files.list(path)

    async def walk(self, path: FilePath, **rules: Unpack[WalkRules]) -> Tree:
        """List a tree, breadth first.

        Args:
            path: Its top.
            rules: depth_max=64, directories_max=10_000, entries_max=10_000, follow_links=False,
                enter_hidden=True: see `WalkRules`.
        """
        must_be_options("walk", rules, WalkRules)
        async with self._files("walk") as files:
            return await files.walk(path, **rules)

    async def canonicalize(self, path: FilePath) -> str:
        """Resolve every link of a path that exists."""
        async with self._files("canonicalize") as files:
            return await files.canonicalize(path)

    async def make_directory(self, path: FilePath, *, parents: bool = False) -> None:
        """Make a folder; with ``parents`` those on the way as well, content with one that is there."""
        async with self._files("make_directory") as files:
            await files.make_directory(path, parents=parents)

    async def remove(self, path: FilePath, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """Remove a file, a link, or an empty folder; with ``recursive`` a folder with what it holds."""
        async with self._files("remove") as files:
            await files.remove(path, recursive=recursive, missing_ok=missing_ok)

    async def copy(self, source: FilePath, destination: FilePath, *, recursive: bool = False) -> None:
        """Copy a file, a link as a link, or with ``recursive`` a folder, to the new path itself."""
        async with self._files("copy") as files:
            await files.copy(source, destination, recursive=recursive)

    @block
    async def open_read(self, path: FilePath, *, offset: int = 0) -> AsyncGenerator[FileReader, None]:
        """Open a plain file to read it block by block: ``async for block in reader``.

        Cancelled:
            The executor is told to close it.
        """
        async with self._files("open_read") as files, files.open_read(path, offset=offset) as reader:
            yield reader

    @block
    async def open_write(self, path: FilePath) -> AsyncGenerator[FileWriter, None]:
        """Make a plain file anew, block by block; it takes its place when the block ends well.

        Cancelled:
            The executor is told to drop what was written.
        """
        async with self._files("open_write") as files, files.open_write(path) as writer:
            yield writer
