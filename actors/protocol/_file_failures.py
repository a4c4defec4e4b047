"""What goes wrong with files: codes and texts, exactly as they travel.

System errors are told in the words of the other implementation, whose C library is another one than most.
"""

import enum
import errno
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from actors.protocol._envelope import Failure
from actors.protocol._failures import ErrorCode, internal, invalid_request, os_failure_text

FILE_BYTES_MAX: Final = 512 * 1024 * 1024
"""The largest file that is read as a whole."""
BLOCK_BYTES_MAX: Final = 1024 * 1024
"""The largest block of an open file."""
FILE_HANDLES_MAX: Final = 128
"""Open files of one connection."""

_WORDS: Final[Mapping[int, str]] = {
    errno.ELOOP: "Symbolic link loop",
    errno.ENAMETOOLONG: "Filename too long",
    errno.EXDEV: "Cross-device link",
    errno.EIO: "I/O error",
    errno.ENOMEM: "Out of memory",
    errno.EMFILE: "No file descriptors available",
    errno.ENFILE: "Too many open files in system",
    errno.EBUSY: "Resource busy",
}


class FileFailureKind(enum.Enum):
    """Why a file could not be had: member ``kind`` of the failure's data. Ours; the other implementation has none.

    Attributes:
        NOT_FOUND: There is nothing at this path.
        EXISTS: Something is there already.
        IS_DIRECTORY: A folder is where a file is needed.
        NOT_DIRECTORY: Something else is where a folder is needed.
        NOT_EMPTY: The folder holds something.
        NOT_FILE: It is no plain file.
        PERMISSION_DENIED: The executor may not.
        LINK_LOOP: Links lead in a ring, or stand where none may.
        OUTSIDE_ROOTS: The path leaves the folders that are served.
        TOO_LARGE: The file is larger than one answer may be.
        OTHER: Anything else, and what an executor without kinds says.
    """

    NOT_FOUND = "notFound"
    EXISTS = "exists"
    IS_DIRECTORY = "isDirectory"
    NOT_DIRECTORY = "notDirectory"
    NOT_EMPTY = "notEmpty"
    NOT_FILE = "notFile"
    PERMISSION_DENIED = "permissionDenied"
    LINK_LOOP = "linkLoop"
    OUTSIDE_ROOTS = "outsideRoots"
    TOO_LARGE = "tooLarge"
    OTHER = "other"


_KINDS: Final[Mapping[int, FileFailureKind]] = {
    errno.ENOENT: FileFailureKind.NOT_FOUND,
    errno.EEXIST: FileFailureKind.EXISTS,
    errno.EISDIR: FileFailureKind.IS_DIRECTORY,
    errno.ENOTDIR: FileFailureKind.NOT_DIRECTORY,
    errno.ENOTEMPTY: FileFailureKind.NOT_EMPTY,
    errno.EACCES: FileFailureKind.PERMISSION_DENIED,
    errno.EPERM: FileFailureKind.PERMISSION_DENIED,
    errno.EROFS: FileFailureKind.PERMISSION_DENIED,
    errno.ELOOP: FileFailureKind.LINK_LOOP,
}


_OS_NUMBER: Final = re.compile(r"\(os error (\d+)\)$")


def file_failure_kind(code: int, message: str, data: object) -> FileFailureKind:
    """Say what kind of failure was answered: by its data, or by the text of an executor that gives none."""
    named = cast("dict[str, object]", data).get("kind") if isinstance(data, dict) else None
    for kind in FileFailureKind:
        if kind.value == named:
            return kind
    number = _OS_NUMBER.search(message)
    if number is not None:
        return _KINDS.get(int(number[1]), FileFailureKind.OTHER)
    if code == ErrorCode.NOT_FOUND:
        return FileFailureKind.NOT_FOUND
    if message.endswith(" is not a file"):
        return FileFailureKind.NOT_FILE
    if message == path_holds_link("").message:
        return FileFailureKind.LINK_LOOP
    return FileFailureKind.TOO_LARGE if message.startswith("file is too large") else FileFailureKind.OTHER


def file_handle_is_unknown(message: str) -> bool:
    """Whether an answer says that an open file is not there, or no longer."""
    return message.startswith("unknown file handle ")


def _data(kind: FileFailureKind, path: str) -> dict[str, str]:
    # The path as it was asked for, never as it was resolved. A name that is no text is shown as well as it can be.
    return {"kind": kind.value, "path": path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")}


def file_os_failure(number: int, system_text: str, path: str) -> Failure:
    """Say what the system said about a path; only "not there" has a code of its own."""
    code = ErrorCode.NOT_FOUND if number == errno.ENOENT else ErrorCode.INTERNAL
    text = os_failure_text(number, _WORDS.get(number, system_text))
    return Failure(code, text, _data(_KINDS.get(number, FileFailureKind.OTHER), path))


def not_a_file(path: str) -> Failure:
    """Refuse a folder, a device, a pipe where a plain file is needed."""
    shown = _data(FileFailureKind.NOT_FILE, path)
    return invalid_request(f"path `{shown['path']}` is not a file", shown)


def outside_roots(path: str) -> Failure:
    """Refuse a path that leaves the executor's roots, by itself or through a link."""
    shown = _data(FileFailureKind.OUTSIDE_ROOTS, path)
    return invalid_request(f"path `{shown['path']}` is outside of the roots of this executor", shown)


def path_outside_roots(failure: Failure) -> str | None:
    """Give the path that a failure refuses because it leaves the roots; None when it says something else."""
    has_facts = isinstance(failure.data, dict)
    path = cast("dict[str, Any]", failure.data).get("path") if has_facts else None
    return path if isinstance(path, str) and failure.message == outside_roots(path).message else None


def root_not_removed(path: str) -> Failure:
    """Refuse to remove or replace a root."""
    shown = _data(FileFailureKind.PERMISSION_DENIED, path)
    return invalid_request(f"path `{shown['path']}` is a root of this executor", shown)


def file_too_large(path: str) -> Failure:
    """Refuse to read a file that large as a whole."""
    text = f"file is too large to read: limit is {FILE_BYTES_MAX} bytes"
    return invalid_request(text, _data(FileFailureKind.TOO_LARGE, path))


def file_answer_too_large(path: str, size_bytes: int) -> Failure:
    """Say that a file does not fit into one answer."""
    text = f"file of {size_bytes} bytes does not fit into one answer; read it in blocks"
    return internal(text, _data(FileFailureKind.TOO_LARGE, path))


def write_needs_base64(rule: str) -> Failure:
    """Refuse what is no base64."""
    return invalid_request(f"fs/writeFile requires valid base64 dataBase64: {rule}")


def path_holds_link(path: str) -> Failure:
    """Refuse a link where none may be followed."""
    return invalid_request("path contains a symbolic link", _data(FileFailureKind.LINK_LOOP, path))


def path_foreign(uri: str, platform: str) -> Failure:
    """Refuse a path that cannot be on this machine."""
    return invalid_request(f"'{uri}' is invalid on '{platform}'")


def walk_limits_zero() -> Failure:
    """Refuse to walk nowhere."""
    return invalid_request("filesystem walk limits must be greater than zero")


def removal_unsupported() -> Failure:
    """Refuse to remove a tree without following links: the other implementation cannot, and its clients know."""
    return internal("recursive no-follow removal is unsupported")


def copy_needs_recursive(path: str) -> Failure:
    """Refuse to copy a folder by accident."""
    text = "fs/copy requires recursive: true when sourcePath is a directory"
    return invalid_request(text, _data(FileFailureKind.IS_DIRECTORY, path))


def copy_into_itself() -> Failure:
    """Refuse a copy without end."""
    return invalid_request("fs/copy cannot copy a directory to itself or one of its descendants")


def copy_special(path: str) -> Failure:
    """Refuse to copy a device or a pipe."""
    text = "fs/copy only supports regular files, directories, and symlinks"
    return invalid_request(text, _data(FileFailureKind.NOT_FILE, path))


def handle_exists(handle_id: str) -> Failure:
    """Refuse a second open file of one id."""
    return invalid_request(f"file handle `{handle_id}` already exists")


def handle_unknown(handle_id: str) -> Failure:
    """Say that no open file has this id."""
    return Failure(ErrorCode.NOT_FOUND, f"unknown file handle `{handle_id}`")


def handles_full() -> Failure:
    """Refuse one open file too many."""
    return invalid_request(f"at most {FILE_HANDLES_MAX} file handles may be open per connection")


def block_length_refused(verb: str) -> Failure:
    """Refuse an empty or too large block; ``verb`` is `read` or `write`."""
    return invalid_request(f"file {verb} block length must be between 1 and {BLOCK_BYTES_MAX}")


def sandbox_unconfigured() -> Failure:
    """Refuse sandboxed work: whoever asked for it must not get less."""
    return invalid_request("sandboxed filesystem operations require configured runtime paths")
