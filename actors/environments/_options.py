"""What may be said about a process besides its program and arguments; the harness says what each means."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypedDict

from actors.harness import HttpHeaders
from actors.protocol import EnvironmentPolicy


class RunOptions(TypedDict, total=False):
    """Options of `Environment.run`; all may be left out.

    Attributes:
        env: The whole environment of the command; nothing is inherited unless `env_policy` asks for it.
        cwd: An absolute path, or a ``file:`` URI.
        stdin: Bytes for standard input, which is closed after them.
        tty: Run it on a terminal.
        env_policy: Begin with the executor's variables.
        timeout_s: Kill its process group after this time.
        check: Raise when the exit code is not 0.
        output_bytes_max: Keep this much output, and count the rest.
    """

    env: Mapping[str, str] | None
    cwd: str | PurePath | None
    stdin: bytes | None
    tty: bool
    env_policy: EnvironmentPolicy | None
    timeout_s: float | None
    check: bool
    output_bytes_max: int


class HttpOptions(TypedDict, total=False):
    """Options of `EnvironmentHttp.request` and `EnvironmentHttp.stream`; all may be left out.

    Attributes:
        headers: A value may be `actors.harness.FromVariable`: a secret that never leaves the environment.
        body: Bytes to send.
        json: A value to send as JSON instead, with its content type.
        timeout_s: For the whole exchange.
        follow_redirects: Give the answer at the end of redirections, not the first one.
    """

    headers: HttpHeaders | None
    body: bytes | None
    json: Any
    timeout_s: float | None
    follow_redirects: bool


class WalkRules(TypedDict, total=False):
    """Options of `EnvironmentFiles.walk`; all may be left out.

    Attributes:
        depth_max: Folders below the top to go down; 0 lists the top alone.
        directories_max: Folders to read.
        entries_max: Entries to give.
        follow_links: Enter links to folders, each folder once.
        enter_hidden: Enter folders whose name begins with a dot.
    """

    depth_max: int
    directories_max: int
    entries_max: int
    follow_links: bool
    enter_hidden: bool


class StartOptions(TypedDict, total=False):
    """Options of `EnvironmentProcesses.start`; all may be left out.

    Attributes:
        env: The whole environment of the process; nothing is inherited unless `env_policy` asks for it.
        cwd: An absolute path, or a ``file:`` URI.
        pipe_stdin: Keep standard input open.
        tty: Run it on a terminal.
        arg0: What the program sees as its own name.
        env_policy: Begin with the executor's variables.
        process_id: Unique in the session; made up when left out.
        metadata: Goes to the executor as it is.
    """

    env: Mapping[str, str] | None
    cwd: str | PurePath | None
    pipe_stdin: bool
    tty: bool
    arg0: str | None
    env_policy: EnvironmentPolicy | None
    process_id: str | None
    metadata: Any
