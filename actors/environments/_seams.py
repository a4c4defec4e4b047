"""What an environment needs of a link: someone who opens and holds it, and what can be done over it.

All of it is small protocols, with a real default elsewhere and a twin in memory in `actors.environments.testing`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import PurePath
from typing import Any, Protocol

import attrs

from actors.environments._provider import Answer
from actors.harness import (
    CompletedCommand,
    FileEntry,
    FilePath,
    FileReader,
    FileStatus,
    FileWriter,
    HttpAnswer,
    HttpHeaders,
    HttpStream,
    Process,
    Tree,
)
from actors.protocol import DiscoveredRoot, EnvironmentInfo, EnvironmentPolicy


class HarnessIdentity(Protocol):
    """The key pair by which one environment's harness is known."""

    @property
    def public_key(self) -> Any:
        """The half that others may see."""
        ...


IdentityFactory = Callable[[], HarnessIdentity]
"""Makes the identity of one environment, once, when it first connects."""


class ProcessStarter(Protocol):
    """What starts processes at the far end of a link; see `StartOptions`."""

    def start(
        self,
        argv: Sequence[str | PurePath],
        /,
        *,
        env: Mapping[str, str] | None = ...,
        cwd: str | PurePath | None = ...,
        pipe_stdin: bool = ...,
        tty: bool = ...,
        arg0: str | None = ...,
        env_policy: EnvironmentPolicy | None = ...,
        process_id: str | None = ...,
        metadata: Any = ...,
    ) -> AbstractAsyncContextManager[Process]:
        """Start a process for as long as the context lasts.

        Cancelled:
            The process group is killed if it has not ended.
        """
        ...


class FileAccess(Protocol):
    """What reaches files at the far end of a link; the harness says what each does.

    Cancelled:
        What only looks ends its wait; a change may be made all the same.
    """

    async def read_bytes(self, path: FilePath, /) -> bytes:
        """Read a whole file."""
        ...

    async def read_text(self, path: FilePath, /, *, encoding: str = ..., errors: str = ...) -> str:
        """Read a whole file as text."""
        ...

    async def write_text(self, path: FilePath, text: str, /, *, encoding: str = ...) -> None:
        """Make or replace a whole file with a text."""
        ...

    async def write_bytes(self, path: FilePath, data: bytes, /) -> None:
        """Make or replace a whole file."""
        ...

    async def stat(self, path: FilePath, /, *, follow_links: bool = ...) -> FileStatus:
        """Say what stands at a path."""
        ...

    async def exists(self, path: FilePath, /) -> bool:
        """Say whether anything does."""
        ...

    async def wait_until_exists(self, path: FilePath, /) -> None:
        """Wait until something does."""
        ...

    async def list(self, path: FilePath, /) -> tuple[FileEntry, ...]:
        """List one folder."""
        ...

    async def walk(
        self,
        path: FilePath,
        /,
        *,
        depth_max: int = ...,
        directories_max: int = ...,
        entries_max: int = ...,
        follow_links: bool = ...,
        enter_hidden: bool = ...,
    ) -> Tree:
        """List a tree; see `WalkRules`."""
        ...

    async def canonicalize(self, path: FilePath, /) -> str:
        """Resolve every link of a path."""
        ...

    async def make_directory(self, path: FilePath, /, *, parents: bool = ...) -> None:
        """Make a folder."""
        ...

    async def remove(self, path: FilePath, /, *, recursive: bool = ..., missing_ok: bool = ...) -> None:
        """Remove what stands at a path."""
        ...

    async def copy(self, source: FilePath, destination: FilePath, /, *, recursive: bool = ...) -> None:
        """Copy what stands at a path."""
        ...

    def open_read(self, path: FilePath, /, *, offset: int = ...) -> AbstractAsyncContextManager[FileReader]:
        """Open a file to read it block by block."""
        ...

    def open_write(self, path: FilePath, /) -> AbstractAsyncContextManager[FileWriter]:
        """Make a file anew, block by block."""
        ...


class HttpAccess(Protocol):
    """What makes HTTP requests at the far end of a link; the harness says what each does.

    Cancelled:
        The executor is told to hang up, where it can be told; the request may have been made.
    """

    async def request(
        self,
        method: str,
        url: str,
        /,
        *,
        headers: HttpHeaders | None = ...,
        body: bytes | None = ...,
        json: Any = ...,
        timeout_s: float | None = ...,
        follow_redirects: bool = ...,
    ) -> HttpAnswer:
        """Make a request and give the whole answer."""
        ...

    def stream(
        self,
        method: str,
        url: str,
        /,
        *,
        headers: HttpHeaders | None = ...,
        body: bytes | None = ...,
        json: Any = ...,
        timeout_s: float | None = ...,
        follow_redirects: bool = ...,
    ) -> AbstractAsyncContextManager[HttpStream]:
        """Make a request and take its body as it comes."""
        ...


class Client(Protocol):
    """What an open link can do; the harness's client is one.

    Cancelled:
        Only the wait ends; what `run` may have started is killed.
    """

    @property
    def files(self) -> FileAccess:
        """Files at the far end."""
        ...

    @property
    def http(self) -> HttpAccess:
        """HTTP requests from the far end."""
        ...

    @property
    def processes(self) -> ProcessStarter:
        """Processes at the far end."""
        ...

    async def status(self) -> object:
        """Ask whether the executor answers."""
        ...

    def retire(self, reason: str, /) -> None:
        """End every call, wait and process of this client with a reason, in this breath; the link is stopped next."""
        ...

    async def discover_roots(self, roots: Mapping[str, FilePath], /) -> tuple[DiscoveredRoot, ...]:
        """Look into folders with skills and plugins."""
        ...

    async def info(self) -> EnvironmentInfo:
        """Ask what the executor is."""
        ...

    async def run(
        self,
        argv: Sequence[str | PurePath],
        /,
        *,
        env: Mapping[str, str] | None = ...,
        cwd: str | PurePath | None = ...,
        stdin: bytes | None = ...,
        tty: bool = ...,
        env_policy: EnvironmentPolicy | None = ...,
        timeout_s: float | None = ...,
        check: bool = ...,
        output_bytes_max: int = ...,
    ) -> CompletedCommand:
        """Run a command to its end; see `RunOptions`."""
        ...


class LinkReport(Protocol):
    """How a connector tells what becomes of the link it holds. Plain functions; they may raise when it is unwanted."""

    def opened(self, client: Client, /) -> None:
        """The link can be used through this client."""
        ...

    def interrupted(self, reason: str, /) -> None:
        """The connection is gone, and the connector is trying to resume the same session."""
        ...

    def resumed(self) -> None:
        """The same session goes on."""
        ...


@attrs.frozen(kw_only=True)
class LinkRequest:
    """One link that is to be opened and held.

    Attributes:
        environment_id: For which environment.
        generation: For which generation of it.
        attempt: The how-manieth attempt of that generation.
        answer: What its provider said; none for the environment on this machine.
        identity: By whom; none in a manager without a Noise connector.
        renew: Asks the provider again: an answer serves one physical connection, so a resumed link needs another one.
    """

    environment_id: str
    generation: int
    attempt: int
    answer: Answer | None
    identity: HarnessIdentity | None
    renew: Callable[[], Awaitable[Answer]] | None = attrs.field(default=None, repr=False, eq=False)


class Connector(Protocol):
    """Open a link and hold it; the task that runs this is the owner of the link."""

    async def hold(self, request: LinkRequest, report: LinkReport, /) -> None:
        """Open the link, report it, and return or raise when it is gone for good.

        Raises:
            Exception: Before `report.opened` it is why the attempt failed, afterwards why the link ended.

        Cancelled:
            The link is closed, within a bound.
        """
        ...
