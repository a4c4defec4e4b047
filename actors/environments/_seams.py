"""What an environment needs from the world: someone who says how to connect, and someone who connects.

All of it is small protocols, with a real default elsewhere and a twin in memory in `actors.environments.testing`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from actors import InvalidOption


def _without_query(url: str) -> str:
    """A URL up to the first `?` or `#`: what stands behind may be a secret."""
    return repr(url.split("?", 1)[0].split("#", 1)[0])


class _NotPickled:
    """What is used once and holds a secret is not written anywhere."""

    __slots__ = ()

    def __reduce__(self) -> str:
        raise TypeError(f"{type(self).__name__} holds secrets and is used once: it is not pickled or copied")


@attrs.frozen(kw_only=True)
class ConnectBundle(_NotPickled):
    """All that one physical connection attempt needs. Its parts belong together and are used once."""

    websocket_url: str = attrs.field(repr=_without_query)
    """Where the rendezvous awaits the harness."""
    environment_id: str
    """The environment that the registry speaks of."""
    executor_registration_id: str
    """Which registration of its executor."""
    executor_public_key: Any
    """Whom the harness must meet there."""
    harness_key_authorization: str = attrs.field(repr=False)
    """The proof that this harness may come."""


def _websocket(_endpoint: object, _field: object, url: str) -> None:
    if not url.lower().startswith(("ws://", "wss://")):
        raise InvalidOption("websocket_url", _without_query(url), "a ws:// or wss:// URL")


@attrs.frozen(kw_only=True)
class PlainEndpoint:
    """An executor that is reached without encryption of its own: on loopback, or behind somebody's TLS."""

    websocket_url: str = attrs.field(repr=_without_query, validator=_websocket)
    """Where it listens."""


Answer = ConnectBundle | PlainEndpoint
"""What a provider may say."""


class ConnectProvider(Protocol):
    """Say how to reach an environment; asked anew for every physical connection attempt."""

    async def connect_bundle(self, harness_public_key: Any, /) -> Answer:
        """Say how to connect now.

        Args:
            harness_public_key: Who will come. None in a manager without a Noise connector.

        Raises:
            Exception: Anything; only an `actors.ActorsError` whose `retryable` is true leads to another try.
        """
        ...


class HarnessIdentity(Protocol):
    """The key pair by which one environment's harness is known."""

    @property
    def public_key(self) -> Any:
        """The half that others may see."""
        ...


IdentityFactory = Callable[[], HarnessIdentity]
"""Makes the identity of one environment, once, when it first connects."""


class Client(Protocol):
    """What an open link can do; the harness's client is one."""

    @property
    def processes(self) -> Any:
        """Processes at the far end."""
        ...

    async def status(self) -> object:
        """Ask whether the executor answers."""
        ...

    async def info(self) -> Any:
        """Ask what the executor is."""
        ...

    async def run(self, command: Sequence[str], /, **options: Any) -> Any:
        """Run a command to its end."""
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


class Connector(Protocol):
    """Open a link and hold it; the task that runs this is the owner of the link."""

    async def hold(self, request: LinkRequest, report: LinkReport, /) -> None:
        """Open the link, report it, and return or raise when it is gone for good.

        Raises:
            Exception: Before `report.opened` it is why the attempt failed, afterwards why the link ended.
        """
        ...
