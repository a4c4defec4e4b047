"""Walk to a path without ever being led out of the roots, whoever changes what meanwhile.

Each folder is opened by name in the one before it, never through a link; links are read and followed by us. What a
`Spot` names is therefore in a folder inside a root, and is used through that folder's descriptor.
"""

import contextlib
import enum
import errno
import os
import stat
from collections.abc import Generator, Sequence

import attrs

from actors.executor._errors import ExecutorError
from actors.executor._routes import LeftRoots, Root, Route, TooManyTurns, names_of

__all__ = ["FileTree", "Links", "RootUnusable", "Spot", "open_file_tree", "os_error"]

_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = _PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = frozenset({errno.ENOTDIR, errno.ELOOP})


class RootUnusable(ExecutorError):
    """A folder that clients were to be confined to cannot be opened."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot confine clients to {path!r}: {reason}; name a folder that exists")
        self.path: str = path
        self.reason: str = reason


class Links(enum.Enum):
    """What to do about links."""

    FOLLOW = "follow every link"
    KEEP_LAST = "follow links on the way, and stay at one in the last place"
    REFUSE = "refuse links on the way, and one in the last place"
    REFUSE_ON_THE_WAY = "refuse links on the way, and stay at one in the last place"


def os_error(number: int) -> OSError:
    """Make the error the system would raise."""
    return OSError(number, os.strerror(number))


@attrs.frozen
class Spot:
    """A name in an open folder."""

    folder: int
    """The folder's descriptor; closed by whoever walked here."""
    name: str
    """The name in it; `.` for the folder itself."""
    where: tuple[str, ...]
    """The whole place without links."""
    found: os.stat_result | None
    """What stands there, links not followed; None when nothing does."""

    @property
    def here(self) -> os.stat_result:
        """What stands there; raises what the system raises when nothing does."""
        if self.found is None:
            raise os_error(errno.ENOENT)
        return self.found

    @property
    def is_link(self) -> bool:
        """Whether it is a link."""
        return self.found is not None and stat.S_ISLNK(self.found.st_mode)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.found is not None and stat.S_ISDIR(self.found.st_mode)

    @property
    def is_plain(self) -> bool:
        """Whether it is a plain file."""
        return self.found is not None and stat.S_ISREG(self.found.st_mode)

    def open(self, flags: int, mode: int = 0o666) -> int:
        """Open it, never through a link, never waiting for somebody at the other end."""
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(self.name, flags, mode, dir_fd=self.folder)


class FileTree:
    """The roots, held open."""

    def __init__(self, roots: Sequence[Root], folders: Sequence[int]) -> None:
        self._roots, self._folders = roots, folders

    def check(self, path: str) -> None:
        """Judge a path by the letter alone.

        Raises:
            LeftRoots: It is in no root.
        """
        Route(self._roots, path)

    @contextlib.contextmanager
    def at(self, path: str, links: Links = Links.FOLLOW, *, make_folders: bool = False) -> Generator[Spot, None, None]:
        """Walk to a path, for the duration of a block. The last name need not exist.

        Raises:
            LeftRoots: It leads out of the roots.
            OSError: There is no way there.
        """
        walk = _Walk(Route(self._roots, path), self._folders, links, make_folders=make_folders)
        try:
            yield walk.go()
        finally:
            walk.close()

    def status(self, path: str) -> os.stat_result | None:
        """Say what stands at the end of a path, links followed; None when nothing can be reached there."""
        try:
            with self.at(path) as spot:
                return spot.found
        except (OSError, LeftRoots):
            return None

    def close(self) -> None:
        """Let go of the roots."""
        for folder in self._folders:
            os.close(folder)
        self._folders = ()


class _Walk:
    """One way to one path. Holds at most two descriptors."""

    def __init__(self, route: Route, folders: Sequence[int], links: Links, *, make_folders: bool) -> None:
        self._route, self._folders, self._links, self._make_folders = route, folders, links, make_folders
        self._folder = -1

    def go(self) -> Spot:
        """Walk to the end."""
        try:
            while True:
                name = self._route.take()
                if self._route.back:
                    self._begin_again()
                if name is None:
                    return Spot(self._folder, ".", self._route.where, os.stat(".", dir_fd=self._folder))
                if name and (spot := self._look_at(name)) is not None:
                    return spot
        except TooManyTurns:
            raise os_error(errno.ELOOP) from None

    def close(self) -> None:
        """Let go of the folder."""
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def _begin_again(self) -> None:
        if not self._folders:
            raise os_error(errno.EBADF)  # The executor has ended.
        self._hold(os.dup(self._folders[self._route.root]))
        self._route.back = False

    def _hold(self, folder: int) -> None:
        self.close()
        self._folder = folder

    def _look_at(self, name: str) -> Spot | None:
        if not self._route.is_last:
            self._enter(name)
            return None
        try:
            found = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            found = None
        spot = Spot(self._folder, name, (*self._route.where, name), found)
        if not spot.is_link or self._links in {Links.KEEP_LAST, Links.REFUSE_ON_THE_WAY}:
            return spot
        if self._links is Links.REFUSE:
            raise os_error(errno.ELOOP)
        self._follow(name)
        return None

    def _enter(self, name: str) -> None:
        try:
            folder = self._open_folder(name)
        except OSError as error:
            if error.errno not in _NO_LINKS or self._links in {Links.REFUSE, Links.REFUSE_ON_THE_WAY}:
                raise os_error(errno.ENOTDIR) if error.errno == errno.ELOOP else error from None
            self._follow(name)
        else:
            self._hold(folder)
            self._route.entered(name)

    def _open_folder(self, name: str) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=self._folder)
        except FileNotFoundError:
            if not self._make_folders:
                raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=self._folder)
        return os.open(name, _FOLDER, dir_fd=self._folder)

    def _follow(self, name: str) -> None:
        try:
            target = os.readlink(name, dir_fd=self._folder)
        except OSError as error:
            # No link, so neither folder nor link; or it has just become something else.
            raise os_error(errno.ENOTDIR) if error.errno == errno.EINVAL else error from None
        self._route.followed(target)


@contextlib.contextmanager
def open_file_tree(paths: Sequence[str] | None) -> Generator[FileTree, None, None]:
    """Hold the roots open for a block; without any, everything is one root.

    Raises:
        RootUnusable: One of them is no folder, or may not be entered.
    """
    roots: list[Root] = []
    folders: list[int] = []
    try:
        for path in ("/",) if paths is None else paths:
            try:
                folders.append(os.open(path, _PATH_ONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            except (OSError, ValueError) as error:
                raise RootUnusable(path, getattr(error, "strerror", None) or str(error)) from None
            roots.append(Root(names_of(os.path.abspath(path)), names_of(_real_path(path, folders[-1]))))
        tree = FileTree(roots, folders)
        folders = []
    finally:
        for folder in folders:
            os.close(folder)
    try:
        yield tree
    finally:
        tree.close()


def _real_path(path: str, folder: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{folder}")
    except OSError:
        return os.path.realpath(path)
