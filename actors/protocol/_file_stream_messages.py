"""Messages about open files, block by block, and about files that are waited for."""

import enum

import attrs

from actors.protocol._codec import LEFT_OUT, U64
from actors.protocol._process_messages import Sandbox


class OpenMode(enum.Enum):
    """What an open file is for."""

    READ = "read"
    REPLACE = "replace"


@attrs.frozen(kw_only=True)
class OpenParams:
    """Open a plain file for blocks."""

    handle_id: str
    """Chosen by the caller, unique on the connection; may be empty."""
    path: str
    """Which file."""
    mode: OpenMode = OpenMode.READ
    """Read it, or make it anew."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Work sandboxed."""


@attrs.frozen(kw_only=True)
class OpenResult:
    """A file is open."""

    handle_id: str
    """As asked."""


@attrs.frozen(kw_only=True)
class ReadBlockParams:
    """Read one block of an open file."""

    handle_id: str
    """Which."""
    offset: U64
    """From where, in bytes."""
    len: U64
    """How much, 1 to 1048576 bytes."""


@attrs.frozen(kw_only=True)
class ReadBlockResult:
    """One block of an open file."""

    chunk: bytes = attrs.field(repr=lambda chunk: f"<{len(chunk)} bytes>")
    """Its bytes."""
    eof: bool
    """There was less than was asked for."""


@attrs.frozen(kw_only=True)
class WriteBlockParams:
    """Write one block of an open file."""

    handle_id: str
    """Which."""
    offset: U64
    """Where to, in bytes; may lie behind the end."""
    chunk: bytes = attrs.field(repr=lambda chunk: f"<{len(chunk)} bytes>")
    """1 to 1048576 bytes."""


@attrs.frozen(kw_only=True)
class CloseParams:
    """Close an open file; what was written becomes the file."""

    handle_id: str
    """Which; an unknown one is no error."""
    discard: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Ours: drop what was written and leave the file as it was."""


@attrs.frozen(kw_only=True)
class CloseResult:
    """An open file is closed, or was never open."""

    replaced: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Ours: what was written has taken its place."""


@attrs.frozen(kw_only=True)
class WatchMissingParams:
    """Wait for a file that is not there yet."""

    watch_id: U64
    """Chosen by the caller; comes back in the notification."""
    missing: tuple[str, ...]
    """Paths of which none exists."""
    present: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    """A path that exists."""


@attrs.frozen(kw_only=True)
class WatchMissingResult:
    """Whether there will be a notification."""

    watching: bool
    """True only when `present` exists and none of `missing` does."""


@attrs.frozen(kw_only=True)
class MissingChanged:
    """A path that was missing is there; told once."""

    watch_id: U64
    """Whose."""
