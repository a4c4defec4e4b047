"""Write and read the header blocks of a call: request, response, trailers.

Also checks what RFC 9113 section 8 asks of every block, in one pass: h2's own checks walk each letter in
Python and cost more than the rest of a call together, so they are switched off in `_http2`.
"""

import functools
import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Final

import attrs
from hpack.struct import NeverIndexedHeaderTuple

from actors.sessions.grpc._errors import MalformedCall
from actors.sessions.grpc._framing import ACCEPTED_ENCODINGS
from actors.sessions.grpc._metadata import Fields, Headers, decode_base64, metadata_from_headers
from actors.sessions.grpc._pairs import NO_METADATA, Metadata
from actors.sessions.grpc._status import (
    OK,
    Status,
    StatusCode,
    code_of_http,
    code_of_number,
    decode_message_text,
    encode_message_text,
)
from actors.sessions.grpc._timeouts import decode_timeout, encode_timeout

_CONTENT_TYPE: Final = b"application/grpc"
_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
# A space at either end is forbidden too, but grpcio sends one when a status message has it.
_VALUE: Final = re.compile(rb"[^\x00\r\n]*")
_FORBIDDEN: Final = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_OF_REQUEST: Final = frozenset({b":method", b":scheme", b":path", b":authority"})
_REQUIRED: Final = (b":method", b":scheme", b":path")
_OF_RESPONSE: Final = frozenset({b":status"})
_NONE: Final[frozenset[bytes]] = frozenset()

RESPONSE_HEAD: Final[Fields] = (
    (b":status", b"200"),
    (b"content-type", _CONTENT_TYPE),
    (b"grpc-accept-encoding", ACCEPTED_ENCODINGS),
)
OK_TRAILERS: Final[Fields] = ((b"grpc-status", b"0"),)


@attrs.frozen
class RequestHead:
    """What a request says before its first message."""

    path: str
    authority: str
    timeout_s: float | None
    encoding: bytes
    metadata: Metadata


@attrs.frozen
class Refused:
    """A request that is answered at once, without a handler."""

    http_status: int
    status: Status


def request_headers(
    path: str, *, scheme: str, authority: str, user_agent: str, timeout_s: float | None, metadata: Headers
) -> Headers:
    """Write the headers that open a call."""
    headers = [
        (b":method", b"POST"),
        (b":scheme", scheme.encode()),
        (b":path", path.encode()),
        (b":authority", authority.encode()),
        (b"te", b"trailers"),
        (b"content-type", _CONTENT_TYPE),
        (b"user-agent", user_agent.encode()),
        (b"grpc-accept-encoding", ACCEPTED_ENCODINGS),
    ]
    if timeout_s is not None:
        # Never the same twice: it must not push the others out of the header table.
        headers.append(NeverIndexedHeaderTuple(b"grpc-timeout", encode_timeout(timeout_s)))
    return headers + metadata


def trailers(status: Status, metadata: Headers) -> Headers:
    """Write the headers that end a call."""
    headers = [(b"grpc-status", b"%d" % status.code)]
    if status.message:
        headers.append((b"grpc-message", encode_message_text(status.message)))
    if status.details:
        headers.append((b"grpc-status-details-bin", b64encode(status.details).rstrip(b"=")))
    return headers + metadata


def header_list_bytes(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Measure a block the way SETTINGS_MAX_HEADER_LIST_SIZE does."""
    return sum(len(name) + len(value) + 32 for name, value in headers)


def check_request(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Check a request block and return its fields; of a repeated field the last one.

    Raises:
        MalformedCall: RFC 9113 calls it malformed.
    """
    fields = _check(headers, _OF_REQUEST)
    for name in _REQUIRED:
        if not fields.get(name):
            raise MalformedCall(f"the request has no {name.decode()}")
    return fields


def check_response(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Check a response block and return its fields.

    Raises:
        MalformedCall: RFC 9113 calls it malformed.
    """
    fields = _check(headers, _OF_RESPONSE)
    if not re.fullmatch(rb"[1-9][0-9][0-9]", fields.get(b":status", b"")):
        raise MalformedCall("the response has no status")
    return fields


def check_trailers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Check a trailing block and return its fields.

    Raises:
        MalformedCall: RFC 9113 calls it malformed.
    """
    return _check(headers, _NONE)


def _check(headers: Iterable[tuple[bytes, bytes]], pseudo: frozenset[bytes]) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    ordinary = False
    for name, value in headers:
        if name[:1] == b":":
            if ordinary or name not in pseudo or name in fields:
                raise MalformedCall(f"the pseudo-header {name!r} is unknown here, repeated, or out of place")
        else:
            ordinary = True
            if name in _FORBIDDEN or (name == b"te" and value != b"trailers"):
                raise MalformedCall(f"the header {name!r} has no place in HTTP/2")
            if _NAME.fullmatch(name) is None:
                raise MalformedCall(f"the header name {name!r} has letters it must not have")
        if _VALUE.fullmatch(value) is None:
            raise MalformedCall(f"the header {name!r} has a value with letters it must not have")
        fields[name] = value
    return fields


@functools.lru_cache(maxsize=256)
def read_request(headers: Fields) -> RequestHead | Refused:
    """Read a request, or say how to refuse it.

    Raises:
        MalformedCall: RFC 9113 calls it malformed: the stream is to be reset.
    """
    fields = check_request(headers)
    if fields[b":method"] != b"POST":
        return Refused(405, Status(StatusCode.INTERNAL, "a gRPC request uses the method POST"))
    if not is_grpc(fields.get(b"content-type", b"")):
        return Refused(415, Status(StatusCode.INTERNAL, "a gRPC request has the content type application/grpc"))
    timeout = fields.get(b"grpc-timeout")
    try:
        return RequestHead(
            fields[b":path"].decode("latin-1"),
            fields.get(b":authority", fields.get(b"host", b"")).decode("latin-1"),
            None if timeout is None else decode_timeout(timeout),
            fields.get(b"grpc-encoding", b"identity"),
            metadata_from_headers(headers),
        )
    except MalformedCall as malformed:
        return Refused(200, Status(StatusCode.INTERNAL, str(malformed)))


def is_grpc(content_type: bytes) -> bool:
    """Say whether a content type is gRPC's: exactly, or with a suffix or parameters."""
    return content_type == _CONTENT_TYPE or content_type.startswith((b"application/grpc+", b"application/grpc;"))


@attrs.frozen
class ResponseHead:
    """What a response says before its first message."""

    encoding: bytes = b"identity"
    metadata: Metadata = NO_METADATA


@attrs.frozen
class Ending:
    """How a response ended."""

    status: Status
    metadata: Metadata = NO_METADATA


def read_response(headers: Headers, *, ended: bool) -> ResponseHead | Ending:
    """Read the first block of a response: a head, or at once the ending (trailers only, or no gRPC at all).

    Raises:
        MalformedCall: RFC 9113 calls it malformed.
    """
    fields = check_response(headers)
    http_status = int(fields[b":status"])
    if ended or http_status != 200 or not is_grpc(fields.get(b"content-type", b"")):
        return _ending(fields, headers, http_status)
    return ResponseHead(fields.get(b"grpc-encoding", b"identity"), metadata_from_headers(headers))


def read_trailers(headers: Headers) -> Ending:
    """Read the last block of a response.

    Raises:
        MalformedCall: RFC 9113 calls it malformed.
    """
    return _ending(check_trailers(headers), headers, 200)


def _ending(fields: dict[bytes, bytes], headers: Headers, http_status: int) -> Ending:
    number = fields.get(b"grpc-status")
    metadata = metadata_from_headers(headers)
    if number is None:
        return Ending(_status_without_number(http_status, fields), metadata)
    if number == b"0":
        return Ending(OK, metadata)
    details = fields.get(b"grpc-status-details-bin", b"")
    status = Status(
        code_of_number(number),
        decode_message_text(fields.get(b"grpc-message", b"")),
        decode_base64(details, "the status details") if details else b"",
    )
    return Ending(status, metadata)


def _status_without_number(http_status: int, fields: dict[bytes, bytes]) -> Status:
    if http_status != 200:
        return Status(code_of_http(http_status), f"the peer answered with HTTP status {http_status} and no grpc-status")
    content_type = fields.get(b"content-type", _CONTENT_TYPE)
    if not is_grpc(content_type):
        kind = content_type.decode("latin-1")
        return Status(StatusCode.UNKNOWN, f"the peer answered with the content type {kind!r}, which is not gRPC")
    return Status(StatusCode.UNKNOWN, "the peer ended the call without a grpc-status")
