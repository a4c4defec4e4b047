"""What a host needs once it answers: the handlers of the service, and the gRPC server in front of them.

It is imported while the first engine processes start: that takes about as long.
"""

import hmac
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import attrs
import trio

from actors.blocks import open_helpers
from actors.sessions._wire import _methods as methods
from actors.sessions._wording import oversize_status
from actors.sessions.grpc import (
    RAW,
    Abort,
    Limits,
    Method,
    Route,
    Server,
    ServerCall,
    ServerOptions,
    StatusCode,
    addresses_of,
    listen_tcp,
    listen_unix,
    server_stream,
    unary,
    unary_now,
)
from actors.sessions.host._health import answer_http1
from actors.sessions.host._host import Host
from actors.sessions.host._listening import Listen
from actors.sessions.host._options import HostOptions
from actors.sessions.host._service import CodeModeService

Request = TypeVar("Request")
_CALLS_MAX: Final = 10_000


@asynccontextmanager
async def served(host: Host, where: Listen, options: HostOptions) -> AsyncGenerator[tuple[Server, str], None]:
    """Serve a host while the block runs; gives the server and what to dial.

    Raises:
        OSError: The address cannot be listened on; outside every nursery, so that it is told as it is.

    Cancelled:
        Every call ends.
    """
    routes = routes_for(CodeModeService(host))
    server = Server(routes if options.token is None else guarded(routes, options.token), _server_options())
    listeners = await listen(where, options.ssl_context)
    async with open_helpers() as nursery:
        await nursery.start(server.serve, listeners)
        yield server, where.endpoint(addresses_of(listeners)[0], tls=options.ssl_context is not None)


async def listen(where: Listen, ssl_context: ssl.SSLContext | None) -> Sequence[trio.abc.Listener[Any]]:
    """Listen."""
    if where.path is not None:
        return listen_unix(where.path)
    return await listen_tcp(where.host, where.port, ssl_context=ssl_context)


def _server_options() -> ServerOptions:
    limits = Limits(concurrent_calls_max=_CALLS_MAX, oversize_status=oversize_status)
    return ServerOptions(limits=limits, other_protocol=answer_http1)


def routes_for(service: CodeModeService) -> list[Route]:
    """Join the methods of the service with its handlers."""
    return [
        server_stream(methods.OPEN_SESSION, service.open_session),
        unary_now(methods.CLOSE_SESSION, service.close_session),
        server_stream(_answered_raw(methods.SUBSCRIBE_TO_TOOL_CALLS), service.subscribe_to_tool_calls),
        unary_now(methods.COMPLETE_TOOL_CALL, service.complete_tool_call),
        unary_now(methods.ACKNOWLEDGE_NOTIFICATION, service.acknowledge_notification),
        server_stream(_answered_raw(methods.EXECUTE), service.execute),
        unary(_answered_raw(methods.WAIT), service.wait),
        unary_now(methods.YIELD_OBSERVATION, service.yield_observation),
        unary_now(methods.CANCEL_WAIT, service.cancel_wait),
        unary_now(_answered_raw(methods.TERMINATE), service.terminate),
        unary_now(methods.GET_PROCESS_METRICS, service.get_process_metrics),
    ]


def _answered_raw(method: Method[Request, Any]) -> Method[Request, bytes]:
    """Let the service write the answers itself."""
    return Method(method.path, method.request, RAW, server_streaming=method.server_streaming)


def guarded(routes: Sequence[Route], token: str) -> list[Route]:
    """Let nobody call without the token."""
    expected = f"Bearer {token}".encode()

    def check(call: ServerCall) -> None:
        shown = call.metadata.get("authorization") or ""
        if not hmac.compare_digest(shown.encode() if isinstance(shown, str) else shown, expected):
            raise Abort(StatusCode.UNAUTHENTICATED, "this code-mode host wants a bearer token, and not the one it got")

    return [attrs.evolve(route, run=_checked(check, route.run), run_now=_checked_now(check, route)) for route in routes]


def _checked(
    check: Callable[[ServerCall], None], run: Callable[[ServerCall], Awaitable[None]]
) -> Callable[[ServerCall], Awaitable[None]]:
    async def checked(call: ServerCall) -> None:
        check(call)
        await run(call)

    return checked


def _checked_now(check: Callable[[ServerCall], None], route: Route) -> Callable[[ServerCall], bytes] | None:
    run_now = route.run_now
    if run_now is None:
        return None

    def checked(call: ServerCall) -> bytes:
        check(call)
        return run_now(call)

    return checked
