"""Channels that never leave the process, with every fault a network has.

Obeys the same contract as the WebSocket channels and passes the same tests.
"""

import enum
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio

from actors.harness._channel import ChannelClosed
from actors.harness._errors import WebSocketConnectFailed, WebSocketConnectTimedOut
from actors.harness._groups import plainly
from actors.protocol import MESSAGE_BYTES_MAX

_QUEUED_MESSAGES: Final = 16


class Cut(enum.Enum):
    """How a connection ends.

    Attributes:
        CLEAN: The other end says goodbye; what it sent before still comes.
        RESET: At once; what was under way is lost.
        SILENCE: Nothing comes any more, and nothing says so.
        EMPTY: The stream ends without goodbye, as if there were no more to say.
    """

    CLEAN = "clean"
    RESET = "reset"
    SILENCE = "silence"
    EMPTY = "empty"


class _Pipe:
    """Messages one way."""

    def __init__(self) -> None:
        self.messages: deque[bytes] = deque()
        self.ended: str | None = None
        self.lot: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()

    def end(self, reason: str, *, drop: bool) -> None:
        if drop:
            self.messages.clear()
        self.ended = self.ended if self.ended is not None else reason
        self.lot.unpark_all()


class MemoryChannel:
    """One end of a connection in memory.

    `send`, `receive` and `ping` raise `ChannelClosed` once the channel has ended, as `MessageChannel` says.

    Cancelled:
        The message was not sent, and none that came is lost.
    """

    def __init__(self, outgoing: _Pipe, incoming: _Pipe, line: "MemoryLine") -> None:
        self._outgoing, self._incoming, self._line = outgoing, incoming, line

    async def send(self, message: bytes) -> None:
        """Send one message; see `MessageChannel.send`."""
        await trio.lowlevel.checkpoint_if_cancelled()
        pipe = self._outgoing
        if pipe.ended is not None:
            raise ChannelClosed(pipe.ended or None, written=False)
        while len(pipe.messages) >= _QUEUED_MESSAGES and pipe.ended is None:
            await pipe.lot.park()
        if pipe.ended is not None:
            raise ChannelClosed(pipe.ended or None)
        if len(message) > MESSAGE_BYTES_MAX:
            self._line.cut(Cut.RESET, reason="message too large")
            raise ChannelClosed("message too large")
        if not self._line.silent:
            pipe.messages.append(message)
            pipe.lot.unpark_all()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def receive(self) -> bytes | str:
        """Give the next message; see `MessageChannel.receive`."""
        await trio.lowlevel.checkpoint()
        pipe = self._incoming
        while not pipe.messages or self._line.silent:
            if pipe.ended is not None:
                raise ChannelClosed(pipe.ended or None)
            await pipe.lot.park()
        message = pipe.messages.popleft()
        pipe.lot.unpark_all()
        return message

    async def ping(self) -> None:
        """Wait for a sign of life; see `MessageChannel.ping`."""
        await trio.lowlevel.checkpoint()
        while self._line.silent and self._incoming.ended is None:
            await self._incoming.lot.park()
        if self._incoming.ended is not None:
            raise ChannelClosed(self._incoming.ended or None)


class MemoryLine:
    """One connection in memory, for tests to break."""

    def __init__(self) -> None:
        there, back = _Pipe(), _Pipe()
        self.near: MemoryChannel = MemoryChannel(there, back, self)
        """The harness's end."""
        self.far: MemoryChannel = MemoryChannel(back, there, self)
        """The executor's end."""
        self.silent: bool = False
        """Messages go nowhere, both ways."""
        self._pipes = (there, back)

    def cut(self, how: Cut, *, reason: str = "") -> None:
        """End the connection."""
        if how is Cut.SILENCE:
            self.silent = True
            return
        words = {Cut.CLEAN: reason or "closed by the peer with code 1000", Cut.RESET: reason or "connection reset"}
        for pipe in self._pipes:
            pipe.end(words.get(how, reason), drop=how is Cut.RESET)


class MemoryNetwork:
    """A dialer whose every connection is served by a function in a task of its own."""

    def __init__(self, serve: Callable[[MemoryChannel], Awaitable[object]], *, connect_timeout_s: float = 10.0) -> None:
        self._serve = serve
        self._connect_timeout_s = connect_timeout_s
        self.lines: list[MemoryLine] = []
        """Every connection so far."""
        self.refusing: str | None = None
        """While set: why nobody can connect."""
        self.unreachable = False
        """While set: nobody answers at all."""
        self.dials: int = 0
        """How often a connection was tried."""

    @property
    def line(self) -> MemoryLine:
        """The latest connection."""
        return self.lines[-1]

    @asynccontextmanager
    async def dial(self, url: str) -> AsyncGenerator[MemoryChannel, None]:
        """Open a channel; see `Dialer.dial`.

        Raises:
            WebSocketConnectFailed: `refusing` is set.
            WebSocketConnectTimedOut: `unreachable` is set.

        Cancelled:
            The line is cut, and who serves it is cancelled.
        """
        self.dials += 1
        if self.unreachable:
            await trio.sleep(self._connect_timeout_s)
            raise WebSocketConnectTimedOut(url, self._connect_timeout_s)
        await trio.lowlevel.checkpoint()
        if self.refusing is not None:
            raise WebSocketConnectFailed(url, self.refusing)
        line = MemoryLine()
        self.lines.append(line)
        with plainly():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._serve, line.far)
                try:
                    yield line.near
                finally:
                    line.cut(Cut.CLEAN)
                    nursery.cancel_scope.cancel()
