"""Tell how a call ended: status codes, messages on the wire, and what other layers' codes mean here.

Knows the numbers and texts of gRPC, HTTP and HTTP/2. Does not know headers, calls or connections.
"""

import enum
import re
from typing import Final
from urllib.parse import unquote_to_bytes

import attrs


class StatusCode(enum.IntEnum):
    """How a call ended, by gRPC's own numbers.

    Attributes:
        OK: It went well.
        CANCELLED: Whoever called gave it up.
        UNKNOWN: The handler failed without a status, or the status has no meaning here.
        INVALID_ARGUMENT: The request is wrong, whatever the state of the server.
        DEADLINE_EXCEEDED: It took too long; it may have happened all the same.
        NOT_FOUND: What was asked for is not there.
        ALREADY_EXISTS: What was to be made is there already.
        PERMISSION_DENIED: The caller is known and may not.
        RESOURCE_EXHAUSTED: A limit or a quota was reached.
        FAILED_PRECONDITION: The state of the server forbids it; do not try again before that is mended.
        ABORTED: It lost against another call; try again from a higher level.
        OUT_OF_RANGE: Past the end of what is there.
        UNIMPLEMENTED: There is no such method.
        INTERNAL: The server or the connection broke a rule of its own.
        UNAVAILABLE: Nobody serves at the moment; try again later.
        DATA_LOSS: Data is lost or damaged beyond repair.
        UNAUTHENTICATED: The caller is not known.
    """

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


@attrs.frozen
class Status:
    """How a call ended, in full.

    Attributes:
        code: The number.
        message: A sentence for the developer at the other end; any Unicode.
        details: A serialised `google.rpc.Status`, or nothing; see `rich_status`.
    """

    code: StatusCode

    message: str = ""

    details: bytes = attrs.field(default=b"", repr=False)


OK: Final = Status(StatusCode.OK)

_ESCAPED: Final = re.compile(rb"[^\x20-\x24\x26-\x7e]|^ | $")
_ESCAPE: Final = re.compile(rb"%[0-9a-fA-F]{2}")


def encode_message_text(text: str) -> bytes:
    """Percent-encode a status message.

    A space at either end is escaped as well: HTTP/2 forbids a header value to begin or end with one.
    """
    return _ESCAPED.sub(lambda found: b"%%%02X" % found[0][0], text.encode("utf-8", "replace"))


def decode_message_text(value: bytes) -> str:
    """Undo the percent-encoding; what is no valid escape or no UTF-8 is kept or replaced, never refused."""
    plain = _ESCAPE.sub(lambda found: unquote_to_bytes(found[0]), value)
    return plain.decode("utf-8", "replace")


def code_of_number(value: bytes) -> StatusCode:
    """Read a `grpc-status` value; a number nobody knows is UNKNOWN."""
    try:
        return StatusCode(int(value))
    except ValueError:
        return StatusCode.UNKNOWN


_OF_HTTP: Final = {
    400: StatusCode.INTERNAL,
    401: StatusCode.UNAUTHENTICATED,
    403: StatusCode.PERMISSION_DENIED,
    404: StatusCode.UNIMPLEMENTED,
    429: StatusCode.UNAVAILABLE,
    502: StatusCode.UNAVAILABLE,
    503: StatusCode.UNAVAILABLE,
    504: StatusCode.UNAVAILABLE,
}


def code_of_http(http_status: int) -> StatusCode:
    """Say what an HTTP status means when no `grpc-status` came with it."""
    return _OF_HTTP.get(http_status, StatusCode.UNKNOWN)


# Numbers of RFC 9113, section 7. STREAM_CLOSED (5) has no meaning in gRPC and falls to UNKNOWN.
_OF_RESET: Final = {
    0: StatusCode.INTERNAL,
    1: StatusCode.INTERNAL,
    2: StatusCode.INTERNAL,
    3: StatusCode.INTERNAL,
    4: StatusCode.INTERNAL,
    6: StatusCode.INTERNAL,
    7: StatusCode.UNAVAILABLE,
    8: StatusCode.CANCELLED,
    9: StatusCode.INTERNAL,
    10: StatusCode.INTERNAL,
    11: StatusCode.RESOURCE_EXHAUSTED,
    12: StatusCode.PERMISSION_DENIED,
}


def code_of_reset(h2_error: int) -> StatusCode:
    """Say what a reset stream means, by its HTTP/2 error code."""
    return _OF_RESET.get(h2_error, StatusCode.UNKNOWN)
