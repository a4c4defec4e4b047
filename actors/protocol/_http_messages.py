"""Messages about HTTP requests that the environment makes for its client.

Members and messages marked "ours" go beyond the other implementation, which ignores the one and refuses the other.
"""

import enum

import attrs

from actors.protocol._codec import LEFT_OUT, U64, Name


def _length_only(text: str) -> str:
    # A header may be a credential, and a URL may hold one; a repr ends up in logs.
    return f"<{len(text)} characters>"


def _size_only(data: bytes | None) -> str:
    return "None" if data is None else f"<{len(data)} bytes>"


class RedirectPolicy(enum.Enum):
    """What to do when the answer says to look elsewhere.

    Attributes:
        FOLLOW: Look there.
        STOP: Give that answer.
    """

    FOLLOW = "follow"
    STOP = "stop"


@attrs.frozen(kw_only=True)
class HttpRequestHeader:
    """One header to send.

    Attributes:
        name: Its name, in any letter case.
        value: Its value, or what stands in front of the variable's.
        value_env_var: A variable of the executor's environment, whose value is put behind.
    """

    name: str
    value: str = attrs.field(repr=_length_only)
    value_env_var: str | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class HttpRequestParams:
    """Make one HTTP request.

    Attributes:
        method: As it is sent: letter case counts.
        url: An `http` or `https` URL.
        request_id: Chosen by the caller; unique among the streamed answers of the connection.
        headers: In order; a name may come more than once.
        body_base64: What to send.
        timeout_ms: How long the whole exchange may take, the body included.
        redirect_policy: Whether to follow a redirection.
        stream_response: Answer at the headers; the body comes in `http/request/bodyDelta`.
        window_bytes: Ours: of a streamed body, send at most this much until `http/request/more` allows more.
    """

    method: str
    url: str = attrs.field(repr=_length_only)
    request_id: Name
    headers: tuple[HttpRequestHeader, ...] = attrs.field(default=(), metadata=LEFT_OUT)
    body_base64: bytes | None = attrs.field(default=None, repr=_size_only, metadata=LEFT_OUT)
    timeout_ms: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)
    redirect_policy: RedirectPolicy = attrs.field(default=RedirectPolicy.FOLLOW, metadata=LEFT_OUT)
    stream_response: bool = attrs.field(default=False, metadata=LEFT_OUT)
    window_bytes: U64 | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class HttpResponseHeader:
    """One header that came.

    Attributes:
        name: Its name, in small letters.
        value: Its value.
    """

    name: str
    value: str = attrs.field(repr=_length_only)


@attrs.frozen(kw_only=True)
class HttpResponse:
    """What was answered, whatever its status.

    Attributes:
        status: Such as 200.
        headers: In order; those of an encoding that was taken off are left out.
        body_base64: The body; empty when it is streamed.
    """

    status: U64
    headers: tuple[HttpResponseHeader, ...]
    body_base64: bytes = attrs.field(repr=_size_only)


@attrs.frozen(kw_only=True)
class HttpBodyDelta:
    """A piece of a streamed body.

    Attributes:
        request_id: Whose.
        seq: Its position, from 1.
        delta_base64: The bytes; none in the last piece.
        done: Nothing more will come.
        error: Why the body ended before its end.
    """

    request_id: Name
    seq: U64
    delta_base64: bytes = attrs.field(repr=_size_only)
    done: bool
    error: str | None


@attrs.frozen(kw_only=True)
class HttpMoreParams:
    """Ours: more of a streamed body may come.

    Attributes:
        request_id: Whose.
        bytes: How much more.
    """

    request_id: Name
    bytes: U64


@attrs.frozen(kw_only=True)
class HttpCancelParams:
    """Ours: nobody wants the answer any more.

    Attributes:
        request_id: Which; an unknown one is no error.
    """

    request_id: Name
