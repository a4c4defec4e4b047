"""Cut a stream of bytes into messages: one flag byte, four bytes of length, the message.

Bytes in, messages out, and the cuts do not show. Does not know what a message means.
"""

import zlib
from collections.abc import Callable
from typing import Final

from actors.sessions.grpc._errors import MalformedCall, MessageTooLarge

PREFIX_BYTES: Final = 5
MESSAGE_BYTES_MAX: Final = 2**32 - 1

Decompress = Callable[[bytes, int], bytes]


def message_prefix(size: int) -> bytes:
    """Announce an uncompressed message of so many bytes."""
    return b"\x00" + size.to_bytes(4)


class MessageDecoder:
    """Collects the messages of one direction of one call."""

    __slots__ = ("_chunks", "_compressed", "_decompress", "_limit_bytes", "_missing", "_prefix")

    def __init__(self, limit_bytes: int, decompress: Decompress | None = None) -> None:
        self._limit_bytes, self._decompress = limit_bytes, decompress
        self._prefix: bytes = b""
        # While a message is being collected: its pieces, how much is missing, and whether it is compressed.
        self._chunks: list[bytes] = []
        self._missing = 0
        self._compressed = False

    @property
    def incomplete(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._missing or self._prefix)

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes and return each message they complete.

        Raises:
            MessageTooLarge: The announced or unpacked size is over the limit; found before anything is
                collected.
            MalformedCall: An unknown flag, or a compressed message without a known encoding.
        """
        messages: list[bytes] = []
        at, end = 0, len(data)
        if self._missing:
            at = min(self._missing, end)
            self._collect(data[:at], messages)
        elif self._prefix:
            data = self._prefix + data
            self._prefix, end = b"", len(data)
        while at < end:
            if end - at < PREFIX_BYTES:
                self._prefix = data[at:]
                break
            size = self._begin(data, at)
            at += PREFIX_BYTES
            piece = data[at : at + size]
            at += len(piece)
            self._missing = size
            self._collect(piece, messages)
        return messages

    def _begin(self, data: bytes, at: int) -> int:
        flag, size = data[at], int.from_bytes(data[at + 1 : at + PREFIX_BYTES])
        if flag > 1:
            raise MalformedCall(f"a message begins with the flag {flag}, which is neither 0 nor 1")
        if size > self._limit_bytes:
            raise MessageTooLarge(found_bytes=size, limit_bytes=self._limit_bytes, inbound=True)
        if flag and self._decompress is None:
            raise MalformedCall("a message is compressed, but the call named no encoding")
        self._compressed = bool(flag)
        return size

    def _collect(self, piece: bytes, messages: list[bytes]) -> None:
        self._missing -= len(piece)
        if self._missing:
            self._chunks.append(piece)
            return
        if self._chunks:
            self._chunks.append(piece)
            piece = b"".join(self._chunks)
            self._chunks = []
        if self._compressed:
            assert self._decompress is not None, "a compressed message passed _begin without an encoding"
            piece = self._decompress(piece, self._limit_bytes)
        messages.append(piece)


def gunzip(data: bytes, limit_bytes: int) -> bytes:
    """Unpack gzip or deflate, but never more than the limit.

    Raises:
        MessageTooLarge: More would come out.
        MalformedCall: It is no complete gzip or zlib stream.
    """
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        plain = unpacker.decompress(data, limit_bytes + 1)
    except zlib.error as broken:
        raise MalformedCall(f"a compressed message cannot be unpacked: {broken}") from broken
    if len(plain) > limit_bytes:
        raise MessageTooLarge(found_bytes=len(plain), limit_bytes=limit_bytes, inbound=True)
    if not unpacker.eof:
        raise MalformedCall("a compressed message ends too early")
    return plain


_DECOMPRESS: Final[dict[bytes, Decompress | None]] = {
    b"identity": None,
    b"": None,
    b"gzip": gunzip,
    b"deflate": gunzip,
}
ACCEPTED_ENCODINGS: Final = b"identity,deflate,gzip"


def decompressor_of(encoding: bytes) -> Decompress | None:
    """Find how to unpack an encoding.

    Raises:
        LookupError: Nobody here knows it.
    """
    return _DECOMPRESS[encoding]
