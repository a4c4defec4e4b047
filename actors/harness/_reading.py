"""Ways to read a process: pieces with positions, bytes, text, lines.

Plain iterators, not generators: one that is dropped half-way leaves nothing behind, and the next goes on where it
stopped.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import Generic, Self, TypeVar

from actors.harness._followed import output_lost
from actors.protocol import OutputChunk, OutputGap, Stream, TextDecoder

T = TypeVar("T")

TakePiece = Callable[[], Awaitable[OutputChunk | OutputGap | None]]


class OutputPieces:
    """Iterate output with positions; a gap is a value among them.

    Cancelled:
        No output is lost: iterate it again.
    """

    def __init__(self, take: TakePiece) -> None:
        self._take = take

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> OutputChunk | OutputGap:
        piece = await self._take()
        if piece is None:
            raise StopAsyncIteration
        return piece


class _Reader(Generic[T]):
    """What bytes, text and lines share: chosen streams, and a gap as an error."""

    def __init__(self, take: TakePiece, streams: Collection[Stream]) -> None:
        self._take = take
        self._streams = frozenset(streams)

    def __aiter__(self) -> Self:
        return self

    async def _next_chunk(self) -> OutputChunk | None:
        while True:
            piece = await self._take()
            if isinstance(piece, OutputGap):
                raise output_lost(piece)
            if piece is None or not self._streams or piece.stream in self._streams:
                return piece


class OutputBytes(_Reader[bytes]):
    """Iterate output as bytes, as they came.

    Cancelled:
        No output is lost: iterate it again.
    """

    async def __anext__(self) -> bytes:
        chunk = await self._next_chunk()
        if chunk is None:
            raise StopAsyncIteration
        return chunk.chunk


class OutputText(_Reader[str]):
    """Iterate output as text: whole characters, each stream decoded for itself.

    Cancelled:
        No output is lost: iterate it again.
    """

    def __init__(self, take: TakePiece, streams: Collection[Stream], decoders: dict[Stream, TextDecoder]) -> None:
        super().__init__(take, streams)
        self._decoders = decoders

    async def __anext__(self) -> str:
        while (chunk := await self._next_chunk()) is not None:
            text = self._decoders.setdefault(chunk.stream, TextDecoder()).feed(chunk.chunk)
            if text:
                return text
        rest = "".join(self._decoders.pop(stream).finish() for stream in list(self._decoders))
        if not rest:
            raise StopAsyncIteration
        return rest


class OutputLines(_Reader[str]):
    """Iterate output as lines without their ends; lines of two streams are never mixed.

    Cancelled:
        No output is lost: iterate it again.
    """

    def __init__(self, take: TakePiece, streams: Collection[Stream], decoders: dict[Stream, TextDecoder]) -> None:
        super().__init__(take, streams)
        self._decoders = decoders
        self._begun: dict[Stream, str] = {}
        self._ready: deque[str] = deque()

    async def __anext__(self) -> str:
        while not self._ready:
            chunk = await self._next_chunk()
            if chunk is None:
                return self._last_line()
            text = self._decoders.setdefault(chunk.stream, TextDecoder()).feed(chunk.chunk)
            self._split(chunk.stream, text)
        return self._ready.popleft()

    def _split(self, stream: Stream, text: str) -> None:
        *whole, begun = (self._begun.get(stream, "") + text).split("\n")
        self._begun[stream] = begun
        self._ready.extend(line.removesuffix("\r") for line in whole)

    def _last_line(self) -> str:
        for stream in list(self._decoders):
            self._split(stream, self._decoders.pop(stream).finish())
        for stream in list(self._begun):
            line = self._begun.pop(stream)
            if line:
                return line
        raise StopAsyncIteration
