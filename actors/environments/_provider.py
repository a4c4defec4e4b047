"""What a provider is asked, and what it may answer: how to reach an environment right now."""

from typing import Any, Protocol
from urllib.parse import urlsplit

import attrs

from actors import InvalidOption
from actors.environments._demands import Shown, a_text, must_be_text, of
from actors.environments._printable import shown_url

_WEBSOCKET = "it must be a ws:// or wss:// URL with a host, and a port from 1 to 65535 if it has one"


class Secretive:
    """What holds a secret is not written anywhere."""

    __slots__ = ()

    def __reduce__(self) -> str:
        raise TypeError(f"{type(self).__name__} holds secrets: it is not pickled or copied")


@attrs.frozen(kw_only=True)
class ConnectBundle(Secretive):
    """All that one physical connection attempt needs. Its parts belong together and are used once.

    Attributes:
        websocket_url: Where the rendezvous awaits the harness.
        environment_id: The environment that the registry speaks of.
        executor_registration_id: Which registration of its executor.
        executor_public_key: Whom the harness must meet there.
        harness_key_authorization: The proof that this harness may come.
    """

    websocket_url: str = attrs.field(repr=shown_url, validator=a_text)
    environment_id: str = attrs.field(validator=a_text)
    executor_registration_id: str = attrs.field(validator=a_text)
    executor_public_key: Any
    harness_key_authorization: str = attrs.field(repr=False, validator=a_text)


def _websocket(_endpoint: object, field: "attrs.Attribute[str]", url: str) -> None:
    must_be_text(field.name, url, _WEBSOCKET)
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"ws", "wss"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # Its port is no port, or its host is half of an IPv6 address.
        is_one = False
    if not is_one:
        raise InvalidOption(field.name, Shown(shown_url(url)), _WEBSOCKET)


@attrs.frozen(kw_only=True)
class PlainEndpoint(Secretive):
    """An executor that is reached without encryption of its own: on loopback, or behind somebody's TLS.

    Attributes:
        websocket_url: Where it listens.
    """

    websocket_url: str = attrs.field(repr=shown_url, validator=_websocket)


Answer = ConnectBundle | PlainEndpoint
"""What a provider may say."""


class ConnectProvider(Protocol):
    """Say how to reach an environment; asked anew for every physical connection attempt.

    `Environment.refresh_connection` may ask while an attempt is asking.
    """

    async def connect_bundle(self, harness_public_key: Any, /) -> Answer:
        """Say how to connect now.

        Args:
            harness_public_key: Who will come. None in a manager without a Noise connector.

        Raises:
            Exception: Anything; only an `actors.ActorsError` whose `retryable` is true leads to another try.

        Cancelled:
            Nobody uses an answer any more.
        """
        ...


@attrs.frozen
class FixedEndpoint:
    """The provider of an environment that always listens at the same URL.

    Attributes:
        endpoint: Where.
    """

    endpoint: PlainEndpoint = attrs.field(validator=of(PlainEndpoint))

    async def connect_bundle(self, _harness_public_key: object, /) -> Answer:
        """Say where, every time.

        Cancelled:
            Never: it does not wait.
        """
        return self.endpoint
