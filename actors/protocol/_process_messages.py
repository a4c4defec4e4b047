"""Messages about processes. Byte strings travel as base64, folders as file URIs.

Members marked "ours" go beyond the other implementation, which ignores them.
"""

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from actors.protocol._codec import I32, LEFT_OUT, U64, Name
from actors.protocol._sandbox_messages import Sandbox


def _names_only(variables: Mapping[str, str]) -> str:
    # A value may be a secret, and a repr ends up in logs.
    return f"<{', '.join(sorted(variables))}>"


def _size_only(data: bytes) -> str:
    # What is typed into a process may be a password.
    return f"<{len(data)} bytes>"


class Stream(enum.Enum):
    """Which output of a process.

    Attributes:
        STDOUT: Standard output.
        STDERR: Standard error.
        PTY: A terminal, which has one output for both.
    """

    STDOUT = "stdout"
    STDERR = "stderr"
    PTY = "pty"


class Signal(enum.Enum):
    """What `process/signal` can send.

    Attributes:
        INTERRUPT: SIGINT, as Ctrl-C sends it.
    """

    INTERRUPT = "interrupt"


class WriteStatus(enum.Enum):
    """What became of bytes for standard input.

    Attributes:
        ACCEPTED: They will be written, in order.
        UNKNOWN_PROCESS: There is no such process, or no longer.
        STDIN_CLOSED: Its standard input is closed, or never was open.
    """

    ACCEPTED = "accepted"
    UNKNOWN_PROCESS = "unknownProcess"
    STDIN_CLOSED = "stdinClosed"


class EnvironmentInherit(enum.Enum):
    """Which of the executor's own variables a process gets.

    Attributes:
        CORE: Those a program hardly runs without, such as PATH and HOME.
        ALL: All.
        NONE: None.
    """

    CORE = "core"
    ALL = "all"
    NONE = "none"


@attrs.frozen(kw_only=True)
class EnvironmentPolicy:
    """How a process's variables are made before `env` is laid over them.

    Attributes:
        inherit: Where to begin.
        ignore_default_excludes: Keep names with KEY, SECRET or TOKEN in them.
        exclude: Globs of names to drop.
        set: Variables to add.
        include_only: When not empty, the globs of names to keep.
    """

    inherit: EnvironmentInherit
    ignore_default_excludes: bool
    exclude: tuple[str, ...]
    set: Mapping[str, str] = attrs.field(repr=_names_only)
    include_only: tuple[str, ...]


@attrs.frozen(kw_only=True)
class NetworkProxy:
    """A request to run behind a proxy.

    Attributes:
        proxy: The proxy's own settings.
    """

    proxy: Any


@attrs.frozen(kw_only=True)
class ShellSnapshot:
    """A request to run with a saved state of the shell.

    Attributes:
        scope_id: Which one.
    """

    scope_id: str


@attrs.frozen(kw_only=True)
class StartParams:
    """Start one process as the leader of its own group and session.

    Attributes:
        process_id: Chosen by the caller, unique in the session while known; may be empty.
        argv: Program and arguments, at least the program.
        cwd: File URI of the working folder.
        env: The whole environment when there is no policy.
        tty: Run on a terminal of 24 x 80.
        pipe_stdin: Keep standard input open for `process/write`.
        arg0: What the program sees as its own name.
        env_policy: Start from the executor's variables.
        sandbox: Run sandboxed.
        enforce_managed_network: Refuse to run without the managed network.
        managed_network: The managed network's own settings.
        network_proxy: Run behind a proxy.
        metadata: The caller's own.
        shell_snapshot: Run with a saved state of the shell.
        rows: Ours: lines of the terminal.
        cols: Ours: columns of the terminal.
    """

    process_id: Name
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = attrs.field(repr=_names_only)
    tty: bool
    pipe_stdin: bool = False
    arg0: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    env_policy: EnvironmentPolicy | None = attrs.field(default=None, metadata=LEFT_OUT)
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)
    enforce_managed_network: bool = attrs.field(default=False, metadata=LEFT_OUT)
    managed_network: Any = attrs.field(default=None, metadata=LEFT_OUT)
    network_proxy: NetworkProxy | None = attrs.field(default=None, metadata=LEFT_OUT)
    metadata: Any = attrs.field(default=None, metadata=LEFT_OUT)
    shell_snapshot: ShellSnapshot | None = attrs.field(default=None, metadata=LEFT_OUT)
    rows: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)
    cols: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class StartResult:
    """The process runs.

    Attributes:
        process_id: As asked.
        sandbox_type: Which sandbox it got.
    """

    process_id: Name
    sandbox_type: str = "none"


@attrs.frozen(kw_only=True)
class ReadParams:
    """Fetch retained output, or wait for more.

    Attributes:
        process_id: Which process.
        after_seq: Only what comes after this position; 0 when None.
        max_bytes: Stop before this many bytes, but give at least one chunk.
        wait_ms: How long to wait when there is nothing new.
    """

    process_id: Name
    after_seq: U64 | None = None
    max_bytes: U64 | None = None
    wait_ms: U64 | None = None


@attrs.frozen
class OutputChunk:
    """Bytes a process wrote.

    Attributes:
        seq: Position in the process's sequence.
        stream: Which output.
        chunk: The bytes; may end inside a character.
    """

    seq: U64
    stream: Stream
    chunk: bytes


@attrs.frozen(kw_only=True)
class ReadResult:
    """Retained output and the state of the process.

    Attributes:
        chunks: In order of position.
        next_seq: Where to go on: one after the last chunk given, or the next position of the process when nothing was
            cut.
        exited: The exit code is known. Output may still come.
        exit_code: 128 + n after signal n.
        closed: Nothing more will come.
        failure: Why the process failed without an exit of its own.
        sandbox_denied: The sandbox stopped it.
        first_retained_seq: Ours: output before this position is gone.
    """

    chunks: tuple[OutputChunk, ...]
    next_seq: U64
    exited: bool
    exit_code: I32 | None
    closed: bool
    failure: str | None
    sandbox_denied: bool
    first_retained_seq: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class WriteParams:
    """Give bytes to standard input, once per write id.

    Attributes:
        process_id: Which process.
        chunk: The bytes.
        write_id: Not empty; a second write with the same id is accepted and not done.
        eof: Ours: close standard input after these bytes.
    """

    process_id: Name
    chunk: bytes = attrs.field(repr=_size_only)
    write_id: Name
    eof: bool = attrs.field(default=False, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class WriteResult:
    """What became of the bytes.

    Attributes:
        status: Accepted means queued.
    """

    status: WriteStatus


@attrs.frozen(kw_only=True)
class SignalParams:
    """Send a signal to the process's group.

    Attributes:
        process_id: Which process; an unknown one is no error.
        signal: Which signal.
    """

    process_id: Name
    signal: Signal


@attrs.frozen(kw_only=True)
class TerminateParams:
    """Kill the process's group.

    Attributes:
        process_id: Which process; an unknown one is no error.
        grace_ms: Ours: ask with SIGTERM first and wait this long.
    """

    process_id: Name
    grace_ms: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class TerminateResult:
    """Whether there was something to kill.

    Attributes:
        running: It ran until now.
    """

    running: bool
