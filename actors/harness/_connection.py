"""Calls and news over one channel, for as long as the channel lives.

One task writes, one reads, one looks for signs of life. A call knows whether its first byte was written, so that its
end can say what became of it. Answers without a call are counted and harmless; a peer that keeps sending what cannot
be read is cut off. Knows no sessions and no processes.
"""

import math
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs
import trio

from actors.harness._channel import ChannelClosed, MessageChannel
from actors.harness._errors import (
    CallNotSent,
    CallTimedOut,
    Disconnected,
    HarnessError,
    InvalidArgument,
    ProtocolBroken,
    RequestTooLarge,
    TooManyCalls,
    TransportClosed,
)
from actors.harness._flow import ReadValve
from actors.harness._limits import HarnessLimits
from actors.harness._outgoing import Outgoing, Phase
from actors.harness._pending import NoRoom, PendingCalls, Stray
from actors.protocol import (
    ErrorResponse,
    MalformedMessage,
    Message,
    MessageTooLarge,
    Method,
    News,
    Notification,
    ProtocolFault,
    Request,
    Response,
    decode_message,
    encode_message,
    method_not_found,
)

P = TypeVar("P")
R = TypeVar("R")

# How many times as long as asked for a wait may take while nobody was stopped.
_LATE: Final = 1.2


@attrs.frozen(kw_only=True)
class ConnectionStatistics:
    """What a connection has seen.

    Attributes:
        open_calls: Calls without an answer.
        open_calls_peak: The most there were at once.
        duplicate_answers: Answers to calls that had one.
        late_answers: Answers to calls nobody waited for any more.
        offences: Messages that could not be read or had no place.
    """

    open_calls: int
    open_calls_peak: int
    duplicate_answers: int
    late_answers: int
    offences: int


class Connection:
    """One connection's calls."""

    def __init__(
        self,
        channel: MessageChannel,
        *,
        limits: HarnessLimits,
        valve: ReadValve,
        on_news: Callable[[Notification], None],
    ) -> None:
        self._channel = channel
        self._limits = limits
        self._valve = valve
        self._on_news = on_news
        self._pending: PendingCalls[Outgoing] = PendingCalls(limit=limits.pending_calls)
        self._queue: deque[Outgoing] = deque()
        self._queued_bytes = 0
        self._writer_lot = trio.lowlevel.ParkingLot()
        self._room_lot = trio.lowlevel.ParkingLot()
        self._reserve = trio.Lock()
        self._strays: Counter[Stray] = Counter()
        self._offences = 0
        self._heard_s = trio.current_time()
        self._scope: trio.CancelScope | None = None
        self.lost: HarnessError | None = None
        """Why the connection ended, once it has."""

    def statistics(self) -> ConnectionStatistics:
        """Give a snapshot."""
        return ConnectionStatistics(
            open_calls=len(self._pending),
            open_calls_peak=self._pending.peak,
            duplicate_answers=self._strays[Stray.DUPLICATE],
            late_answers=self._strays[Stray.LATE],
            offences=self._offences,
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Carry messages until the connection ends; `lost` says why.

        Cancelled:
            Every open call ends as its phase says.
        """
        try:
            async with trio.open_nursery() as nursery:
                self._scope = nursery.cancel_scope
                nursery.start_soon(self._write)
                nursery.start_soon(self._read)
                nursery.start_soon(self._look_for_life)
                task_status.started()
        finally:
            self.end(TransportClosed())

    def end(self, reason: HarnessError) -> None:
        """End the connection for a reason; only the first counts."""
        if self.lost is not None:
            return
        self.lost = reason
        self._queue.clear()
        self._queued_bytes = 0
        for outgoing in self._pending.end_all():
            outgoing.end(reason)
        self._room_lot.unpark_all()
        if self._scope is not None:
            self._scope.cancel()

    def notify(self, news: News[P], params: P) -> None:
        """Queue a notification."""
        data = encode_message(Notification(news.name, news.encode_params(params)))
        self._enqueue(Outgoing(data))

    async def call(
        self, method: Method[P, R], params: P, *, timeout_s: float | None, identity: str = "", cleanup: bool = False
    ) -> R:
        """Call a method and give its result.

        ``cleanup`` calls may use the one place kept free for them.

        Raises:
            DidNotRun: Nothing was written: the connection ended first, too many calls, too large.
            MayHaveRun: It was written, and no answer came.
            Failed: The answer is an error.

        Cancelled:
            A call that was not written is withdrawn. The answer to one that was is counted as late.
        """
        encoded = method.encode_params(params)
        limit_s = math.inf if timeout_s is None else timeout_s
        tried: list[Outgoing] = []
        with trio.move_on_after(limit_s):
            while self._queued_bytes >= self._limits.queued_bytes and self.lost is None:
                await self._room_lot.park()
            if not cleanup or not self._pending.full:
                await self._exchange(method, encoded, identity, tried, reserved=False)
            else:
                async with self._reserve:
                    await self._exchange(method, encoded, identity, tried, reserved=True)
        if not tried:
            raise CallNotSent(method.name, CallTimedOut(method.name, limit_s), identity=identity)
        return tried[0].result(method, timeout_s=limit_s, identity=identity)

    async def _exchange(
        self, method: Method[Any, Any], params: Any, identity: str, tried: list[Outgoing], *, reserved: bool
    ) -> None:
        request_id, outgoing = self._open(method, params, identity, reserved=reserved)
        tried.append(outgoing)
        try:
            with self._valve.someone_waits():
                await outgoing.done.wait()
        finally:
            if outgoing.answer is None:
                self._give_up(request_id, outgoing)

    def _open(self, method: Method[Any, Any], params: Any, identity: str, *, reserved: bool) -> tuple[int, Outgoing]:
        if self.lost is not None:
            raise CallNotSent(method.name, self.lost, identity=identity) from self.lost
        outgoing = Outgoing(b"")
        try:
            request_id = self._pending.open(outgoing, reserved=reserved)
        except NoRoom:
            raise TooManyCalls(self._limits.pending_calls) from None
        try:
            request = Request(request_id, method.name, params)
            outgoing.data = encode_message(request, limit_bytes=self._limits.request_bytes)
        except MessageTooLarge as fault:
            self._pending.settle(request_id)
            raise RequestTooLarge(method.name, fault.size_bytes, fault.limit_bytes) from None
        except MalformedMessage as fault:
            self._pending.settle(request_id)
            raise InvalidArgument(method.name, fault.reason) from fault
        self._enqueue(outgoing)
        return request_id, outgoing

    def _give_up(self, request_id: int, outgoing: Outgoing) -> None:
        if outgoing.phase is Phase.QUEUED:
            outgoing.phase = Phase.WITHDRAWN
            self._pending.settle(request_id)
        else:
            self._pending.abandon(request_id)

    def _enqueue(self, outgoing: Outgoing) -> None:
        self._queue.append(outgoing)
        self._queued_bytes += len(outgoing.data)
        self._writer_lot.unpark()

    async def _write(self) -> None:
        # The only task that sends: a cancelled send leaves half a message behind (docs: the harness's architecture).
        while True:
            while not self._queue:
                await self._writer_lot.park()
            outgoing = self._queue.popleft()
            self._queued_bytes -= len(outgoing.data)
            self._room_lot.unpark_all()
            if outgoing.phase is Phase.WITHDRAWN:
                continue
            outgoing.phase = Phase.WRITTEN
            try:
                await self._channel.send(outgoing.data)
            except ChannelClosed as closed:
                if not closed.written:
                    outgoing.phase = Phase.QUEUED
                self.end(Disconnected(closed.reason))
                return

    async def _read(self) -> None:
        while True:
            await self._valve.wait_open()
            try:
                data = await self._channel.receive()
            except ChannelClosed as closed:
                self.end(Disconnected(closed.reason))
                return
            self._heard_s = trio.current_time()
            try:
                message = decode_message(data, limit_bytes=self._limits.message_bytes)
                self._dispatch(message)
            except MalformedMessage as fault:
                self._malformed(fault)
            except ProtocolFault as fault:
                self._offence(str(fault))

    def _dispatch(self, message: Message) -> None:
        match message:
            case Response() | ErrorResponse():
                outgoing = self._pending.settle(message.id)
                if isinstance(outgoing, Stray):
                    self._strays[outgoing] += 1
                    if outgoing is Stray.UNKNOWN:
                        self._offence(f"answer to request {message.id!r}, which was never made")
                else:
                    outgoing.end(message)
            case Notification():
                self._on_news(message)
            case Request():
                # A place in the queue is not for the peer to fill: one answer at a time, the rest go without.
                if not self._queue:
                    error = method_not_found(message.method)
                    self._enqueue(Outgoing(encode_message(ErrorResponse(message.id, error))))

    def _malformed(self, fault: MalformedMessage) -> None:
        # The call it was meant for must not wait for ever.
        if fault.request_id is not None:
            outgoing = self._pending.settle(fault.request_id)
            if not isinstance(outgoing, Stray):
                outgoing.end(fault)
        self._offence(fault.reason)

    def _offence(self, what: str) -> None:
        self._offences += 1
        if self._offences >= self._limits.offences:
            self.end(ProtocolBroken(f"cut off after {self._offences} messages that have no place; the last: {what}"))

    async def _look_for_life(self) -> None:
        limits = self._limits
        while True:
            await trio.sleep_until(self._heard_s + limits.keepalive_s)
            if trio.current_time() < self._heard_s + limits.keepalive_s:
                continue
            # While we do not read, silence is ours: the peer's frames wait in front of the valve.
            if not self._valve.is_open:
                await self._valve.wait_open()
                self._heard_s = trio.current_time()
                continue
            asked_s = trio.current_time()
            with trio.move_on_after(limits.pong_s) as scope:
                try:
                    await self._channel.ping()
                except ChannelClosed as closed:
                    self.end(Disconnected(closed.reason))
                    return
                self._heard_s = trio.current_time()
            # Woken much too late, we were stopped ourselves, and what the peer said meanwhile is still unread.
            was_stopped = trio.current_time() - asked_s > limits.pong_s * _LATE
            if scope.cancelled_caught and self._heard_s <= asked_s and not was_stopped:
                self.end(Disconnected(f"no sign of life for {limits.keepalive_s + limits.pong_s:g} s"))
                return
