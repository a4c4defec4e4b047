"""What can go wrong, each with the facts it needs and a sentence of its own."""

from collections.abc import Iterable
from typing import Any

from actors.sessions.grpc._pairs import NO_METADATA, Metadata
from actors.sessions.grpc._status import Status, StatusCode


class GrpcError(Exception):
    """The root of everything this package raises."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Born again without `__init__`, which would be given the finished sentence.
        return type(self).__new__, (type(self),), {**self.__dict__, "args": self.args}


class MalformedCall(GrpcError, ValueError):
    """The peer wrote a header, frame or message that breaks the protocol; only this call is hurt."""


class MessageTooLarge(GrpcError):
    """A message is over the limit of this end; nothing of it was kept or sent."""

    def __init__(self, *, found_bytes: int, limit_bytes: int, inbound: bool) -> None:
        direction = "received" if inbound else "to be sent"
        super().__init__(f"a message {direction} has {found_bytes} bytes, the limit is {limit_bytes}")
        self.found_bytes: int = found_bytes
        self.limit_bytes: int = limit_bytes
        self.inbound: bool = inbound


class InvalidMetadata(GrpcError, ValueError):
    """The caller's own metadata cannot be written as headers."""

    def __init__(self, key: str, reason: str) -> None:
        # The value stays out of the text: metadata carries credentials.
        super().__init__(f"metadata {key!r} {reason}")
        self.key = key


class CallFailed(GrpcError):
    """A call of this client ended with a status other than OK."""

    def __init__(
        self,
        path: str,
        status: Status,
        *,
        headers: Metadata = NO_METADATA,
        trailers: Metadata = NO_METADATA,
        unprocessed: bool = False,
    ) -> None:
        text = f"{path} failed: {status.code.name}"
        super().__init__(f"{text}: {status.message}" if status.message else text)
        self.path: str = path
        self.status: Status = status
        self.headers: Metadata = headers
        self.trailers: Metadata = trailers
        # Whether the peer promised that it never looked at the call, so that calling again is safe.
        self.unprocessed = unprocessed

    @property
    def code(self) -> StatusCode:
        """The status code, for short."""
        return self.status.code


class Abort(GrpcError):
    """Raise this in a handler to end its call with a status.

    It is another class than `CallFailed` on purpose: a handler that calls elsewhere must say what that
    failure means for its own caller.
    """

    def __init__(
        self,
        code: StatusCode,
        message: str = "",
        *,
        details: bytes = b"",
        trailers: Iterable[tuple[str, str | bytes]] = (),
    ) -> None:
        if code is StatusCode.OK:
            raise ValueError("a call is not aborted with OK: return from the handler")
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.status: Status = Status(code, message, details)
        self.trailers: tuple[tuple[str, str | bytes], ...] = tuple(trailers)


class CallGone(GrpcError):
    """A handler used its call after the caller had left; only cleanup that is shielded sees this."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"the caller of {path} is gone: {why}")
        self.path: str = path
        self.why: str = why


class ChannelClosed(GrpcError):
    """The channel was closed by its own owner; open another one to call again."""

    def __init__(self, target: str) -> None:
        super().__init__(f"the channel to {target} is closed: its `async with` block has ended")
        self.target = target
