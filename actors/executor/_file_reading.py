"""Read files and look at what is there. Blocking; each function is one operation and runs in a thread."""

import errno
import os
import stat
from binascii import b2a_base64
from collections.abc import Callable

from actors.executor._file_tree import FileTree, Links, Spot
from actors.executor._refusals import RequestRefused
from actors.protocol import (
    FILE_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    CanonicalizeResult,
    DirectoryEntry,
    FileMetadata,
    ReadDirectoryResult,
    file_answer_too_large,
    file_too_large,
    not_a_file,
    path_holds_link,
    uri_from_path,
)

__all__ = ["Tick", "canonicalize", "file_size", "list_folder", "look", "open_plain", "read_directory", "read_file"]

Tick = Callable[[], None]
"""Called between the steps of long work; raises when nobody wants it any more."""

_CHUNK_BYTES = 4 * 1024 * 1024
# What an answer needs besides the bytes of the file.
_ENVELOPE_BYTES = 1024


def open_plain(spot: Spot, path: str) -> int:
    """Open a plain file for reading.

    Raises:
        RequestRefused: It is something else. A pipe or device is not even opened.
        OSError: It is not there, or may not be read.
    """
    if not stat.S_ISREG(spot.here.st_mode):
        raise RequestRefused(not_a_file(path))
    file = spot.open(os.O_RDONLY)
    if not stat.S_ISREG(os.fstat(file).st_mode):  # It has become something else since we looked.
        os.close(file)
        raise RequestRefused(not_a_file(path))
    return file


def file_size(file: int) -> int:
    """Give the size of an open file."""
    return os.fstat(file).st_size


def read_file(tree: FileTree, path: str, links: Links, tick: Tick) -> bytes:
    """Give the bytes of a file as base64, ready to travel.

    Raises:
        RequestRefused: It is no plain file, or too large.
        OSError: It is not there, or may not be read.
    """
    with tree.at(path, links) as spot:
        file = open_plain(spot, path)
    try:
        _check_size(path, file_size(file))
        parts: list[bytes] = []
        size_bytes = 0
        while part := os.read(file, _CHUNK_BYTES):
            tick()
            parts.append(part)
            size_bytes += len(part)
            _check_size(path, size_bytes)
    finally:
        os.close(file)
    return b2a_base64(b"".join(parts), newline=False)


def _check_size(path: str, size_bytes: int) -> None:
    if size_bytes > FILE_BYTES_MAX:
        raise RequestRefused(file_too_large(path))
    if size_bytes * 4 // 3 + _ENVELOPE_BYTES > MESSAGE_BYTES_MAX:
        raise RequestRefused(file_answer_too_large(path, size_bytes))


def look(tree: FileTree, path: str, *, follow: bool, link_itself: bool) -> FileMetadata:
    """Say what stands at a path.

    Raises:
        RequestRefused: It is a link, and links are not to be followed.
        OSError: Nothing does.
    """
    with tree.at(path, Links.KEEP_LAST if follow else Links.REFUSE_ON_THE_WAY) as spot:
        is_link, found = spot.is_link, spot.here
    if is_link and not link_itself:
        if not follow:
            raise RequestRefused(path_holds_link(path))
        with tree.at(path) as spot:
            found = spot.here
    return FileMetadata(
        is_directory=stat.S_ISDIR(found.st_mode),
        is_file=stat.S_ISREG(found.st_mode),
        is_symlink=is_link,
        size=found.st_size,
        created_at_ms=int(getattr(found, "st_birthtime", 0) * 1000),
        modified_at_ms=found.st_mtime_ns // 1_000_000,
    )


def canonicalize(tree: FileTree, path: str) -> CanonicalizeResult:
    """Resolve every link of a path that exists."""
    with tree.at(path) as spot:
        _ = spot.here
        return CanonicalizeResult(path=uri_from_path("/" + "/".join(spot.where)))


def list_folder(spot: Spot) -> list[tuple[str, os.stat_result]]:
    """Give the names in a folder, in its own order, with what each is itself."""
    folder = spot.open(os.O_RDONLY | os.O_DIRECTORY)
    try:
        found: list[tuple[str, os.stat_result]] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
                except FileNotFoundError:
                    continue  # Gone since it was listed.
    finally:
        os.close(folder)
    return found


def read_directory(tree: FileTree, path: str, tick: Tick) -> ReadDirectoryResult:
    """List one folder, links followed; those that lead nowhere, or out of the roots, apart."""
    with tree.at(path) as spot:
        if spot.found is not None and not spot.is_folder:
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        found, where = list_folder(spot), "/" + "/".join(spot.where)
    entries: list[DirectoryEntry] = []
    broken: list[str] = []
    for name, itself in found:
        tick()
        is_link = stat.S_ISLNK(itself.st_mode)
        status = tree.status(f"{where}/{name}") if is_link else itself
        if status is None:
            broken.append(as_text(name))
            continue
        entries.append(
            DirectoryEntry(
                file_name=as_text(name),
                is_directory=stat.S_ISDIR(status.st_mode),
                is_file=stat.S_ISREG(status.st_mode),
                is_symlink=is_link,
            )
        )
    return ReadDirectoryResult(entries=tuple(entries), broken_links=tuple(broken))


def as_text(name: str) -> str:
    """Show a name that need not be text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
