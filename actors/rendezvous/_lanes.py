"""Let many harnesses share the way to one executor: each has a lane, lanes take turns, one frame each.

Frames are opaque. A lane tells when it is full, and its harness is then no longer read from: nobody else waits.
"""

from collections import deque

__all__ = ["FairLanes"]


class FairLanes:
    """What waits for one executor. The empty name is the router's own lane, and goes first."""

    __slots__ = ("_lanes", "_own", "_turns", "queued_bytes")

    def __init__(self) -> None:
        self._own: deque[bytes] = deque()
        # No lane here is empty, and each stands in `_turns` once.
        self._lanes: dict[str, tuple[deque[bytes], int]] = {}
        self._turns: deque[str] = deque()
        self.queued_bytes = 0

    def put(self, lane: str, frame: bytes) -> None:
        """Queue a frame behind those of its lane."""
        self.queued_bytes += len(frame)
        if not lane:
            self._own.append(frame)
            return
        if (known := self._lanes.get(lane)) is None:
            known = deque[bytes](), 0
            self._turns.append(lane)
        known[0].append(frame)
        self._lanes[lane] = known[0], known[1] + len(frame)

    def lane_bytes(self, lane: str) -> int:
        """Tell what waits in one lane."""
        known = self._lanes.get(lane)
        return known[1] if known is not None else 0

    def next(self) -> tuple[str, bytes] | None:
        """Give the next frame and its lane."""
        if self._own:
            frame = self._own.popleft()
            self.queued_bytes -= len(frame)
            return "", frame
        if not self._turns:
            return None
        lane = self._turns.popleft()
        frames, held = self._lanes[lane]
        frame = frames.popleft()
        self.queued_bytes -= len(frame)
        if frames:
            self._lanes[lane] = frames, held - len(frame)
            self._turns.append(lane)
        else:
            del self._lanes[lane]
        return lane, frame

    def drop(self, lane: str) -> int:
        """Forget what waits in one lane; tell how much it was."""
        known = self._lanes.pop(lane, None)
        if known is None:
            return 0
        self._turns.remove(lane)
        self.queued_bytes -= known[1]
        return known[1]
