"""What may be said about a process besides its program and arguments; the harness says what each means."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypedDict

from actors.protocol import EnvironmentPolicy


class RunOptions(TypedDict, total=False):
    """Options of `Environment.run`; all may be left out."""

    env: Mapping[str, str] | None
    """The whole environment of the command; nothing is inherited unless `env_policy` asks for it."""
    cwd: str | PurePath | None
    """An absolute path, or a ``file:`` URI."""
    stdin: bytes | None
    """Bytes for standard input, which is closed after them."""
    tty: bool
    """Run it on a terminal."""
    env_policy: EnvironmentPolicy | None
    """Begin with the executor's variables."""
    timeout_s: float | None
    """Kill its process group after this time."""
    check: bool
    """Raise when the exit code is not 0."""
    output_bytes_max: int
    """Keep this much output, and count the rest."""


class StartOptions(TypedDict, total=False):
    """Options of `EnvironmentProcesses.start`; all may be left out."""

    env: Mapping[str, str] | None
    """The whole environment of the process; nothing is inherited unless `env_policy` asks for it."""
    cwd: str | PurePath | None
    """An absolute path, or a ``file:`` URI."""
    pipe_stdin: bool
    """Keep standard input open."""
    tty: bool
    """Run it on a terminal."""
    arg0: str | None
    """What the program sees as its own name."""
    env_policy: EnvironmentPolicy | None
    """Begin with the executor's variables."""
    process_id: str | None
    """Unique in the session; made up when left out."""
    metadata: Any
    """Goes to the executor as it is."""
