import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.sessions.grpc import MalformedCall, Status, StatusCode
from actors.sessions.grpc._headers import (
    RESPONSE_HEAD,
    Ending,
    Refused,
    RequestHead,
    ResponseHead,
    header_list_bytes,
    read_request,
    read_response,
    read_trailers,
    request_headers,
    trailers,
)

REQUEST = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/a.B/C"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc+proto"),
)


def changed(name: bytes, value: bytes | None) -> tuple[tuple[bytes, bytes], ...]:
    kept = tuple(header for header in REQUEST if header[0] != name)
    if value is None:
        return kept
    new = (name, value)
    return (new, *kept) if name.startswith(b":") else (*kept, new)


def test_a_request_says_what_its_writer_said() -> None:
    wire = request_headers(
        "/a.B/C", scheme="https", authority="here:1", user_agent="me", timeout_s=2.5, metadata=[(b"k", b"v")]
    )

    head = read_request(tuple(wire))

    assert isinstance(head, RequestHead)
    assert (head.path, head.authority, head.timeout_s) == ("/a.B/C", "here:1", 2.5)
    assert head.metadata.pairs == (("user-agent", "me"), ("k", "v"))


@pytest.mark.parametrize(
    "headers",
    [
        changed(b":method", None), changed(b":path", None), changed(b":path", b""), changed(b":scheme", None),
        (*REQUEST, (b":path", b"/late/one")), (REQUEST[0], *REQUEST), changed(b":status", b"200"),
        changed(b"connection", b"close"), changed(b"transfer-encoding", b"chunked"), changed(b"te", b"gzip"),
        changed(b"Upper", b"x"), changed(b"sp ace", b"x"), changed(b"", b"x"), changed(b"co:lon", b"x"),
        changed(b"k", b"a\rb"), changed(b"k", b"a\nb"), changed(b"k", b"\0"),
    ],
)  # fmt: skip
def test_a_request_that_http2_calls_malformed_is_refused_whole(
    headers: tuple[tuple[bytes, bytes], ...],
) -> None:
    with pytest.raises(MalformedCall):
        read_request(headers)


@pytest.mark.parametrize(
    ("name", "value", "http_status"),
    [
        (b":method", b"GET", 405),
        (b"content-type", b"text/plain", 415),
        (b"content-type", b"application/grpcweb", 415),
        (b"content-type", None, 415),
        (b"grpc-timeout", b"soon", 200),
        (b"k-bin", b"!", 200),
    ],
)
def test_a_request_that_is_no_grpc_is_answered_and_not_served(name: bytes, value: bytes, http_status: int) -> None:
    refused = read_request(changed(name, value))

    assert isinstance(refused, Refused)
    assert refused.http_status == http_status
    assert refused.status.code is StatusCode.INTERNAL


@given(
    st.sampled_from(StatusCode),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=20),
    st.booleans(),
)
def test_a_status_survives_the_wire_in_trailers_and_alone(
    code: StatusCode, message: str, details: bytes, alone: bool
) -> None:
    """Seen to fail with: details written with padding and read without; the message not decoded;
    trailers-only taken for a head."""
    block = trailers(Status(code, message, details), [(b"k", b"v")])

    ending = read_response([*RESPONSE_HEAD, *block], ended=True) if alone else read_trailers(block)

    assert isinstance(ending, Ending)
    assert ending.status == (Status(code, message, details) if code else Status(StatusCode.OK))
    assert ending.metadata.text("k") == "v"


@pytest.mark.parametrize(
    ("headers", "ended", "code"),
    [
        ([(b":status", b"503")], True, StatusCode.UNAVAILABLE),
        ([(b":status", b"404"), (b"content-type", b"text/html")], False, StatusCode.UNIMPLEMENTED),
        ([(b":status", b"200"), (b"content-type", b"text/html")], False, StatusCode.UNKNOWN),
        ([(b":status", b"200"), (b"content-type", b"application/grpc")], True, StatusCode.UNKNOWN),
        ([(b":status", b"502"), (b"grpc-status", b"5")], True, StatusCode.NOT_FOUND),
    ],
)
def test_an_answer_without_grpc_status_means_what_its_http_status_means(
    headers: list[tuple[bytes, bytes]], ended: bool, code: StatusCode
) -> None:
    ending = read_response(headers, ended=ended)

    assert isinstance(ending, Ending)
    assert ending.status.code is code


def test_a_response_head_is_not_an_ending() -> None:
    head = read_response([*RESPONSE_HEAD, (b"k", b"v"), (b"grpc-encoding", b"gzip")], ended=False)

    assert isinstance(head, ResponseHead)
    assert head.encoding == b"gzip"
    assert head.metadata.text("k") == "v"


def test_trailers_with_a_pseudo_header_are_refused() -> None:
    with pytest.raises(MalformedCall):
        read_trailers([(b":status", b"200"), (b"grpc-status", b"0")])


def test_a_header_list_is_measured_as_http2_does() -> None:
    assert header_list_bytes([(b"ab", b"c"), (b"d", b"")]) == 3 + 1 + 64
