"""List a tree, breadth first, each folder sorted by name, within limits. Blocking."""

import os
import stat
from collections import deque

import attrs

from actors.executor._file_reading import Tick, list_folder
from actors.executor._file_tree import FileTree, Links
from actors.executor._refusals import RequestRefused
from actors.executor._routes import LeftRoots, names_of
from actors.protocol import (
    LeftOut,
    LeftOutKind,
    WalkEntry,
    WalkError,
    WalkKind,
    WalkOptions,
    WalkResult,
    file_os_failure,
    outside_roots,
    uri_from_path,
    walk_limits_zero,
)

__all__ = ["walk"]

ENTRIES_MAX = 100_000
"""The most entries, and folders read, of one walk, whatever was asked for."""


def walk(tree: FileTree, path: str, options: WalkOptions, tick: Tick) -> WalkResult:
    """List a tree.

    Raises:
        RequestRefused: A limit is zero.
        OSError: There is nothing at its top, or it may not be read.
    """
    if not options.max_directories or not options.max_entries:
        raise RequestRefused(walk_limits_zero())
    return _Walk(tree, options, tick).go("/" + "/".join(names_of(path)))


class _Full(Exception):
    """There is more than was asked for."""


@attrs.frozen
class _Folder:
    path: str
    depth: int


class _Walk:
    def __init__(self, tree: FileTree, options: WalkOptions, tick: Tick) -> None:
        self._tree, self._options, self._tick = tree, options, tick
        self._entries_max = min(options.max_entries, ENTRIES_MAX)
        self._folders_max = min(options.max_directories, ENTRIES_MAX)
        self._links = Links.FOLLOW if options.follow_directory_symlinks else Links.KEEP_LAST
        self._ahead: deque[_Folder] = deque()
        self._seen: set[tuple[int, int]] = set()
        self._entries: list[WalkEntry] = []
        self._errors: list[WalkError] = []
        self._left_out: list[LeftOut] = []

    def go(self, top: str) -> WalkResult:
        with self._tree.at(top, self._links) as spot:
            found = spot.here
        truncated = False
        if stat.S_ISDIR(found.st_mode):
            try:
                self._read(_Folder(top, 0))
                while self._ahead:
                    self._read(self._ahead.popleft())
            except _Full:
                truncated = True
        return WalkResult(
            entries=tuple(self._entries),
            errors=tuple(self._errors),
            truncated=truncated,
            left_out=tuple(self._left_out),
        )

    def _read(self, folder: _Folder) -> None:
        try:
            with self._tree.at(folder.path, self._links) as spot:
                identity = (spot.here.st_dev, spot.here.st_ino)
                if identity in self._seen:
                    return
                if len(self._seen) >= self._folders_max:
                    raise _Full
                self._seen.add(identity)
                held = list_folder(spot)
        except (OSError, LeftRoots) as error:
            if not folder.depth:
                raise
            text = _told(error, folder.path)
            self._errors.append(WalkError(path=uri_from_path(folder.path), message=text))
            return
        for name, found in sorted(held, key=lambda each: os.fsencode(each[0])):
            self._tick()
            self._look_at(folder, name, found)

    def _look_at(self, folder: _Folder, name: str, found: os.stat_result) -> None:
        path = f"{folder.path.rstrip('/')}/{name}"
        if stat.S_ISREG(found.st_mode):
            self._add(path, WalkKind.FILE)
        elif stat.S_ISDIR(found.st_mode) or self._is_folder_behind_link(path, found):
            self._add(path, WalkKind.DIRECTORY)
            pruned = self._options.prune_hidden_directories and name.startswith(".")
            if folder.depth < self._options.max_depth and not pruned:
                self._ahead.append(_Folder(path, folder.depth + 1))
        elif len(self._left_out) < self._entries_max:
            kind = LeftOutKind.LINK if stat.S_ISLNK(found.st_mode) else LeftOutKind.SPECIAL
            self._left_out.append(LeftOut(path=uri_from_path(path), kind=kind))

    def _is_folder_behind_link(self, path: str, found: os.stat_result) -> bool:
        if not stat.S_ISLNK(found.st_mode) or not self._options.follow_directory_symlinks:
            return False
        status = self._tree.status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def _add(self, path: str, kind: WalkKind) -> None:
        if len(self._entries) >= self._entries_max:
            raise _Full
        self._entries.append(WalkEntry(path=uri_from_path(path), kind=kind))


def _told(error: OSError | LeftRoots, path: str) -> str:
    if isinstance(error, LeftRoots):
        return outside_roots(path).message
    return file_os_failure(error.errno or 0, os.strerror(error.errno or 0), path).message
