"""WebSocket frames (RFC 6455, section 5) as either side sees them: bytes in, events out.

Only what comes after the handshake. No extension is spoken, so every reserved bit is an error. Text is handed on as
bytes: whoever decodes it judges it. Checked against wsproto, event for event and fault for fault: ``test_frames.py``.
A frame that came whole takes a short way; all others are read piece by piece, and unmasked as they come.
"""

import struct
from enum import IntEnum

import attrs

__all__ = [
    "Closed",
    "FrameDecoder",
    "FrameFault",
    "Opcode",
    "Part",
    "Ping",
    "Pong",
    "WholeMessage",
    "encode_close",
    "encode_frame",
]

_CONTROL_BYTES_MAX = 125
_WHOLE_TEXT = 0x81
_WHOLE = frozenset({_WHOLE_TEXT, 0x82})
_CLOSE_CODES = frozenset({*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)})


class Opcode(IntEnum):
    """What a frame is.

    Attributes:
        CONTINUATION: One more fragment of a message.
        TEXT: A message of text, or its first fragment.
        BINARY: A message of bytes, or its first fragment.
        CLOSE: The end.
        PING: Asks for a sign of life.
        PONG: Gives one.
    """

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


@attrs.frozen
class WholeMessage:
    """A text or binary message, put together.

    Attributes:
        data: Its bytes.
        is_text: Whether its sender calls it text.
    """

    data: bytes = attrs.field(repr=False)
    is_text: bool = False


@attrs.frozen
class Part:
    """A piece of a message that goes on; says only that work was done, so that a reader can make a pause."""


@attrs.frozen
class Ping:
    """The peer wants a sign of life.

    Attributes:
        payload: What the answer must carry.
    """

    payload: bytes


@attrs.frozen
class Pong:
    """The peer gives a sign of life.

    Attributes:
        payload: What it was asked with.
    """

    payload: bytes


@attrs.frozen
class Closed:
    """The peer ends the connection.

    Attributes:
        code: Why; 1005 when it did not say.
        reason: Its words.
    """

    code: int
    reason: str


Event = WholeMessage | Part | Ping | Pong | Closed


class FrameFault(ValueError):
    """The peer broke a rule of framing; nothing more can be read."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code: int = code
        self.reason: str = reason

    def __reduce__(self) -> tuple[type["FrameFault"], tuple[int, str], dict[str, object]]:
        return FrameFault, (self.code, self.reason), self.__dict__


@attrs.frozen
class _Frame:
    """A frame whose payload is coming in."""

    opcode: int
    final: bool
    mask: bytes
    length: int


class FrameDecoder:
    """Takes a peer's bytes in any pieces; gives whole messages and control frames in order.

    Mutable, for it is on the path of every byte. Work and copies are in proportion to what came in.
    """

    __slots__ = ("_at", "_frame", "_input", "_is_text", "_masked", "_message", "_message_bytes_max", "_payload")

    def __init__(self, *, message_bytes_max: int, from_client: bool = True) -> None:
        self._message_bytes_max = message_bytes_max
        # A client masks every frame, a server none.
        self._masked = from_client
        self._input = bytearray()
        # How much of the input is consumed.
        self._at = 0
        self._frame: _Frame | None = None
        self._payload = bytearray()
        # The fragments so far of a message whose last frame has not come; None between messages.
        self._message: bytearray | None = None
        self._is_text = False

    def feed(self, data: bytes | bytearray) -> None:
        """Take bytes as they came."""
        if self._at == len(self._input):
            self._input, self._at = bytearray(data), 0
        else:
            self._input += data

    def next_event(self) -> Event | None:
        """Give the next event, or ``None`` when more bytes are needed.

        Raises:
            FrameFault: The peer broke a rule.
        """
        if self._frame is None:
            if (whole := self._whole_message()) is not None:
                return whole
            if not self._begin_frame():
                return None
        frame = self._frame
        assert frame is not None, "a begun frame is there"
        self._take_payload(frame)
        if len(self._payload) < frame.length:
            return None
        payload, self._payload, self._frame = self._payload, bytearray(), None
        return self._finish(frame, payload)

    def _whole_message(self) -> WholeMessage | None:
        """Give a message that is one frame and all there; None leaves it, and every fault, to the long way."""
        held, at = self._input, self._at
        if len(held) - at < 2 or self._message is not None:
            return None
        first, length = held[at], held[at + 1] ^ (0x80 if self._masked else 0)
        if first not in _WHOLE or length >= 0x80:
            return None
        start = at + 2
        if length >= 126:
            size = 2 if length == 126 else 8
            length = int.from_bytes(held[start : start + size], "big")
            if length < 126 or (size == 8 and length <= 0xFFFF):
                return None
            start += size
        begin = start + 4 if self._masked else start
        end = begin + length
        if end > len(held) or length > self._message_bytes_max:
            return None
        data = bytes(_unmask(held[begin:end], held[start:begin], 0)) if self._masked else bytes(held[begin:end])
        self._at = end
        if end == len(held):
            # An idle connection holds on to nothing of what it has read.
            self._input, self._at = bytearray(), 0
        return WholeMessage(data, first == _WHOLE_TEXT)

    def _begin_frame(self) -> bool:
        held = self._input
        if self._at:
            del held[: self._at]
            self._at = 0
        if len(held) < 2:
            return False
        first, second = held[0], held[1]
        opcode, length = first & 0x0F, second & 0x7F
        mask_bytes = 4 if self._masked else 0
        extra = {126: 2, 127: 8}.get(length, 0)
        # Judged early, so that a peer cannot hold us up with half a header of a frame that is refused anyway.
        self._judge_start(first, second, opcode, length)
        begin = 2 + extra + mask_bytes
        if len(held) < begin:
            return False
        if extra:
            shortest = length
            (length,) = struct.unpack_from("!H" if extra == 2 else "!Q", held, 2)
            if length < 126 or (shortest == 127 and length <= 0xFFFF):
                raise FrameFault(1002, "payload length is not in its shortest form")
        self._judge_size(opcode, length)
        self._frame = _Frame(opcode, bool(first & 0x80), bytes(held[2 + extra : begin]), length)
        del held[:begin]
        return True

    def _judge_start(self, first: int, second: int, opcode: int, length: int) -> None:
        if first & 0x70:
            raise FrameFault(1002, "reserved bit set")
        if opcode not in Opcode.__members__.values():
            raise FrameFault(1002, f"unknown opcode {opcode}")
        if bool(second & 0x80) is not self._masked:
            raise FrameFault(1002, "client frame without a mask" if self._masked else "server frame with a mask")
        if opcode >= Opcode.CLOSE:
            if length > _CONTROL_BYTES_MAX or not first & 0x80:
                raise FrameFault(1002, "control frame too long or in fragments")
        elif (opcode == Opcode.CONTINUATION) != (self._message is not None):
            raise FrameFault(1002, "fragments out of order")

    def _judge_size(self, opcode: int, length: int) -> None:
        held = len(self._message) if self._message is not None and opcode < Opcode.CLOSE else 0
        if held + length > self._message_bytes_max:
            raise FrameFault(1009, f"message over the limit of {self._message_bytes_max} bytes")

    def _take_payload(self, frame: _Frame) -> None:
        """Unmask what is there, so that a large frame is not unmasked in one breath at its end."""
        count = min(frame.length - len(self._payload), len(self._input))
        if count:
            piece = self._input[:count]
            self._payload += _unmask(piece, frame.mask, len(self._payload)) if frame.mask else piece
            del self._input[:count]

    def _finish(self, frame: _Frame, payload: bytearray) -> Event:
        match frame.opcode:
            case Opcode.PING:
                return Ping(bytes(payload))
            case Opcode.PONG:
                return Pong(bytes(payload))
            case Opcode.CLOSE:
                return _closed(bytes(payload))
            case _:
                return self._finish_data(frame, payload)

    def _finish_data(self, frame: _Frame, payload: bytearray) -> WholeMessage | Part:
        message = payload if self._message is None else self._message
        if frame.opcode != Opcode.CONTINUATION:
            self._is_text = frame.opcode == Opcode.TEXT
        if self._message is not None:
            message += payload
        self._message = None if frame.final else message
        return WholeMessage(bytes(message), self._is_text) if frame.final else Part()


# One table a byte of the mask: 550 MB/s for large pieces where one long number gives 190; below 1 KB it is the reverse.
_TABLES = [bytes(byte ^ value for value in range(256)) for byte in range(256)]
_SMALL_BYTES = 1024


def _unmask(data: bytearray, mask: bytes | bytearray, offset: int) -> bytes | bytearray:
    """Turn a mask over, which puts it on as well as takes it off. May change ``data``."""
    turned = mask[offset % 4 :] + mask[: offset % 4]
    count = len(data)
    if count > _SMALL_BYTES:
        for place, byte in enumerate(turned):
            data[place::4] = data[place::4].translate(_TABLES[byte])
        return data
    key = (turned * (count // 4 + 1))[:count]
    return (int.from_bytes(data, "little") ^ int.from_bytes(key, "little")).to_bytes(count, "little")


def _closed(payload: bytes) -> Closed:
    if not payload:
        return Closed(1005, "")
    if len(payload) == 1:
        raise FrameFault(1002, "close frame with half a code")
    code = int.from_bytes(payload[:2], "big")
    if code not in _CLOSE_CODES:
        raise FrameFault(1002, f"close code {code} may not be sent")
    try:
        return Closed(code, payload[2:].decode())
    except UnicodeDecodeError:
        raise FrameFault(1007, "close reason is not UTF-8") from None


def encode_frame(opcode: Opcode, payload: bytes, mask: bytes | None = None) -> bytes:
    """Write one whole, final frame.

    Args:
        opcode: What it is.
        payload: What it carries.
        mask: Four random bytes from a client, None from a server.
    """
    length, masked = len(payload), 0x80 if mask is not None else 0
    if length < 126:
        header = struct.pack("!BB", 0x80 | opcode, masked | length)
    elif length <= 0xFFFF:
        header = struct.pack("!BBH", 0x80 | opcode, masked | 126, length)
    else:
        header = struct.pack("!BBQ", 0x80 | opcode, masked | 127, length)
    if mask is None:
        return header + payload
    return b"".join((header, mask, _unmask(bytearray(payload), mask, 0)))


def encode_close(code: int, reason: str, mask: bytes | None = None) -> bytes:
    """Write a close frame, masked as by `encode_frame`; the reason is cut on a whole character."""
    text = reason.encode("utf-8", "replace")[: _CONTROL_BYTES_MAX - 2].decode(errors="ignore")
    return encode_frame(Opcode.CLOSE, struct.pack("!H", code) + text.encode(), mask)
