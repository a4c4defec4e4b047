"""What a provider is asked, and what it may answer: how to reach an environment right now."""

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
