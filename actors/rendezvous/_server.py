"""One rendezvous: listens, answers HTTP, turns dials into links, drains, and counts. Knows no private key."""

import ipaddress
import math
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from ssl import SSLContext
from typing import cast
from urllib.parse import parse_qs, urlsplit

import attrs
import h11
import trio

from actors.blocks import block, open_helpers
from actors.rendezvous._counters import Counters, RendezvousStatistics
from actors.rendezvous._endpoints import Endpoints
from actors.rendezvous._http import HttpServerConnection
from actors.rendezvous._limits import RendezvousLimits
from actors.rendezvous._rates import RateMeter
from actors.rendezvous._registry import Refused, Registry, Trouble
from actors.rendezvous._requests import HttpRequest, HttpUpgrade
from actors.rendezvous._router import Router
from actors.rendezvous._settings import check_kind, checked_sequence
from actors.rendezvous._tokens import Grant, TokenBook
from actors.rendezvous._websocket import FrameSource, ServerWebSocket, WebSocketClosed, accept_upgrade

__all__ = ["Rendezvous", "open_rendezvous"]

_ROLES = {"/rendezvous/executor": "executor", "/rendezvous/harness": "harness"}


@block
async def open_rendezvous(
    grants: Iterable[Grant],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: RendezvousLimits | None = None,
    public_url: str | None = None,
    ssl_context: SSLContext | None = None,
    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]] | None = None,
    fresh: Callable[[], str] | None = None,
) -> AsyncGenerator["Rendezvous", None]:
    """Run a registry and router for as long as the context lasts.

    Args:
        grants: Who may do what. There is no access without a token.
        host: Where to listen; only this machine by default.
        port: On which port; any free one by default.
        limits: Bounds.
        public_url: How clients reach it, if not by ``host`` and ``port``: an `http` or `https` URL.
        ssl_context: Serve TLS with this. Frames are encrypted end to end in any case; tokens and tickets are not.
        listeners: Listen on these instead of ``host`` and ``port``.
        fresh: Where secrets come from: each call gives another one that nobody can guess.

    Raises:
        RendezvousSettingInvalid: An argument is of another kind, or there is no grant at all.
        ValueError: Two grants have the same token.
        OSError: The port cannot be had.

    Cancelled:
        Every connection is closed, all at once, within the close limit.
    """
    known = cast("list[Grant]", checked_sequence("grants", grants, Grant))
    bounds = limits or RendezvousLimits()
    check_kind("limits", bounds, RendezvousLimits)
    check_kind("host", host, str)
    check_kind("port", port, int)
    if public_url is not None:
        check_kind("public_url", public_url, str)
    if ssl_context is not None:
        check_kind("ssl_context", ssl_context, SSLContext)
    opened = list(listeners) if listeners is not None else await _listen(host, port, ssl_context)
    base = public_url or _base_url(opened, host, secure=ssl_context is not None)
    try:
        async with open_helpers() as nursery:
            rendezvous = Rendezvous(base, TokenBook(known), bounds, fresh or _fresh, nursery)
            await nursery.start(rendezvous.serve, opened)
            yield rendezvous
    finally:
        for listener in opened:
            with trio.CancelScope(shield=True):  # Closing a listener does not wait.
                await listener.aclose()


def _fresh() -> str:
    return secrets.token_urlsafe(32)


async def _listen(host: str, port: int, context: SSLContext | None) -> list[trio.abc.Listener[trio.abc.Stream]]:
    if context is not None:
        return list(await trio.open_ssl_over_tcp_listeners(port, context, host=host, https_compatible=True))
    return list(await trio.open_tcp_listeners(port, host=host))


def _base_url(listeners: Sequence[object], host: str, *, secure: bool) -> str:
    port = 0
    for listener in listeners:
        inner = getattr(listener, "transport_listener", listener)
        if isinstance(inner, trio.SocketListener):
            port = inner.socket.getsockname()[1]
            break
    return f"{'https' if secure else 'http'}://{_in_url(host)}:{port}"


def _in_url(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host


class Rendezvous:
    """A running rendezvous. Given by `open_rendezvous`."""

    def __init__(
        self,
        base_url: str,
        tokens: TokenBook,
        limits: RendezvousLimits,
        fresh: Callable[[], str],
        nursery: trio.Nursery,
    ) -> None:
        self.url: str = base_url.rstrip("/")
        """Where the registry is; what an executor or a harness is configured with."""
        self._limits = limits
        self._nursery = nursery
        self._counters = Counters()
        self._registry = Registry(limits, fresh)
        self._router = Router(self._registry, limits, self._counters, nursery)
        self._endpoints = Endpoints(self._registry, tokens, limits, self._dial_url)
        self._dials = RateMeter(limits.dials_per_s, 2 * limits.dials_per_s, trio.current_time())
        self._listening = trio.CancelScope()
        self._draining = False
        self._last_failure: str | None = None
        self._left = trio.Event()

    def _dial_url(self, role: str, ticket: str) -> str:
        return f"ws{self.url.removeprefix('http')}/rendezvous/{role}?ticket={ticket}"

    def statistics(self) -> RendezvousStatistics:
        """Tell what is carried, held and refused."""
        counters = attrs.evolve(
            self._counters,
            validations_passed=self._endpoints.validations[True],
            validations_failed=self._endpoints.validations[False],
        )
        return RendezvousStatistics(
            counters=counters,
            executors=self._router.executors,
            streams=self._router.streams,
            registrations=self._registry.registrations,
            authorizations=self._registry.authorizations,
            buffered_bytes=self._router.buffered_bytes,
            streams_by_grant={name: n for name, n in self._router.streams_by_grant.items() if n},
            draining=self._draining,
            last_failure=self._last_failure,
        )

    async def drain(self, within_s: float = 30.0) -> bool:
        """Take no new work, and let the streams that live end by themselves.

        Args:
            within_s: How long to wait for them.

        Returns:
            Whether all had ended. The rest is closed when the context ends.

        Cancelled:
            Draining goes on; only the wait ends.
        """
        self._draining = True
        with trio.move_on_after(within_s):
            while self._router.streams:
                self._left = trio.Event()
                await self._left.wait()
        self._listening.cancel()
        return not self._router.streams

    async def serve(
        self,
        listeners: Sequence[trio.abc.Listener[trio.abc.Stream]],
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept connections until drained. Called by `open_rendezvous`.

        Cancelled:
            The listeners are closed; connections that live go on.
        """
        self._nursery.start_soon(self._router.keep_alive)
        self._nursery.start_soon(self._expire)
        with self._listening:
            await trio.serve_listeners(
                self._accept, list(listeners), handler_nursery=self._nursery, task_status=_Started(task_status)
            )

    async def _expire(self) -> None:
        while True:
            await trio.sleep(min(5.0, self._limits.authorization_s))
            self._registry.expire(trio.current_time())

    async def _accept(self, stream: trio.abc.Stream) -> None:
        counters = self._counters
        if counters.connections >= self._limits.max_connections:
            counters.connections_refused += 1
            await trio.aclose_forcefully(stream)
            return
        counters.connections += 1
        try:
            if (link := await self._serve_http(stream)) is not None:
                await link()
        except Exception as error:  # One connection's misfortune, or a bug of ours, is not the others'.
            counters.connections_failed += 1
            self._last_failure = type(error).__name__
        finally:
            counters.connections -= 1
            self._left.set()
            await trio.aclose_forcefully(stream)

    async def _serve_http(self, stream: trio.abc.Stream) -> Callable[[], Awaitable[None]] | None:
        """Answer requests until the connection ends or becomes a link; give the link.

        What the request held is let go of before the link begins to live: there may be thousands, for days.
        """
        http = HttpServerConnection(stream, self._limits)
        while True:
            try:
                request = await http.next_request()
            except h11.RemoteProtocolError as error:
                self._counters.requests_refused += 1
                if http.can_answer:
                    await http.answer(error.error_status_hint, _error_body(Trouble.BAD_REQUEST))
                return None
            match request:
                case None:
                    return None
                case HttpUpgrade():
                    return await self._admit(stream, request)
                case HttpRequest():
                    if not await self._answer(http, request):
                        return None

    async def _answer(self, http: HttpServerConnection, request: HttpRequest) -> bool:
        self._counters.requests += 1
        if request.path == "/health" and request.method == "GET":
            return await http.answer(200, {"status": "draining" if self._draining else "ok"})
        # A connection that stays open would bring its next request here, too, after the end of draining.
        headers = [("connection", "close")] if self._draining else []
        try:
            answer = self._endpoints.answer(request, trio.current_time(), draining=self._draining)
        except Refused as refused:
            self._counters.requests_refused += 1
            if refused.trouble in (Trouble.TOO_MANY, Trouble.BUSY):
                self._counters.requests_rate_limited += 1
            return await http.answer(
                refused.trouble.status, _error_body(refused.trouble), headers + _retry_after(refused)
            )
        return await http.answer(200, answer, headers)

    async def _admit(self, stream: trio.abc.Stream, upgrade: HttpUpgrade) -> Callable[[], Awaitable[None]] | None:
        now_s = trio.current_time()
        parts = urlsplit(upgrade.target)
        ticket = parse_qs(parts.query).get("ticket", [""])[0]
        role = _ROLES.get(parts.path)
        if self._draining or not self._dials.try_take(now_s):
            self._counters.dials_rate_limited += 1
            await self._refuse_dial(stream, 503, retry_after_s=max(1.0, self._dials.wait_s(now_s)))
            return None
        if role == "executor" and (registration := self._registry.executor_dials(ticket)) is not None:
            opener = await self._upgrade(stream, upgrade)
            return opener and partial(self._router.serve_executor, registration, opener)
        if role != "harness":
            # An executor takes any 4xx for "register again", a harness for "ask for another bundle".
            await self._refuse_dial(stream, 404)
            return None
        if (authorization := self._registry.harness_dials(ticket, now_s)) is None:
            await self._refuse_dial(stream, 401)
            return None
        if self._router.streams_by_grant.get(authorization.grant.name, 0) >= self._limits.max_streams_per_token:
            self._registry.harness_left(authorization)
            await self._refuse_dial(stream, 503, retry_after_s=1.0)
            return None
        opener = await self._upgrade(stream, upgrade)
        return opener and partial(self._router.serve_harness, authorization, opener)

    async def _upgrade(
        self, stream: trio.abc.Stream, upgrade: HttpUpgrade
    ) -> Callable[[FrameSource], ServerWebSocket] | None:
        try:
            answer = accept_upgrade(upgrade.headers, upgrade.target)
        except WebSocketClosed:
            await self._refuse_dial(stream, 400)
            return None
        try:
            with trio.move_on_after(self._limits.head_s) as scope:
                await stream.send_all(answer)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return None
        if scope.cancelled_caught:
            return None
        return partial(self._socket, stream, upgrade.early)

    def _socket(self, stream: trio.abc.Stream, early: bytes, source: FrameSource) -> ServerWebSocket:
        return ServerWebSocket(stream, early, source, self._nursery, self._limits, self._counters)

    async def _refuse_dial(self, stream: trio.abc.Stream, status: int, *, retry_after_s: float | None = None) -> None:
        self._counters.dials_refused += 1
        headers = "" if retry_after_s is None else f"retry-after: {math.ceil(retry_after_s)}\r\n"
        answer = f"HTTP/1.1 {status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n{headers}\r\n"
        with trio.move_on_after(self._limits.head_s):
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await stream.send_all(answer.encode())

    def __repr__(self) -> str:
        """Show where it is."""
        return f"<Rendezvous at {self.url}>"


def _error_body(trouble: Trouble) -> dict[str, dict[str, str]]:
    _, code, message = trouble.value
    return {"error": {"code": code, "message": message}}


def _retry_after(refused: Refused) -> list[tuple[str, str]]:
    return [] if refused.retry_after_s is None else [("retry-after", str(math.ceil(refused.retry_after_s)))]


class _Started:
    """Tells `Nursery.start` that the listeners are served, without handing them out."""

    def __init__(self, task_status: trio.TaskStatus[None]) -> None:
        self._task_status = task_status

    def started(self, value: object = None) -> None:
        self._task_status.started()
