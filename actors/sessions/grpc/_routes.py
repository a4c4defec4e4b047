"""Join methods with the functions that serve them, one shape of handler for each shape of method."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, Protocol, TypeVar

import attrs

from actors.sessions.grpc._errors import Abort
from actors.sessions.grpc._methods import AnyMethod, Codec, Message, Method, Request, Response
from actors.sessions.grpc._server_call import ServerCall
from actors.sessions.grpc._status import StatusCode

Sent = TypeVar("Sent", contravariant=True)


class Send(Protocol[Sent]):
    """Send one message and wait until there is room for the next."""

    async def __call__(self, message: Sent, /) -> None:
        """Send it.

        Cancelled:
            The message is queued whole or not at all.
        """


class Requests(Generic[Message]):
    """The messages of a caller that may send any number. Iterate over it, once.

    Cancelled:
        No message was taken.
    """

    def __init__(self, call: ServerCall, codec: Codec[Message]) -> None:
        self._call, self._codec = call, codec

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        payload = await self._call.receive()
        if payload is None:
            raise StopAsyncIteration
        return _parse(self._codec, payload)


@attrs.frozen
class Route:
    """A method and what serves it; made by `unary`, `unary_now`, `server_stream`, `client_stream` and `bidirectional`.

    Attributes:
        method: Its name, messages and shape.
        run: Serve one call of it; returning means OK.
        run_now: Serve one call of it whose request has arrived, without waiting, and return the serialised response;
            None where that cannot be done.
    """

    method: AnyMethod

    run: Callable[[ServerCall], Awaitable[None]] = attrs.field(repr=False)

    run_now: Callable[[ServerCall], bytes] | None = attrs.field(default=None, repr=False)


def unary(method: Method[Request, Response], handler: Callable[[ServerCall, Request], Awaitable[Response]]) -> Route:
    """Serve a method of one request and one response: `async def handler(call, request) -> response`."""
    _has_shape(method, client=False, server=False)
    parse, serialise = method.request, method.response.serialise

    async def run(call: ServerCall) -> None:
        request = _parse(parse, await call.receive_only())
        call.queue(serialise(await handler(call, request)))

    return Route(method, run)


def unary_now(method: Method[Request, Response], handler: Callable[[ServerCall, Request], Response]) -> Route:
    """Serve a method of one request and one response by a plain function: `def handler(call, request) -> response`.

    It must not take long, since nothing else runs meanwhile. In return a call costs half: it has no task.
    """
    _has_shape(method, client=False, server=False)
    parse, serialise = method.request, method.response.serialise

    def run_now(call: ServerCall) -> bytes:
        return serialise(handler(call, _parse(parse, call.take_only())))

    async def run(call: ServerCall) -> None:
        call.queue(serialise(handler(call, _parse(parse, await call.receive_only()))))

    return Route(method, run, run_now)


def server_stream(
    method: Method[Request, Response],
    handler: Callable[[ServerCall, Request, Send[Response]], Awaitable[None]],
) -> Route:
    """Serve a method of one request and many responses: `async def handler(call, request, send) -> None`."""
    _has_shape(method, client=False, server=True)

    async def run(call: ServerCall) -> None:
        request = _parse(method.request, await call.receive_only())
        await handler(call, request, _sender(call, method.response))

    return Route(method, run)


def client_stream(
    method: Method[Request, Response],
    handler: Callable[[ServerCall, Requests[Request]], Awaitable[Response]],
) -> Route:
    """Serve a method of many requests and one response: `async def handler(call, requests) -> response`."""
    _has_shape(method, client=True, server=False)

    async def run(call: ServerCall) -> None:
        response = await handler(call, Requests(call, method.request))
        call.queue(method.response.serialise(response))

    return Route(method, run)


def bidirectional(
    method: Method[Request, Response],
    handler: Callable[[ServerCall, Requests[Request], Send[Response]], Awaitable[None]],
) -> Route:
    """Serve a method of many requests and responses: `async def handler(call, requests, send) -> None`."""
    _has_shape(method, client=True, server=True)

    async def run(call: ServerCall) -> None:
        await handler(call, Requests(call, method.request), _sender(call, method.response))

    return Route(method, run)


def _has_shape(method: AnyMethod, *, client: bool, server: bool) -> None:
    if (method.client_streaming, method.server_streaming) != (client, server):
        made = {
            (False, False): "unary",
            (False, True): "server_stream",
            (True, False): "client_stream",
            (True, True): "bidirectional",
        }
        right = made[method.client_streaming, method.server_streaming]
        raise ValueError(f"{method.path} is served by {right}(), not by {made[client, server]}()")


def _sender(call: ServerCall, codec: Codec[Response]) -> Send[Response]:
    async def send(message: Response, /) -> None:
        await call.send(codec.serialise(message))

    return send


def _parse(codec: Codec[Message], payload: bytes) -> Message:
    try:
        return codec.parse(payload)
    except Exception as broken:
        # Whatever a codec raises, it is the caller's bytes that are wrong.
        raise Abort(StatusCode.INTERNAL, "a request cannot be parsed") from broken
