"""Call methods of a server: the channel, its options, and how a call is opened, bounded and let go."""

import math
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import trio

from actors.sessions.grpc._client_call import ClientCall, Reply, checked
from actors.sessions.grpc._dialling import CannotConnect, Connections, Dial
from actors.sessions.grpc._errors import CallFailed
from actors.sessions.grpc._headers import header_list_bytes, request_headers
from actors.sessions.grpc._limits import KeepalivePolicy, Limits
from actors.sessions.grpc._metadata import Headers, metadata_to_headers
from actors.sessions.grpc._methods import AnyMethod, Method, Request, Response
from actors.sessions.grpc._network import Target, dialler, parse_target
from actors.sessions.grpc._nurseries import open_helpers
from actors.sessions.grpc._pairs import MetadataLike
from actors.sessions.grpc._status import Status, StatusCode

# How often a call that the peer promised not to have looked at is made again, unseen by the caller.
_TRIES_MAX = 5


@attrs.frozen(kw_only=True)
class ChannelOptions:
    """How a channel treats its peer.

    Attributes:
        limits: Bounds of each connection and call.
        keepalive: When a silent server is asked whether it is there. Servers made with grpcio close a connection that
            asks more often than every 300 s. Against a server of this package 10 s and less are fine.
        connections_max: Another connection is opened only when no open one has room for a call.
        connect_timeout_s: How long a connection may take until the server has answered on it.
        user_agent: What the server is told of the caller.
    """

    limits: Limits = attrs.field(factory=Limits)

    keepalive: KeepalivePolicy = attrs.field(factory=lambda: KeepalivePolicy(interval_s=330.0, timeout_s=20.0))

    connections_max: int = attrs.field(default=8, validator=attrs.validators.ge(1))

    connect_timeout_s: float = 20.0

    user_agent: str = "grpc-python-trio"


class Channel:
    """Calls one server.

    Given by `open_channel`; connects when the first call is made, and again when it must.
    """

    def __init__(self, connections: Connections, target: Target, options: ChannelOptions) -> None:
        self._connections, self._target, self._options = connections, target, options

    def __repr__(self) -> str:
        return f"<Channel to {self._target.text}>"

    @property
    def connections_open(self) -> int:
        """Connections at this moment; a released or draining one counts until it has ended."""
        return self._connections.count

    @property
    def connections_dialled(self) -> int:
        """Connections ever made."""
        return self._connections.dialled

    def release(self) -> None:
        """Let the connections end once their open calls have; the next call opens a new one."""
        self._connections.release()

    async def unary(
        self,
        method: Method[Request, Response],
        request: Request,
        *,
        metadata: MetadataLike = (),
        timeout_s: float | None = None,
    ) -> Response:
        """Send one request and return the one response.

        Args:
            method: What to call; one request, one response.
            request: The message.
            metadata: What to send beside it.
            timeout_s: When to give up, counted from now; the server is told. None: never.

        Raises:
            CallFailed: The call ended with another status than OK, DEADLINE_EXCEEDED and UNAVAILABLE
                included.
            InvalidMetadata: The metadata cannot be sent.
            ChannelClosed: The block of the channel has ended.

        Cancelled:
            The server is told to stop; whether it had finished is not known.
        """
        return (await self.unary_reply(method, request, metadata=metadata, timeout_s=timeout_s)).message

    async def unary_reply(
        self,
        method: Method[Request, Response],
        request: Request,
        *,
        metadata: MetadataLike = (),
        timeout_s: float | None = None,
    ) -> Reply[Response]:
        """Do as `unary`, and return the metadata of the answer as well.

        Raises:
            CallFailed, InvalidMetadata, ChannelClosed: As `unary`.

        Cancelled:
            As `unary`.
        """
        payload = checked(method, request, self._options.limits)
        more = metadata_to_headers(metadata)
        deadline_s = math.inf if timeout_s is None else trio.current_time() + timeout_s
        with trio.CancelScope(deadline=deadline_s):
            for tries_left in reversed(range(_TRIES_MAX)):
                call = await self._begin(method, more, deadline_s)
                try:
                    call.send_only(payload)
                    return await call.receive_only()
                except CallFailed as failed:
                    if not (failed.unprocessed and tries_left):
                        raise
                finally:
                    call.close()
        raise self._too_late(method, timeout_s)

    @asynccontextmanager
    async def open_call(
        self,
        method: Method[Request, Response],
        *,
        metadata: MetadataLike = (),
        timeout_s: float | None = None,
    ) -> AsyncGenerator[ClientCall[Request, Response]]:
        """Open a call of any shape for the length of a block.

        The deadline bounds the whole block: when it passes, the block is cancelled and `CallFailed` comes out
        of it.

        Raises:
            CallFailed: It could not be opened, or the deadline passed.
            InvalidMetadata: The metadata cannot be sent.
            ChannelClosed: The block of the channel has ended.

        Cancelled:
            The server is told to stop.
        """
        more = metadata_to_headers(metadata)
        deadline_s = math.inf if timeout_s is None else trio.current_time() + timeout_s
        with trio.CancelScope(deadline=deadline_s) as scope:
            call = await self._begin(method, more, deadline_s)
            try:
                yield call
            finally:
                call.close()
        if scope.cancelled_caught:
            raise self._too_late(method, timeout_s)

    @asynccontextmanager
    async def stream(
        self,
        method: Method[Request, Response],
        request: Request,
        *,
        metadata: MetadataLike = (),
        timeout_s: float | None = None,
    ) -> AsyncGenerator[ClientCall[Request, Response]]:
        """Send one request and receive any number of responses within a block; else as `open_call`.

        Cancelled:
            The server is told to stop.
        """
        payload = checked(method, request, self._options.limits)
        async with self.open_call(method, metadata=metadata, timeout_s=timeout_s) as call:
            call.send_only(payload)
            yield call

    async def _begin(
        self, method: Method[Request, Response], metadata: Headers, deadline_s: float
    ) -> ClientCall[Request, Response]:
        await trio.lowlevel.checkpoint_if_cancelled()
        while (connection := self._connections.find()) is None:
            try:
                await self._connections.wait()
            except CannotConnect as failed:
                raise CallFailed(method.path, Status(StatusCode.UNAVAILABLE, str(failed)), unprocessed=True) from failed
        # No wait between `find` and `start`: a connection that had room a moment ago may be draining by now.
        left_s = None if math.isinf(deadline_s) else deadline_s - trio.current_time()
        headers = request_headers(
            method.path,
            scheme=self._target.scheme,
            authority=self._target.authority,
            user_agent=self._options.user_agent,
            timeout_s=left_s,
            metadata=metadata,
        )
        accepted = connection.header_list_bytes_max
        if accepted is not None and header_list_bytes(headers) > accepted:
            size = header_list_bytes(headers)
            text = f"the metadata is larger than the server accepts: {size} bytes of {accepted}"
            raise CallFailed(method.path, Status(StatusCode.RESOURCE_EXHAUSTED, text), unprocessed=True)
        return ClientCall(connection, connection.start(headers), method)

    def _too_late(self, method: AnyMethod, timeout_s: float | None) -> CallFailed:
        text = f"no answer within {timeout_s or 0:g} s from {self._target.text}"
        return CallFailed(method.path, Status(StatusCode.DEADLINE_EXCEEDED, text))


@asynccontextmanager
async def open_channel(
    target: str,
    *,
    options: ChannelOptions | None = None,
    ssl_context: ssl.SSLContext | None = None,
    dial: Dial | None = None,
) -> AsyncGenerator[Channel]:
    """Open a channel to a server for the length of a block. Nothing is connected before the first call.

    Args:
        target: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`.
        options: Bounds and habits.
        ssl_context: Used for https; by default the system's, with its certificates.
        dial: Opens a stream in place of the network; the target then only names the server.

    Raises:
        ValueError: The target is none of those.

    Cancelled:
        Open calls fail with UNAVAILABLE and the connections are closed.
    """
    settings = options or ChannelOptions()
    parsed = parse_target(target)
    async with open_helpers() as nursery:
        connections = Connections(
            nursery,
            parsed.text,
            dial or dialler(parsed, ssl_context),
            limits=settings.limits,
            keepalive=settings.keepalive,
            connections_max=settings.connections_max,
            connect_timeout_s=settings.connect_timeout_s,
        )
        try:
            yield Channel(connections, parsed, settings)
        finally:
            connections.close()
