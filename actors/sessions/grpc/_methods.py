"""Name a method and say how its messages become bytes. Does not know what serves or calls it."""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import attrs

Request = TypeVar("Request")
Response = TypeVar("Response")
Message = TypeVar("Message")


@attrs.frozen
class Codec(Generic[Message]):
    """Two functions between a message and its bytes."""

    serialise: Callable[[Message], bytes]
    """Never called with anything but a message of this method."""

    parse: Callable[[bytes], Message]
    """May raise any exception for bytes that are no message; the call then ends with INTERNAL."""


def _same(data: bytes) -> bytes:
    return data


RAW: Final[Codec[bytes]] = Codec(_same, _same)
"""Messages that are bytes already."""


def _is_path(_: object, __: "attrs.Attribute[str]", value: str) -> None:
    if not (value.isascii() and value.isprintable() and value.startswith("/") and value.count("/") >= 2):
        raise ValueError(f"a method is named /package.Service/Method, not {value!r}")


@attrs.frozen
class Method(Generic[Request, Response]):
    """One method of a service, as both ends know it."""

    path: str = attrs.field(validator=_is_path)
    """`/package.Service/Method`."""

    request: Codec[Request] = attrs.field(repr=False)
    """How requests are written and read."""

    response: Codec[Response] = attrs.field(repr=False)
    """How responses are written and read."""

    client_streaming: bool = attrs.field(default=False, kw_only=True)
    """Whether the caller sends any number of messages, not exactly one."""

    server_streaming: bool = attrs.field(default=False, kw_only=True)
    """Whether the handler sends any number of messages, not exactly one."""


AnyMethod = Method[Any, Any]
