"""Name a method and say how its messages become bytes. Does not know what serves or calls it."""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import attrs

Request = TypeVar("Request")
Response = TypeVar("Response")
Message = TypeVar("Message")


@attrs.frozen
class Codec(Generic[Message]):
    """Two functions between a message and its bytes.

    Attributes:
        serialise: Never called with anything but a message of this method.
        parse: May raise any exception for bytes that are no message; the call then ends with INTERNAL.
    """

    serialise: Callable[[Message], bytes]

    parse: Callable[[bytes], Message]


def _same(data: bytes) -> bytes:
    return data


RAW: Final[Codec[bytes]] = Codec(_same, _same)
"""Messages that are bytes already."""


def _is_path(_: object, __: "attrs.Attribute[str]", value: str) -> None:
    if not (value.isascii() and value.isprintable() and value.startswith("/") and value.count("/") >= 2):
        raise ValueError(f"a method is named /package.Service/Method, not {value!r}")


@attrs.frozen
class Method(Generic[Request, Response]):
    """One method of a service, as both ends know it.

    Attributes:
        path: `/package.Service/Method`.
        request: How requests are written and read.
        response: How responses are written and read.
        client_streaming: Whether the caller sends any number of messages, not exactly one.
        server_streaming: Whether the handler sends any number of messages, not exactly one.
    """

    path: str = attrs.field(validator=_is_path)

    request: Codec[Request] = attrs.field(repr=False)

    response: Codec[Response] = attrs.field(repr=False)

    client_streaming: bool = attrs.field(default=False, kw_only=True)

    server_streaming: bool = attrs.field(default=False, kw_only=True)


AnyMethod = Method[Any, Any]
