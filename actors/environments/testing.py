"""Environments without a world: providers that say what they are told, and links that exist only in memory.

The connector here takes the place of the real one; everything else is the real thing.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import attrs
import trio

from actors import ActorsError
from actors.blocks import block
from actors.environments import (
    Answer,
    AttemptRules,
    Connector,
    Connectors,
    EnvironmentManager,
    FileAccess,
    HttpAccess,
    LinkReport,
    LinkRequest,
    NotSupported,
    PlainEndpoint,
    ProcessStarter,
    ProtocolError,
    Snapshot,
    open_manager,
)
from actors.harness import CompletedCommand, FilePath
from actors.protocol import DiscoveredRoot, EnvironmentInfo, Shell
from supervision import Supervisor, open_root

__all__ = [
    "FailingProvider",
    "LinkCut",
    "MemoryClient",
    "MemoryConnector",
    "MemoryLink",
    "ScriptedProvider",
    "open_manager_in_memory",
]

ENDPOINT = PlainEndpoint(websocket_url="ws://memory.invalid/")


class LinkCut(ActorsError):
    """A link in memory was cut by the test that holds it."""

    def __init__(self, reason: str, *, retryable: bool = True) -> None:
        super().__init__(reason)
        self.retryable = retryable


class ScriptedProvider:
    """Say one thing after another; the last one for ever. Counts how often it was asked and remembers for whom."""

    def __init__(self, *script: Answer | Exception) -> None:
        self._script = list(script) or [ENDPOINT]
        self.keys: list[Any] = []
        self.proceed: trio.Event = trio.Event()
        self.proceed.set()

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return len(self.keys)

    def hold_back(self) -> None:
        """Let whoever asks wait until `proceed` is set."""
        self.proceed = trio.Event()

    async def connect_bundle(self, harness_public_key: Any, /) -> Answer:
        """Say what comes next in the script.

        Raises:
            Exception: It comes next in the script.

        Cancelled:
            The call is counted; the script has moved on.
        """
        self.keys.append(harness_public_key)
        said = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        await trio.lowlevel.checkpoint()
        await self.proceed.wait()
        if isinstance(said, Exception):
            raise said
        return said


class FailingProvider:
    """Fail every time, with the same words; count the calls."""

    def __init__(self, message: str = "test Noise provider called") -> None:
        self.message: str = message
        self.calls: int = 0

    async def connect_bundle(self, _harness_public_key: Any, /) -> Answer:
        """Fail.

        Raises:
            ProtocolError: Always.

        Cancelled:
            The call is counted.
        """
        self.calls += 1
        await trio.lowlevel.checkpoint()
        raise ProtocolError(self.message)


class MemoryClient:
    """A client whose executor does nothing but answer.

    Cancelled:
        Only the wait ends; a command stays in `commands`.
    """

    def __init__(self, request: LinkRequest) -> None:
        self.request = request
        self.commands: list[Sequence[str | PurePath]] = []
        self.failure: Exception | None = None
        self.retired: str | None = None
        self.proceed: trio.Event = trio.Event()
        self.proceed.set()

    @property
    def processes(self) -> ProcessStarter:
        """Nothing: a link in memory has no processes.

        Raises:
            NotSupported: Always; use `actors.harness.testing` behind a `HarnessConnector` for those.
        """
        raise NotSupported("processes.start", "a link in memory has no processes")

    @property
    def files(self) -> FileAccess:
        """Nothing: a link in memory has no files.

        Raises:
            NotSupported: Always; use a `LocalConnector` for those.
        """
        raise NotSupported("files", "a link in memory has no files")

    @property
    def http(self) -> HttpAccess:
        """Nothing: a link in memory makes no HTTP requests.

        Raises:
            NotSupported: Always; use a `LocalConnector` for those.
        """
        raise NotSupported("http", "a link in memory makes no HTTP requests")

    def retire(self, reason: str, /) -> None:
        """Remember why; whoever waits for an answer hears it."""
        self.retired, self.failure = reason, self.failure or LinkCut(reason)
        self.proceed.set()

    async def status(self) -> object:
        """Answer, or fail as told."""
        await self._answer()
        return "ready"

    async def info(self) -> EnvironmentInfo:
        """Say which link this is: its version is the number of the attempt."""
        await self._answer()
        shell = Shell(name="none", path="/nonexistent")
        return EnvironmentInfo(shell=shell, cwd="file:///", executor_version=str(self.request.attempt))

    async def discover_roots(self, roots: Mapping[str, FilePath], /) -> tuple[DiscoveredRoot, ...]:
        """Find nothing in each of them."""
        await self._answer()
        return tuple(DiscoveredRoot(id=name, path=str(path)) for name, path in roots.items())

    async def run(self, argv: Sequence[str | PurePath], /, **_options: Any) -> CompletedCommand:
        """Remember a command and give it back as its own output."""
        self.commands.append(argv)
        await self._answer()
        words = tuple(map(str, argv))
        return CompletedCommand(argv=words, exit_code=0, stdout=" ".join(words).encode(), stderr=b"")

    async def _answer(self) -> None:
        await trio.lowlevel.checkpoint()
        await self.proceed.wait()
        if self.failure is not None:
            raise self.failure


@attrs.define(eq=False)
class MemoryLink:
    """One link in memory, to be cut and mended by a test.

    Attributes:
        request: What it was opened for.
        client: Its near end.
        report: Who is told what becomes of it.
        ended: Set when it is to end.
        why: What it ends with.
        is_held: Whether its task still holds it.
    """

    request: LinkRequest
    client: MemoryClient
    report: LinkReport
    ended: trio.Event = attrs.Factory(trio.Event)
    why: Exception | None = None
    is_held: bool = True

    def interrupt(self, reason: str = "the connection is gone") -> None:
        """Lose the connection; the session may come back."""
        self.report.interrupted(reason)

    def resume(self) -> None:
        """Bring the same session back."""
        self.report.resumed()

    def cut(self, reason: str = "the link was cut") -> None:
        """End the link for good."""
        self.why = LinkCut(reason)
        self.ended.set()


class MemoryConnector:
    """Open links in memory and keep them in a list, or fail as told."""

    def __init__(self) -> None:
        self.links: list[MemoryLink] = []
        self.failures: list[Exception] = []
        self.proceed: trio.Event = trio.Event()
        self.proceed.set()

    @property
    def open_links(self) -> list[MemoryLink]:
        """Those that a task still holds."""
        return [link for link in self.links if link.is_held]

    async def hold(self, request: LinkRequest, report: LinkReport, /) -> None:
        """Open a link and hold it until it is cut.

        Raises:
            Exception: The next of `failures`, before the link is open; or why the link was cut.

        Cancelled:
            Before the link is open nothing is left behind; afterwards nobody holds it any more.
        """
        if not self.proceed.is_set():
            await self.proceed.wait()
        if self.failures:
            raise self.failures.pop(0)
        link = MemoryLink(request, MemoryClient(request), report)
        self.links.append(link)
        try:
            report.opened(link.client)
            await link.ended.wait()
        finally:
            link.is_held = False
        if link.why is not None:
            raise link.why


@block
async def open_manager_in_memory(
    supervisor: Supervisor | None = None,
    *,
    connector: MemoryConnector | None = None,
    snapshot: Snapshot | None = None,
    rules: AttemptRules | None = None,
    identity: Callable[[], Any] | None = None,
    noise: Connector | None = None,
    max_environments: int = 1_000_000,
) -> AsyncGenerator[EnvironmentManager, None]:
    """Open a manager whose links exist only in memory, under a root of its own if none is given.

    Bundles are refused unless there is a connector for them, which may be the same one.

    Cancelled:
        All environments are closed and their tasks stopped, within a bounded time.
    """
    connector = connector or MemoryConnector()
    connectors = Connectors(plain=connector, noise=noise, local=connector, identity=identity)
    if supervisor is None:
        async with (
            open_root() as root,
            open_manager(
                root, connectors=connectors, snapshot=snapshot, rules=rules, max_environments=max_environments
            ) as manager,
        ):
            yield manager
    else:
        async with open_manager(
            supervisor, connectors=connectors, snapshot=snapshot, rules=rules, max_environments=max_environments
        ) as manager:
            yield manager
