"""Make and replace files and folders, each wholly or not at all. Blocking.

What is written lies beside the file, under a name of its own, until it takes the file's place in one step of the
system. Atomic for everybody who looks; no promise about a loss of power.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Generator
from types import TracebackType
from typing import Self

from actors.executor._file_reading import Tick
from actors.executor._file_tree import FileTree, Links, Spot, os_error
from actors.executor._refusals import RequestRefused
from actors.protocol import InvalidParams, decode_bytes, not_a_file, write_needs_base64

__all__ = ["Replacement", "create_directory", "temporary_name", "write_all", "write_file"]


def temporary_name() -> str:
    """Make up a name that nothing has."""
    return f".greenroom-{secrets.token_hex(8)}.tmp"


class Replacement:
    """New content for a plain file, beside it until `commit`."""

    def __init__(self, spot: Spot, path: str, *, mode: int | None = None) -> None:
        """Begin; ``mode`` is that of a file to be made, the system's usual one when None.

        Raises:
            RequestRefused: Something else than a plain file stands there.
            OSError: A folder stands there, it may not be written, or there is no room.
        """
        _check_replaceable(spot, path)
        self._name, self._temporary = spot.name, temporary_name()
        self._folder = os.dup(spot.folder)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self.file = os.open(self._temporary, flags, 0o666, dir_fd=self._folder)
        except OSError:
            os.close(self._folder)
            raise
        self._over = False
        with _discarded_on_error(self):
            _take_over(self.file, spot.found, mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.discard()

    def commit(self) -> None:
        """Take the file's place.

        Raises:
            OSError: That was not possible; the file is as it was.
        """
        with _discarded_on_error(self):
            os.rename(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._close()

    def discard(self) -> None:
        """Leave the file as it was; nothing after a `commit`."""
        if self._over:
            return
        with contextlib.suppress(OSError):
            os.unlink(self._temporary, dir_fd=self._folder)
        self._close()

    def _close(self) -> None:
        self._over = True
        os.close(self._folder)
        os.close(self.file)


@contextlib.contextmanager
def _discarded_on_error(replacement: Replacement) -> Generator[None, None, None]:
    try:
        yield
    except BaseException:
        replacement.discard()
        raise


def _check_replaceable(spot: Spot, path: str) -> None:
    if spot.found is None:
        return
    if spot.is_folder:
        raise os_error(errno.EISDIR)
    if not spot.is_plain:
        raise RequestRefused(not_a_file(path))
    # A file that could not be written in place is not replaced either, though the folder would allow it.
    os.close(spot.open(os.O_WRONLY))


def _take_over(file: int, old: os.stat_result | None, mode: int | None) -> None:
    if old is not None and mode is None:
        with contextlib.suppress(PermissionError):
            if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file, old.st_uid, old.st_gid)
    wanted = old.st_mode if mode is None and old is not None else mode
    if wanted is not None:
        os.fchmod(file, stat.S_IMODE(wanted) & 0o777)


def write_all(file: int, data: bytes, offset: int | None = None) -> None:
    """Write every byte; at an offset, or on from where the file stands."""
    view = memoryview(data)
    while view:
        written = os.write(file, view) if offset is None else os.pwrite(file, view, offset)
        view = view[written:]
        offset = None if offset is None else offset + written


def write_file(tree: FileTree, path: str, data_base64: str, links: Links, tick: Tick) -> None:
    """Make or replace a whole file.

    Raises:
        RequestRefused: It is no plain file, or the data no base64; nothing was touched.
        OSError: The system refused; the file is as it was.
    """
    try:
        data = decode_bytes(data_base64)
    except InvalidParams as fault:
        raise RequestRefused(write_needs_base64(fault.rule)) from None
    with tree.at(path, links) as spot, Replacement(spot, path) as replacement:
        tick()
        write_all(replacement.file, data)
        replacement.commit()


def create_directory(tree: FileTree, path: str, *, recursive: bool, follow: bool) -> None:
    """Make a folder, and those on the way if asked for.

    Raises:
        OSError: It is there already, unless that is welcome; or the system refused.
    """
    links = Links.FOLLOW if follow else Links.REFUSE
    with tree.at(path, links, make_folders=recursive) as spot:
        if spot.found is None:
            try:
                os.mkdir(spot.name, dir_fd=spot.folder)
            except FileExistsError:
                if not recursive:
                    raise
        elif not (recursive and spot.is_folder):
            raise os_error(errno.EEXIST)
