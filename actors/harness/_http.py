"""HTTP requests from within an environment: its network, its variables, its proxies."""

import json as json_module
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast, final

import attrs

from actors.blocks import block
from actors.harness._arguments import check_json, check_kind, check_seconds, check_text
from actors.harness._core import Core
from actors.harness._errors import HarnessError, InvalidArgument, RequestRejected
from actors.harness._http_bodies import IncomingBody
from actors.harness._http_values import (
    FromVariable,
    HttpAnswer,
    HttpBodyBroken,
    HttpRequestFailed,
    HttpUnavailable,
    first_header,
)
from actors.protocol import (
    HTTP_CANCEL,
    HTTP_MORE,
    HTTP_REQUEST,
    ErrorCode,
    HttpCancelParams,
    HttpMoreParams,
    HttpRequestHeader,
    HttpRequestParams,
    HttpResponse,
    InvalidParams,
    RedirectPolicy,
    check_http_header,
    check_http_method,
    check_http_url,
)

HttpHeaders = Mapping[str, str | FromVariable] | Sequence[tuple[str, str | FromVariable]]
"""Headers to send; in pairs when a name comes more than once."""

_WINDOW_BYTES: Final = 512 * 1024


@final
class Http:
    """Makes HTTP requests in one environment. They go out from there, not from here.

    Each method raises `HttpRequestFailed` when no answer came, `HttpUnavailable` when the executor makes no requests,
    `DidNotRun` when nothing was asked, and `MayHaveRun` when the executor was asked and the connection to it lost.

    Cancelled:
        The executor is told to hang up, where it can be told; the request may have been made.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: HttpHeaders | None = None,
        body: bytes | None = None,
        json: Any = None,
        timeout_s: float | None = None,
        follow_redirects: bool = True,
    ) -> HttpAnswer:
        """Make a request and give the whole answer, whatever its status; see `stream` for a large one.

        Args:
            method: As it is sent, such as ``"GET"``.
            url: An `http` or `https` URL, as seen from the environment.
            headers: A value may be `FromVariable`: a secret that never leaves the environment.
            body: Bytes to send.
            json: A value to send as JSON instead, with its content type.
            timeout_s: For the whole exchange.
            follow_redirects: Give the answer at the end of redirections, not the first one.

        Raises:
            HttpRequestFailed: There is no whole answer; its status is no failure.
            HttpUnavailable: The executor makes no requests.
            HarnessError: The link is gone, or the executor refused.

        Cancelled:
            The executor is told to hang up.
        """
        params = self._params(method, url, headers, body, json, timeout_s, follow_redirects=follow_redirects)
        try:
            answer = await self._core.call(HTTP_REQUEST, params, identity=method)
        except RequestRejected as rejected:
            raise _failed(url, rejected) from None
        except HarnessError:
            raise
        except BaseException:
            self._hang_up(params.request_id)
            raise
        return HttpAnswer(status=answer.status, headers=_headers_of(answer), body=answer.body_base64)

    async def get(self, url: str, *, headers: HttpHeaders | None = None, timeout_s: float | None = None) -> HttpAnswer:
        """Get a page; as `request`."""
        return await self.request("GET", url, headers=headers, timeout_s=timeout_s)

    async def post(
        self,
        url: str,
        *,
        headers: HttpHeaders | None = None,
        body: bytes | None = None,
        json: Any = None,
        timeout_s: float | None = None,
    ) -> HttpAnswer:
        """Post bytes or a JSON value; as `request`."""
        return await self.request("POST", url, headers=headers, body=body, json=json, timeout_s=timeout_s)

    @block
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: HttpHeaders | None = None,
        body: bytes | None = None,
        json: Any = None,
        timeout_s: float | None = None,
        follow_redirects: bool = True,
    ) -> AsyncGenerator["HttpStream", None]:
        """Make a request and take its body as it comes: ``async for piece in answer``. Arguments as of `request`.

        What is not taken yet is held back at the server. Leaving the block hangs up.

        Raises:
            HttpBodyBroken: The body ended before its end; never an end that did not happen.

        Cancelled:
            The executor is told to hang up.
        """
        params = self._params(method, url, headers, body, json, timeout_s, follow_redirects=follow_redirects)
        window_bytes = _WINDOW_BYTES if self._has_flow_control else None
        whole = _streamed(params, window_bytes)
        incoming: IncomingBody | None = None
        try:
            answer, incoming = await self._core.call_for_body(HTTP_REQUEST, whole, params.request_id)
            yield HttpStream(self._core, url, answer, incoming, window_bytes)
        except RequestRejected as rejected:
            if incoming is not None:
                raise
            raise _failed(url, rejected) from None
        finally:
            if incoming is None or not incoming.over:
                self._hang_up(params.request_id)
            if incoming is not None:
                self._core.forget_body(incoming)

    @property
    def _has_flow_control(self) -> bool:
        return self._core.info is not None and self._core.info.capabilities.http_flow_control

    def _hang_up(self, request_id: str) -> None:
        # Others have no way to be told: what still comes of the body is dropped and counted.
        if self._has_flow_control:
            self._core.call_soon(HTTP_CANCEL, HttpCancelParams(request_id=request_id), identity=request_id)

    def _params(
        self,
        method: str,
        url: str,
        headers: HttpHeaders | None,
        body: bytes | None,
        json: Any,
        timeout_s: float | None,
        *,
        follow_redirects: bool,
    ) -> HttpRequestParams:
        check_text("method", method)
        check_text("url", url)
        check_kind("follow_redirects", follow_redirects, bool)
        if timeout_s is not None:
            check_seconds("timeout_s", timeout_s)
        sent, more = _body_of(body, json)
        named = [*_pairs(headers), *more]
        params = HttpRequestParams(
            method=method,
            url=url,
            request_id=self._core.new_id(),
            headers=tuple(self._header_of(name, value) for name, value in named),
            body_base64=sent,
            timeout_ms=None if timeout_s is None else max(1, round(min(timeout_s, 24 * 3600) * 1000)),
            redirect_policy=RedirectPolicy.FOLLOW if follow_redirects else RedirectPolicy.STOP,
        )
        for field, check in (("method", partial(check_http_method, method)), ("url", partial(check_http_url, url))):
            try:
                check()
            except InvalidParams as fault:
                raise InvalidArgument(field, fault.rule) from None
        return params

    def _header_of(self, name: str, value: str | FromVariable) -> HttpRequestHeader:
        check_text("headers", name)
        variable = value.name if isinstance(value, FromVariable) else None
        text = value.prefix if isinstance(value, FromVariable) else value
        check_text(f"headers[{name!r}]", text)
        if variable is not None:
            check_text(f"headers[{name!r}]", variable)
            if self._core.info is not None and not self._core.info.capabilities.http_header_env_vars:
                raise InvalidArgument(f"headers[{name!r}]", "this executor fills no headers from its variables")
        try:
            check_http_header(name, text)
        except InvalidParams as fault:
            raise InvalidArgument(f"headers[{name!r}]", fault.rule) from None
        return HttpRequestHeader(name=name, value=text, value_env_var=variable)


@final
class HttpStream:
    """An answer whose body is still coming. Handed out by `Http.stream`.

    Cancelled:
        No piece is lost; only `read` drops what it has.
    """

    def __init__(
        self, core: Core, url: str, answer: HttpResponse, incoming: IncomingBody, window_bytes: int | None
    ) -> None:
        self._core, self._url, self._incoming, self._window_bytes = core, url, incoming, window_bytes
        self._to_allow_bytes = 0
        self.status: int = answer.status
        """Such as 200."""
        self.headers: tuple[tuple[str, str], ...] = _headers_of(answer)
        """Names in small letters, in order; a name may come more than once."""
        self.received_bytes: int = 0
        """How much of the body was taken."""

    @property
    def ok(self) -> bool:
        """The status says success: 200 to 299."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """Give the first header of a name; None when there is none."""
        return first_header(self.headers, name)

    async def receive(self) -> bytes:
        """Give the next piece of the body; empty at its end.

        Raises:
            HttpBodyBroken: There should be more.

        Cancelled:
            No piece is lost.
        """
        piece = await self._incoming.take()
        if piece is None:
            if self._incoming.error is not None:
                raise HttpBodyBroken(self._url, self.received_bytes, self._incoming.error)
            return b""
        self.received_bytes += len(piece)
        self._allow_more(len(piece))
        return piece

    async def read(self, *, bytes_max: int | None = None) -> bytes:
        """Give the rest of the body.

        Args:
            bytes_max: Raise `HttpRequestFailed` when it is larger; as much as there is when left out.

        Raises:
            HttpBodyBroken: The body ended before its end.
            HttpRequestFailed: It is larger than `bytes_max`.

        Cancelled:
            What was received until then is gone.
        """
        parts: list[bytes] = []
        size_bytes = 0
        while piece := await self.receive():
            parts.append(piece)
            size_bytes += len(piece)
            if bytes_max is not None and size_bytes > bytes_max:
                raise HttpRequestFailed(self._url, f"the body is larger than {bytes_max} bytes", kind="tooLarge")
        return b"".join(parts)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self.receive():
            yield piece

    def _allow_more(self, taken_bytes: int) -> None:
        if self._window_bytes is None or self._incoming.over:
            return
        self._to_allow_bytes += taken_bytes
        if self._to_allow_bytes >= self._window_bytes // 2:
            params = HttpMoreParams(request_id=self._incoming.request_id, bytes=self._to_allow_bytes)
            self._to_allow_bytes = 0
            self._core.call_soon(HTTP_MORE, params, identity=self._incoming.request_id)


def _streamed(params: HttpRequestParams, window_bytes: int | None) -> HttpRequestParams:
    return attrs.evolve(params, stream_response=True, window_bytes=window_bytes)


def _headers_of(answer: HttpResponse) -> tuple[tuple[str, str], ...]:
    return tuple((header.name.lower(), header.value) for header in answer.headers)


def _pairs(headers: HttpHeaders | None) -> list[tuple[str, str | FromVariable]]:
    if headers is None:
        return []
    given = headers.items() if isinstance(headers, Mapping) else headers
    pairs: list[Any] = list(given)
    if not all(isinstance(pair, tuple) and len(cast("tuple[object, ...]", pair)) == 2 for pair in pairs):
        raise InvalidArgument("headers", "must map names to values, or be pairs of both")
    return pairs


def _body_of(body: bytes | None, json: Any) -> tuple[bytes | None, list[tuple[str, str]]]:
    if body is not None and json is not None:
        raise InvalidArgument("json", "give a body or a JSON value, not both")
    if json is not None:
        check_json("json", json)
        return json_module.dumps(json, ensure_ascii=False).encode(), [("content-type", "application/json")]
    if body is not None:
        check_kind("body", body, bytes)
    return body, []


def _failed(url: str, rejected: RequestRejected) -> HarnessError:
    if rejected.code == ErrorCode.METHOD_NOT_FOUND:
        return HttpUnavailable()
    if rejected.code != ErrorCode.INTERNAL:
        return rejected
    has_facts = isinstance(rejected.data, dict)
    data = cast("dict[str, Any]", rejected.data) if has_facts else {}
    message = rejected.message.removeprefix("http/request failed: ")
    return HttpRequestFailed(url, message, kind=data.get("kind"), reason=data.get("reason"))
