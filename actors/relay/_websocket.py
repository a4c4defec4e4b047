"""Physical connections by WebSocket after the handshake: frames, signs of life, and an end that waits for nobody.

Whoever receives reads from the stream itself: there is no task and no queue between, which halves the cost of a small
message (benchmarks/rendezvous.py). One task sends. Pings, pongs and the close wait for what it is writing and for no
more: they lie in front of whatever is written next, so that a peer who takes its time hears that we live.
"""

import os
from collections.abc import Callable, Sequence

import trio

from actors.relay._errors import ConnectionLost, DisconnectReason
from actors.relay._limits import RelayLimits
from actors.relay._liveness import Liveness, LivenessAction
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

__all__ = ["ListeningStream", "WebSocketConnection"]

# The library's usual 4 KiB and one message cost five times the CPU on large frames (benchmarks/rendezvous.py).
_RECEIVE_BYTES = 256 * 1024
# Reads grow while they come back full: an allocation of that size costs more than a small message.
_RECEIVE_BYTES_FIRST = 16 * 1024
# A peer can pack thousands of frames into that many bytes: after a few of them everybody else has a turn.
_FRAMES_IN_A_ROW = 32
_NORMAL = 1000


class ListeningStream:
    """A stream that notes when something last arrived: any byte is a sign of life, of whatever frame it is part."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        # Where small writes go at once, without a turn of the scheduler; not so through TLS, or in memory.
        self._socket = stream.socket if isinstance(stream, trio.SocketStream) else None
        self._heard_s = trio.current_time()
        self._writing_since_s: float | None = None
        self._receive_bytes = _RECEIVE_BYTES_FIRST
        self.is_listening: bool = False

    def heard_s(self, now_s: float) -> float:
        """While nobody listens, since what came is not consumed, silence is not the peer's fault; a stuck write is."""
        if self.is_listening:
            return self._heard_s
        return now_s if self._writing_since_s is None else max(self._heard_s, self._writing_since_s)

    async def receive_some(self) -> bytes | bytearray:
        """Wait for what comes next; nothing is the end."""
        self.is_listening, self._heard_s = True, trio.current_time()
        try:
            data = await self._stream.receive_some(self._receive_bytes)
        finally:
            self.is_listening, self._heard_s = False, trio.current_time()
        self._receive_bytes = _RECEIVE_BYTES if len(data) >= _RECEIVE_BYTES_FIRST else _RECEIVE_BYTES_FIRST
        return data

    async def send_all(self, data: bytes | memoryview, within_s: float) -> None:
        """Write everything.

        Raises:
            trio.TooSlowError: It took too long; a part may be written.
            trio.BrokenResourceError: The connection is gone.
        """
        sent = self.send_some(data)
        if sent == len(data):
            return
        self._writing_since_s = trio.current_time()
        try:
            with trio.fail_after(within_s):
                await self._stream.send_all(memoryview(data)[sent:])
        finally:
            self._writing_since_s = None

    def send_some(self, data: bytes | memoryview) -> int:
        """Write what the system takes at once, which may be nothing; give how many bytes.

        Raises:
            trio.BrokenResourceError: The connection is gone.
        """
        if self._socket is None or (descriptor := self._socket.fileno()) < 0:
            return 0
        try:
            return os.write(descriptor, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise trio.BrokenResourceError(str(error)) from error

    async def send_eof(self) -> None:
        """Say that nothing more comes, where that can be said alone."""
        if isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        """Cut."""
        await trio.aclose_forcefully(self._stream)


class WebSocketConnection:
    """One WebSocket as a physical connection. Given by `WebSocketDialer`. Waits raise `ConnectionLost` once it is gone.

    Cancelled:
        Half a frame may be out: the connection is of no more use. No message that came is lost.
        `close` closes it all the same.
    """

    def __init__(self, stream: ListeningStream, early: bytes, limits: RelayLimits) -> None:
        self._stream, self._limits = stream, limits
        self._decoder = FrameDecoder(message_bytes_max=limits.max_frame_bytes, from_client=False)
        self._decoder.feed(early)
        self._frames_in_a_row = 0
        # Set while a frame is being written; who else wants to write waits.
        self._is_writing = False
        # Control frames that wait for that: whoever writes next takes them along, in front. A few at most: one ping,
        # one answer to a ping and one close.
        self._control: list[bytes] = []
        self._writers = trio.lowlevel.ParkingLot()
        # What `send_now` has begun and `wait_free` will end.
        self._rest: memoryview | None = None
        # Half a frame is out: a goodbye would land in its middle.
        self._torn = False
        # The peer's goodbye has come: there is nothing more to wait for.
        self._peer_closed = False
        self._liveness = Liveness.begin(limits.ping_interval_s, limits.silence_s, trio.current_time())
        self._lost: tuple[DisconnectReason, str] | None = None
        # Answers to what the peer asks are written by tasks of their own: who reads must not wait for a peer to read.
        self._start_soon: Callable[..., None] | None = None
        # The latest ping that nobody answers yet, and whether a task answers them.
        self._ping: bytes | None = None
        self._is_answering = False
        self.pongs_merged: int = 0
        """Pings answered only together with a later one: the peer did not read."""

    async def send(self, frame: bytes) -> None:
        """Write one frame; a write that takes longer than the silence limit ends the connection."""
        if self._lost is not None:
            await trio.lowlevel.checkpoint()
            raise ConnectionLost(*self._lost)
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._write(encode_frame(Opcode.BINARY, frame, os.urandom(4)))

    @property
    def is_free(self) -> bool:
        """Whether a frame could be written at once."""
        return not self._is_writing and self._lost is None

    def send_now(self, frames: Sequence[bytes]) -> None:
        """Write frames in one piece, as far as the system takes them at once; the rest is `wait_free`'s."""
        assert self.is_free, "only who finds the connection free may write now"
        masks = os.urandom(4 * len(frames))
        data = b"".join(
            [
                *self._take_control(),
                *(encode_frame(Opcode.BINARY, frame, masks[4 * n : 4 * n + 4]) for n, frame in enumerate(frames)),
            ]
        )
        try:
            sent = self._stream.send_some(data)
        except trio.BrokenResourceError:
            self._loss(DisconnectReason.WRITE_ERROR)
            return
        if sent < len(data):
            self._is_writing, self._torn = True, True
            self._rest = memoryview(data)[sent:]

    async def wait_free(self) -> None:
        """Write what `send_now` left, and wait until nothing is being written."""
        await trio.lowlevel.checkpoint()
        rest, self._rest = self._rest, None
        if rest is not None:
            await self._write_in_turn(rest)
        while self._is_writing:
            await self._writers.park()
        # Whoever waits behind us has its turn, unless we take along what it wanted to write.
        self._writers.unpark_all()
        if self._lost is not None:
            raise ConnectionLost(*self._lost)

    async def _write(self, data: bytes) -> None:
        while self._is_writing:
            await self._writers.park()
        self._is_writing, self._torn = True, True
        await self._write_in_turn(b"".join([*self._take_control(), data]))

    def _take_control(self) -> list[bytes]:
        control, self._control = self._control, []
        return control

    async def _write_in_turn(self, data: bytes | memoryview) -> None:
        try:
            await self._stream.send_all(data, self._limits.silence_s)
            self._torn = False
        except trio.TooSlowError:
            await self._cut(DisconnectReason.WRITE_ERROR, f"a write took more than {self._limits.silence_s:g} s")
            raise self._loss(DisconnectReason.WRITE_ERROR) from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise self._loss(DisconnectReason.WRITE_ERROR) from None
        finally:
            self._is_writing = False
            self._writers.unpark_all()

    async def receive(self) -> bytes | str:
        """Wait for the next message."""
        while True:
            self._frames_in_a_row += 1
            if self._frames_in_a_row > _FRAMES_IN_A_ROW:
                self._frames_in_a_row = 0
                await trio.lowlevel.checkpoint()
            if self._lost is not None:
                await trio.lowlevel.checkpoint()
                raise ConnectionLost(*self._lost)
            try:
                event = self._decoder.next_event()
            except FrameFault as fault:
                raise self._refused(fault) from None
            match event:
                case WholeMessage(data=data, is_text=is_text):
                    return data.decode("utf-8", "replace") if is_text else data
                case None:
                    await self._read_more()
                case Part():
                    pass
                case _:
                    self._heed(event)

    async def _read_more(self) -> None:
        self._frames_in_a_row = 0
        try:
            data = await self._stream.receive_some()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise self._loss(DisconnectReason.READ_ERROR) from None
        if not data:
            raise self._loss(DisconnectReason.READ_ERROR)
        self._decoder.feed(data)

    def _heed(self, event: Ping | Pong | Closed) -> None:
        match event:
            case Ping(payload=payload):
                self._answer(payload)
            case Pong():
                self._liveness = self._liveness.ponged(trio.current_time())
            case Closed(code=code):
                self._peer_closed = True
                if self._lost is None:
                    self._lost = (DisconnectReason.PEER_CLOSE, f"close code {code}")
                self._write_soon(encode_close(_NORMAL if code == 1005 else code, "", os.urandom(4)))

    def _refused(self, fault: FrameFault) -> ConnectionLost:
        """The peer broke a rule of framing: tell it which, and read nothing more."""
        self._write_soon(encode_close(fault.code, "", os.urandom(4)))
        return self._loss(DisconnectReason.READ_ERROR)

    def _answer(self, ping: bytes) -> None:
        # Only the latest that waits: a peer that pings and does not read cannot fill our memory (RFC 6455, 5.5.3).
        self.pongs_merged += self._ping is not None
        self._ping = ping
        if not self._is_answering and self._start_soon is not None:
            self._is_answering = True
            self._start_soon(self._answer_pings)

    async def _answer_pings(self) -> None:
        while (ping := self._ping) is not None:
            self._ping = None
            await self._write_aside(encode_frame(Opcode.PONG, ping, os.urandom(4)))
        self._is_answering = False

    def _write_soon(self, data: bytes) -> None:
        if self._start_soon is not None:
            self._start_soon(self._write_aside, data)

    async def _write_aside(self, data: bytes) -> None:
        """Write a control frame, or have it written by whoever writes next."""
        self._control.append(data)
        while data in self._control and self._is_writing:
            await self._writers.park()
        if data not in self._control:
            return
        try:
            await self._write(b"")
        except ConnectionLost:
            return  # Whoever reads or writes learns of it.

    async def keep_alive(self, nursery: trio.Nursery) -> None:
        """Ping a silent peer, and cut the connection when it stays silent."""
        while True:
            await trio.sleep_until(self._liveness.next_look_s(trio.current_time()))
            now_s = trio.current_time()
            self._liveness = self._liveness.heard(self._stream.heard_s(now_s)).looked(now_s)
            match self._liveness.action(now_s):
                case LivenessAction.WAIT:
                    pass
                case LivenessAction.PING:
                    self._liveness = self._liveness.pinged(now_s)
                    nursery.start_soon(self._write_aside, encode_frame(Opcode.PING, b"", os.urandom(4)))
                case LivenessAction.CUT:
                    silent_s = self._liveness.silent_for_s(now_s)
                    await self._cut(DisconnectReason.PONG_TIMEOUT, f"no frame for {silent_s:g} s")
                    return

    def answer_from(self, nursery: trio.Nursery) -> None:
        """Answer what the peer asks by tasks of this nursery."""
        self._start_soon = nursery.start_soon

    async def close(self) -> None:
        """Close politely within the close limit, else cut. Never waits for a peer that waits for us."""
        self._start_soon = None
        if self._lost is None:
            self._lost = (DisconnectReason.LOCAL_SHUTDOWN, "")
        with trio.move_on_after(self._limits.close_s / 2, shield=True):
            if not self._torn and not self._is_writing:
                await self._say_goodbye()
        await self._stream.aclose()

    async def _say_goodbye(self) -> None:
        """Hanging up on unread bytes would destroy our last words on their way: read on until the peer agrees."""
        try:
            await self._write_aside(encode_close(_NORMAL, "", os.urandom(4)))
            while not self._peer_closed and not self._stream.is_listening:
                if (event := self._decoder.next_event()) is not None:
                    self._peer_closed = isinstance(event, Closed)
                elif data := await self._stream.receive_some():
                    self._decoder.feed(data)
                else:
                    return
        except (trio.BrokenResourceError, trio.ClosedResourceError, FrameFault):
            return

    async def _cut(self, reason: DisconnectReason, detail: str) -> None:
        if self._lost is None:
            self._lost = (reason, detail)
        await self._stream.aclose()

    def _loss(self, otherwise: DisconnectReason) -> ConnectionLost:
        if self._lost is None:
            self._lost = (otherwise, "")
        return ConnectionLost(*self._lost)
