"""Copy and remove files, links and folders. Blocking.

A file takes its new place in one step. A folder that is new is made beside its place and moved there when it is whole;
one that is there already is merged into, each file in one step.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Generator

import attrs

from actors.executor._file_reading import Tick, list_folder
from actors.executor._file_tree import FileTree, Links, Spot, os_error
from actors.executor._file_writing import Replacement, temporary_name, write_all
from actors.executor._refusals import RequestRefused
from actors.executor._routes import LeftRoots
from actors.protocol import (
    copy_into_itself,
    copy_needs_recursive,
    copy_special,
    outside_roots,
    removal_unsupported,
    root_not_removed,
)

__all__ = ["copy", "remove"]

_CHUNK_BYTES = 1024 * 1024
# Each level holds descriptors and a frame of the interpreter.
_DEPTH_MAX = 200


def copy(tree: FileTree, source: str, destination: str, *, recursive: bool, tick: Tick) -> None:
    """Copy what stands at a path to another path.

    Raises:
        RequestRefused: It is something special, or a folder where none was meant, or would be copied into itself.
        OSError: The system refused; see the module for what is left then.
    """
    with tree.at(source, Links.KEEP_LAST) as what:
        _ = what.here
        with _destination(tree, destination, Links.KEEP_LAST if what.is_link else Links.FOLLOW) as to:
            copying = _Copying(source, destination, to, tick)
            if what.is_link:
                copying.link(what, to)
            elif what.is_plain:
                copying.file(what, to)
            elif not what.is_folder:
                raise RequestRefused(copy_special(source))
            elif not recursive:
                raise RequestRefused(copy_needs_recursive(source))
            elif to.where[: len(what.where)] == what.where:
                raise RequestRefused(copy_into_itself())
            else:
                copying.new_or_old_folder(what, to)


@contextlib.contextmanager
def _destination(tree: FileTree, path: str, links: Links) -> Generator[Spot, None, None]:
    """Walk to the second of two paths, and say so when that one leads out."""
    try:
        with tree.at(path, links) as spot:
            yield spot
    except LeftRoots:
        raise RequestRefused(outside_roots(path)) from None


@attrs.frozen
class _Copying:
    """One copy on its way."""

    source: str
    destination: str
    top: Spot
    tick: Tick

    def link(self, what: Spot, to: Spot) -> None:
        target = os.readlink(what.name, dir_fd=what.folder)
        if to.is_link and os.readlink(to.name, dir_fd=to.folder) == target:
            return
        os.symlink(target, to.name, dir_fd=to.folder)

    def file(self, what: Spot, to: Spot) -> None:
        file = what.open(os.O_RDONLY)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise RequestRefused(copy_special(self.source))
            if to.found is not None and _is_same(status, to.found):
                return  # Onto itself, by whatever name: it is as it should be.
            with Replacement(to, self.destination, mode=status.st_mode) as replacement:
                while part := os.read(file, _CHUNK_BYTES):
                    self.tick()
                    write_all(replacement.file, part)
                replacement.commit()
        finally:
            os.close(file)

    def new_or_old_folder(self, what: Spot, to: Spot) -> None:
        if to.found is not None:
            if not to.is_folder:
                raise os_error(errno.EEXIST)
            if _is_same(what.here, to.found):
                raise RequestRefused(copy_into_itself())
            self.folder(what, to, 0)
            return
        beside = attrs.evolve(to, name=temporary_name())
        os.mkdir(beside.name, 0o700, dir_fd=to.folder)
        try:
            self.folder(what, beside, 0)
            os.rename(beside.name, to.name, src_dir_fd=to.folder, dst_dir_fd=to.folder)
        except BaseException:
            with contextlib.suppress(OSError):
                _remove_folder(to.folder, beside.name, _no_tick, 0)
            raise

    def folder(self, what: Spot, to: Spot, depth: int) -> None:
        """Copy what a folder holds into one that is there."""
        if depth > _DEPTH_MAX:
            raise os_error(errno.ENAMETOOLONG)
        held = list_folder(what)
        source = what.open(os.O_RDONLY | os.O_DIRECTORY)
        try:
            target = to.open(os.O_RDONLY | os.O_DIRECTORY)
            try:
                for name, found in held:
                    self.tick()
                    there = Spot(target, name, (*to.where, name), _status_of(target, name))
                    self._held(Spot(source, name, (*what.where, name), found), there, depth)
                os.fchmod(target, stat.S_IMODE(os.fstat(source).st_mode) & 0o777)
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _held(self, what: Spot, to: Spot, depth: int) -> None:
        if what.is_link:
            self.link(what, to)
        elif what.is_plain:
            self.file(what, self._in_place_of_a_link(to))
        elif not what.is_folder:
            raise RequestRefused(copy_special("/" + "/".join(what.where)))
        elif self.top.found is not None and _is_same(what.here, self.top.found):
            raise RequestRefused(copy_into_itself())
        else:
            if to.found is None:
                os.mkdir(to.name, 0o700, dir_fd=to.folder)
            self.folder(what, to, depth + 1)

    def _in_place_of_a_link(self, to: Spot) -> Spot:
        """A link in a folder that is merged into is replaced, not written through: it may lead out."""
        return attrs.evolve(to, found=None) if to.is_link else to


def _status_of(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _is_same(a: os.stat_result, b: os.stat_result) -> bool:
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


def _no_tick() -> None:
    """Clean up to the end."""


def remove(tree: FileTree, path: str, *, recursive: bool, force: bool, follow: bool, tick: Tick) -> None:
    """Remove what stands at a path; of a link the link.

    Raises:
        RequestRefused: It is a root, or what is asked for does not exist.
        OSError: The system refused. Of a folder, part may be gone.
    """
    if recursive and not follow:
        raise RequestRefused(removal_unsupported())
    links = Links.KEEP_LAST if follow else Links.REFUSE_ON_THE_WAY
    try:
        with tree.at(path, links) as spot:
            _ = spot.here
            if spot.name == ".":
                raise RequestRefused(root_not_removed(path))
            if not spot.is_folder:
                os.unlink(spot.name, dir_fd=spot.folder)
            elif recursive:
                _remove_folder(spot.folder, spot.name, tick, 0)
            else:
                os.rmdir(spot.name, dir_fd=spot.folder)
    except FileNotFoundError:
        if not force:
            raise


def _remove_folder(parent: int, name: str, tick: Tick, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise os_error(errno.ENAMETOOLONG)
    spot = Spot(parent, name, (), None)
    held = list_folder(spot)
    folder = spot.open(os.O_RDONLY | os.O_DIRECTORY)
    try:
        for each, found in held:
            tick()
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISDIR(found.st_mode):
                    _remove_folder(folder, each, tick, depth + 1)
                else:
                    os.unlink(each, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=parent)
