"""Make HTTP requests for clients: what goes out, which redirections are followed, how a body is taken.

The one module that knows the HTTP client. It is loaded at the first request: an executor without requests has no use
for it, nor for its memory.
"""

import contextlib
import importlib
import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from actors.executor._limits import Limits
from actors.executor._refusals import RequestRefused
from actors.executor._threads import in_thread, no_thread_told
from actors.protocol import (
    BodyDecoder,
    BodyUndecodable,
    Failure,
    GzipBody,
    HttpFailureKind,
    HttpRequestParams,
    HttpResponseHeader,
    InvalidParams,
    PlainBody,
    RedirectPolicy,
    ZstdBody,
    check_http_header,
    check_http_method,
    check_http_url,
    http_body_failed,
    http_send_failed,
    http_too_many_redirects,
    http_variable_missing,
    invalid_params,
)

if TYPE_CHECKING:
    import httpx2

__all__ = ["Exchange", "HttpClient", "OutgoingRequest", "outgoing_request"]

_CLOSE_S: Final = 2.0
_DROPPED_WITH_ENCODING: Final = frozenset({"content-encoding", "content-length"})


@attrs.frozen(kw_only=True)
class OutgoingRequest:
    """A request that is fit to be sent.

    Attributes:
        method: As it is sent.
        url: Where to.
        headers: In order, variables filled in.
        secret_names: Headers that hold a variable's value: no other origin gets them.
        body: What to send.
        timeout_s: For all of it.
        follow: Redirections are followed.
    """

    method: str
    url: str = attrs.field(repr=False)
    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)
    secret_names: frozenset[str]
    body: bytes | None = attrs.field(repr=False)
    timeout_s: float | None
    follow: bool

    @property
    def host(self) -> str:
        """Where to, without path, query, user or password."""
        return self.url.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]


def outgoing_request(params: HttpRequestParams, variables: Mapping[str, str]) -> OutgoingRequest:
    """Judge what a client asks for.

    Raises:
        RequestRefused: It is no request, or a variable is missing.
    """
    headers: list[tuple[str, str]] = []
    secret_names: set[str] = set()
    try:
        check_http_method(params.method)
        check_http_url(params.url)
        for header in params.headers:
            value = header.value
            if header.value_env_var is not None:
                if header.value_env_var not in variables:
                    raise RequestRefused(http_variable_missing(header.name, header.value_env_var))
                value += variables[header.value_env_var]
                secret_names.add(header.name.lower())
            check_http_header(header.name, value)
            headers.append((header.name, value))
    except InvalidParams as fault:
        raise RequestRefused(invalid_params(fault)) from None
    return OutgoingRequest(
        method=params.method,
        url=params.url,
        headers=tuple(headers),
        secret_names=frozenset(secret_names),
        body=params.body_base64,
        timeout_s=None if params.timeout_ms is None else params.timeout_ms / 1000,
        follow=params.redirect_policy is RedirectPolicy.FOLLOW,
    )


class Exchange:
    """An answer whose body is still to come."""

    def __init__(self, response: "httpx2.Response", failures: "_Failures") -> None:
        self._response, self._failures = response, failures
        self.status: int = response.status_code
        """Its status."""
        pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw]
        encodings = [value.strip().lower() for name, value in pairs if name == "content-encoding"]
        decoder = _decoder_of(encodings)
        self._decoder: BodyDecoder = decoder or PlainBody()
        self._raw = response.aiter_raw()
        self._decoded: Iterator[bytes] = iter(())
        self.headers = tuple(
            HttpResponseHeader(name=name, value=value)
            for name, value in pairs
            if decoder is None or name not in _DROPPED_WITH_ENCODING
        )
        """In order; without those of an encoding that is taken off."""

    async def next_piece(self) -> bytes | None:
        """Give the next piece of the body, of bounded size; ``None`` at its end.

        Raises:
            RequestRefused: It broke off, or is not what its headers say.
        """
        await trio.lowlevel.checkpoint()
        try:
            while (piece := next(self._decoded, None)) is None:
                raw = await anext(self._raw, None)
                if raw is None:
                    self._decoder.finish()
                    return None
                self._decoded = self._decoder.feed(raw)
        except BodyUndecodable as fault:
            raise RequestRefused(http_body_failed(HttpFailureKind.BODY, str(fault))) from None
        except self._failures.kinds as error:
            raise RequestRefused(http_body_failed(*self._failures.told(error))) from None
        return piece

    async def aclose(self) -> None:
        """Let go of the connection, whatever is still to come on it."""
        # The library reads through generators in generators. Closing the outer one would leave the others to the
        # garbage collector; going on in a scope that is cancelled takes them all apart, from the innermost.
        with trio.CancelScope() as scope, contextlib.suppress(StopAsyncIteration, *self._failures.kinds):
            scope.cancel()
            while True:
                await anext(self._raw)
        with trio.move_on_after(_CLOSE_S) as closing:
            closing.shield = True
            await self._response.aclose()


class _Failures:
    """What the HTTP client raises, and what is told of it: kinds, never its texts, which may hold what was sent."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.kinds: tuple[type[Exception], ...] = (
            library.HTTPError,
            library.InvalidURL,
            library.StreamError,
            OSError,
            ssl.SSLError,
            trio.BrokenResourceError,
            trio.ClosedResourceError,
        )

    def told(self, error: Exception) -> tuple[HttpFailureKind, str]:
        """Name the kind of an error, and its type."""
        library = self._library
        kind = HttpFailureKind.PROTOCOL
        if isinstance(error, library.TimeoutException):
            kind = HttpFailureKind.TIMEOUT
        elif isinstance(error, library.ConnectError | OSError):
            kind = HttpFailureKind.CONNECT
        return kind, type(error).__name__


class HttpClient:
    """The HTTP client of one executor; made at the first request."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._client: httpx2.AsyncClient | None = None
        self._failures: _Failures
        self._opening = trio.Lock()
        self._zstd = _zstd_module()

    async def aclose(self) -> None:
        """Close what connections are kept, within a bound."""
        if self._client is not None:
            with trio.move_on_after(_CLOSE_S) as scope:
                scope.shield = True
                await self._client.aclose()

    @asynccontextmanager
    async def exchange(self, outgoing: OutgoingRequest) -> AsyncGenerator[Exchange, None]:
        """Send a request, and hold its answer for a block.

        Raises:
            RequestRefused: No answer came.

        Cancelled:
            The connection is closed: the far end sees that nobody listens any more.
        """
        try:
            client = await self._opened()
        except (OSError, ImportError) as error:  # No thread, or no descriptor to load it with; the next may have one.
            failure = http_send_failed(outgoing.url, HttpFailureKind.CONNECT, type(error).__name__)
            raise RequestRefused(failure) from None
        response = await self._send_through_redirects(client, outgoing)
        exchange = Exchange(response, self._failures)
        try:
            yield exchange
        finally:
            await exchange.aclose()

    async def _send_through_redirects(self, client: "httpx2.AsyncClient", outgoing: OutgoingRequest) -> Any:
        try:
            request = self._request_of(client, outgoing)
            origin = _origin_of(request.url)
            for _ in range(self._limits.http_redirects_max + 1):
                with no_thread_told():
                    response = await client.send(request, stream=True, follow_redirects=False)
                following = response.next_request
                if not outgoing.follow or following is None:
                    return response
                await response.aclose()
                if _origin_of(following.url) != origin:
                    for name in outgoing.secret_names:
                        following.headers.pop(name, None)
                request = following
        except self._failures.kinds as error:
            raise RequestRefused(self._send_failure(outgoing, error)) from None
        raise RequestRefused(http_too_many_redirects())

    def _send_failure(self, outgoing: OutgoingRequest, error: Exception) -> Failure:
        kind, reason = self._failures.told(error)
        return http_send_failed(outgoing.url, kind, reason)

    async def _opened(self) -> "httpx2.AsyncClient":
        """Load and make the client in a thread: both take longer than anybody else should wait."""
        async with self._opening:
            if self._client is None:
                client, self._failures = await in_thread(partial(_make_client, self._limits))
                self._client = client
            return self._client

    def _request_of(self, client: "httpx2.AsyncClient", outgoing: OutgoingRequest) -> "httpx2.Request":
        import httpx2

        given = {name.lower() for name, _ in outgoing.headers}
        accepted = {"accept": "*/*", "accept-encoding": "zstd,gzip" if self._zstd else "gzip"}
        more = [(name, value) for name, value in accepted.items() if name not in given]
        headers = [(name.encode(), value.encode()) for name, value in (*outgoing.headers, *more)]
        timeout = {"timeout": client.timeout.as_dict()}
        return httpx2.Request(outgoing.method, outgoing.url, headers=headers, content=outgoing.body, extensions=timeout)


def _make_client(limits: Limits) -> "tuple[httpx2.AsyncClient, _Failures]":
    import httpx2

    timeout = httpx2.Timeout(limits.http_idle_s, connect=limits.http_connect_s, pool=None)
    client = httpx2.AsyncClient(timeout=timeout, follow_redirects=False, cookies=httpx2.Cookies())
    # What one client is told to remember is nothing to another one.
    client.cookies.jar.set_policy(_forgetful())
    return client, _Failures(httpx2)


def _origin_of(url: "httpx2.URL") -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


def _forgetful() -> Any:
    from http.cookiejar import DefaultCookiePolicy

    return DefaultCookiePolicy(allowed_domains=[])


def _zstd_module() -> Any:
    """Find what takes zstd off: in the standard library from Python 3.14 on, and in an extra before."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def _decoder_of(encodings: list[str]) -> BodyDecoder | None:
    """Give what takes these off; ``None`` when they stay on."""
    if encodings == ["gzip"]:
        return GzipBody()
    zstd = _zstd_module() if encodings == ["zstd"] else None
    return ZstdBody(zstd.ZstdDecompressor, zstd.ZstdError) if zstd else None
