"""Messages about open files, block by block, and about files that are waited for."""

import enum

import attrs

from actors.protocol._codec import LEFT_OUT, U64
from actors.protocol._sandbox_messages import Sandbox


class OpenMode(enum.Enum):
    """What an open file is for.

    Attributes:
        READ: Read blocks of what is there.
        REPLACE: Write a new file that takes the old one's place when it is closed.
    """

    READ = "read"
    REPLACE = "replace"


@attrs.frozen(kw_only=True)
class OpenParams:
    """Open a plain file for blocks.

    Attributes:
        handle_id: Chosen by the caller, unique on the connection; may be empty.
        path: Which file.
        mode: Read it, or make it anew.
        sandbox: Work sandboxed.
    """

    handle_id: str
    path: str
    mode: OpenMode = OpenMode.READ
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class OpenResult:
    """A file is open.

    Attributes:
        handle_id: As asked.
    """

    handle_id: str


@attrs.frozen(kw_only=True)
class ReadBlockParams:
    """Read one block of an open file.

    Attributes:
        handle_id: Which.
        offset: From where, in bytes.
        len: How much, 1 to 1048576 bytes.
    """

    handle_id: str
    offset: U64
    len: U64


@attrs.frozen(kw_only=True)
class ReadBlockResult:
    """One block of an open file.

    Attributes:
        chunk: Its bytes.
        eof: There was less than was asked for.
    """

    chunk: bytes = attrs.field(repr=lambda chunk: f"<{len(chunk)} bytes>")
    eof: bool


@attrs.frozen(kw_only=True)
class WriteBlockParams:
    """Write one block of an open file.

    Attributes:
        handle_id: Which.
        offset: Where to, in bytes; may lie behind the end.
        chunk: 1 to 1048576 bytes.
    """

    handle_id: str
    offset: U64
    chunk: bytes = attrs.field(repr=lambda chunk: f"<{len(chunk)} bytes>")


@attrs.frozen(kw_only=True)
class CloseParams:
    """Close an open file; what was written becomes the file.

    Attributes:
        handle_id: Which; an unknown one is no error.
        discard: Ours: drop what was written and leave the file as it was.
    """

    handle_id: str
    discard: bool = attrs.field(default=False, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class CloseResult:
    """An open file is closed, or was never open.

    Attributes:
        replaced: Ours: what was written has taken its place.
    """

    replaced: bool = attrs.field(default=False, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class WatchMissingParams:
    """Wait for a file that is not there yet.

    Attributes:
        watch_id: Chosen by the caller; comes back in the notification.
        missing: Paths of which none exists.
        present: A path that exists.
    """

    watch_id: U64
    missing: tuple[str, ...]
    present: str | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class WatchMissingResult:
    """Whether there will be a notification.

    Attributes:
        watching: True only when `present` exists and none of `missing` does.
    """

    watching: bool


@attrs.frozen(kw_only=True)
class MissingChanged:
    """A path that was missing is there; told once.

    Attributes:
        watch_id: Whose.
    """

    watch_id: U64
