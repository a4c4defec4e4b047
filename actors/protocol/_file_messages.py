"""Messages about files and folders. Paths travel as file URIs, contents as base64.

Members marked "ours" go beyond the other implementation, which ignores them.
"""

import enum
from typing import Annotated

import attrs

from actors.protocol._codec import LEFT_OUT, U64, Range
from actors.protocol._sandbox_messages import Sandbox

I64 = Annotated[int, Range("i64", -(2**63), 2**63 - 1)]
"""A time in milliseconds since 1970; files may be older."""


def _size_only(text: str) -> str:
    # What a file holds is nobody's business in a log.
    return f"<{len(text)} characters>"


@attrs.frozen(kw_only=True)
class ReadFileParams:
    """Read a whole plain file.

    Attributes:
        path: Which file.
        follow_symlinks: False refuses a link anywhere on the path.
        sandbox: Work sandboxed.
    """

    path: str
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class ReadFileResult:
    """What a file holds.

    Attributes:
        data_base64: Its bytes.
    """

    data_base64: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")


@attrs.frozen(kw_only=True)
class WriteFileParams:
    """Make or replace a whole plain file.

    Attributes:
        path: Which file.
        data_base64: Its bytes as base64, read where the file is written: what is wrong with it has a code of its own.
        follow_symlinks: False refuses a link anywhere on the path.
        sandbox: Work sandboxed.
    """

    path: str
    data_base64: str = attrs.field(repr=_size_only)
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class CreateDirectoryParams:
    """Make a folder.

    Attributes:
        path: Which.
        recursive: Make missing parents, and be content with one that is there; True when None.
        follow_symlinks: False refuses a link anywhere on the path.
        sandbox: Work sandboxed.
    """

    path: str
    recursive: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class GetMetadataParams:
    """Say what stands at a path.

    Attributes:
        path: Where.
        follow_symlinks: False refuses a link anywhere on the path.
        sandbox: Work sandboxed.
        link_itself: Ours: tell of a link in the last place itself, also of one that leads nowhere.
    """

    path: str
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    link_itself: bool = attrs.field(default=False, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class FileMetadata:
    """What stands at a path.

    Attributes:
        is_directory: It is a folder, or a link to one.
        is_file: It is a plain file, or a link to one.
        is_symlink: The path itself is a link.
        size: In bytes.
        created_at_ms: Since 1970; 0 where the system does not tell.
        modified_at_ms: Since 1970.
    """

    is_directory: bool
    is_file: bool
    is_symlink: bool
    size: U64
    created_at_ms: I64
    modified_at_ms: I64


@attrs.frozen(kw_only=True)
class CanonicalizeParams:
    """Resolve every link of a path.

    Attributes:
        path: Which; it must exist.
        sandbox: Work sandboxed.
    """

    path: str
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class CanonicalizeResult:
    """A path without links.

    Attributes:
        path: As a file URI.
    """

    path: str


@attrs.frozen(kw_only=True)
class ReadDirectoryParams:
    """List one folder.

    Attributes:
        path: Which.
        sandbox: Work sandboxed.
    """

    path: str
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class DirectoryEntry:
    """One name in a folder; what is neither folder nor file is something special.

    Attributes:
        file_name: Its name.
        is_directory: It is a folder, or a link to one.
        is_file: It is a plain file, or a link to one.
        is_symlink: Ours: the name itself is a link.
    """

    file_name: str
    is_directory: bool
    is_file: bool
    is_symlink: bool = attrs.field(default=False, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class ReadDirectoryResult:
    """What a folder holds.

    Attributes:
        entries: In the folder's own order.
        broken_links: Ours: names of links that lead nowhere, or out of the executor's roots; left out of `entries`.
    """

    entries: tuple[DirectoryEntry, ...]
    broken_links: tuple[str, ...] = attrs.field(default=(), metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class WalkOptions:
    """How far to go.

    Attributes:
        max_depth: Folders below the first to go down; 0 lists the first alone.
        max_directories: Folders to read, the first included.
        max_entries: Entries to give.
        follow_directory_symlinks: Enter links to folders, each folder once.
        prune_hidden_directories: Name folders whose name begins with a dot, and do not enter them.
    """

    max_depth: U64
    max_directories: U64
    max_entries: U64
    follow_directory_symlinks: bool
    prune_hidden_directories: bool = attrs.field(default=False, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class WalkParams:
    """List a whole tree.

    Attributes:
        path: Its top.
        options: How far to go.
        sandbox: Work sandboxed.
    """

    path: str
    options: WalkOptions
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)


class WalkKind(enum.Enum):
    """What an entry of a tree is.

    Attributes:
        FILE: A plain file.
        DIRECTORY: A folder.
    """

    FILE = "file"
    DIRECTORY = "directory"


@attrs.frozen(kw_only=True)
class WalkEntry:
    """One file or folder of a tree.

    Attributes:
        path: As a file URI.
        kind: Which of the two.
    """

    path: str
    kind: WalkKind


@attrs.frozen(kw_only=True)
class WalkError:
    """A folder of a tree that could not be read.

    Attributes:
        path: As a file URI.
        message: Why.
    """

    path: str
    message: str


class LeftOutKind(enum.Enum):
    """What a walk finds and does not count as an entry.

    Attributes:
        LINK: A link that is not followed.
        SPECIAL: A socket, a pipe or a device.
    """

    LINK = "link"
    SPECIAL = "special"


@attrs.frozen(kw_only=True)
class LeftOut:
    """Something in a tree that is neither file nor folder.

    Attributes:
        path: As a file URI.
        kind: What it is.
    """

    path: str
    kind: LeftOutKind


@attrs.frozen(kw_only=True)
class WalkResult:
    """A tree, breadth first, each folder sorted by name.

    Attributes:
        entries: Files and folders.
        errors: Folders that could not be read.
        truncated: There was more than was asked for.
        left_out: Ours: links and special files on the way, as many as entries were asked for.
    """

    entries: tuple[WalkEntry, ...]
    errors: tuple[WalkError, ...]
    truncated: bool
    left_out: tuple[LeftOut, ...] = attrs.field(default=(), metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class RemoveParams:
    """Remove a file, a link or a folder.

    Attributes:
        path: Which; of a link the link.
        recursive: Remove what a folder holds as well; True when None.
        force: Be content when nothing is there; True when None.
        follow_symlinks: False refuses a link anywhere before the last place.
        sandbox: Work sandboxed.
    """

    path: str
    recursive: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    force: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    follow_symlinks: bool | None = attrs.field(default=None, metadata=LEFT_OUT)
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class CopyParams:
    """Copy a file, a link or a folder.

    Attributes:
        source_path: What; of a link the link.
        destination_path: Where to: the new path itself, not the folder to put it in.
        recursive: Copy folders with what they hold.
        sandbox: Work sandboxed.
    """

    source_path: str
    destination_path: str
    recursive: bool
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
