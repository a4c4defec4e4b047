"""Carry messages over a WebSocket connection that a peer opened to us.

Knows frames in and out, signs of life, and how to close without waiting for a peer that waits for us. Does not know
handshakes (:mod:`_handshake`) nor what the messages say.
"""

import math
import os
from collections.abc import Sequence

import trio

from actors.executor._channel import CloseReason, Outlet
from actors.executor._limits import Limits
from actors.websocket import (
    Closed,
    FrameDecoder,
    FrameFault,
    Opcode,
    Part,
    Ping,
    Pong,
    WholeMessage,
    encode_close,
    encode_frame,
)

__all__ = ["WebSocketChannel"]

# Reads grow while they come back full: an allocation of this size costs more than a small message.
_RECEIVE_BYTES = 256 * 1024
_RECEIVE_BYTES_FIRST = 16 * 1024
# A peer can pack 40,000 pings into that many bytes: after a few frames everybody else has a turn.
_FRAMES_IN_A_ROW = 32
# How many times as long as asked for a sleep may take while nobody was stopped.
_LATE = 1.2


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
        # What of such a frame is still to be written; it goes out before everything else.
        self._rest = b""
        self._outlet: Outlet | None = None
        self._said_close = False
        self._fault: CloseReason | None = None
        self._waiting_since_s = math.inf
        self._frames_in_a_row = 0
        self._read_bytes = _RECEIVE_BYTES_FIRST
        self.peer = peer
        self.silence: str | None = None
        """Why it was given up, if that was for want of a sign of life."""

    def send_when_idle(self, outlet: Outlet) -> None:
        """Send what is there to be sent whenever nothing more is there to be received."""
        self._outlet = outlet

    def _idle(self) -> None:
        """Write what the system takes at once, before anything is waited for."""
        if self._outlet is None:
            return
        if self._torn or self._sending.locked():
            self._outlet.uncork()
            return
        data = b"".join([encode_frame(Opcode.TEXT, message) for message in self._outlet.take_now()])
        if not data:
            return
        try:
            sent = os.write(self._stream.socket.fileno(), data)
        except BlockingIOError:
            sent = 0
        except OSError:  # It is broken; whoever sends or receives next is told.
            self._torn = True
            return
        if sent < len(data):
            self._torn, self._rest = True, data[sent:]
            self._outlet.nudge()

    async def receive(self) -> bytes:
        """Wait for the next message, answering pings on the way."""
        while True:
            self._frames_in_a_row += 1
            if self._frames_in_a_row > _FRAMES_IN_A_ROW:
                await self._let_others_have_a_turn()
            try:
                event = self._decoder.next_event()
            except FrameFault as fault:
                self._fault = (fault.code, fault.reason)
                raise trio.EndOfChannel from fault
            if event is None:
                await self._receive_more()
            elif isinstance(event, WholeMessage):
                return event.data
            else:
                await self._take_control(event)

    async def _take_control(self, event: Part | Ping | Pong | Closed) -> None:
        match event:
            case Ping(payload=payload):
                self._idle()
                await self._send_or_end(encode_frame(Opcode.PONG, payload))
            case Part() | Pong():
                pass  # Any byte is a sign of life; these are no more than that.
            case Closed(code=code):
                self._idle()
                self._said_close = True
                await self._send_or_end(encode_close(1000 if code == 1005 else code, ""))
                raise trio.EndOfChannel

    async def _let_others_have_a_turn(self) -> None:
        self._frames_in_a_row = 0
        self._idle()
        await trio.lowlevel.checkpoint()

    async def _receive_more(self) -> None:
        self._idle()
        self._waiting_since_s = trio.current_time()
        try:
            data = await self._read_some()
        except (OSError, trio.ClosedResourceError):
            raise trio.EndOfChannel from None
        finally:
            self._waiting_since_s = math.inf
        if not data:
            raise trio.EndOfChannel
        self._decoder.feed(data)

    async def _read_some(self) -> bytes:
        """Read as `trio.SocketStream.receive_some`, straight from the socket: half the time a small message costs."""
        await trio.lowlevel.checkpoint_if_cancelled()
        socket = self._stream.socket
        while True:
            try:
                data = os.read(socket.fileno(), self._read_bytes)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(socket)
            else:
                # A full read is as much work as many small frames.
                is_full = len(data) == self._read_bytes
                self._frames_in_a_row += 8 if is_full else 0
                self._read_bytes = _RECEIVE_BYTES if is_full else _RECEIVE_BYTES_FIRST
                return data

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
            data, self._rest = self._rest + data, b""
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
        """Say why, wait for the peer to agree, and hang up; within the limit, whatever the peer does.

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
        quiet_s, patience_s = self._limits.keepalive_s, self._limits.pong_s
        async with trio.open_nursery() as nursery:
            while True:
                if (silent_s := self._silent_s()) < quiet_s:
                    await trio.sleep(quiet_s - silent_s)
                    continue
                asked_s = trio.current_time()
                nursery.start_soon(self._ping)
                await trio.sleep(patience_s)
                # Woken much too late, we were stopped ourselves, and what the peer said meanwhile is still unread.
                was_stopped = trio.current_time() - asked_s > patience_s * _LATE
                if self._waiting_since_s <= asked_s and not was_stopped:
                    break
            self.silence = f"no frame for {self._silent_s():g} s"
            self._fault = (1001, self.silence)
            nursery.cancel_scope.cancel()

    def _silent_s(self) -> float:
        """How long nothing has come although we were ready to take it."""
        return max(trio.current_time() - self._waiting_since_s, 0.0)

    async def _ping(self) -> None:
        try:
            await self._send(encode_frame(Opcode.PING, b"alive?"))
        except trio.BrokenResourceError:
            return
