"""h2's connection, with the few changes gRPC needs. The only file that touches what h2 keeps private.

Each change names its test in `tests/actors/sessions/grpc/test_http2.py`; the range of h2 in `pyproject.toml` ends at
the minor version these were read in.
"""

from typing import Any, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, Event
from h2.settings import SettingCodes, Settings
from hyperframe.frame import Frame, GoAwayFrame

from actors.sessions.grpc._limits import Limits

ALL_STREAMS = 2**31 - 1


class Http2(H2Connection):
    """One end of an HTTP/2 connection: bytes in, events out; frames in, bytes out."""

    # How many closed streams are remembered, to tell a late frame from a wrong one.
    MAX_CLOSED_STREAMS = 2**14

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
        self.local_settings = Settings(client=client, initial_values=_settings(client, limits))
        # h2 takes these two over only when the peer acknowledges *changed* settings, and ours are there from the
        # start: a large upload would break the connection (test_frames_above_16_kib_are_accepted_from_the_start).
        self.max_inbound_frame_size = limits.frame_bytes_max
        self.decoder.max_header_list_size = limits.header_list_bytes_max
        # h2 closes the whole connection on GOAWAY, although open calls go on until they end (h2 issue 1181).
        table: dict[type[Frame], Any] = self._frame_dispatch_table
        table[GoAwayFrame] = _announce_goaway
        self._backlog_limit = limits.backlog_bytes_max

    def begin(self, connection_window_bytes: int) -> None:
        """Write the preface and open the connection's window."""
        self.initiate_connection()
        more = connection_window_bytes - self.inbound_flow_control_window
        if more > 0:
            self.increment_flow_control_window(more)

    def _open_streams(self, remainder: int) -> int:
        # h2 walks all streams for each new one, and breaks the connection when there is one too many. The owner
        # counts instead, and refuses or waits (test_a_call_over_the_limit_is_refused_not_the_connection).
        return 0

    def retire(self, stream_id: int) -> None:
        """Forget a stream that is closed at both ends, but remember how it closed."""
        stream = self.streams.pop(stream_id, None)
        if stream is not None:
            self._closed_streams[stream_id] = stream.closed_by

    def goaway(
        self, last_stream_id: int, *, code: ErrorCodes = ErrorCodes.NO_ERROR, why: bytes = b""
    ) -> None:
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


def _settings(client: bool, limits: Limits) -> dict[SettingCodes, int]:
    values = {
        SettingCodes.INITIAL_WINDOW_SIZE: limits.stream_window_bytes,
        SettingCodes.MAX_FRAME_SIZE: limits.frame_bytes_max,
        SettingCodes.MAX_HEADER_LIST_SIZE: limits.header_list_bytes_max,
        SettingCodes.MAX_CONCURRENT_STREAMS: limits.concurrent_calls_max,
    }
    if client:
        # Nobody may push to a gRPC client, and no server may open a stream.
        values |= {SettingCodes.ENABLE_PUSH: 0, SettingCodes.MAX_CONCURRENT_STREAMS: 0}
    return values


def _announce_goaway(frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
    event = ConnectionTerminated()
    event.error_code = cast("ErrorCodes", frame.error_code)
    event.last_stream_id = frame.last_stream_id
    event.additional_data = frame.additional_data or None
    return [], [event]
