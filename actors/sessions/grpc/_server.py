"""Serve routes on listeners: accept, check, run each call in a scope of its own, drain, stop."""

import functools
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, cast

import attrs
import trio
from h2.errors import ErrorCodes

from actors.sessions.grpc._connection import Connection
from actors.sessions.grpc._errors import Abort, CallGone, InvalidMetadata, MalformedCall, MessageTooLarge
from actors.sessions.grpc._framing import MessageDecoder, decompressor_of
from actors.sessions.grpc._headers import RESPONSE_HEAD, Refused, RequestHead, read_request, trailers
from actors.sessions.grpc._limits import KeepalivePolicy, Limits
from actors.sessions.grpc._metadata import Headers, metadata_to_headers
from actors.sessions.grpc._nurseries import open_helpers
from actors.sessions.grpc._preface import first_bytes, peer_name, speaks_http2
from actors.sessions.grpc._routes import Route
from actors.sessions.grpc._server_call import ServerCall
from actors.sessions.grpc._status import OK, Status, StatusCode
from actors.sessions.grpc._stream import Stream
from actors.sessions.grpc._whole import WholeRequest

_LOGGER: Final = logging.getLogger("actors.sessions.grpc")
# What a call ends with unless something better is known: never OK by default.
_STOPPED: Final = Status(StatusCode.UNAVAILABLE, "the server stopped before the call was answered")
_LATE: Final = Status(StatusCode.DEADLINE_EXCEEDED, "the deadline of the call passed before it was answered")
_CANCELLED: Final = Status(StatusCode.CANCELLED, "the handler cancelled its own call")
_CRASHED: Final = Status(StatusCode.UNKNOWN, "the handler of the call failed")


@attrs.frozen
class HandlerCrashed:
    """A handler raised something other than `Abort`; its caller was told UNKNOWN and no more.

    Attributes:
        path: The method.
        peer: The caller's address.
        error: What it raised.
    """

    path: str

    peer: str

    error: BaseException


def _log_crash(crashed: HandlerCrashed) -> None:
    """Tell the log: the caller is told nothing that would help."""
    _LOGGER.error("the handler of %s failed for %s", crashed.path, crashed.peer, exc_info=crashed.error)


@attrs.frozen(kw_only=True)
class ServerOptions:
    """How a server treats its peers.

    Attributes:
        limits: Bounds of each connection.
        keepalive: When a silent caller is asked whether it is there.
        first_bytes_timeout_s: How long a new connection may take to shake hands and show what it speaks.
        report: Called for each handler that crashed; it must not raise. Without it, each is an error in the log
            `actors.sessions.grpc`.
        other_protocol: Serves a connection that does not speak HTTP/2, given its first bytes; then it is closed.
    """

    limits: Limits = attrs.field(factory=Limits)

    keepalive: KeepalivePolicy = attrs.field(factory=KeepalivePolicy)

    first_bytes_timeout_s: float = 10.0

    report: Callable[[HandlerCrashed], None] = _log_crash

    other_protocol: Callable[[trio.abc.Stream, bytes], Awaitable[None]] | None = None


@attrs.frozen(kw_only=True)
class ServerStatistics:
    """What a server has done and is doing.

    Attributes:
        connections_open: Connections at this moment.
        calls_open: Calls whose handlers run at this moment.
        calls_begun: Calls that ever reached a handler.
        calls_refused: Requests answered without a handler: unknown method, no gRPC, unknown compression.
        handlers_crashed: Handlers that raised something other than `Abort`.
    """

    connections_open: int

    calls_open: int

    calls_begun: int

    calls_refused: int

    handlers_crashed: int


class Server:
    """Serves the same routes on any number of connections."""

    def __init__(self, routes: Iterable[Route], options: ServerOptions | None = None) -> None:
        self._routes = {route.method.path: route for route in routes}
        self._options = options or ServerOptions()
        self._connections: set[Connection] = set()
        self._listening: list[trio.CancelScope] = []
        self._serving: list[trio.CancelScope] = []
        self._changed = trio.lowlevel.ParkingLot()
        self._draining = False
        self._calls_open = self._calls_begun = self._calls_refused = self._crashed = 0

    def statistics(self) -> ServerStatistics:
        """Count what is open and what has happened."""
        return ServerStatistics(
            connections_open=len(self._connections),
            calls_open=self._calls_open,
            calls_begun=self._calls_begun,
            calls_refused=self._calls_refused,
            handlers_crashed=self._crashed,
        )

    async def serve(
        self,
        listeners: Sequence[trio.abc.Listener[Any]],
        *,
        task_status: "trio.TaskStatus[Server]" = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept connections until `drain` is called; `task_status` is given this server.

        Cancelled:
            Open calls are cancelled and answered with UNAVAILABLE, for at most half a second.
        """
        async with open_helpers() as connections:
            self._serving.append(connections.cancel_scope)
            with trio.CancelScope() as listening:
                self._listening.append(listening)
                task_status.started(self)
                await trio.serve_listeners(self.serve_connection, [*listeners], handler_nursery=connections)
            await self._wait_empty()

    async def serve_connection(self, transport: trio.abc.Stream) -> None:
        """Serve one connection over any stream of bytes until it ends, and close it.

        Cancelled:
            As `serve`.
        """
        first = b""
        try:
            with trio.move_on_after(self._options.first_bytes_timeout_s):
                first = await first_bytes(transport)
            if first and not self._draining:
                await self._serve_first(transport, first)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # It broke before it said anything: there is nobody to tell.
        finally:
            await trio.aclose_forcefully(transport)

    async def _serve_first(self, transport: trio.abc.Stream, first: bytes) -> None:
        if speaks_http2(transport, first):
            await self._serve_http2(transport, first)
        elif self._options.other_protocol is not None:
            await self._options.other_protocol(transport, first)

    async def _serve_http2(self, transport: trio.abc.Stream, first: bytes) -> None:
        peer = peer_name(transport)
        connection = Connection(
            transport,
            client=False,
            limits=self._options.limits,
            keepalive=self._options.keepalive,
            accept=functools.partial(self._accept, peer),
            at_once=(self._at_once, functools.partial(self._serve_whole, peer)),
        )
        self._connections.add(connection)
        try:
            await connection.run(first)
        finally:
            self._connections.discard(connection)
            self._changed.unpark_all()

    async def drain(self, *, grace_s: float) -> None:
        """Accept nothing new, let open calls end, and after `grace_s` cancel those that have not.

        Cancelled:
            The draining goes on; only the bound is gone.
        """
        self._draining = True
        for listening in self._listening:
            listening.cancel()
        for connection in [*self._connections]:
            connection.drain()
        with trio.move_on_after(grace_s):
            await self._wait_empty()
        for serving in self._serving:
            serving.cancel()
        with trio.move_on_after(1.0):
            await self._wait_empty()

    async def _wait_empty(self) -> None:
        while self._connections:
            await self._changed.park()

    # --- one call

    def _accept(self, peer: str, connection: Connection, stream: Stream, headers: Headers) -> None:
        try:
            head = read_request(tuple(headers))
        except MalformedCall as malformed:
            status = Status(StatusCode.INTERNAL, str(malformed))
            connection.broken_off(stream, status, ErrorCodes.PROTOCOL_ERROR)
            return
        if isinstance(head, Refused):
            self._refuse(connection, stream, head)
            return
        route = self._routes.get(head.path)
        if route is None:
            unknown = Status(StatusCode.UNIMPLEMENTED, f"this server has no method {head.path}")
            self._refuse(connection, stream, Refused(200, unknown))
            return
        try:
            decompress = decompressor_of(head.encoding)
        except LookupError:
            text = f"this server cannot read messages compressed with {head.encoding.decode('latin-1')!r}"
            self._refuse(connection, stream, Refused(200, Status(StatusCode.UNIMPLEMENTED, text)))
            return
        if decompress is not None:
            stream.decoder = MessageDecoder(self._options.limits.message_bytes_max, decompress)
        self._calls_open += 1
        self._calls_begun += 1
        connection.when_taken(functools.partial(self._begin, connection, stream, head, route, peer))

    def _begin(self, connection: Connection, stream: Stream, head: RequestHead, route: Route, peer: str) -> None:
        if route.run_now is not None and stream.remote_ended and stream.failure is None:
            self._serve_now(route.run_now, ServerCall(connection, stream, head, peer))
        else:
            connection.spawn(self._serve_call, connection, stream, head, route, peer)

    def _at_once(self, headers: Headers) -> tuple[RequestHead, Callable[[ServerCall], bytes]] | None:
        """Say how to serve a request that comes whole, if that takes no task."""
        try:
            head = read_request(tuple(headers))
        except MalformedCall:
            return None
        if isinstance(head, Refused) or head.encoding not in {b"identity", b""}:
            return None
        route = self._routes.get(head.path)
        return None if route is None or route.run_now is None else (head, route.run_now)

    def _serve_whole(self, peer: str, connection: Connection, request: WholeRequest) -> None:
        head, run_now = cast("tuple[RequestHead, Callable[[ServerCall], bytes]]", request.found)
        self._calls_open += 1
        self._calls_begun += 1
        self._serve_now(run_now, ServerCall(connection, request, head, peer))

    def _serve_now(self, run_now: Callable[[ServerCall], bytes], call: ServerCall) -> None:
        status, metadata = _LATE, list[tuple[bytes, bytes]]()
        try:
            if call.deadline_s == math.inf or trio.current_time() < call.deadline_s:
                call.answer(run_now(call))
        except Exception as error:
            # As in `_serve_call`.
            status, metadata = self._status_of(error, call)
        finally:
            self._calls_open -= 1
            call.finish(status, metadata)

    def _refuse(self, connection: Connection, stream: Stream, refused: Refused) -> None:
        self._calls_refused += 1
        head = [(b":status", b"%d" % refused.http_status), *RESPONSE_HEAD[1:]]
        connection.outbound.finish(stream, [*head, *trailers(refused.status, [])])

    async def _serve_call(
        self, connection: Connection, stream: Stream, head: RequestHead, route: Route, peer: str
    ) -> None:
        call = ServerCall(connection, stream, head, peer)
        stream.on_gone = call.scope.cancel
        status, metadata = _STOPPED, list[tuple[bytes, bytes]]()
        try:
            with call.scope:
                if stream.failure is not None:
                    call.scope.cancel()
                await route.run(call)
                status = OK
            if call.scope.cancelled_caught:
                status = _LATE if trio.current_time() >= call.deadline_s else _CANCELLED
        except Exception as error:
            # One caller's handler must not end the calls of others: it ends here, as a status, a count, a
            # report.
            status, metadata = self._status_of(error, call)
        finally:
            stream.on_gone = None
            self._calls_open -= 1
            connection.cork()
            try:
                call.finish(status, metadata)
            finally:
                connection.uncork()

    def _status_of(self, error: Exception, call: ServerCall) -> tuple[Status, Headers]:
        error = _sole(error)
        try:
            if isinstance(error, Abort):
                return error.status, metadata_to_headers(error.trailers)
        except InvalidMetadata as invalid:
            error = invalid
        if isinstance(error, MessageTooLarge):
            return self._options.limits.oversize_status(error), []
        if isinstance(error, CallGone):
            return _CANCELLED, []
        self._crashed += 1
        self._options.report(HandlerCrashed(call.path, call.peer, error))
        return _CRASHED, []


def _sole(error: Exception) -> Exception:
    """Take a lone error out of the groups that the handler's nurseries put around it."""
    while isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        if len(group.exceptions) != 1:
            return group
        error = group.exceptions[0]
    return error
