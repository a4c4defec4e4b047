"""Messages about files and folders. Paths travel as file URIs, contents as base64.

Members marked "ours" go beyond the other implementation, which ignores them.
"""

import enum
from typing import Annotated

import attrs

from actors.protocol._codec import LEFT_OUT, U64, Range
from actors.protocol._process_messages import Sandbox

I64 = Annotated[int, Range("i64", -(2**63), 2**63 - 1)]
"""A time in milliseconds since 1970; files may be older."""


def _size_only(text: str) -> str:
    # What a file holds is nobody's business in a log.
    return f"<{len(text)} characters>"


@attrs.frozen(kw_only=True)
class ReadFileParams:
    """Read a whole plain file."""

    path: str
    """Which file."""
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    """False refuses a link anywhere on the path."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""


@attrs.frozen(kw_only=True)
class ReadFileResult:
    """What a file holds."""

    data_base64: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    """Its bytes."""


@attrs.frozen(kw_only=True)
class WriteFileParams:
    """Make or replace a whole plain file."""

    path: str
    """Which file."""
    data_base64: str = attrs.field(repr=_size_only)
    """Its bytes as base64, read where the file is written: what is wrong with it has a code of its own."""
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    """False refuses a link anywhere on the path."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""


@attrs.frozen(kw_only=True)
class CreateDirectoryParams:
    """Make a folder."""

    path: str
    """Which."""
    recursive: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Make missing parents, and be content with one that is there; True when None."""
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    """False refuses a link anywhere on the path."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""


@attrs.frozen(kw_only=True)
class GetMetadataParams:
    """Say what stands at a path."""

    path: str
    """Where."""
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    """False refuses a link anywhere on the path."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""
    link_itself: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Ours: tell of a link in the last place itself, also of one that leads nowhere."""


@attrs.frozen(kw_only=True)
class FileMetadata:
    """What stands at a path."""

    is_directory: bool
    """It is a folder, or a link to one."""
    is_file: bool
    """It is a plain file, or a link to one."""
    is_symlink: bool
    """The path itself is a link."""
    size: U64
    """In bytes."""
    created_at_ms: I64
    """Since 1970; 0 where the system does not tell."""
    modified_at_ms: I64
    """Since 1970."""


@attrs.frozen(kw_only=True)
class CanonicalizeParams:
    """Resolve every link of a path."""

    path: str
    """Which; it must exist."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""


@attrs.frozen(kw_only=True)
class CanonicalizeResult:
    """A path without links."""

    path: str
    """As a file URI."""


@attrs.frozen(kw_only=True)
class ReadDirectoryParams:
    """List one folder."""

    path: str
    """Which."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""


@attrs.frozen(kw_only=True)
class DirectoryEntry:
    """One name in a folder; what is neither folder nor file is something special."""

    file_name: str
    """Its name."""
    is_directory: bool
    """It is a folder, or a link to one."""
    is_file: bool
    """It is a plain file, or a link to one."""
    is_symlink: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Ours: the name itself is a link."""


@attrs.frozen(kw_only=True)
class ReadDirectoryResult:
    """What a folder holds."""

    entries: tuple[DirectoryEntry, ...]
    """In the folder's own order."""
    broken_links: tuple[str, ...] = attrs.field(default=(), metadata=LEFT_OUT)
    """Ours: names of links that lead nowhere, or out of the executor's roots; left out of `entries`."""


@attrs.frozen(kw_only=True)
class WalkOptions:
    """How far to go."""

    max_depth: U64
    """Folders below the first to go down; 0 lists the first alone."""
    max_directories: U64
    """Folders to read, the first included."""
    max_entries: U64
    """Entries to give."""
    follow_directory_symlinks: bool
    """Enter links to folders, each folder once."""
    prune_hidden_directories: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Name folders whose name begins with a dot, and do not enter them."""


@attrs.frozen(kw_only=True)
class WalkParams:
    """List a whole tree."""

    path: str
    """Its top."""
    options: WalkOptions
    """How far to go."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""


class WalkKind(enum.Enum):
    """What an entry of a tree is."""

    FILE = "file"
    DIRECTORY = "directory"


@attrs.frozen(kw_only=True)
class WalkEntry:
    """One file or folder of a tree."""

    path: str
    """As a file URI."""
    kind: WalkKind
    """Which of the two."""


@attrs.frozen(kw_only=True)
class WalkError:
    """A folder of a tree that could not be read."""

    path: str
    """As a file URI."""
    message: str
    """Why."""


class LeftOutKind(enum.Enum):
    """What a walk finds and does not count as an entry."""

    LINK = "link"
    SPECIAL = "special"


@attrs.frozen(kw_only=True)
class LeftOut:
    """Something in a tree that is neither file nor folder."""

    path: str
    """As a file URI."""
    kind: LeftOutKind
    """What it is."""


@attrs.frozen(kw_only=True)
class WalkResult:
    """A tree, breadth first, each folder sorted by name."""

    entries: tuple[WalkEntry, ...]
    """Files and folders."""
    errors: tuple[WalkError, ...]
    """Folders that could not be read."""
    truncated: bool
    """There was more than was asked for."""
    left_out: tuple[LeftOut, ...] = attrs.field(default=(), metadata=LEFT_OUT)
    """Ours: links and special files on the way, as many as entries were asked for."""


@attrs.frozen(kw_only=True)
class RemoveParams:
    """Remove a file, a link or a folder."""

    path: str
    """Which; of a link the link."""
    recursive: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Remove what a folder holds as well; True when None."""
    force: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Be content when nothing is there; True when None."""
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    """False refuses a link anywhere before the last place."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""


@attrs.frozen(kw_only=True)
class CopyParams:
    """Copy a file, a link or a folder."""

    source_path: str
    """What; of a link the link."""
    destination_path: str
    """Where to: the new path itself, not the folder to put it in."""
    recursive: bool
    """Copy folders with what they hold."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""
