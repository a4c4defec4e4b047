"""One connection of each kind, and what waits for it: an executor's lanes, one for each harness, or a harness's queue.

A link says what goes out next when its socket asks, and wakes whoever may go on. Who is linked with whom is the
router's business.
"""

from collections import deque
from collections.abc import Callable

import trio

from actors.rendezvous._lanes import FairLanes
from actors.rendezvous._limits import RendezvousLimits
from actors.rendezvous._rates import RateMeter
from actors.rendezvous._registry import Authorization, Registration
from actors.rendezvous._websocket import ServerWebSocket

__all__ = ["GOING_AWAY", "ExecutorLink", "HarnessLink"]

GOING_AWAY = 1001
"""The close code that says: come again, perhaps elsewhere."""


class ExecutorLink:
    """One executor's connection, and the harnesses it serves."""

    __slots__ = ("_lane_bytes", "harnesses", "is_gone", "lanes", "registration", "socket")

    def __init__(self, registration: Registration, limits: RendezvousLimits) -> None:
        self.registration = registration
        self._lane_bytes = limits.lane_bytes
        self.lanes = FairLanes()
        self.harnesses: dict[str, HarnessLink] = {}
        self.is_gone = False
        self.socket: ServerWebSocket | None = None

    def next_frame(self) -> bytes | None:
        """Give the next frame, in turn; let a harness be read from again when its lane has room."""
        if (turn := self.lanes.next()) is None:
            return None
        stream_id, frame = turn
        if (harness := self.harnesses.get(stream_id)) is not None:
            harness.lane_has_room(self.lanes.lane_bytes(stream_id) < self._lane_bytes)
        return frame

    def put(self, lane: str, frame: bytes) -> None:
        """Queue a frame for the executor."""
        self.lanes.put(lane, frame)
        if self.socket is not None:
            self.socket.wake()


class HarnessLink:
    """One harness's connection, and its one stream."""

    __slots__ = (
        "_lot",
        "_nursery",
        "_paused",
        "authorization",
        "executor",
        "frames",
        "is_finished",
        "meters",
        "on_taken",
        "queued_bytes",
        "socket",
        "stream_id",
    )  # fmt: skip

    def __init__(
        self,
        authorization: Authorization,
        executor: ExecutorLink,
        meters: tuple[RateMeter, RateMeter],
        nursery: trio.Nursery,
        on_taken: Callable[[int], None],
    ) -> None:
        self.authorization, self.executor, self.meters = authorization, executor, meters
        self._nursery = nursery
        self.on_taken = on_taken
        self.stream_id: str | None = None
        # None while nothing waits: an empty deque takes 760 bytes, and most harnesses are idle.
        self.frames: deque[bytes] | None = None
        self.queued_bytes = 0
        # After the last frame the connection is closed.
        self.is_finished = False
        self.socket: ServerWebSocket | None = None
        self._paused = False
        self._lot: trio.lowlevel.ParkingLot | None = None

    def next_frame(self) -> bytes | None:
        """Give the next frame, unless the token has to wait its turn."""
        if self._paused:
            return None
        if self.frames is None:
            if self.is_finished:
                self.hang_up(GOING_AWAY)
            return None
        frame = self.frames.popleft()
        if not self.frames:
            self.frames = None
        self.queued_bytes -= len(frame)
        self.on_taken(len(frame))
        if wait_s := self.meters[1].take(len(frame), trio.current_time()):
            self._paused = True
            self._nursery.start_soon(self._go_on, wait_s)
        return frame

    async def _go_on(self, wait_s: float) -> None:
        await trio.sleep(wait_s)
        self._paused = False
        if self.socket is not None:
            self.socket.wake()

    def put(self, frame: bytes) -> None:
        """Queue a frame for the harness."""
        if self.frames is None:
            self.frames = deque()
        self.frames.append(frame)
        self.queued_bytes += len(frame)
        if self.socket is not None:
            self.socket.wake()

    def drop_frames(self) -> None:
        """Forget what waits."""
        self.on_taken(self.queued_bytes)
        self.frames = None
        self.queued_bytes = 0

    def finish(self) -> None:
        """Close the connection once everything is written."""
        self.is_finished = True
        if self.socket is not None:
            self.socket.wake()

    def hang_up(self, code: int) -> None:
        """Close the connection now."""
        if self._lot is not None:
            self._lot.unpark_all()
        if self.socket is not None:
            self._nursery.start_soon(self.socket.close, code)

    async def wait_for_room(self) -> None:
        """Wait until this harness may be read from."""
        if self._lot is None:
            self._lot = trio.lowlevel.ParkingLot()
        await self._lot.park()

    def lane_has_room(self, has_room: bool) -> None:  # One fact, told by one caller.
        """Wake the reader when there is room."""
        if has_room and self._lot is not None:
            self._lot.unpark_all()
