"""Carry messages over a WebSocket connection that a peer opened to us.

Knows frames in and out, signs of life, and how to close without waiting for a peer that waits for us. Does not know
handshakes (:mod:`_handshake`) nor what the messages say.
"""

import math
import os
from collections.abc import Sequence

import trio

from actors.executor._channel import CloseReason
from actors.executor._frames import (
    Closed,
    FrameDecoder,
    FrameFault,
    Opcode,
    Ping,
    Pong,
    WholeMessage,
    encode_close,
    encode_frame,
)
from actors.executor._limits import Limits

__all__ = ["WebSocketChannel"]

_RECEIVE_BYTES = 256 * 1024


class WebSocketChannel:
    """One accepted WebSocket connection."""

    answers_malformed = True

    def __init__(self, stream: trio.SocketStream, *, peer: str, first: bytes, limits: Limits) -> None:
        self._stream, self._limits = stream, limits
        self._decoder = FrameDecoder(message_bytes_max=limits.message_bytes_max)
        self._decoder.feed(first)
        # Held while a frame is on its way, so that frames of different tasks do not mix.
        self._sending = trio.StrictFIFOLock()
        # A frame was begun and not finished: what follows it would be taken for its rest.
        self._torn = False
        self._said_close = False
        self._fault: CloseReason | None = None
        self._waiting_since_s = math.inf
        self.peer = peer

    async def receive(self) -> bytes:
        """Wait for the next message, answering pings on the way."""
        while True:
            try:
                event = self._decoder.next_event()
            except FrameFault as fault:
                self._fault = (fault.code, fault.reason)
                raise trio.EndOfChannel from fault
            match event:
                case WholeMessage(data):
                    return data
                case Ping(payload):
                    await self._send_or_end(encode_frame(Opcode.PONG, payload))
                case Pong():
                    pass  # Any byte is a sign of life; this one is no more than that.
                case Closed(code, _):
                    self._said_close = True
                    await self._send_or_end(encode_close(1000 if code == 1005 else code, ""))
                    raise trio.EndOfChannel
                case None:
                    await self._receive_more()

    async def _receive_more(self) -> None:
        self._waiting_since_s = trio.current_time()
        try:
            data = await self._stream.receive_some(_RECEIVE_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise trio.EndOfChannel from None
        finally:
            self._waiting_since_s = math.inf
        if not data:
            raise trio.EndOfChannel
        self._decoder.feed(data)

    async def _send_or_end(self, frame: bytes) -> None:
        try:
            await self._send(frame)
        except trio.BrokenResourceError:
            raise trio.EndOfChannel from None

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages as text, in one piece."""
        await self._send(b"".join([encode_frame(Opcode.TEXT, data) for data in messages]))

    async def _send(self, data: bytes) -> None:
        try:
            self._sending.acquire_nowait()
        except trio.WouldBlock:
            await self._sending.acquire()
        try:
            self._torn = True
            await self._write(data)
            self._torn = False
        finally:
            self._sending.release()

    async def _write(self, data: bytes) -> None:
        """Write at once what the system takes at once: no turn of the scheduler for a small answer."""
        try:
            sent = os.write(self._stream.socket.fileno(), data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise trio.BrokenResourceError from error
        if sent < len(data):
            try:
                await self._stream.send_all(memoryview(data)[sent:])
            except trio.ClosedResourceError as error:
                raise trio.BrokenResourceError from error

    async def close(self, reason: CloseReason) -> None:
        """Say why, wait for the peer to agree, and hang up; within the limit, whatever the peer does: case P22.

        The peer's agreement is waited for because hanging up on unread bytes would destroy our last words on their way.
        """
        if not self._torn:
            with trio.move_on_after(self._limits.close_s, shield=True):
                await self._say_close(self._fault or reason)
        await trio.aclose_forcefully(self._stream)

    async def _say_close(self, reason: CloseReason) -> None:
        if self._said_close:
            return
        self._said_close = True
        try:
            await self._send(encode_close(*reason))
            await self._stream.send_eof()
            while await self._stream.receive_some(_RECEIVE_BYTES):
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def keep_alive(self) -> None:
        """Ask a silent peer for a sign of life; return when it gives none. Any byte is one.

        Cancelled:
            A ping may be half sent: only together with the connection.
        """
        quiet_s, patience_s = self._limits.keepalive_s, self._limits.keepalive_s + self._limits.pong_s
        async with trio.open_nursery() as nursery:
            while (silent_s := self._silent_s()) < patience_s:
                if silent_s >= quiet_s:
                    nursery.start_soon(self._ping)
                    await trio.sleep(patience_s - silent_s)
                else:
                    await trio.sleep(quiet_s - silent_s)
            nursery.cancel_scope.cancel()

    def _silent_s(self) -> float:
        """How long nothing has come although we were ready to take it."""
        return max(trio.current_time() - self._waiting_since_s, 0.0)

    async def _ping(self) -> None:
        try:
            await self._send(encode_frame(Opcode.PING, b"alive?"))
        except trio.BrokenResourceError:
            return
