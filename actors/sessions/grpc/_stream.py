"""One call's stream on a connection: what has arrived, what waits to be sent, and who waits for either.

Plain state and two places to wait. `_connection` fills it and empties it; the two ends of a call use it.
"""

from collections import deque
from collections.abc import Callable

import attrs
import trio

from actors.sessions.grpc._framing import MessageDecoder
from actors.sessions.grpc._headers import Ending, ResponseHead
from actors.sessions.grpc._metadata import Headers
from actors.sessions.grpc._status import Status


@attrs.frozen
class Failure:
    """Why a stream ended before its time."""

    status: Status
    """What the waiting side is told."""

    unprocessed: bool = False
    """Whether the peer promised that it never looked at the call, so that calling again is safe."""


class Stream:
    """Everything known of one stream."""

    __slots__ = (
        "arrivals", "closing", "credit_bytes", "decoder", "ending", "failure", "head", "inbox", "local_ended",
        "number", "on_gone", "outbox", "queued_bytes", "remote_ended", "room", "scheduled", "unusable",
    )  # fmt: skip

    def __init__(self, number: int, decoder: MessageDecoder) -> None:
        self.number: int = number
        # Inbound. After `failure`, `unusable` or `remote_ended` no more messages come; those in `inbox` still
        # count.
        self.decoder: MessageDecoder = decoder
        self.head: ResponseHead | None = None
        self.ending: Ending | None = None
        self.inbox: deque[bytes] = deque()
        self.credit_bytes: int = 0
        self.remote_ended: bool = False
        self.unusable: Status | None = None
        self.failure: Failure | None = None
        self.on_gone: Callable[[], object] | None = None
        self.arrivals: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()
        # Outbound. `queued_bytes` is the sum of `outbox`; `closing` stands behind it: trailers, or an empty
        # list for a bare end. `scheduled` is true exactly while the stream stands in the writer's rotation.
        self.outbox: deque[memoryview] = deque()
        self.queued_bytes: int = 0
        self.closing: Headers | None = None
        self.local_ended: bool = False
        self.scheduled: bool = False
        self.room: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()

    def __repr__(self) -> str:
        return f"<Stream {self.number}>"

    @property
    def over(self) -> bool:
        """Whether nothing more happens on it."""
        return self.failure is not None or (self.local_ended and self.remote_ended)

    def fail(self, failure: Failure) -> None:
        """End it early: what waits to be sent is dropped, what has arrived whole can still be taken."""
        if self.over:
            return
        self.failure = failure
        self.drop_outbox()
        self.arrivals.unpark_all()
        if self.on_gone is not None:
            self.on_gone()

    def drop_outbox(self) -> None:
        """Send nothing more."""
        self.outbox.clear()
        self.queued_bytes = 0
        self.closing = None
        self.room.unpark_all()
