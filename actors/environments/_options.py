"""What may be said about a process besides its program and arguments; the harness says what each means."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypedDict

from actors.harness import HttpHeaders
from actors.protocol import EnvironmentPolicy


class RunOptions(TypedDict, total=False):
    """Options of `Environment.run`; all may be left out.

    Attributes:
        env (None): The whole environment of the command; nothing is inherited unless `env_policy` asks for it.
        cwd (None): An absolute path, or a ``file:`` URI; the executor's own folder when left out.
        stdin (None): Bytes for standard input, which is closed after them; at its end from the start when left out.
        tty (False): Run it on a terminal; all output is ``stdout``.
        env_policy (None): Begin with the executor's variables.
        timeout_s (None): Kill its process group after this time, and raise; no limit when left out.
        check (False): Raise when the exit code is not 0.
        output_bytes_max (64 MiB): Keep this much output, and count the rest.
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
        headers (None): A value may be `actors.harness.FromVariable`: a secret that never leaves the environment.
        body (None): Bytes to send.
        json (None): A value to send as JSON instead, with its content type.
        timeout_s (None): For the whole exchange; no limit when left out.
        follow_redirects (True): Give the answer at the end of redirections, not the first one.
    """

    headers: HttpHeaders | None
    body: bytes | None
    json: Any
    timeout_s: float | None
    follow_redirects: bool


class WalkRules(TypedDict, total=False):
    """Options of `EnvironmentFiles.walk`; all may be left out.

    Attributes:
        depth_max (64): Folders below the top to go down; 0 lists the top alone.
        directories_max (10,000): Folders to read.
        entries_max (10,000): Entries to give.
        follow_links (False): Enter links to folders, each folder once.
        enter_hidden (True): Enter folders whose name begins with a dot.
    """

    depth_max: int
    directories_max: int
    entries_max: int
    follow_links: bool
    enter_hidden: bool


class StartOptions(TypedDict, total=False):
    """Options of `EnvironmentProcesses.start`; all may be left out.

    Attributes:
        env (None): The whole environment of the process; nothing is inherited unless `env_policy` asks for it.
        cwd (None): An absolute path, or a ``file:`` URI; the executor's own folder when left out.
        pipe_stdin (False): Keep standard input open.
        tty (False): Run it on a terminal; all output comes as one stream.
        arg0 (None): What the program sees as its own name.
        env_policy (None): Begin with the executor's variables.
        process_id (None): Unique in the session; made up when left out.
        metadata (None): Goes to the executor as it is.
    """

    env: Mapping[str, str] | None
    cwd: str | PurePath | None
    pipe_stdin: bool
    tty: bool
    arg0: str | None
    env_policy: EnvironmentPolicy | None
    process_id: str | None
    metadata: Any
