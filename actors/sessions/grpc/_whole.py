"""Requests that come whole and are answered at once: no stream is opened for them, and nobody can tell.

Most small calls are like that: headers that came before, one message in one frame, an answer that needs no waiting.
h2's stream with its state machine would cost more than all the rest of them. Whatever is not exactly so goes the long
way, and a request can go over to it until it is answered (`tests/actors/sessions/grpc/test_whole.py`). It does so when
anything comes behind it that h2 must judge: h2 sees a stream for every request that waits.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from h2.connection import ConnectionState
from h2.errors import ErrorCodes
from h2.events import Event, StreamReset
from h2.stream import H2Stream, StreamClosedBy

from actors.sessions.grpc._frame_head import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEAD_BYTES,
    HEADERS,
    NUMBER_FRAME_BYTES,
    RESET,
    WINDOW,
    WINDOW_MAX,
    frame_head,
)
from actors.sessions.grpc._framing import PREFIX_BYTES, message_prefix
from actors.sessions.grpc._http2 import Http2
from actors.sessions.grpc._limits import Limits
from actors.sessions.grpc._metadata import Fields, Headers

_WINDOW_SIZE: Final = b"\x00\x00\x04"


class WholeRequest(Event):
    """A request of one message that came in one piece, for which no stream was opened: it is answered at once.

    Whoever answers it calls `write_whole`, or `open_whole` to have a stream all the same.
    """

    __slots__ = ("found", "headers", "message", "more_window", "number", "size")

    def __init__(self, number: int, headers: Headers, message: bytes, found: object, more_window: int) -> None:
        self.number: int = number
        self.headers: Headers = headers
        self.message: bytes = message
        self.found: object = found
        # What the caller has let its window grow by already.
        self.more_window: int = more_window
        self.size: int = len(message) + PREFIX_BYTES


class WholeHttp2(Http2):
    """One end of a connection that finds such requests."""

    def __init__(self, *, client: bool, limits: Limits) -> None:
        super().__init__(client=client, limits=limits)
        self.at_once: Callable[[Headers], object] = lambda _: None
        """Says what serves requests with these headers at once, or None. Asked once for each header block."""
        # Those that are not answered yet and have no stream.
        self._whole: dict[int, WholeRequest] = {}
        self._plain[HEADERS << 8 | END_HEADERS] = self._receive_request
        self._plain[RESET << 8] = self._receive_reset
        self._message_limit, self._stream_window = limits.message_bytes_max, limits.stream_window_bytes

    def _receive_request(self, data: bytes, at: int, after: int, events: list[Event]) -> int:
        """Take a request that came whole, of a kind that is answered at once; all others go the long way."""
        request, end = self._whole_request(data, at, after)
        if request is None:
            return self._receive_plain_headers(data, at, after, events)
        self.highest_inbound_stream_id = request.number
        # As if it had been opened and closed.
        self._closed_streams[request.number] = StreamClosedBy.SEND_END_STREAM
        self._inbound_flow_control_window_manager.window_consumed(request.size)
        self._whole[request.number] = request
        events.append(request)
        return end

    def _whole_request(self, data: bytes, at: int, after: int) -> tuple[WholeRequest | None, int]:
        """Find a request of one plain message in one frame behind its headers, a larger window between them or not."""
        block = data[at + HEAD_BYTES : after]
        found = self._found(block)
        number, more, body = data[at + 5 : at + HEAD_BYTES], 0, after
        if found is None or len(data) < body + HEAD_BYTES:
            return None, 0
        if data[body + 3] == WINDOW and data[body + 5 : body + HEAD_BYTES] == number:
            more = int.from_bytes(data[body + HEAD_BYTES : body + NUMBER_FRAME_BYTES]) & WINDOW_MAX
            if data[body : body + 3] != _WINDOW_SIZE or not more or len(data) < body + NUMBER_FRAME_BYTES + HEAD_BYTES:
                return None, 0
            body += NUMBER_FRAME_BYTES
        end, message = self._frame_end(data, body), body + HEAD_BYTES + PREFIX_BYTES
        kind, flags, of = data[body + 3], data[body + 4], data[body + 5 : body + HEAD_BYTES]
        if kind != DATA or flags != END_STREAM or of != number or not message <= end <= len(data):
            return None, 0
        if data[body + HEAD_BYTES : message] != message_prefix(end - message):
            return None, 0
        request = WholeRequest(int.from_bytes(number), found[0], data[message:end], found[1], more)
        return (request, end) if self._may_come(request) else (None, 0)

    def _found(self, block: bytes) -> tuple[Headers, object] | None:
        """Say what serves the requests with this block at once; remembered as long as the block itself is."""
        notes = self._memory.notes
        if block not in notes:
            headers = self._memory.remembered(block)
            if headers is None:
                return None
            sized = any(name == b"content-length" for name, _ in headers)
            serves = None if sized else self.at_once(cast("Headers", headers))
            notes[block] = None if serves is None else (headers, serves)
        return cast("tuple[Headers, object] | None", notes[block])

    def _may_come(self, request: WholeRequest) -> bool:
        return (
            self.state_machine.state is ConnectionState.SERVER_OPEN
            and not self._within_block
            and request.number > self.highest_inbound_stream_id
            and bool(request.number & 1)
            and self.peer_stream_window + request.more_window <= WINDOW_MAX
            and request.size <= self._stream_window
            and request.size <= self._inbound_flow_control_window_manager.current_window_size
            and len(request.message) <= self._message_limit
        )

    def _receive_reset(self, data: bytes, at: int, after: int, events: list[Event]) -> int:
        """Take the news that a caller has left which is not answered yet."""
        number = int.from_bytes(data[at + 5 : at + HEAD_BYTES])
        if after - at == NUMBER_FRAME_BYTES and self._whole.pop(number, None) is not None:
            self._closed_streams[number] = StreamClosedBy.RECV_RST_STREAM
            code = int.from_bytes(data[at + HEAD_BYTES : after])
            events.append(StreamReset(stream_id=number, error_code=code))
        else:
            events += self.receive_data(data[at:after])
        return after

    def receive_data(self, data: Any) -> list[Event]:
        """Let h2 take frames: it must find a stream for each request that waits, as if it had opened that itself."""
        for request in [*self._whole.values()]:
            self.open_whole(request)
        return super().receive_data(data)

    def _receive_window(self, data: bytes, at: int, after: int, events: list[Event]) -> int:
        """Take a larger window that came behind a request."""
        request = self._whole.get(int.from_bytes(data[at + 5 : at + HEAD_BYTES]))
        if request is None or after - at != NUMBER_FRAME_BYTES:
            return super()._receive_window(data, at, after, events)
        more = int.from_bytes(data[at + HEAD_BYTES : after]) & WINDOW_MAX
        if not more or self.peer_stream_window + request.more_window + more > WINDOW_MAX:
            events += self.receive_data(data[at:after])
        else:
            request.more_window += more
        return after

    def is_waited_for(self, request: WholeRequest) -> bool:
        """Whether the caller still wants an answer and has none."""
        stream = self.streams.get(request.number)
        return request.number in self._whole or (stream is not None and not stream.closed)

    def refuse_whole(self, request: WholeRequest) -> None:
        """Say that nobody looked at a request, unless its caller has left."""
        if self.is_waited_for(request):
            self.open_whole(request)
            self.reset_stream(request.number, ErrorCodes.REFUSED_STREAM)
        self.retire(request.number)

    def write_whole(self, request: WholeRequest, head: Fields, payload: bytes, closing: Fields) -> bool:
        """Write the whole answer if there is room for it; False if a stream is needed to wait for room."""
        number, size = request.number, len(payload) + PREFIX_BYTES
        if number not in self._whole:
            return False  # It has a stream by now.
        stream_window = self.peer_stream_window + request.more_window
        if size > min(self.outbound_flow_control_window, stream_window, self.max_outbound_frame_size):
            return False
        del self._whole[number]
        first, last = self.encoder.encode_again(head), self.encoder.encode_again(closing)
        self.outbound_flow_control_window -= size
        self._data_to_send += b"".join(
            (
                frame_head(len(first), HEADERS, END_HEADERS, number),
                first,
                frame_head(size, DATA, 0, number),
                message_prefix(len(payload)),
                payload,
                frame_head(len(last), HEADERS, END_HEADERS | END_STREAM, number),
                last,
            )
        )
        return True

    def open_whole(self, request: WholeRequest) -> None:
        """Open the stream that such a request would have had, unless it has one."""
        if self._whole.pop(request.number, None) is None:
            return
        self._closed_streams.pop(request.number, None)
        stream = H2Stream(
            request.number,
            config=self.config,
            inbound_window_size=self.local_settings.initial_window_size,
            outbound_window_size=self.remote_settings.initial_window_size + request.more_window,
        )
        stream.max_outbound_frame_size = self.max_outbound_frame_size
        self.streams[request.number] = stream
        stream.receive_headers(request.headers, False, None)
        stream.receive_data(b"", True, 0)
