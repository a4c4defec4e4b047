"""Answer the `fs/` methods of one connection.

Every operation runs in a thread and is answered in a task of its own, so that a slow disk holds nobody else up. Few at
a time, and none while its client does not take answers: what waits to be sent is bounded by that.
"""

import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import trio

from actors.executor._file_copying import copy, remove
from actors.executor._file_handles import FileHandle, FileHandles
from actors.executor._file_reading import canonicalize, look, read_directory, read_file
from actors.executor._file_tree import FileTree, Links
from actors.executor._file_walking import walk
from actors.executor._file_watching import FileWatches
from actors.executor._file_writing import create_directory, write_file
from actors.executor._limits import Limits
from actors.executor._outbox import Outbox
from actors.executor._refusals import RequestRefused
from actors.executor._requests import Call, Encoded, Handlers
from actors.executor._routes import LeftRoots
from actors.executor._sessions import Session
from actors.executor._threads import in_thread
from actors.protocol import (
    BLOCK_BYTES_MAX,
    FS_CANONICALIZE,
    FS_CLOSE,
    FS_COPY,
    FS_CREATE_DIRECTORY,
    FS_GET_METADATA,
    FS_OPEN,
    FS_READ_BLOCK,
    FS_READ_DIRECTORY,
    FS_READ_FILE,
    FS_REMOVE,
    FS_WALK,
    FS_WATCH_MISSING,
    FS_WRITE_BLOCK,
    FS_WRITE_FILE,
    CanonicalizeParams,
    CloseParams,
    CloseResult,
    CopyParams,
    CreateDirectoryParams,
    Empty,
    GetMetadataParams,
    OpenParams,
    OpenResult,
    PathUriRefused,
    ReadBlockParams,
    ReadDirectoryParams,
    ReadFileParams,
    RemoveParams,
    Sandbox,
    WalkParams,
    WatchMissingParams,
    WatchMissingResult,
    WriteBlockParams,
    WriteFileParams,
    block_length_refused,
    file_os_failure,
    invalid_params,
    outside_roots,
    path_foreign,
    path_from_uri,
    sandbox_unconfigured,
)

__all__ = ["FileRequests", "Files", "tick"]

R = TypeVar("R")


class Files:
    """What all connections of an executor share: the tree, and the threads that work in it."""

    def __init__(self, tree: FileTree, *, limits: Limits, platform: str) -> None:
        self.tree: FileTree = tree
        self.limits: Limits = limits
        self.platform: str = platform
        self.threads: trio.CapacityLimiter = trio.CapacityLimiter(limits.file_threads_max)

    def path_of(self, uri: str, sandbox: Sandbox | None = None) -> str:
        """Read a path.

        Raises:
            RequestRefused: It is none of this machine, or to work confined was asked for.
        """
        try:
            path = path_from_uri(uri, platform=self.platform)
        except PathUriRefused as fault:
            failure = path_foreign(uri, self.platform) if fault.foreign else invalid_params(fault.rule)
            raise RequestRefused(failure) from None
        if sandbox is not None and sandbox.confines:
            raise RequestRefused(sandbox_unconfigured())
        return path


class FileRequests:
    """The handlers of the `fs/` methods, for one connection."""

    def __init__(self, files: Files, outbox: Outbox, nursery: trio.Nursery) -> None:
        self._files, self._tree, self._outbox = files, files.tree, outbox
        self._handles = FileHandles(files.tree)
        self._calls = trio.CapacityLimiter(files.limits.file_calls_max)
        self._watches = FileWatches(files.tree, outbox, nursery, threads=files.threads, limits=files.limits)

    def handlers(self) -> Handlers:
        """Give them by method name."""
        return {
            FS_READ_FILE.name: self.read_file,
            FS_WRITE_FILE.name: self.write_file,
            FS_CREATE_DIRECTORY.name: self.create_directory,
            FS_GET_METADATA.name: self.get_metadata,
            FS_CANONICALIZE.name: self.canonicalize,
            FS_READ_DIRECTORY.name: self.read_directory,
            FS_WALK.name: self.walk,
            FS_REMOVE.name: self.remove,
            FS_COPY.name: self.copy,
            FS_OPEN.name: self.open,
            FS_READ_BLOCK.name: self.read_block,
            FS_WRITE_BLOCK.name: self.write_block,
            FS_CLOSE.name: self.close_file,
            FS_WATCH_MISSING.name: self.watch_missing,
        }

    def close(self) -> None:
        """The connection has ended, and none of its operations runs any more."""
        self._handles.close()

    def read_file(self, params: ReadFileParams, call: Call, _session: Session) -> object:
        """Give a whole file."""
        path = self._files.path_of(params.path, params.sandbox)
        links = _links(params.follow_symlinks)

        def work() -> Encoded:
            return Encoded(b'{"dataBase64":"%b"}' % read_file(self._tree, path, links, tick))

        return call.wait(partial(self.carry_out, path, work))

    def write_file(self, params: WriteFileParams, call: Call, _session: Session) -> object:
        """Make or replace a whole file."""
        path = self._files.path_of(params.path, params.sandbox)
        links = _links(params.follow_symlinks)
        work = partial(write_file, self._tree, path, params.data_base64, links, tick)
        return call.wait(partial(self.carry_out, path, _then_empty(work)))

    def create_directory(self, params: CreateDirectoryParams, call: Call, _session: Session) -> object:
        """Make a folder."""
        path = self._files.path_of(params.path, params.sandbox)
        recursive, follow = params.recursive is not False, params.follow_symlinks is not False
        work = partial(create_directory, self._tree, path, recursive=recursive, follow=follow)
        return call.wait(partial(self.carry_out, path, _then_empty(work)))

    def get_metadata(self, params: GetMetadataParams, call: Call, _session: Session) -> object:
        """Say what stands at a path."""
        path = self._files.path_of(params.path, params.sandbox)
        follow = params.follow_symlinks is not False
        work = partial(look, self._tree, path, follow=follow, link_itself=params.link_itself)
        return call.wait(partial(self.carry_out, path, work))

    def canonicalize(self, params: CanonicalizeParams, call: Call, _session: Session) -> object:
        """Resolve every link of a path."""
        path = self._files.path_of(params.path, params.sandbox)
        return call.wait(partial(self.carry_out, path, partial(canonicalize, self._tree, path)))

    def read_directory(self, params: ReadDirectoryParams, call: Call, _session: Session) -> object:
        """List one folder."""
        path = self._files.path_of(params.path, params.sandbox)
        return call.wait(partial(self.carry_out, path, partial(read_directory, self._tree, path, tick)))

    def walk(self, params: WalkParams, call: Call, _session: Session) -> object:
        """List a tree."""
        path = self._files.path_of(params.path, params.sandbox)
        work = partial(walk, self._tree, path, params.options, tick)
        return call.wait(partial(self.carry_out, path, work))

    def remove(self, params: RemoveParams, call: Call, _session: Session) -> object:
        """Remove a file, a link or a folder."""
        path = self._files.path_of(params.path, params.sandbox)
        work = partial(
            remove,
            self._tree,
            path,
            recursive=params.recursive is not False,
            force=params.force is not False,
            follow=params.follow_symlinks is not False,
            tick=tick,
        )
        return call.wait(partial(self.carry_out, path, _then_empty(work)))

    def copy(self, params: CopyParams, call: Call, _session: Session) -> object:
        """Copy a file, a link or a folder."""
        source = self._files.path_of(params.source_path, params.sandbox)
        destination = self._files.path_of(params.destination_path)
        work = partial(copy, self._tree, source, destination, recursive=params.recursive, tick=tick)
        return call.wait(partial(self.carry_out, source, _then_empty(work)))

    def open(self, params: OpenParams, call: Call, _session: Session) -> object:
        """Open a plain file for blocks."""
        path = self._files.path_of(params.path, params.sandbox)
        handle = self._handles.reserve(params.handle_id)

        async def work() -> OpenResult:
            try:
                await self.carry_out(path, partial(handle.open, path, params.mode))
            except RequestRefused:
                self._handles.forget(handle)
                raise
            return OpenResult(handle_id=params.handle_id)

        try:
            return self._in_turn(handle, call, work)
        except RequestRefused:
            self._handles.forget(handle)
            raise

    def read_block(self, params: ReadBlockParams, call: Call, _session: Session) -> object:
        """Read one block of an open file."""
        if not 1 <= params.len <= BLOCK_BYTES_MAX:
            raise RequestRefused(block_length_refused("read"))
        handle = self._handles.find(params.handle_id)

        def work() -> Encoded:
            chunk, is_end = handle.read(params.offset, params.len)
            return Encoded(b'{"chunk":"%b","eof":%b}' % (chunk, json.dumps(is_end).encode()))

        return self._in_turn(handle, call, partial(self.carry_out, "", work))

    def write_block(self, params: WriteBlockParams, call: Call, _session: Session) -> object:
        """Write one block of an open file."""
        if not 1 <= len(params.chunk) <= BLOCK_BYTES_MAX:
            raise RequestRefused(block_length_refused("write"))
        handle = self._handles.find(params.handle_id)
        work = _then_empty(partial(handle.write, params.offset, params.chunk))
        return self._in_turn(handle, call, partial(self.carry_out, "", work))

    def close_file(self, params: CloseParams, call: Call, _session: Session) -> object:
        """Close an open file."""
        handle = self._handles.unname(params.handle_id)
        if handle is None:
            return CloseResult()

        async def work() -> CloseResult:
            try:
                replaced = await self.carry_out("", partial(handle.close, discard=params.discard))
            except RequestRefused:  # It is closed, though not to the good.
                self._handles.forget(handle)
                raise
            self._handles.forget(handle)
            return CloseResult(replaced=replaced)

        return self._in_turn(handle, call, work)

    def watch_missing(self, params: WatchMissingParams, call: Call, _session: Session) -> object:
        """Wait for a file that is not there yet."""
        missing = tuple(self._files.path_of(uri) for uri in params.missing)
        present = None if params.present is None else self._files.path_of(params.present)
        for path in (*missing, *(() if present is None else (present,))):
            try:
                self._tree.check(path)
            except LeftRoots:
                raise RequestRefused(outside_roots(path)) from None

        async def work() -> WatchMissingResult:
            watching = present is not None and await self._watches.begin(params.watch_id, missing, present)
            return WatchMissingResult(watching=watching)

        return call.wait(work)

    def _in_turn(self, handle: FileHandle, call: Call, work: Callable[[], Any]) -> object:
        """Let a call wait until those before it on the same file are through."""
        turn = handle.line_up()

        async def waiting() -> object:
            async with turn.taken():
                return await work()

        try:
            return call.wait(waiting)
        except RequestRefused:
            # It leaves the line; who comes behind it waits for whoever was before it.
            handle.step_out(turn)
            raise

    async def carry_out(self, path: str, work: Callable[[], R]) -> R:
        """Do blocking work, and say what goes wrong about the path that was asked for."""
        async with self._calls:
            await self._outbox.answers.wait_room()
            try:
                return await in_thread(work, limiter=self._files.threads)
            except LeftRoots:
                raise RequestRefused(outside_roots(path)) from None
            except OSError as error:
                raise RequestRefused(_failure_of(error, path)) from None


def _failure_of(error: OSError, path: str) -> Any:
    number = error.errno or 0
    return file_os_failure(number, os.strerror(number), path)


def _links(follow: bool | None) -> Links:
    return Links.REFUSE if follow is False else Links.FOLLOW


def tick() -> None:
    """End the work of a thread when nobody wants it any more."""
    trio.from_thread.check_cancelled()


def _then_empty(work: Callable[[], None]) -> Callable[[], Empty]:
    def done() -> Empty:
        work()
        return Empty()

    return done
