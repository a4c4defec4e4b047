"""Answer `http/request` and what belongs to it, for one connection.

A streamed body waits in the same lane as the output of processes: a client that takes nothing holds its body back to
the far server, and nobody else's. Its answer goes the same way, so that no piece overtakes it.
"""

import json
import math
from binascii import b2a_base64
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

import attrs
import trio

from actors.executor._events import HttpRequested, Observer
from actors.executor._http_exchange import Exchange, HttpClient, OutgoingRequest, outgoing_request
from actors.executor._limits import Limits
from actors.executor._outbox import Outbox
from actors.executor._refusals import RequestRefused
from actors.executor._requests import LATER, Call, Handlers
from actors.executor._sessions import Session
from actors.executor._statistics import Counters
from actors.protocol import (
    BODY_BROKEN,
    HTTP_BODY_DELTA,
    HTTP_CANCEL,
    HTTP_MORE,
    HTTP_REQUEST,
    Empty,
    Failure,
    HttpCancelParams,
    HttpFailureKind,
    HttpMoreParams,
    HttpRequestParams,
    HttpResponse,
    http_body_failed,
    http_body_too_large,
    http_cancelled,
    http_send_failed,
    http_stream_active,
    http_streams_full,
)

__all__ = ["HttpAccess", "HttpRequests", "encode_delta"]


class HttpAccess:
    """What all connections of an executor share."""

    def __init__(self, *, variables: Mapping[str, str], limits: Limits, counters: Counters, observer: Observer) -> None:
        self.variables: Mapping[str, str] = variables
        self.limits: Limits = limits
        self.counters: Counters = counters
        self._observer = observer
        self.client: HttpClient = HttpClient(limits)

    @asynccontextmanager
    async def exchange(self, outgoing: OutgoingRequest, session: Session) -> AsyncGenerator[Exchange, None]:
        """Send a request and hold its answer for a block; counted and told, however it ends."""
        status: int | None = None
        self.counters.http_requests += 1
        try:
            async with self.client.exchange(outgoing) as exchange:
                status = exchange.status
                yield exchange
        except BaseException:
            self.counters.http_failures += 1
            raise
        finally:
            event = HttpRequested(
                session_id=session.session_id, method=outgoing.method, host=outgoing.host, status=status
            )
            self._observer(event)


@attrs.define(eq=False)
class _Active:
    """A request under way."""

    body: "_Body | None" = None
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)


class _Body:
    """A streamed body on its way to the client."""

    def __init__(self, params: HttpRequestParams, outbox: Outbox, counters: Counters) -> None:
        self._request_id, self._outbox, self._counters = params.request_id, outbox, counters
        self._seq = 0
        # Bytes that may still be sent; None when the client does not count.
        self._window_bytes = params.window_bytes
        self._window = trio.lowlevel.ParkingLot()
        self.begun = False
        """Its answer is out."""

    def allow(self, more_bytes: int) -> None:
        """Let more of it come."""
        if self._window_bytes is not None:
            self._window_bytes += more_bytes
            self._window.unpark_all()

    async def send(self, piece: bytes) -> None:
        """Send a piece when the client lets it come and has taken what was before."""
        while self._window_bytes is not None and self._window_bytes <= 0:
            await self._window.park()
        await self._outbox.news.wait_room()
        if self._window_bytes is not None:
            self._window_bytes -= len(piece)
        self._counters.http_body_bytes += len(piece)
        self._add(piece, done=False, error=None)

    def end(self, error: str | None) -> None:
        """Say that it is over, and whether it is whole."""
        self._add(b"", done=True, error=error)

    def _add(self, piece: bytes, *, done: bool, error: str | None) -> None:
        self._seq += 1
        self._outbox.add_news(encode_delta(self._request_id, self._seq, piece, done=done, error=error))


class HttpRequests:
    """The handlers of the `http/` methods, for one connection."""

    def __init__(self, access: HttpAccess, outbox: Outbox) -> None:
        self._access, self._outbox = access, outbox
        self._calls = trio.CapacityLimiter(access.limits.http_calls_max)
        self._active: dict[str, list[_Active]] = {}
        self._streams = 0

    def handlers(self) -> Handlers:
        """Give them by method name."""
        return {HTTP_REQUEST.name: self.request, HTTP_MORE.name: self.more, HTTP_CANCEL.name: self.cancel}

    def request(self, params: HttpRequestParams, call: Call, session: Session) -> object:
        """Make a request, answered when its answer is there."""
        outgoing = outgoing_request(params, self._access.variables)
        if params.stream_response:
            return self._begin_stream(params, outgoing, call, session)
        active = self._enter(params.request_id, _Active())
        over = partial(self._leave, params.request_id, active)

        async def work() -> object:
            try:
                async with self._calls:
                    return await self._whole(outgoing, active, session, call)
            finally:
                over()

        return _wait(call, work, over)

    def more(self, params: HttpMoreParams, _call: Call, _session: Session) -> object:
        """Let more of a body come."""
        for active in self._active.get(params.request_id, ()):
            if active.body is not None:
                active.body.allow(params.bytes)
        return Empty()

    def cancel(self, params: HttpCancelParams, _call: Call, _session: Session) -> object:
        """Give up what nobody wants any more."""
        for active in self._active.get(params.request_id, ()):
            active.scope.cancel()
        return Empty()

    async def _whole(self, outgoing: OutgoingRequest, active: _Active, session: Session, call: Call) -> HttpResponse:
        exchange: Exchange | None = None
        with active.scope, trio.move_on_after(_seconds(outgoing)):
            async with self._access.exchange(outgoing, session) as exchange:
                body = await self._collect(exchange)
                await call.wait_room()
                return HttpResponse(status=exchange.status, headers=exchange.headers, body_base64=body)
        if active.scope.cancelled_caught:
            raise RequestRefused(http_cancelled())
        raise RequestRefused(_timed_out(outgoing, begun=exchange is not None))

    async def _collect(self, exchange: Exchange) -> bytes:
        limit_bytes = self._access.limits.http_body_bytes_max
        body = bytearray()
        while (piece := await exchange.next_piece()) is not None:
            body += piece
            if len(body) > limit_bytes:
                raise RequestRefused(http_body_too_large(limit_bytes))
        self._access.counters.http_body_bytes += len(body)
        return bytes(body)

    def _begin_stream(
        self, params: HttpRequestParams, outgoing: OutgoingRequest, call: Call, session: Session
    ) -> object:
        if any(active.body for active in self._active.get(params.request_id, ())):
            raise RequestRefused(http_stream_active(params.request_id))
        if self._streams >= self._access.limits.http_streams_max:
            raise RequestRefused(http_streams_full(self._access.limits.http_streams_max))
        body = _Body(params, self._outbox, self._access.counters)
        active = self._enter(params.request_id, _Active(body=body))
        self._streams += 1

        def over() -> None:
            self._streams -= 1
            self._leave(params.request_id, active)

        async def work() -> object:
            try:
                return await self._stream(outgoing, active, body, call, session)
            finally:
                over()

        return _wait(call, work, over)

    async def _stream(
        self, outgoing: OutgoingRequest, active: _Active, body: "_Body", call: Call, session: Session
    ) -> object:
        with active.scope, trio.move_on_after(_seconds(outgoing)):
            try:
                async with self._access.exchange(outgoing, session) as exchange:
                    head = HttpResponse(status=exchange.status, headers=exchange.headers, body_base64=b"")
                    call.answer_among_news(head)
                    body.begun = True
                    while (piece := await exchange.next_piece()) is not None:
                        await body.send(piece)
            except RequestRefused:
                if not body.begun:
                    raise
                body.end(BODY_BROKEN)
            else:
                body.end(None)
            return LATER
        if active.scope.cancelled_caught:
            # Who cancels has let go of the body; whoever still waits for an answer has one.
            if not body.begun:
                raise RequestRefused(http_cancelled())
        elif not body.begun:
            raise RequestRefused(_timed_out(outgoing, begun=False))
        else:
            body.end(BODY_BROKEN)
        return LATER

    def _enter(self, request_id: str, active: _Active) -> _Active:
        self._active.setdefault(request_id, []).append(active)
        return active

    def _leave(self, request_id: str, active: _Active) -> None:
        others = self._active[request_id]
        others.remove(active)
        if not others:
            del self._active[request_id]


def _wait(call: Call, work: Callable[[], Awaitable[object]], over: Callable[[], None]) -> object:
    try:
        return call.wait(work)
    except RequestRefused:
        over()
        raise


def _seconds(outgoing: OutgoingRequest) -> float:
    return math.inf if outgoing.timeout_s is None else outgoing.timeout_s


def _timed_out(outgoing: OutgoingRequest, *, begun: bool) -> Failure:
    if begun:
        return http_body_failed(HttpFailureKind.TIMEOUT, "timed out")
    return http_send_failed(outgoing.url, HttpFailureKind.TIMEOUT, "timed out")


def encode_delta(request_id: str, seq: int, piece: bytes, *, done: bool, error: str | None) -> bytes:
    """Write one piece of a body as the codec would, without an encoder looking at each letter of it."""
    head = (
        f'{{"method":"{HTTP_BODY_DELTA.name}","params":{{"requestId":{json.dumps(request_id, ensure_ascii=False)},'
        f'"seq":{seq},"deltaBase64":"'
    )
    tail = f'","done":{json.dumps(done)},"error":{json.dumps(error)}}}}}'
    return b"".join((head.encode(), b2a_base64(piece, newline=False), tail.encode()))
