"""The server's side of a WebSocket: one task reads, one writes while there is something to write.

A connection that is idle costs one task and about 6 KB, which is why this is not trio-websocket: its reader task,
queue and locks cost three times that, and twice the CPU for each large frame (benchmarks/rendezvous.py).
"""

from typing import Protocol

import trio
from wsproto import ConnectionType
from wsproto.events import AcceptConnection
from wsproto.handshake import H11Handshake
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from actors.relay import Liveness, LivenessAction
from actors.rendezvous._counters import Counters
from actors.rendezvous._limits import RendezvousLimits
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

__all__ = ["FrameSource", "ServerWebSocket", "WebSocketClosed", "accept_upgrade"]

_RECEIVE_BYTES = 256 * 1024
# Reads grow while they come back full: an allocation of that size costs more than a small message.
_RECEIVE_BYTES_FIRST = 16 * 1024
_NORMAL = 1000
# How much is given to the system in one call: fewer calls, and no turn of another connection is far away.
_BATCH_BYTES = 256 * 1024


class WebSocketClosed(Exception):
    """The connection is over. The text is for counters and logs, and holds nothing of what was carried."""


class FrameSource(Protocol):
    """Whatever has frames for one connection."""

    def next_frame(self) -> bytes | None:
        """Give the next frame to write, or None when there is none now."""
        ...


def accept_upgrade(headers: list[tuple[bytes, bytes]], target: str) -> bytes:
    """Judge a request to switch to WebSocket, and give the answer to write.

    Args:
        headers: Its headers.
        target: Its path and query.

    Raises:
        WebSocketClosed: It is no such request.
    """
    handshake = H11Handshake(ConnectionType.SERVER)
    try:
        handshake.initiate_upgrade_connection(headers, target)
        return handshake.send(AcceptConnection())
    except (RemoteProtocolError, LocalProtocolError) as error:
        raise WebSocketClosed("not a WebSocket handshake") from error


class ServerWebSocket:
    """One accepted WebSocket."""

    __slots__ = ("_control", "_counters", "_decoder", "_limits", "_liveness", "_nursery", "_pong", "_reading_s",
                 "_receive_bytes", "_said_close", "_source", "_stream", "_why", "_writing", "_writing_since_s",
                 "_written")  # fmt: skip

    def __init__(
        self,
        stream: trio.abc.Stream,
        early: bytes,
        source: FrameSource,
        nursery: trio.Nursery,
        limits: RendezvousLimits,
        counters: Counters,
    ) -> None:
        self._stream, self._source = stream, source
        self._nursery, self._limits, self._counters = nursery, limits, counters
        self._liveness = Liveness.begin(limits.ping_interval_s, limits.silence_s, trio.current_time())
        # Pings and the close, as bytes: they go before the next frame.
        self._control: list[bytes] = []
        # The answer to the latest ping: a peer that pings and does not read cannot fill our memory (RFC 6455, 5.5.3).
        self._pong: bytes = b""
        # Holds what was read and not looked at: at most what one read gave.
        self._decoder = FrameDecoder(message_bytes_max=limits.max_frame_bytes)
        self._decoder.feed(early)
        self._said_close = False
        self._receive_bytes = _RECEIVE_BYTES_FIRST
        # Whether a task is writing; there is never a second.
        self._writing = False
        self._writing_since_s: float | None = None
        # Set when the task that writes ends, if somebody waits for that.
        self._written: trio.Event | None = None
        # When the wait for the peer began, or None while what came is not consumed.
        self._reading_s: float | None = None
        self._why: str | None = None

    async def receive(self) -> bytes | None:
        """Wait for the next binary message; None stands for a text message, which means nothing here.

        Raises:
            WebSocketClosed: The connection is over.
        """
        while True:
            try:
                event = self._decoder.next_event()
            except FrameFault as fault:
                self._queue_close(fault.code)
                self.wake()
                raise self._end(fault.args[0]) from None
            match event:
                case WholeMessage(data=data, is_text=is_text):
                    return None if is_text else data
                case None:
                    await self._read_more()
                case Part():
                    pass
                case _:
                    self._heed(event)

    async def _read_more(self) -> None:
        if self._why is not None:
            raise WebSocketClosed(self._why)
        # The peer's last sign of life as well: the wait began when all that had come was consumed.
        self._reading_s = trio.current_time()
        try:
            data = await self._stream.receive_some(self._receive_bytes)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise self._end("read error") from None
        finally:
            self._reading_s = None
        if not data:
            raise self._end("hung up")
        self._receive_bytes = _RECEIVE_BYTES if len(data) >= _RECEIVE_BYTES_FIRST else _RECEIVE_BYTES_FIRST
        self._decoder.feed(data)

    def _heed(self, event: Ping | Pong | Closed) -> None:
        match event:
            case Ping(payload=payload):
                self._counters.pongs_merged += bool(self._pong)
                self._pong = encode_frame(Opcode.PONG, payload)
                self.wake()
            case Pong():
                self._liveness = self._liveness.ponged(trio.current_time())
            case Closed(code=code):
                self._queue_close(_NORMAL if code == 1005 else code)
                self.wake()
                raise self._end(f"peer closed with {code}")

    def wake(self) -> None:
        """Write what the source has, unless that is being done already."""
        if not self._writing and self._why is None:
            self._writing = True
            self._nursery.start_soon(self._write)

    def _write_soon(self, data: bytes) -> None:
        self._control.append(data)
        self.wake()

    async def _write(self) -> None:
        try:
            while batch := self._next_batch():
                self._writing_since_s = trio.current_time()
                # Also when all is cancelled: what was begun, and the goodbye, go out. `close` cuts what takes too long.
                with trio.fail_after(self._limits.silence_s, shield=True):
                    await self._stream.send_all(batch)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._end("write error")
            await trio.aclose_forcefully(self._stream)
        except trio.TooSlowError:
            self._end(f"a write took more than {self._limits.silence_s:g} s")
            await trio.aclose_forcefully(self._stream)
        finally:
            self._writing, self._writing_since_s = False, None
            if self._written is not None:
                self._written.set()
                self._written = None

    def _next_batch(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while size < _BATCH_BYTES:
            if self._control or self._pong:
                data, self._control, self._pong = self._pong + b"".join(self._control), [], b""
            elif self._why is None and (frame := self._source.next_frame()) is not None:
                parts.append(_header(len(frame)))
                data = frame
            else:
                break
            parts.append(data)
            size += len(data)
        return b"".join(parts)

    def keep_alive(self, now_s: float, *, forgive: bool = False) -> None:
        """Ping a silent peer or give it up, if it is time to; `forgive` means that the silence may be ours."""
        if now_s < self._liveness.deadline_s:
            return
        self._liveness = self._liveness.heard(now_s if forgive else self._heard_s(now_s))
        match self._liveness.action(now_s):
            case LivenessAction.PING:
                self._liveness = self._liveness.pinged(now_s)
                if not self._said_close:
                    self._write_soon(encode_frame(Opcode.PING, b""))
            case LivenessAction.CUT:
                self._end(f"no frame for {self._liveness.silent_for_s(now_s):g} s")
                self._nursery.start_soon(trio.aclose_forcefully, self._stream)
            case LivenessAction.WAIT:
                pass

    def _heard_s(self, now_s: float) -> float:
        """While nobody reads, because what came is not consumed, silence is not the peer's fault; a stuck write is."""
        if self._reading_s is not None:
            return self._reading_s
        return now_s if self._writing_since_s is None else self._writing_since_s

    async def close(self, code: int = _NORMAL) -> None:
        """Write what is left, say goodbye and cut, within the close limit.

        Never waits for the peer's answer: it may be waiting for us to read.
        """
        with trio.move_on_after(self._limits.close_s / 2, shield=True):
            await self._until_written()
            self._queue_close(code)
            self.wake()
            await self._until_written()
        self._end("closed here")
        await trio.aclose_forcefully(self._stream)

    async def _until_written(self) -> None:
        while self._writing:
            if self._written is None:
                self._written = trio.Event()
            await self._written.wait()

    def _queue_close(self, code: int) -> None:
        if self._why is None and not self._said_close:
            self._said_close = True
            self._control.append(encode_close(code, ""))

    def _end(self, why: str) -> WebSocketClosed:
        if self._why is None:
            self._why = why
        return WebSocketClosed(self._why)


def _header(size: int) -> bytes:
    """Give the header of an unmasked, whole, binary frame (RFC 6455, 5.2)."""
    if size < 126:
        return bytes((0x82, size))
    if size < 65536:
        return b"\x82\x7e" + size.to_bytes(2, "big")
    return b"\x82\x7f" + size.to_bytes(8, "big")
