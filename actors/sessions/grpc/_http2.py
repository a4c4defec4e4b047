"""h2's connection, with the changes gRPC needs. Only this file and `_whole` touch what h2 keeps private.

h2 keeps every rule: each frame still passes its state machines and its windows. What is replaced is the
building and taking apart of the frames that make up a call, HEADERS, DATA and WINDOW_UPDATE, which h2 copies
and walks many times.

Each change names its test in `tests/actors/sessions/grpc`; the range of h2 in `pyproject.toml`
ends at the minor version these were read in.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from h2.config import H2Configuration
from h2.connection import AllowedStreamIDs, ConnectionInputs, ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, Event, WindowUpdated
from h2.exceptions import FrameTooLargeError, ProtocolError
from h2.settings import SettingCodes, Settings
from h2.stream import H2Stream, StreamInputs, StreamState
from hyperframe.frame import Frame, GoAwayFrame

from actors.sessions.grpc._frame_head import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEAD_BYTES,
    HEADERS,
    NUMBER_FRAME_BYTES,
    WINDOW,
    WINDOW_MAX,
    frame_head,
)
from actors.sessions.grpc._hpack import RememberingDecoder, RememberingEncoder
from actors.sessions.grpc._limits import Limits

ALL_STREAMS: Final = 2**31 - 1
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_WINDOW_UPDATE: Final = struct.Struct(">LL")
_SERVER_OPEN: Final = ConnectionState.SERVER_OPEN
_OPEN: Final = (_SERVER_OPEN, ConnectionState.CLIENT_OPEN)
_RESERVED: Final = 0x80
# Streams on which data may be sent, and on which sending it changes nothing.
_SENDING: Final = (StreamState.OPEN, StreamState.HALF_CLOSED_REMOTE)
# Streams on which the peer may still say something.
_RECEIVING: Final = (StreamState.OPEN, StreamState.HALF_CLOSED_LOCAL)
# Told the place and end of a frame, notes the events and says how far it came.
Taker = Callable[[bytes, int, int, list[Event]], int]


def _without_reserved_bits(data: bytes, at: int) -> bytes:
    """Clear the first bit of the stream of every frame from a place on: it means nothing (RFC 9113, 4.1)."""
    cleared = bytearray(data)
    while at + HEAD_BYTES <= len(cleared):
        cleared[at + 5] &= ~_RESERVED
        at += HEAD_BYTES + int.from_bytes(cleared[at : at + 3])
    return bytes(cleared)


class Http2(H2Connection):
    """One end of an HTTP/2 connection: bytes in, events out; frames in, bytes out."""

    # How many closed streams are remembered, to tell a late frame from a wrong one.
    MAX_CLOSED_STREAMS = 2**14

    outbound_flow_control_window: int

    def __init__(self, *, client: bool, limits: Limits) -> None:
        # h2 checks header blocks letter by letter; `_headers` checks them by pattern, in both directions.
        super().__init__(
            H2Configuration(
                client_side=client,
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
            )
        )
        self.local_settings: Settings = Settings(client=client, initial_values=_settings(client, limits))
        # h2 takes these two over only when the peer acknowledges *changed* settings, and ours are there from
        # the start: a large upload would break the connection
        # (test_2_frames_above_16_kib_are_accepted_from_the_start).
        self.max_inbound_frame_size: int = limits.frame_bytes_max
        self._memory = RememberingDecoder(limits.header_list_bytes_max)
        self.decoder: RememberingDecoder = self._memory  # type: ignore[mutable-override]  # Only ours is ever set.
        self.encoder: RememberingEncoder = RememberingEncoder()  # type: ignore[mutable-override]  # As above.
        # h2 closes the whole connection on GOAWAY, although open calls go on until they end (h2 issue 1181).
        self._frame_dispatch_table[GoAwayFrame] = _announce_goaway  # pyright: ignore[reportUnknownMemberType]  # h2's
        self._backlog_limit = limits.backlog_bytes_max
        # Bytes of a frame that is not complete, and how much of the preface is still to come.
        self._partial = b""
        self._preface_left = 0 if client else len(_PREFACE)
        # What takes a frame of a kind with just these flags; h2 takes all others.
        self._plain: dict[int, Taker] = {
            DATA << 8: self._receive_plain_data,
            DATA << 8 | END_STREAM: self._receive_plain_data,
            HEADERS << 8 | END_HEADERS: self._receive_plain_headers,
            HEADERS << 8 | END_HEADERS | END_STREAM: self._receive_plain_headers,
            WINDOW << 8: self._receive_window,
        }
        self.peer_stream_window: int = self.remote_settings.initial_window_size
        """How much the peer takes on a new stream; the same as in its settings, found quicker."""
        self.waiting_for_window: Mapping[int, object] = {}
        """Streams whose owner wants to hear of their windows."""

    def begin(self, connection_window_bytes: int) -> None:
        """Write the preface and open the connection's window."""
        self.initiate_connection()
        more = connection_window_bytes - self.inbound_flow_control_window
        if more > 0:
            self.increment_flow_control_window(more)

    def _open_streams(self, remainder: int) -> int:
        # h2 walks all streams for each new one, and breaks the connection when there is one too many. The
        # owner counts instead, and refuses or waits
        # (test_10_a_call_over_the_limit_is_refused_not_the_connection).
        return 0

    def _flow_control_change_from_settings(self, old_value: int | None, new_value: int) -> None:
        super()._flow_control_change_from_settings(old_value, new_value)
        self.peer_stream_window = new_value

    def retire(self, stream_id: int) -> None:
        """Forget a stream that is closed at both ends, but remember how it closed."""
        stream = self.streams.pop(stream_id, None)
        if stream is not None:
            self._closed_streams[stream_id] = stream.closed_by

    def open_window(self, number: int, more_bytes: int) -> None:
        """Let the peer send more on a stream.

        h2 is ahead of its events: the stream may have been reset in the same breath as its data came
        (test_data_and_a_reset_in_one_breath_hurt_only_their_call).
        """
        stream = self.streams.get(number)
        if stream is not None and not stream.closed:
            self.increment_flow_control_window(more_bytes, number)

    def goaway(self, last_stream_id: int, *, code: ErrorCodes = ErrorCodes.NO_ERROR, why: bytes = b"") -> None:
        """Tell the peer to open no more streams; those up to `last_stream_id` go on."""
        frame = GoAwayFrame(0)
        frame.last_stream_id, frame.error_code, frame.additional_data = last_stream_id, int(code), why
        self._prepare_for_sending([frame])

    @property
    def waiting_bytes(self) -> int:
        """Bytes written and not yet taken."""
        return len(self._data_to_send)

    @property
    def overdue(self) -> bool:
        """Whether so much waits for the peer to read that nothing more should be read from it."""
        return len(self._data_to_send) > self._backlog_limit

    # --- sending, without copies

    def write_headers(self, number: int, headers: Sequence[tuple[bytes, bytes]], *, end_stream: bool = False) -> None:
        """Write a header block; a stream that does not exist yet is opened."""
        self._pass(ConnectionInputs.SEND_HEADERS)
        stream = self._get_or_create_stream(number, AllowedStreamIDs(self.config.client_side))
        stream.state_machine.process_input(StreamInputs.SEND_HEADERS)
        if end_stream:
            stream.state_machine.process_input(StreamInputs.SEND_END_STREAM)
        block = self.encoder.encode(headers)
        limit, kind = self.max_outbound_frame_size, HEADERS
        flags = END_STREAM if end_stream else 0
        while len(block) > limit:
            self._data_to_send += frame_head(limit, kind, flags, number) + block[:limit]
            block, kind, flags = block[limit:], CONTINUATION, 0
        self._data_to_send += frame_head(len(block), kind, flags | END_HEADERS, number) + block

    def write_data(self, number: int, data: memoryview, *, end_stream: bool = False) -> None:
        """Write a data frame; the caller has looked at the window and the frame size."""
        size, stream = len(data), self.streams[number]
        self._pass(ConnectionInputs.SEND_DATA)
        if stream.state_machine.state not in _SENDING:
            stream.state_machine.process_input(StreamInputs.SEND_DATA)
        if end_stream:
            stream.state_machine.process_input(StreamInputs.SEND_END_STREAM)
        stream.outbound_flow_control_window -= size
        self.outbound_flow_control_window -= size
        assert self.outbound_flow_control_window >= 0, "more was sent than the peer allowed"
        self._data_to_send += frame_head(size, DATA, END_STREAM if end_stream else 0, number)
        self._data_to_send += data

    def _pass(self, step: ConnectionInputs) -> None:
        """Check a step of a call. In an open connection it changes nothing: only the slow look-up is left out."""
        if self.state_machine.state not in _OPEN:
            self.state_machine.process_input(step)

    def take(self) -> bytearray:
        """Take what is to be written."""
        taken, self._data_to_send = self._data_to_send, bytearray()
        return taken

    # --- receiving

    def receive(self, data: bytes) -> list[Event]:
        """Take bytes from the peer and return what they mean.

        Raises:
            h2.exceptions.ProtocolError: The peer broke HTTP/2; the GOAWAY that says so is ready to be taken.
        """
        events: list[Event] = []
        if self._preface_left:
            data = self._take_preface(data, events)
        if self._partial:
            data = self._partial + data
        # `others` is where the frames begin that h2 takes apart itself: all but those that `_plain` names.
        at = others = 0
        while (after := self._frame_end(data, at)) <= len(data):
            if data[at + 5] & _RESERVED:
                data = _without_reserved_bits(data, at)
            plain = self._plain.get(data[at + 3] << 8 | data[at + 4])
            if plain is not None:
                if others < at:
                    events += self.receive_data(data[others:at])
                others = after = plain(data, at, after, events)
            at = after
        if others < at:
            events += self.receive_data(data[others:at])
        self._partial = data[at:]
        return events

    def _take_preface(self, data: bytes, events: list[Event]) -> bytes:
        first = data[: self._preface_left]
        self._preface_left -= len(first)
        events += self.receive_data(first)
        return data[len(first) :]

    def _frame_end(self, data: bytes, at: int) -> int:
        """Say where the frame at a place ends; beyond the data when that is not known."""
        if len(data) - at < HEAD_BYTES:
            return len(data) + 1
        size = int.from_bytes(data[at : at + 3])
        if size > self.max_inbound_frame_size:
            # h2 would first collect all of it.
            self._terminate_connection(ErrorCodes.FRAME_SIZE_ERROR)
            raise FrameTooLargeError(f"a frame of {size} bytes, {self.max_inbound_frame_size} are allowed")
        return at + HEAD_BYTES + size

    def _receive_plain_headers(self, data: bytes, at: int, after: int, events: list[Event]) -> int:
        """Take a block that was read before, of a stream that may have it now; h2 takes every other apart."""
        number = int.from_bytes(data[at + 5 : at + HEAD_BYTES])
        headers = self._memory.remembered(data[at + HEAD_BYTES : after])
        stream = self.streams.get(number)
        if headers is None or self._within_block:
            events += self.receive_data(data[at:after])
            return after
        if stream is None and not self.config.client_side and number > self.highest_inbound_stream_id and number & 1:
            self._pass(ConnectionInputs.RECV_HEADERS)
            stream = self._begin_new_stream(number, AllowedStreamIDs.ODD)
        elif stream is None or stream.state_machine.state not in _RECEIVING:
            events += self.receive_data(data[at:after])
            return after
        try:
            self._pass(ConnectionInputs.RECV_HEADERS)
            events += stream.receive_headers(headers, bool(data[at + 4] & END_STREAM), None)[1]
        except ProtocolError as broken:
            self._terminate_connection(broken.error_code)
            raise
        return after

    def _receive_plain_data(self, data: bytes, at: int, after: int, events: list[Event]) -> int:
        stream = self.streams.get(int.from_bytes(data[at + 5 : at + HEAD_BYTES]))
        if stream is None or stream.state_machine.state not in _RECEIVING or self._within_block:
            # Not plain after all: h2 knows what to answer.
            events += self.receive_data(data[at:after])
            return after
        size, ends = after - at - HEAD_BYTES, bool(data[at + 4] & END_STREAM)
        try:
            self._pass(ConnectionInputs.RECV_DATA)
            self._inbound_flow_control_window_manager.window_consumed(size)
            events += stream.receive_data(data[at + HEAD_BYTES : after], ends, size)[1]
        except ProtocolError as broken:
            self._terminate_connection(broken.error_code)
            raise
        return after

    @property
    def _within_block(self) -> bool:
        """Whether a header block has begun and not ended: nothing else may come now, and h2 says so."""
        return bool(self.incoming_buffer._headers_buffer)  # pyright: ignore[reportPrivateUsage]  # h2's

    def _receive_window(self, data: bytes, at: int, after: int, events: list[Event]) -> int:
        """Take a larger window; h2 takes whatever is wrong with one."""
        number, more = _WINDOW_UPDATE.unpack_from(data, at + 5) if after - at == NUMBER_FRAME_BYTES else (0, 0)
        more &= WINDOW_MAX
        stream = self.streams.get(number)
        grows: Http2 | H2Stream | None = stream if number else self
        room = 0 if grows is None or (stream and stream.closed) else WINDOW_MAX - grows.outbound_flow_control_window
        if grows is None or not 0 < more <= room or self.state_machine.state not in _OPEN or self._within_block:
            events += self.receive_data(data[at:after])
            return after
        grows.outbound_flow_control_window += more
        if self.waiting_for_window:
            events.append(WindowUpdated(stream_id=number, delta=more))
        return after


def _settings(client: bool, limits: Limits) -> dict[SettingCodes, int]:
    values = {
        SettingCodes.INITIAL_WINDOW_SIZE: limits.stream_window_bytes,
        SettingCodes.MAX_FRAME_SIZE: limits.frame_bytes_max,
        SettingCodes.MAX_HEADER_LIST_SIZE: limits.header_list_bytes_max,
        SettingCodes.MAX_CONCURRENT_STREAMS: limits.concurrent_calls_max,
    }
    if client:
        # Nobody may push to a gRPC client. (To say that a server may open 0 streams would make h2 take late
        # answers to forgotten calls for new streams:
        # test_what_arrives_late_for_a_call_that_was_let_go_hurts_nobody.)
        values[SettingCodes.ENABLE_PUSH] = 0
    return values


def _announce_goaway(frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
    event = ConnectionTerminated()
    event.error_code = cast("ErrorCodes", frame.error_code)
    event.last_stream_id = frame.last_stream_id & ALL_STREAMS
    event.additional_data = frame.additional_data or None
    return [], [event]
