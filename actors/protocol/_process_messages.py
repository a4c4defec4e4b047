"""Messages about processes. Byte strings travel as base64, folders as file URIs.

Members marked "ours" go beyond the other implementation, which ignores them.
"""

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from actors.protocol._codec import I32, LEFT_OUT, U64


def _names_only(variables: Mapping[str, str]) -> str:
    # A value may be a secret, and a repr ends up in logs.
    return f"<{', '.join(sorted(variables))}>"


def _size_only(data: bytes) -> str:
    # What is typed into a process may be a password.
    return f"<{len(data)} bytes>"


class Stream(enum.Enum):
    """Which output of a process."""

    STDOUT = "stdout"
    STDERR = "stderr"
    PTY = "pty"


class Signal(enum.Enum):
    """What `process/signal` can send."""

    INTERRUPT = "interrupt"


class WriteStatus(enum.Enum):
    """What became of bytes for standard input."""

    ACCEPTED = "accepted"
    UNKNOWN_PROCESS = "unknownProcess"
    STDIN_CLOSED = "stdinClosed"


class EnvironmentInherit(enum.Enum):
    """Which of the executor's own variables a process gets."""

    CORE = "core"
    ALL = "all"
    NONE = "none"


@attrs.frozen(kw_only=True)
class EnvironmentPolicy:
    """How a process's variables are made before `env` is laid over them."""

    inherit: EnvironmentInherit
    """Where to begin."""
    ignore_default_excludes: bool
    """Keep names with KEY, SECRET or TOKEN in them."""
    exclude: tuple[str, ...]
    """Globs of names to drop."""
    set: Mapping[str, str] = attrs.field(repr=_names_only)
    """Variables to add."""
    include_only: tuple[str, ...]
    """When not empty, the globs of names to keep."""


@attrs.frozen(kw_only=True)
class SandboxPermissions:
    """What a sandboxed process may do."""

    type: str
    """The kind of sandbox; its other members are the sandbox's own."""


@attrs.frozen(kw_only=True)
class Sandbox:
    """A request to run sandboxed."""

    permissions: SandboxPermissions
    """What is allowed."""


@attrs.frozen(kw_only=True)
class NetworkProxy:
    """A request to run behind a proxy."""

    proxy: Any
    """The proxy's own settings."""


@attrs.frozen(kw_only=True)
class ShellSnapshot:
    """A request to run with a saved state of the shell."""

    scope_id: str
    """Which one."""


@attrs.frozen(kw_only=True)
class StartParams:
    """Start one process as the leader of its own group and session."""

    process_id: str
    """Chosen by the caller, unique in the session while known; may be empty."""
    argv: tuple[str, ...]
    """Program and arguments, at least the program."""
    cwd: str
    """File URI of the working folder."""
    env: Mapping[str, str] = attrs.field(repr=_names_only)
    """The whole environment when there is no policy."""
    tty: bool
    """Run on a terminal of 24 x 80."""
    pipe_stdin: bool = False
    """Keep standard input open for `process/write`."""
    arg0: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    """What the program sees as its own name."""
    env_policy: EnvironmentPolicy | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Start from the executor's variables."""
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Run sandboxed."""
    enforce_managed_network: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Refuse to run without the managed network."""
    managed_network: Any = attrs.field(default=None, metadata=LEFT_OUT)
    """The managed network's own settings."""
    network_proxy: NetworkProxy | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Run behind a proxy."""
    metadata: Any = attrs.field(default=None, metadata=LEFT_OUT)
    """The caller's own."""
    shell_snapshot: ShellSnapshot | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Run with a saved state of the shell."""
    rows: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Ours: lines of the terminal."""
    cols: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Ours: columns of the terminal."""


@attrs.frozen(kw_only=True)
class StartResult:
    """The process runs."""

    process_id: str
    """As asked."""
    sandbox_type: str = "none"
    """Which sandbox it got."""


@attrs.frozen(kw_only=True)
class ReadParams:
    """Fetch retained output, or wait for more."""

    process_id: str
    """Which process."""
    after_seq: U64 | None = None
    """Only what comes after this position; 0 when None."""
    max_bytes: U64 | None = None
    """Stop before this many bytes, but give at least one chunk."""
    wait_ms: U64 | None = None
    """How long to wait when there is nothing new."""


@attrs.frozen
class OutputChunk:
    """Bytes a process wrote."""

    seq: U64
    """Position in the process's sequence."""
    stream: Stream
    """Which output."""
    chunk: bytes
    """The bytes; may end inside a character."""


@attrs.frozen(kw_only=True)
class ReadResult:
    """Retained output and the state of the process."""

    chunks: tuple[OutputChunk, ...]
    """In order of position."""
    next_seq: U64
    """Where to go on: one after the last chunk given, or the next position of the process when nothing was cut."""
    exited: bool
    """The exit code is known. Output may still come."""
    exit_code: I32 | None
    """128 + n after signal n."""
    closed: bool
    """Nothing more will come."""
    failure: str | None
    """Why the process failed without an exit of its own."""
    sandbox_denied: bool
    """The sandbox stopped it."""
    first_retained_seq: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Ours: output before this position is gone."""


@attrs.frozen(kw_only=True)
class WriteParams:
    """Give bytes to standard input, once per write id."""

    process_id: str
    """Which process."""
    chunk: bytes = attrs.field(repr=_size_only)
    """The bytes."""
    write_id: str
    """Not empty; a second write with the same id is accepted and not done."""
    eof: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Ours: close standard input after these bytes."""


@attrs.frozen(kw_only=True)
class WriteResult:
    """What became of the bytes."""

    status: WriteStatus
    """Accepted means queued."""


@attrs.frozen(kw_only=True)
class SignalParams:
    """Send a signal to the process's group."""

    process_id: str
    """Which process; an unknown one is no error."""
    signal: Signal
    """Which signal."""


@attrs.frozen(kw_only=True)
class TerminateParams:
    """Kill the process's group."""

    process_id: str
    """Which process; an unknown one is no error."""
    grace_ms: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Ours: ask with SIGTERM first and wait this long."""


@attrs.frozen(kw_only=True)
class TerminateResult:
    """Whether there was something to kill."""

    running: bool
    """It ran until now."""


@attrs.frozen(kw_only=True)
class ProcessOutput:
    """Bytes a process wrote, as they come."""

    process_id: str
    """Which process."""
    seq: U64
    """Position in the process's sequence, from 1."""
    stream: Stream
    """Which output."""
    chunk: bytes
    """The bytes; may end inside a character."""


@attrs.frozen(kw_only=True)
class ProcessExited:
    """The exit code is known. Output may still come."""

    process_id: str
    """Which process."""
    seq: U64
    """Position in the process's sequence."""
    exit_code: I32
    """128 + n after signal n."""
    sandbox_denied: bool = False
    """The sandbox stopped it."""


@attrs.frozen(kw_only=True)
class Survivor:
    """A descendant that a kill of the group could not reach."""

    pid: U64
    """Its number in the environment."""
    name: str
    """Its name there."""


@attrs.frozen(kw_only=True)
class ProcessClosed:
    """Nothing more will come: the last of the sequence."""

    process_id: str
    """Which process."""
    seq: U64
    """Position in the process's sequence."""
    drain_limited: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Ours: a descendant still held the output when the drain limit ended the wait for end-of-file."""
    survivors: tuple[Survivor, ...] = attrs.field(default=(), metadata=LEFT_OUT)
    """Ours: descendants left alive."""


ProcessEvent = ProcessOutput | ProcessExited | ProcessClosed
"""What a process's sequence is made of."""
