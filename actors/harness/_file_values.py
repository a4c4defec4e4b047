"""What is said about files: plain values with paths of the environment, not URIs."""

import enum

import attrs


class FileKind(enum.Enum):
    """What stands at a path, its links followed.

    Attributes:
        FILE: A plain file.
        DIRECTORY: A folder.
        BROKEN_LINK: A link that leads nowhere.
        SPECIAL: Anything else: a socket, a pipe, a device.
    """

    FILE = "file"
    DIRECTORY = "directory"
    BROKEN_LINK = "broken link"
    SPECIAL = "special"


@attrs.frozen(kw_only=True)
class FileStatus:
    """What stands at a path.

    Attributes:
        path: As it was asked for.
        kind: What it is.
        is_link: The path itself is a link.
        size_bytes: How large.
        modified_at_ms: Since 1970.
    """

    path: str
    kind: FileKind
    is_link: bool
    size_bytes: int
    modified_at_ms: int


@attrs.frozen(kw_only=True)
class FileEntry:
    """One name in a folder.

    Attributes:
        name: Without the folder.
        kind: What it is. Links that lead nowhere, or out of the executor's roots, are broken.
        is_link: The name itself is a link; an executor that does not tell says False.
    """

    name: str
    kind: FileKind
    is_link: bool


@attrs.frozen(kw_only=True)
class TreeEntry:
    """One file or folder of a tree.

    Attributes:
        path: The whole path.
        kind: File or folder.
    """

    path: str
    kind: FileKind


@attrs.frozen(kw_only=True)
class TreeFault:
    """A folder of a tree that could not be read.

    Attributes:
        path: The whole path.
        reason: Why.
    """

    path: str
    reason: str


@attrs.frozen(kw_only=True)
class Tree:
    """A tree of files and folders, breadth first, each folder sorted by name.

    Attributes:
        entries: Files and folders; links to files and special files are not among them.
        faults: Folders that could not be read.
        truncated: There is more than was asked for.
    """

    entries: tuple[TreeEntry, ...]
    faults: tuple[TreeFault, ...]
    truncated: bool
