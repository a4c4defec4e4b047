"""One HTTP/2 connection over one stream of bytes: its tasks, its phases, and its end.

A connection has a reader, one writer, a watcher for silence, and the tasks of its calls. The writer outlives
the others: cancelled from outside, it still gets a bounded time to say how the calls ended.
"""

import enum
import functools
import math
from collections.abc import Awaitable, Callable
from typing import Final

import trio
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from actors.sessions.grpc._framing import MessageDecoder
from actors.sessions.grpc._headers import OK_TRAILERS, RESPONSE_HEAD
from actors.sessions.grpc._http2 import ALL_STREAMS
from actors.sessions.grpc._inbound import Inbound
from actors.sessions.grpc._keepalive import Act, Keepalive
from actors.sessions.grpc._limits import KIB, KeepalivePolicy, Limits
from actors.sessions.grpc._metadata import Headers
from actors.sessions.grpc._outbound import Outbound
from actors.sessions.grpc._rates import TokenBucket
from actors.sessions.grpc._status import Status, StatusCode
from actors.sessions.grpc._stream import Failure, Stream
from actors.sessions.grpc._whole import WholeHttp2, WholeRequest
from actors.sessions.grpc._wire import Wire

_RECEIVE_BYTES: Final = 128 * KIB
_LINGER_S: Final = 0.5
_DRAIN_PING: Final = b"draining"
_KEEPALIVE_PING: Final = b"alive???"
# What a broken peer can make h2 raise besides its own errors; none of it may reach the other connections.
_BROKEN_INPUT: Final = (ProtocolError, ValueError, LookupError, AssertionError)


class Phase(enum.Enum):
    """Where a connection stands. It only ever moves forward."""

    OPEN = "open"
    DRAINING = "draining: open calls go on, no new ones"
    ENDED = "ended"


class _Flood(Exception):
    """The peer sends too much of what costs it nothing."""


class Connection:
    """One end of a connection. `run` is its life; everything else is a plain function."""

    def __init__(
        self,
        transport: trio.abc.Stream,
        *,
        client: bool,
        limits: Limits,
        keepalive: KeepalivePolicy,
        accept: "Callable[[Connection, Stream, Headers], None] | None" = None,
        at_once: "tuple[Callable[[Headers], object], Callable[[Connection, WholeRequest], None]] | None" = None,
        changed: Callable[[], object] = lambda: None,
        too_many_pings: Callable[[], object] = lambda: None,
    ) -> None:
        self.limits: Limits = limits
        self.phase: Phase = Phase.OPEN
        self.lost_because: str = ""
        self._wire = Wire(transport)
        self._transport, self._client, self._accept, self._changed = transport, client, accept, changed
        self._too_many_pings = too_many_pings
        self._http2 = WholeHttp2(client=client, limits=limits)
        if at_once is not None:
            self._http2.at_once, self._answer_whole = at_once
        self.streams: dict[int, Stream] = {}
        self.outbound: Outbound = Outbound(self._http2, client=client, on_over=self.stream_over)
        self._inbound = Inbound(self._http2, limits, self.streams, self, client=client)
        self._nuisances = TokenBucket(limits.resets_per_s_max, limits.resets_burst_max)
        self._keepalive, self._heard_at_s = keepalive, trio.current_time()
        self._settled = trio.Event()
        self._relief = trio.lowlevel.ParkingLot()
        self._writing = trio.CancelScope(shield=True)
        self._ending = False
        # The last stream a draining server still takes; None until it has been told.
        self._last_number: int | None = None
        self._calls: trio.Nursery | None = None
        self._arrived: list[Callable[[], object]] = []
        # Requests that came whole in the bytes that are looked at just now: they count as streams.
        self._whole_waiting = 0
        # What `flush` could not write, and whether the writer is writing: one of them writes at a time.
        self._unsent, self._sending = bytearray(), False

    # --- life

    async def run(self, first_bytes: bytes = b"") -> None:
        """Serve the connection until it ends, for whatever reason; `lost_because` says which.

        Cancelled:
            Calls are cancelled first, then what they left to say is written for at most half a second.
        """
        self._http2.begin(self.limits.connection_window_bytes)
        try:
            async with trio.open_nursery() as outer:
                outer.start_soon(self._write)
                try:
                    async with trio.open_nursery() as self._calls:
                        if math.isfinite(self._keepalive.interval_s):
                            self._calls.start_soon(self._watch)
                        self._end_if_drained()  # It may have been asked to end before it began.
                        await self._read(first_bytes)
                        self._calls.cancel_scope.cancel()
                finally:
                    self._begin_goodbye()
        finally:
            self.phase = Phase.ENDED
            self._fail_calls()
            self._changed()
            await trio.aclose_forcefully(self._transport)

    def spawn(self, call: Callable[..., Awaitable[object]], *args: object) -> None:
        """Run a call's task for as long as the connection lives."""
        assert self._calls is not None, "a call arrived before the connection ran"
        self._calls.start_soon(call, *args)

    def when_taken(self, begin: Callable[[], object]) -> None:
        """Begin a call once all that has arrived with its headers was looked at."""
        self._arrived.append(begin)

    async def wait_settled(self) -> None:
        """Wait until the peer has shown that it speaks HTTP/2, or the connection has ended."""
        await self._settled.wait()

    async def _read(self, data: bytes) -> None:
        while True:
            if data:
                self._heard_at_s = trio.current_time()
                self.cork()
                try:
                    taken = self._take(data)
                finally:
                    self.uncork()
                if not taken:
                    return None
                while self._http2.overdue:
                    await self._relief.park()
            try:
                data = await self._wire.receive(_RECEIVE_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as broken:
                return self._lose(f"the connection broke: {broken}")
            if not data:
                return self._lose("the peer closed the connection")

    def cork(self) -> None:
        """Let what becomes ready wait until `uncork`, in the same step: it is then written in one piece."""
        self.outbound.corked = True

    def uncork(self) -> None:
        """Write what has become ready."""
        self.outbound.corked = False
        if self.outbound.waiting:
            self.flush()

    def _take(self, data: bytes) -> bool:
        try:
            try:
                self._inbound.receive(data)
            finally:
                arrived, self._arrived = self._arrived, []
                for begin in arrived:
                    begin()
        except _Flood:
            self._http2.goaway(self._http2.highest_inbound_stream_id, code=ErrorCodes.ENHANCE_YOUR_CALM)
            self._lose("the peer sends more resets, pings or settings than this end allows")
            return False
        except _BROKEN_INPUT as broken:
            self._lose(f"the peer broke HTTP/2: {str(broken) or type(broken).__name__}")
            return False
        return True

    def flush(self) -> None:
        """Write what is ready in this very step, if the writer does nothing: it need not wake for a small answer."""
        if self._unsent or self._sending or self._ending:
            self.outbound.wake()
            return
        self._unsent = self._wire.send_now(self.outbound.next_batch())
        if self._unsent or self.outbound.waiting:
            self.outbound.wake()

    async def _write(self) -> None:
        with self._writing:
            try:
                while True:
                    batch, self._unsent = self._unsent or self.outbound.next_batch(), bytearray()
                    if batch:
                        self._sending = True
                        await self._wire.send(batch)
                        self._sending = False
                        self._relief.unpark_all()
                        if self.outbound.waiting:
                            await trio.lowlevel.checkpoint()
                    elif self._ending:
                        return
                    else:
                        await self.outbound.wait()
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as broken:
                self._lose(f"the connection broke: {broken}")

    async def _watch(self) -> None:
        keepalive = Keepalive(self._keepalive)
        while True:
            keepalive, act, again_at_s = keepalive.decide(
                now_s=trio.current_time(), heard_at_s=self._heard_at_s, calls_open=bool(self.streams)
            )
            if act is Act.GIVE_UP:
                # Whatever the writer holds is stuck in front of a peer that does not read.
                self._writing.cancel()
                return self._lose(f"the peer was silent for {self._keepalive.timeout_s:g} s after a ping")
            if act is Act.PING:
                self._http2.ping(_KEEPALIVE_PING)
                self.outbound.wake()
            await trio.sleep_until(again_at_s)

    def _lose(self, why: str) -> None:
        self.lost_because = self.lost_because or why
        self.phase = Phase.ENDED
        self._fail_calls()
        self._settled.set()
        self._finish()

    def _finish(self) -> None:
        if self._calls is not None:
            self._calls.cancel_scope.cancel()

    def _fail_calls(self) -> None:
        why = self.lost_because or "the connection was closed at this end"
        for stream in list(self.streams.values()):
            stream.fail(Failure(Status(StatusCode.UNAVAILABLE, why)))
            self.streams.pop(stream.number, None)
        self._settled.set()

    def _begin_goodbye(self) -> None:
        if not self.lost_because and self._last_number is None:
            last = 0 if self._client else self._http2.highest_inbound_stream_id
            self._http2.goaway(last)
        self._ending = True
        self._writing.deadline = trio.current_time() + _LINGER_S
        self.outbound.wake()

    # --- calls of this end

    @property
    def has_room(self) -> bool:
        """Whether a call may start now."""
        allowed = min(self._http2.remote_settings.max_concurrent_streams, self.limits.concurrent_calls_max)
        return self.phase is Phase.OPEN and len(self.streams) < allowed

    def start(self, headers: Headers) -> Stream:
        """Open a stream; check `has_room` in the same breath."""
        assert self.has_room, "a call was started on a connection without room"
        number = self._http2.get_next_available_stream_id()
        stream = Stream(number, MessageDecoder(self.limits.message_bytes_max))
        self.streams[number] = stream
        self.outbound.send_headers(stream, headers)
        return stream

    def write_whole(self, request: WholeRequest, payload: bytes) -> bool:
        """Answer a request that came whole, well and in one piece; False if that cannot be."""
        fits = len(payload) <= self.limits.message_bytes_max
        return fits and self._http2.write_whole(request, RESPONSE_HEAD, payload, OK_TRAILERS)

    def open_whole(self, request: WholeRequest) -> Stream:
        """Open the stream of a request that came whole, to answer it in any other way."""
        self._http2.open_whole(request)
        stream = Stream(request.number, MessageDecoder(self.limits.message_bytes_max))
        stream.remote_ended = True
        self.streams[request.number] = stream
        return stream

    @property
    def header_list_bytes_max(self) -> int | None:
        """How large a header block the peer takes, if it said so."""
        return self._http2.remote_settings.max_header_list_size

    def abandon(self, stream: Stream) -> None:
        """Let go of a stream; the peer is told unless all is said already."""
        if not stream.over:
            self.outbound.reset(stream, ErrorCodes.CANCEL)
            stream.failure = Failure(Status(StatusCode.CANCELLED, "the call was abandoned at this end"))
        self.stream_over(stream)

    def taken(self, stream: Stream) -> None:
        """Note that a message was taken, so that the peer may send more."""
        if not stream.inbox and stream.credit_bytes:
            self._inbound.return_credit(stream)
            if self._http2.waiting_bytes:
                self.outbound.wake()

    # --- draining

    def drain(self) -> None:
        """Take no new calls and end when the open ones have ended.

        A server says so twice, as gRPC asks: first "no more soon", and after a round trip "none after this
        one", so that no call that is on its way is lost.
        """
        if self.phase is not Phase.OPEN:
            return
        self.phase = Phase.DRAINING
        if self._client:
            self._last_number = 0
            self._http2.goaway(0)
        else:
            self._http2.goaway(ALL_STREAMS)
            self._http2.ping(_DRAIN_PING)
        self.outbound.wake()
        self._end_if_drained()
        self._changed()

    def _end_if_drained(self) -> None:
        if self.phase is Phase.DRAINING and self._last_number is not None and not self.streams:
            self._finish()

    # --- news from `_inbound`, which calls these

    def request_arrived(self, number: int, headers: Headers) -> None:
        """Open a stream for a request, or refuse it."""
        if self._is_refused(number) or self._accept is None:
            self._http2.reset_stream(number, ErrorCodes.REFUSED_STREAM)
            self._http2.retire(number)
            self.nuisance()
            return
        stream = Stream(number, MessageDecoder(self.limits.message_bytes_max))
        self.streams[number] = stream
        self._accept(self, stream, headers)

    def _is_refused(self, number: int) -> bool:
        """Say whether a request comes after the last that is taken, or there are enough already."""
        late = self._last_number is not None and number > self._last_number
        return late or len(self.streams) + self._whole_waiting >= self.limits.concurrent_calls_max

    def whole_arrived(self, request: WholeRequest) -> None:
        """Answer a request that came whole, once all that came with it was looked at, or refuse it."""
        if self._is_refused(request.number):
            self._http2.refuse_whole(request)
            self.nuisance()
            return
        self._whole_waiting += 1
        self._arrived.append(functools.partial(self._begin_whole, request))

    def _begin_whole(self, request: WholeRequest) -> None:
        self._whole_waiting -= 1
        if self._http2.is_waited_for(request):
            self._answer_whole(self, request)
        else:
            self._http2.retire(request.number)

    def broken_off(self, stream: Stream, status: Status, code: ErrorCodes) -> None:
        """Give up on a stream whose peer broke the rules."""
        self.outbound.reset(stream, code)
        stream.fail(Failure(status))
        self.stream_over(stream)

    def stream_over(self, stream: Stream) -> None:
        """Retire a stream on which nothing more happens."""
        self._http2.retire(stream.number)
        self.outbound.forget(stream)
        if self.streams.pop(stream.number, None) is not None:
            self._end_if_drained()
            self._changed()

    def window_opened(self, number: int) -> None:
        """Send on."""
        self.outbound.window_opened(number)

    def settings_arrived(self) -> None:
        """Take the peer's new settings into account."""
        self._settled.set()
        self.outbound.window_opened(0)
        self._changed()

    def goaway_arrived(self, last_stream_id: int, code: int, why: bytes) -> None:
        """Open no more streams; those over the last number were never processed."""
        if self.phase is Phase.OPEN:
            self.phase = Phase.DRAINING
        if why == b"too_many_pings":
            self._too_many_pings()
        if not self._client:
            return
        self._last_number = 0
        text = why.decode("utf-8", "replace") or f"code {code}"
        for stream in [s for s in self.streams.values() if s.number > last_stream_id]:
            status = Status(StatusCode.UNAVAILABLE, f"the peer is going away ({text}) and did not take the call")
            stream.fail(Failure(status, unprocessed=True))
            self.stream_over(stream)
        self._end_if_drained()
        self._changed()

    def nuisance(self) -> None:
        """Count something a hostile peer sends in floods."""
        if not self._nuisances.take(trio.current_time()):
            raise _Flood

    def ping_answered(self, data: bytes) -> None:
        """Finish the first half of draining."""
        if data == _DRAIN_PING and self._last_number is None:
            self._last_number = self._http2.highest_inbound_stream_id
            self._http2.goaway(self._last_number)
            self._end_if_drained()
