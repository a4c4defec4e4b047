"""What arrives on a connection: h2's events, told to the streams they belong to. Nothing here waits."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingAckReceived,
    PingReceived,
    PriorityUpdated,
    RemoteSettingsChanged,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
    WindowUpdated,
)

from actors.sessions.grpc._errors import MalformedCall, MessageTooLarge
from actors.sessions.grpc._framing import MessageDecoder, decompressor_of
from actors.sessions.grpc._headers import ResponseHead, check_trailers, read_response, read_trailers
from actors.sessions.grpc._http2 import Http2
from actors.sessions.grpc._limits import Limits
from actors.sessions.grpc._metadata import Headers
from actors.sessions.grpc._status import Status, StatusCode, code_of_reset
from actors.sessions.grpc._stream import Failure, Stream
from actors.sessions.grpc._whole import WholeRequest


class Owner(Protocol):
    """What the connection does when news is not about one stream alone."""

    def request_arrived(self, number: int, headers: Headers) -> None:
        """Open a stream for a request, or refuse it."""

    def whole_arrived(self, request: WholeRequest) -> None:
        """Answer a request that came whole."""

    def broken_off(self, stream: Stream, status: Status, code: ErrorCodes) -> None:
        """Give up on a stream whose peer broke the rules."""

    def stream_over(self, stream: Stream) -> None:
        """Retire a stream on which nothing more happens."""

    def window_opened(self, number: int) -> None:
        """Send on."""

    def settings_arrived(self) -> None:
        """Take the peer's new settings into account."""

    def goaway_arrived(self, last_stream_id: int, code: int, why: bytes) -> None:
        """Open no more streams; those over the last number were never processed."""

    def nuisance(self) -> None:
        """Count something a hostile peer sends in floods."""

    def ping_answered(self, data: bytes) -> None:
        """Note the answer to a ping."""


class Inbound:
    """The receiving half of a connection."""

    def __init__(self, http2: Http2, limits: Limits, streams: dict[int, Stream], owner: Owner, *, client: bool) -> None:
        self._http2, self._limits, self._streams, self._owner, self._client = (
            http2,
            limits,
            streams,
            owner,
            client,
        )
        self._credit_bytes = 0
        self._on: Final[dict[type[Event], Callable[[Any], None]]] = {
            WholeRequest: self._on_whole,
            RequestReceived: self._on_request,
            ResponseReceived: self._on_response,
            TrailersReceived: self._on_trailers,
            DataReceived: self._on_data,
            StreamEnded: self._on_end,
            StreamReset: self._on_reset,
            WindowUpdated: self._on_window,
            RemoteSettingsChanged: self._on_settings,
            PingReceived: self._on_nuisance,
            PriorityUpdated: self._on_nuisance,
            PingAckReceived: self._on_ping_answer,
            ConnectionTerminated: self._on_goaway,
        }

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer.

        Raises:
            h2.exceptions.ProtocolError: The peer broke HTTP/2; the GOAWAY that says so is ready to be
                written.
        """
        handlers = self._on
        for event in self._http2.receive(data):
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)

    def _on_request(self, event: RequestReceived) -> None:
        self._owner.request_arrived(event.stream_id, _plain(event.headers))

    def _on_whole(self, request: WholeRequest) -> None:
        self._return_window(request.size)
        self._owner.whole_arrived(request)

    def _on_response(self, event: ResponseReceived) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        try:
            answer = read_response(_plain(event.headers), ended=event.stream_ended is not None)
            if isinstance(answer, ResponseHead):
                decompress = decompressor_of(answer.encoding)
                stream.head = answer
                if decompress is not None:
                    stream.decoder = MessageDecoder(self._limits.message_bytes_max, decompress)
            else:
                stream.ending = answer
        except MalformedCall as malformed:
            status = Status(StatusCode.INTERNAL, str(malformed))
            self._owner.broken_off(stream, status, ErrorCodes.PROTOCOL_ERROR)
        except LookupError as encoding:
            status = Status(StatusCode.INTERNAL, f"the peer compresses with {encoding}, which it was not offered")
            self._owner.broken_off(stream, status, ErrorCodes.CANCEL)
        _wake(stream)

    def _on_trailers(self, event: TrailersReceived) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        try:
            if self._client:
                stream.ending = read_trailers(_plain(event.headers))
            else:
                check_trailers(_plain(event.headers))
        except MalformedCall as malformed:
            status = Status(StatusCode.INTERNAL, str(malformed))
            self._owner.broken_off(stream, status, ErrorCodes.PROTOCOL_ERROR)

    def _on_data(self, event: DataReceived) -> None:
        size = event.flow_controlled_length
        self._return_window(size)
        if not size and event.stream_ended is None:
            self._owner.nuisance()
        stream = self._streams.get(event.stream_id)
        if stream is None or stream.over or stream.unusable is not None or stream.ending is not None:
            return
        stream.credit_bytes += size
        self._decode(stream, event.data)
        # A message larger than the window would deadlock if its window came back only on consumption.
        if not stream.inbox:
            self.return_credit(stream)

    def _return_window(self, size: int) -> None:
        # The connection's window is returned on receipt, so that one call that nobody reads cannot stop the
        # others.
        self._credit_bytes += size
        if self._credit_bytes * 2 >= self._limits.connection_window_bytes:
            self._http2.increment_flow_control_window(self._credit_bytes)
            self._credit_bytes = 0

    def _decode(self, stream: Stream, data: bytes) -> None:
        try:
            messages = stream.decoder.feed(data)
        except MessageTooLarge as oversize:
            self._unusable(stream, self._limits.oversize_status(oversize))
        except MalformedCall as malformed:
            self._unusable(stream, Status(StatusCode.INTERNAL, str(malformed)))
        else:
            if messages:
                stream.inbox.extend(messages)
                _wake(stream)

    def _unusable(self, stream: Stream, status: Status) -> None:
        if self._client:
            self._owner.broken_off(stream, status, ErrorCodes.CANCEL)
        else:
            # The handler's end answers in trailers: a bare reset would show up as CANCELLED at the caller.
            stream.unusable = status
            _wake(stream)

    def return_credit(self, stream: Stream) -> None:
        """Give the stream's window back to the peer, once there is enough of it to be worth a frame."""
        credit = stream.credit_bytes
        if credit * 2 >= self._limits.stream_window_bytes and not stream.remote_ended and not stream.over:
            stream.credit_bytes = 0
            self._http2.open_window(stream.number, credit)

    def _on_end(self, event: StreamEnded) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        if stream.decoder.incomplete and stream.unusable is None:
            self._unusable(stream, Status(StatusCode.INTERNAL, "the peer ended the call within a message"))
        stream.remote_ended = True
        _wake(stream)
        if stream.over:
            self._owner.stream_over(stream)

    def _on_reset(self, event: StreamReset) -> None:
        if event.remote_reset:
            self._owner.nuisance()
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        if self._client and stream.remote_ended:
            # The answer was complete: the server only says that it needs no more of the request.
            stream.drop_outbox()
            stream.local_ended = True
        else:
            stream.fail(_reset_failure(int(event.error_code or 0)))
        self._owner.stream_over(stream)

    def _on_window(self, event: WindowUpdated) -> None:
        self._owner.window_opened(event.stream_id or 0)

    def _on_settings(self, _: RemoteSettingsChanged) -> None:
        self._owner.nuisance()
        self._owner.settings_arrived()

    def _on_nuisance(self, _: Event) -> None:
        self._owner.nuisance()

    def _on_ping_answer(self, event: PingAckReceived) -> None:
        self._owner.ping_answered(event.ping_data)

    def _on_goaway(self, event: ConnectionTerminated) -> None:
        self._owner.goaway_arrived(event.last_stream_id or 0, int(event.error_code or 0), event.additional_data or b"")


def _wake(stream: Stream) -> None:
    if stream.arrivals:
        stream.arrivals.unpark_all()


def _plain(headers: Any) -> Headers:
    return headers  # type: ignore[no-any-return]  # bytes pairs: no header_encoding is set in `_http2`.


def _reset_failure(code: int) -> Failure:
    name = ErrorCodes(code).name if code in set(ErrorCodes) else str(code)
    status = Status(code_of_reset(code), f"the peer reset the call with {name}")
    return Failure(status, unprocessed=code == ErrorCodes.REFUSED_STREAM)
