"""What is said about files: plain values with paths of the environment, not URIs."""

import enum

import attrs


class FileKind(enum.Enum):
    """What stands at a path, its links followed."""

    FILE = "file"
    DIRECTORY = "directory"
    BROKEN_LINK = "broken link"
    SPECIAL = "special"


@attrs.frozen(kw_only=True)
class FileStatus:
    """What stands at a path."""

    path: str
    """As it was asked for."""
    kind: FileKind
    """What it is."""
    is_link: bool
    """The path itself is a link."""
    size_bytes: int
    """How large."""
    modified_at_ms: int
    """Since 1970."""


@attrs.frozen(kw_only=True)
class FileEntry:
    """One name in a folder."""

    name: str
    """Without the folder."""
    kind: FileKind
    """What it is. Links that lead nowhere, or out of the executor's roots, are broken."""
    is_link: bool
    """The name itself is a link; an executor that does not tell says False."""


@attrs.frozen(kw_only=True)
class TreeEntry:
    """One file or folder of a tree."""

    path: str
    """The whole path."""
    kind: FileKind
    """File or folder."""


@attrs.frozen(kw_only=True)
class TreeFault:
    """A folder of a tree that could not be read."""

    path: str
    """The whole path."""
    reason: str
    """Why."""


@attrs.frozen(kw_only=True)
class Tree:
    """A tree of files and folders, breadth first, each folder sorted by name."""

    entries: tuple[TreeEntry, ...]
    """Files and folders; links to files and special files are not among them."""
    faults: tuple[TreeFault, ...]
    """Folders that could not be read."""
    truncated: bool
    """There is more than was asked for."""
