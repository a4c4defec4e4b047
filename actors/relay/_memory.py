"""The twins behind `actors.relay.testing`. They keep every promise of the real ones, and take faults on request."""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import trio

from actors.relay._connection import PhysicalConnection
from actors.relay._dialing import cut_url
from actors.relay._errors import ConnectionLost, DialFailed, DisconnectReason
from actors.relay._frames import Reset, Resume, decode, encode_reset

__all__ = ["MemoryConnection", "MemoryDialer", "MemoryRouter", "memory_connection_pair"]

_FRAMES_KEPT = 10_000

Fault = Callable[[bytes], Sequence[bytes]]
"""What becomes of a frame on its way: give it back alone, twice, changed, later with another, or not at all."""


class MemoryConnection:
    """One end of a connection without a network. Given by `memory_connection_pair`."""

    def __init__(
        self,
        sending: trio.MemorySendChannel[bytes | str],
        receiving: trio.MemoryReceiveChannel[bytes | str],
    ) -> None:
        self._sending, self._receiving = sending, receiving
        self._lost: tuple[DisconnectReason, str] | None = None
        self.fault: Fault | None = None
        """What becomes of frames sent from here."""
        self.sent: deque[bytes] = deque(maxlen=_FRAMES_KEPT)
        """The last 10,000 frames given to `send`, as a carrier in the middle would see them."""

    async def send(self, frame: bytes) -> None:
        """Pass a frame to the other end.

        Raises:
            ConnectionLost: The connection is gone.

        Cancelled:
            The frame stands in `sent`, and may not have been passed on.
        """
        self._raise_if_lost()
        self.sent.append(frame)
        try:
            for carried in [frame] if self.fault is None else self.fault(frame):
                await self._sending.send(carried)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._lose(DisconnectReason.WRITE_ERROR, "")
        self._raise_if_lost()

    async def send_text(self, text: str) -> None:
        """Pass a text message, which no end of ours ever does.

        Cancelled:
            The text was not passed on.
        """
        await self._sending.send(text)

    async def receive(self) -> bytes | str:
        """Wait for the next message.

        Raises:
            ConnectionLost: The connection is gone.

        Cancelled:
            No message is lost.
        """
        try:
            return await self._receiving.receive()
        except trio.EndOfChannel:
            self._lose(DisconnectReason.PEER_CLOSE, "")
        except trio.ClosedResourceError:
            self._lose(DisconnectReason.READ_ERROR, "")
        self._raise_if_lost()
        raise AssertionError("a lost connection raises")

    def close(self) -> None:
        """End the connection on this side; the other end reads what was sent, then learns of the close."""
        self._lose(DisconnectReason.LOCAL_SHUTDOWN, "")

    def lose(self, reason: DisconnectReason, detail: str = "") -> None:
        """End the connection as if this had happened to it."""
        self._lose(reason, detail)

    def _lose(self, reason: DisconnectReason, detail: str) -> None:
        if self._lost is None:
            self._lost = (reason, detail)
        self._sending.close()
        self._receiving.close()

    def _raise_if_lost(self) -> None:
        if self._lost is not None:
            raise ConnectionLost(*self._lost)


def memory_connection_pair(*, buffered_frames: int = 16) -> tuple[MemoryConnection, MemoryConnection]:
    """Make the two ends of one connection.

    Args:
        buffered_frames: How many frames fit in between before a sender waits.
    """
    to_right, at_right = trio.open_memory_channel[bytes | str](buffered_frames)
    to_left, at_left = trio.open_memory_channel[bytes | str](buffered_frames)
    return MemoryConnection(to_right, at_left), MemoryConnection(to_left, at_right)


class MemoryDialer:
    """Dials by name in one process: each URL is answered by whoever listens under it."""

    def __init__(self) -> None:
        self._listeners: dict[str, Callable[[MemoryConnection], None]] = {}
        self.dialled: deque[str] = deque(maxlen=_FRAMES_KEPT)
        """The last 10,000 URLs that were dialled, in order."""

    def listen(self, url: str, answer: Callable[[MemoryConnection], None]) -> None:
        """Answer whoever dials ``url``: ``answer`` gets the far end, and must not wait."""
        self._listeners[url] = answer

    def hang_up(self, url: str) -> None:
        """Answer nobody there any more."""
        self._listeners.pop(url, None)

    @asynccontextmanager
    async def dial(self, url: str) -> AsyncGenerator[PhysicalConnection, None]:
        """Connect for as long as the context lasts.

        Raises:
            DialFailed: Nobody listens there.

        Cancelled:
            The connection is closed.
        """
        await trio.lowlevel.checkpoint()
        self.dialled.append(url)
        if (answer := self._listeners.get(url)) is None:
            raise DialFailed(cut_url(url), "nobody listens")
        near, far = memory_connection_pair()
        answer(far)
        try:
            yield near
        finally:
            near.close()


class MemoryRouter:
    """A router of one executor connection and any number of harnesses, without limits, tokens or a network."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._harnesses: dict[str, MemoryConnection] = {}
        ends = memory_connection_pair(buffered_frames=128)
        self.executor: MemoryConnection = ends[0]
        """The executor's own end of its connection."""
        self._towards_executor = ends[1]
        self.forwarded: deque[bytes] = deque(maxlen=_FRAMES_KEPT)
        """The last 10,000 frames that passed, in both directions."""
        nursery.start_soon(self._from_executor)

    def connect_harness(self, connection: MemoryConnection) -> None:
        """Carry what a harness sends. Fit for `MemoryDialer.listen`."""
        self._nursery.start_soon(self._from_harness, connection)

    def cut(self) -> None:
        """Cut the executor's connection, and with it every harness's."""
        self._towards_executor.close()
        for harness in self._harnesses.values():
            harness.close()

    async def _from_harness(self, connection: MemoryConnection) -> None:
        stream_id = None
        try:
            while True:
                message = await connection.receive()
                assert isinstance(message, bytes), "a harness sends no text"
                if isinstance(decode(message).body, Resume):
                    stream_id = decode(message).stream_id
                    self._harnesses[stream_id] = connection
                self.forwarded.append(message)
                await self._towards_executor.send(message)
        except ConnectionLost:
            if stream_id is not None and self._harnesses.get(stream_id) is connection:
                del self._harnesses[stream_id]
                with suppress(ConnectionLost):
                    await self._towards_executor.send(encode_reset(stream_id))
        finally:
            connection.close()

    async def _from_executor(self) -> None:
        try:
            while True:
                message = await self._towards_executor.receive()
                assert isinstance(message, bytes), "an executor sends no text"
                self.forwarded.append(message)
                frame = decode(message)
                if (harness := self._harnesses.get(frame.stream_id)) is not None:
                    await self._deliver(harness, message)
                    if isinstance(frame.body, Reset):
                        self._harnesses.pop(frame.stream_id, None)
        except ConnectionLost:
            self.cut()

    async def _deliver(self, harness: MemoryConnection, message: bytes) -> None:
        with suppress(ConnectionLost):  # Its own task notices.
            await harness.send(message)
