"""What can go wrong with files, by type. Where Python has an error for it, ours is one of those as well."""

from typing import Any, Final

from actors.harness._errors import Failed, RequestRejected
from actors.protocol import FileFailureKind, file_failure_kind


class FileError(RequestRejected):
    """The executor could not, or would not, do something with a file; it says why."""

    def __init__(self, path: str, rejected: RequestRejected) -> None:
        super().__init__(rejected.code, rejected.message, rejected.data)
        self.args: tuple[Any, ...] = (f"{path}: {rejected.message}",)
        self.path = path
        """The path that was asked for, in the caller's words."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotFound(FileError, FileNotFoundError):
    """Nothing is there."""


class AlreadyExists(FileError, FileExistsError):
    """Something is there already."""


class DirectoryInTheWay(FileError, IsADirectoryError):
    """A folder is there, and a file was meant."""


class NotADirectory(FileError, NotADirectoryError):
    """Something on the way, or at its end, is no folder."""


class DirectoryNotEmpty(FileError):
    """A folder holds something."""


class NotAFile(FileError):
    """It is no plain file: a folder, a device, a pipe."""


class AccessRefused(FileError, PermissionError):
    """The system does not let the executor."""


class OutsideRoots(FileError, PermissionError):
    """The path leaves the folders that the executor keeps its clients in, by itself or through a link."""


class LinkInTheWay(FileError):
    """Links lead in a circle, or stand where none may be followed."""


class FileTooLarge(FileError):
    """It does not fit into one answer; read it in blocks."""


class FileStreamLost(Failed):
    """The connection that held an open file is gone, and the open file with it."""

    def __init__(self, path: str, offset: int) -> None:
        super().__init__(
            f"{path}: the open file was lost with its connection after {offset} bytes; open it again to begin anew"
        )
        self.path: str = path
        self.offset: int = offset


_BY_KIND: Final[dict[FileFailureKind, type[FileError]]] = {
    FileFailureKind.NOT_FOUND: NotFound,
    FileFailureKind.EXISTS: AlreadyExists,
    FileFailureKind.IS_DIRECTORY: DirectoryInTheWay,
    FileFailureKind.NOT_DIRECTORY: NotADirectory,
    FileFailureKind.NOT_EMPTY: DirectoryNotEmpty,
    FileFailureKind.NOT_FILE: NotAFile,
    FileFailureKind.PERMISSION_DENIED: AccessRefused,
    FileFailureKind.OUTSIDE_ROOTS: OutsideRoots,
    FileFailureKind.LINK_LOOP: LinkInTheWay,
    FileFailureKind.TOO_LARGE: FileTooLarge,
}


def file_error(path: str, rejected: RequestRejected) -> FileError:
    """Give the type that says what went wrong."""
    kind = file_failure_kind(rejected.code, rejected.message, rejected.data)
    return _BY_KIND.get(kind, FileError)(path, rejected)
