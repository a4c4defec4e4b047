"""Where the output of a command goes: on to our own outputs as it comes, or kept to be told whole."""

import sys
from typing import Protocol

from actors.cli._output import write_to
from actors.protocol import OutputChunk, OutputGap, Stream

__all__ = ["Kept", "Sink", "Streams"]

_KEPT_BYTES_MAX = 64 * 1024 * 1024


class Sink(Protocol):
    """What takes output, piece by piece."""

    async def take(self, piece: OutputChunk | OutputGap, /) -> None:
        """Take one."""
        ...


class Streams:
    """Passes bytes on as they come; what cannot be told apart from output goes to the error output."""

    async def take(self, piece: OutputChunk | OutputGap) -> None:
        if isinstance(piece, OutputGap):
            print("greenroom run: some output is lost here", file=sys.stderr)
        else:
            await write_to(sys.stderr if piece.stream is Stream.STDERR else sys.stdout, piece.chunk)


class Kept:
    """Keeps output up to a limit, both streams together, and counts the rest."""

    def __init__(self, bytes_max: int = _KEPT_BYTES_MAX) -> None:
        self._room = bytes_max
        self._out, self._error = bytearray(), bytearray()
        self._left_out_bytes = 0
        self._is_lost = False

    async def take(self, piece: OutputChunk | OutputGap) -> None:
        if isinstance(piece, OutputGap):
            self._is_lost = True
            return
        kept = piece.chunk[: self._room]
        self._room -= len(kept)
        self._left_out_bytes += len(piece.chunk) - len(kept)
        (self._error if piece.stream is Stream.STDERR else self._out).extend(kept)

    def told(self) -> dict[str, object]:
        """Everything, as members of a JSON object."""
        return {
            "stdout": self._out.decode("utf-8", "replace"),
            "stderr": self._error.decode("utf-8", "replace"),
            "leftOutBytes": self._left_out_bytes,
            "outputLost": self._is_lost,
        }
