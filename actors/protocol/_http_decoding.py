"""Take the encoding off an HTTP body, piece by piece: a small input never becomes an unbounded output at once."""

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

_PIECE_BYTES: Final = 64 * 1024
_GZIP: Final = 31


class BodyUndecodable(ValueError):
    """A body is not what its encoding says, or ends too early."""


class BodyDecoder(Protocol):
    """Takes pieces of a body, gives pieces of what it says."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode a piece, into pieces of bounded size.

        Raises:
            BodyUndecodable: It is not of this encoding.
        """
        ...

    def finish(self) -> None:
        """Say that there is no more.

        Raises:
            BodyUndecodable: There should be.
        """
        ...


class PlainBody:
    """A body without an encoding that is taken off."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Give it as it is, in pieces."""
        for start in range(0, len(data), _PIECE_BYTES):
            yield data[start : start + _PIECE_BYTES]

    def finish(self) -> None:
        """Be content."""


class GzipBody:
    """A gzip body, of one member or several."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        # The member has begun: its end must come.
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode a piece.

        Raises:
            BodyUndecodable: It is no gzip.
        """
        while data:
            if self._member.eof:
                self._member, self._begun = zlib.decompressobj(_GZIP), False
            self._begun = True
            try:
                piece = self._member.decompress(data, _PIECE_BYTES)
            except zlib.error as fault:
                raise BodyUndecodable(str(fault)) from None
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if piece:
                yield piece

    def finish(self) -> None:
        """Refuse half a member.

        Raises:
            BodyUndecodable: The last member is not whole.
        """
        if self._begun and not self._member.eof:
            raise BodyUndecodable("the gzip stream is not complete")


class ZstdBody:
    """A zstd body, of one frame or several; ``make`` gives a decompressor as of `compression.zstd`."""

    def __init__(self, make: Callable[[], Any], fault: type[Exception]) -> None:
        self._make, self._fault = make, fault
        self._frame: Any = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode a piece.

        Raises:
            BodyUndecodable: It is no zstd.
        """
        while data or (self._frame is not None and not self._frame.eof and not self._frame.needs_input):
            if self._frame is None or self._frame.eof:
                self._frame = self._make()
            try:
                piece = self._frame.decompress(data, max_length=_PIECE_BYTES)
            except self._fault as fault:
                raise BodyUndecodable(str(fault)) from None
            data = self._frame.unused_data if self._frame.eof else b""
            if piece:
                yield piece

    def finish(self) -> None:
        """Refuse half a frame.

        Raises:
            BodyUndecodable: The last frame is not whole.
        """
        if self._frame is not None and not self._frame.eof:
            raise BodyUndecodable("the zstd stream is not complete")
