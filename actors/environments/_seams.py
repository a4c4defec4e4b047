"""What an environment needs of a link: someone who opens and holds it, and what can be done over it.

All of it is small protocols, with a real default elsewhere and a twin in memory in `actors.environments.testing`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import PurePath
from typing import Any, Protocol

import attrs

from actors.environments._provider import Answer
from actors.harness import CompletedCommand, Process
from actors.protocol import EnvironmentInfo, EnvironmentPolicy


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
        argv: Sequence[str],
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
        """Start a process for as long as the context lasts."""
        ...


class Client(Protocol):
    """What an open link can do; the harness's client is one."""

    @property
    def processes(self) -> ProcessStarter:
        """Processes at the far end."""
        ...

    async def status(self) -> object:
        """Ask whether the executor answers."""
        ...

    async def info(self) -> EnvironmentInfo:
        """Ask what the executor is."""
        ...

    async def run(
        self,
        argv: Sequence[str],
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
        """The transport is gone, and the connector is trying to resume the same session."""
        ...

    def resumed(self) -> None:
        """The same session goes on."""
        ...


@attrs.frozen(kw_only=True)
class LinkRequest:
    """One link that is to be opened and held."""

    environment_id: str
    """For which environment."""
    generation: int
    """For which generation of it."""
    attempt: int
    """The how-manieth attempt of that generation."""
    answer: Answer | None
    """What its provider said; none for the environment on this machine."""
    identity: HarnessIdentity | None
    """By whom; none in a manager without a Noise connector."""
    renew: Callable[[], Awaitable[Answer]] | None = attrs.field(default=None, repr=False, eq=False)
    """Asks the provider again: an answer serves one physical connection, so a resumed link needs another one."""


class Connector(Protocol):
    """Open a link and hold it; the task that runs this is the owner of the link."""

    async def hold(self, request: LinkRequest, report: LinkReport, /) -> None:
        """Open the link, report it, and return or raise when it is gone for good.

        Raises:
            Exception: Before `report.opened` it is why the attempt failed, afterwards why the link ended.
        """
        ...
