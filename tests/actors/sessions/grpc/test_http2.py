"""What `_http2` changes in h2, so that another minor version of h2 cannot change it back unseen."""

from itertools import pairwise

import h2.connection
import h2.events
import pytest
from h2.errors import ErrorCodes
from h2.exceptions import FrameTooLargeError, ProtocolError
from hyperframe.frame import GoAwayFrame
from hypothesis import event, given
from hypothesis import strategies as st

from actors.sessions.grpc import Limits
from actors.sessions.grpc._http2 import ALL_STREAMS, Http2
from tests.actors.sessions.grpc.raw import REQUEST

HEADERS = [(name.encode(), value.encode()) for name, value in [*REQUEST[:3], (":path", "/a.B/C"), *REQUEST[3:]]]
RESPONSE = [(b":status", b"200"), (b"content-type", b"application/grpc")]


def connected() -> tuple[Http2, Http2]:
    client, server = Http2(client=True, limits=Limits()), Http2(client=False, limits=Limits())
    client.begin(2**20)
    server.begin(2**20)
    for _ in range(2):
        server.receive(bytes(client.take()))
        client.receive(bytes(server.take()))
    return client, server


def test_the_private_places_of_h2_are_where_we_found_them() -> None:
    plain = h2.connection.H2Connection()

    assert GoAwayFrame in plain._frame_dispatch_table
    assert plain.incoming_buffer._headers_buffer == []
    assert isinstance(plain._data_to_send, bytearray)
    assert plain._closed_streams == {}
    assert plain._inbound_flow_control_window_manager.current_window_size == 65_535
    assert callable(plain._open_streams)
    assert callable(plain._terminate_connection)


def test_both_ends_go_on_after_goaway() -> None:
    client, server = connected()
    client.write_headers(1, HEADERS)
    server.receive(bytes(client.take()))
    server.goaway(ALL_STREAMS)
    [told] = client.receive(bytes(server.take()))
    client.write_data(1, memoryview(b"on"), end_stream=True)
    client.goaway(0, code=ErrorCodes.NO_ERROR, why=b"bye")
    events = server.receive(bytes(client.take()))
    server.write_headers(1, RESPONSE)
    server.write_headers(1, [(b"grpc-status", b"0")], end_stream=True)

    assert isinstance(told, h2.events.ConnectionTerminated)
    assert [type(found).__name__ for found in events] == [
        "DataReceived",
        "StreamEnded",
        "ConnectionTerminated",
    ]
    assert [type(found).__name__ for found in client.receive(bytes(server.take()))] == [
        "ResponseReceived",
        "TrailersReceived",
        "StreamEnded",
    ]


def test_a_header_block_larger_than_a_frame_is_continued() -> None:
    client, server = connected()
    client.max_outbound_frame_size = 16_384
    server.decoder.max_header_list_size = 2**20
    large = [*HEADERS, *((b"x-%d" % index, b"\xff" * 500) for index in range(100))]
    client.write_headers(1, large, end_stream=True)

    [request, _] = server.receive(bytes(client.take()))

    assert [tuple(header) for header in request.headers] == large


def test_an_overlong_frame_is_refused_by_its_head() -> None:
    client, server = connected()

    with pytest.raises(FrameTooLargeError):
        server.receive(b"\xff\xff\xff\0\0\0\0\0\1")
    assert client.receive(bytes(server.take()))[0].error_code == ErrorCodes.FRAME_SIZE_ERROR


def test_a_wrong_preface_is_refused() -> None:
    server = Http2(client=False, limits=Limits())
    server.begin(2**20)

    with pytest.raises(ProtocolError):
        server.receive(b"GET / HTTP/1.1\r\n\r\n")


def test_more_data_than_the_window_is_refused() -> None:
    client, server = connected()
    client.write_headers(1, HEADERS)
    client.streams[1].outbound_flow_control_window = client.outbound_flow_control_window = 2**30
    for _ in range(40):
        client.write_data(1, memoryview(bytes(60_000)))

    with pytest.raises(ProtocolError, match="window"):
        server.receive(bytes(client.take()))


chunks = st.lists(st.tuples(st.sampled_from([1, 3]), st.binary(max_size=50), st.booleans()), max_size=8)


@given(chunks, st.lists(st.integers(0, 10_000), max_size=10), st.booleans())
def test_the_short_way_for_data_tells_what_h2_tells(
    sent: list[tuple[int, bytes, bool]], places: list[int], padded: bool
) -> None:
    """Seen to fail with: the last byte of a frame left out; END_STREAM ignored; data taken before the frames
    in front of it; padded data taken the short way; an incomplete frame dropped."""
    writer = h2.connection.H2Connection()
    writer.initiate_connection()
    ended: set[int] = set()
    for number in (1, 3):
        writer.send_headers(number, HEADERS)
    for number, data, ends in sent:
        if number not in ended:
            writer.send_data(number, data, end_stream=ends, pad_length=len(data) % 7 if padded else None)
            ended |= {number} if ends else set()
    wire = writer.data_to_send()
    edges = sorted({0, len(wire), *(place % (len(wire) + 1) for place in places)})
    ours, theirs = (
        Http2(client=False, limits=Limits()),
        h2.connection.H2Connection(h2.connection.H2Configuration(client_side=False, validate_inbound_headers=False)),
    )
    for end in (ours, theirs):
        end.initiate_connection()

    found = [told for start, end in pairwise(edges) for told in ours.receive(wire[start:end])]
    expected = theirs.receive_data(wire)
    event(f"{len(ended)} streams ended")

    assert [_plain(told) for told in found] == [_plain(told) for told in expected]
    assert ours.inbound_flow_control_window == theirs.inbound_flow_control_window
    assert {n: s.inbound_flow_control_window - 2**20 for n, s in ours.streams.items()} == {
        n: s.inbound_flow_control_window - 65_535 for n, s in theirs.streams.items()
    }


def _plain(told: h2.events.Event) -> tuple[object, ...]:
    fields = ("stream_id", "data", "flow_controlled_length", "stream_ended")
    return (type(told), *(str(getattr(told, field, None)) for field in fields))
