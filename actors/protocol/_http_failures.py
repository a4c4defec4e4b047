"""What is wrong with an HTTP request, or went wrong with it: codes and texts, exactly as they travel."""

import enum
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from actors.protocol._envelope import Failure
from actors.protocol._failures import internal, invalid_params, invalid_request
from actors.protocol._faults import InvalidParams
from actors.protocol._shapes import shortened

HTTP_BODY_BYTES_MAX: Final = 45 * 1024 * 1024
"""The largest body that fits one answer."""
BODY_BROKEN: Final = "error decoding response body"
"""What a body delta says of a body that broke off or could not be decoded."""

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_NO_HEADER_VALUE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_NO_HOST: Final = re.compile(r"[\s%<>^`{|}\"\\]")
_TROUBLES: Final = {"Invalid IPv6 URL": "invalid IPv6 address"}


class HttpFailureKind(enum.Enum):
    """Why a request failed: member ``kind`` of the failure's data. Ours; the other implementation has none.

    Attributes:
        CONNECT: The server could not be reached.
        TIMEOUT: It took too long.
        PROTOCOL: What came was no HTTP, or broke off.
        REDIRECTS: Redirections did not end.
        BODY: The body is not what its headers say.
        TOO_LARGE: The body does not fit one answer.
        CANCELLED: The client gave it up.
    """

    CONNECT = "connect"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    REDIRECTS = "redirects"
    BODY = "body"
    TOO_LARGE = "tooLarge"
    CANCELLED = "cancelled"


def check_http_method(method: str) -> None:
    """Refuse what is no method.

    Raises:
        InvalidParams: It is no method.
    """
    if not _TOKEN.fullmatch(method):
        raise InvalidParams("http/request method is invalid: invalid HTTP method")


def check_http_url(url: str) -> None:
    """Refuse what is no URL of HTTP.

    Raises:
        InvalidParams: It is no URL of HTTP.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        raise _url_invalid("relative URL without a base")
    parts = _split(url)
    if parts.scheme not in {"http", "https"}:
        raise InvalidParams(f"http/request only supports http and https URLs, got {shortened(parts.scheme)}")
    host = parts.netloc.rpartition("@")[2]
    if not parts.hostname:
        raise _url_invalid("empty host")
    if _NO_HOST.search(host):
        raise _url_invalid("invalid international domain name")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError as fault:
        raise _url_invalid(_TROUBLES.get(str(fault), "invalid international domain name")) from None
    try:
        _ = parts.port
    except ValueError:
        raise _url_invalid("invalid port number") from None
    return parts


def _url_invalid(why: str) -> InvalidParams:
    return InvalidParams(f"http/request url is invalid: {why}")


def check_http_header(name: str, value: str) -> None:
    """Refuse what no request may carry. The value is not told: it may be a secret.

    Raises:
        InvalidParams: No request may carry it.
    """
    if not _TOKEN.fullmatch(name):
        raise InvalidParams("http/request header name is invalid: invalid HTTP header name")
    if _NO_HEADER_VALUE.search(value):
        raise InvalidParams(f"http/request header value is invalid for {shortened(name)}: failed to parse header value")


def http_variable_missing(header: str, variable: str) -> Failure:
    """Refuse a header whose value the executor does not have."""
    return invalid_params(
        f"http/request header {shortened(header)} requires executor environment variable {shortened(variable)}"
    )


def http_stream_active(request_id: str) -> Failure:
    """Refuse a second streamed answer of one id."""
    return invalid_params(f"http/request streamResponse requestId `{request_id}` is already active")


def http_send_failed(url: str, kind: HttpFailureKind, reason: str) -> Failure:
    """Say that no answer came."""
    data = {"kind": kind.value, "reason": reason}
    return internal(f"http/request failed: error sending request for url ({shortened(url)})", data)


def http_too_many_redirects() -> Failure:
    """Say that redirections did not end."""
    return internal("http/request failed: too many redirects", {"kind": HttpFailureKind.REDIRECTS.value})


def http_body_failed(kind: HttpFailureKind, reason: str) -> Failure:
    """Say that the body broke off."""
    data = {"kind": kind.value, "reason": reason}
    return internal(f"failed to read http/request response body: {BODY_BROKEN}", data)


def http_body_too_large(limit_bytes: int) -> Failure:
    """Refuse a body that does not fit one answer. Ours: there, the connection is lost."""
    text = f"http/request response body is larger than {limit_bytes} bytes; ask for it with streamResponse"
    return internal(text, {"kind": HttpFailureKind.TOO_LARGE.value})


def http_cancelled() -> Failure:
    """Answer a request that was cancelled. Ours."""
    return internal("http/request was cancelled", {"kind": HttpFailureKind.CANCELLED.value})


def http_streams_full(limit: int) -> Failure:
    """Refuse one more streamed answer. Ours."""
    return invalid_request(f"at most {limit} http/request streams may be open per connection")
