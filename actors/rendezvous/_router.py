"""Carry frames between harnesses and executors. Reads whose frame it is and which kind; the rest is opaque.

Towards an executor each harness has a lane, and is not read from while its lane is full. Towards a harness nothing
ever waits: what a slow one does not take is held up to a bound, and then its stream ends. So no stream waits for
another, whichever end is slow.
"""

from collections.abc import Callable

import trio

from actors.relay import FrameUndecodable, UncheckedFrame, encode_reset, parse
from actors.rendezvous._counters import Counters
from actors.rendezvous._limits import RendezvousLimits
from actors.rendezvous._links import GOING_AWAY, ExecutorLink, HarnessLink
from actors.rendezvous._rates import RateMeter
from actors.rendezvous._registry import Authorization, Registration, Registry
from actors.rendezvous._websocket import ServerWebSocket, WebSocketClosed

__all__ = ["Router"]

_POLICY = 1008
_OWN_LANE_BYTES = 64 * 1024
_ROUND_S = 1.0
# How many times as long a round may take while nobody was stopped.
_LATE = 3
_SOCKETS_AT_ONCE = 50


class Router:
    """All connections of one rendezvous."""

    def __init__(self, registry: Registry, limits: RendezvousLimits, counters: Counters, nursery: trio.Nursery) -> None:
        self._registry, self._limits, self._counters, self._nursery = registry, limits, counters, nursery
        self._executors: dict[str, ExecutorLink] = {}
        self._meters: dict[str, tuple[RateMeter, RateMeter]] = {}
        self.sockets: set[ServerWebSocket] = set()
        self.streams_by_grant: dict[str, int] = {}
        self.buffered_bytes = 0

    @property
    def executors(self) -> int:
        """How many executors are connected."""
        return len(self._executors)

    @property
    def streams(self) -> int:
        """How many harnesses have a stream."""
        return sum(len(executor.harnesses) for executor in self._executors.values())

    async def serve_executor(
        self, registration: Registration, open_socket: Callable[[ExecutorLink], ServerWebSocket]
    ) -> None:
        """Carry what an executor sends, until it leaves. A newer connection of a registration takes its place."""
        link = ExecutorLink(registration, self._limits)
        link.socket = socket = open_socket(link)
        if (older := self._executors.pop(registration.registration_id, None)) is not None:
            self._counters.executors_replaced += 1
            self._dismiss(older)
        self._executors[registration.registration_id] = link
        self._registry.executor_came(registration)
        self.sockets.add(socket)
        try:
            while True:
                self._from_executor(link, await socket.receive())
        except WebSocketClosed:
            pass
        finally:
            self.sockets.discard(socket)
            if self._executors.get(registration.registration_id) is link:
                del self._executors[registration.registration_id]
                self._registry.executor_left(registration, trio.current_time())
            self._dismiss(link)
            await socket.close(GOING_AWAY)

    def _dismiss(self, link: ExecutorLink) -> None:
        """End an executor's connection for its harnesses: its streams ended with it."""
        link.is_gone = True
        for harness in link.harnesses.values():
            harness.finish()
            harness.lane_has_room(has_room=True)
        link.harnesses.clear()
        if link.socket is not None:
            self._nursery.start_soon(link.socket.close, GOING_AWAY)

    def _from_executor(self, link: ExecutorLink, message: bytes | None) -> None:
        if message is None or (frame := _parse(message)) is None:
            self._counters.frames_dropped += 1
            return
        harness = link.harnesses.get(frame.stream_id)
        if harness is None:
            self._counters.frames_without_stream += 1
            if not frame.is_reset and link.lanes.lane_bytes(frame.stream_id) < _OWN_LANE_BYTES:
                link.put(frame.stream_id, encode_reset(frame.stream_id))
            return
        size = len(message)
        if (
            harness.queued_bytes + size > self._limits.stream_bytes
            or self.buffered_bytes + size > self._limits.buffered_bytes
        ):
            self._counters.streams_reset_slow += 1
            harness.drop_frames()
            self._release(harness)
            return
        self._counters.frames_to_harnesses += 1
        self._counters.bytes_to_harnesses += size
        self.buffered_bytes += size
        harness.put(message)
        if frame.is_reset:
            del link.harnesses[frame.stream_id]
            harness.stream_id = None
            harness.finish()

    async def serve_harness(
        self, authorization: Authorization, open_socket: Callable[[HarnessLink], ServerWebSocket]
    ) -> None:
        """Carry what a harness sends, until it leaves or its stream ends."""
        executor = self._executors.get(authorization.registration.registration_id)
        if executor is None:
            return
        name = authorization.grant.name
        self.streams_by_grant[name] = self.streams_by_grant.get(name, 0) + 1
        link = HarnessLink(authorization, executor, self._meters_of(name), self._nursery, self._taken)
        link.socket = socket = open_socket(link)
        self.sockets.add(socket)
        try:
            with trio.move_on_after(self._limits.claim_s):
                while link.stream_id is None:
                    self._claim(link, await socket.receive())
            while link.stream_id is not None:
                await self._take_turn(link)
                self._from_harness(link, await socket.receive())
        except WebSocketClosed:
            pass
        finally:
            self.sockets.discard(socket)
            self._release(link)
            self._registry.harness_left(authorization)
            try:
                await socket.close(GOING_AWAY)
            finally:
                link.drop_frames()
                self.streams_by_grant[name] -= 1

    def _meters_of(self, name: str) -> tuple[RateMeter, RateMeter]:
        if (meters := self._meters.get(name)) is None:
            rate, now_s = self._limits.bytes_per_s, trio.current_time()
            meters = self._meters[name] = RateMeter(rate, rate, now_s), RateMeter(rate, rate, now_s)
        return meters

    def _taken(self, size_bytes: int) -> None:
        self.buffered_bytes -= size_bytes

    def _claim(self, link: HarnessLink, message: bytes | None) -> None:
        """Bind the connection, and its authorization, to the stream that its first frame names."""
        if message is None or (frame := _parse(message)) is None or not frame.stream_id.strip():
            self._counters.frames_dropped += 1
            return
        executor, stream_id = link.executor, frame.stream_id
        taken = stream_id in executor.harnesses
        if executor.is_gone or taken or len(executor.harnesses) >= self._limits.max_streams_per_executor:
            self._counters.streams_refused += 1
            link.put(encode_reset(stream_id))
            self.buffered_bytes += link.queued_bytes
            link.finish()
            raise WebSocketClosed("refused")
        executor.harnesses[stream_id] = link
        link.stream_id = link.authorization.stream_id = stream_id
        self._forward(link, message)

    def _from_harness(self, link: HarnessLink, message: bytes | None) -> None:
        if message is None or (frame := _parse(message)) is None or frame.stream_id != link.stream_id:
            self._counters.frames_dropped += 1
            return
        self._forward(link, message)

    def _forward(self, link: HarnessLink, message: bytes) -> None:
        assert link.stream_id is not None, "only a claimed stream is forwarded"
        self._counters.frames_to_executors += 1
        self._counters.bytes_to_executors += len(message)
        link.meters[0].take(len(message), trio.current_time())
        link.executor.put(link.stream_id, message)

    async def _take_turn(self, link: HarnessLink) -> None:
        """Wait until the harness may be read from: its lane has room, and its token has not used up its rate."""
        if wait_s := link.meters[0].take(0, trio.current_time()):
            await trio.sleep(wait_s)
        lanes, limit = link.executor.lanes, self._limits.lane_bytes
        while link.stream_id is not None and not link.executor.is_gone and lanes.lane_bytes(link.stream_id) >= limit:
            await link.wait_for_room()
        if link.executor.is_gone:
            raise WebSocketClosed("the executor is gone")

    def _release(self, link: HarnessLink) -> None:
        """Give a stream's id back, and tell the executor behind everything that was sent on it."""
        stream_id, link.stream_id = link.stream_id, None
        if stream_id is None:
            return
        if not link.executor.is_gone and link.executor.harnesses.get(stream_id) is link:
            del link.executor.harnesses[stream_id]
            link.executor.put(stream_id, encode_reset(stream_id))
        if not link.is_finished:
            link.hang_up(_POLICY)

    async def keep_alive(self) -> None:
        """Ping the silent and drop the dead, a few at a time so that no frame waits for the round."""
        while True:
            slept_s = -trio.current_time()
            await trio.sleep(_ROUND_S)
            slept_s += trio.current_time()
            # Woken much too late, we were stopped ourselves, and what the peers said meanwhile is still unread.
            was_stopped = slept_s > _LATE * _ROUND_S
            for number, socket in enumerate(list(self.sockets)):
                socket.keep_alive(trio.current_time(), forgive=was_stopped)
                if number % _SOCKETS_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()


def _parse(message: bytes) -> UncheckedFrame | None:
    try:
        return parse(message)
    except FrameUndecodable:
        return None
