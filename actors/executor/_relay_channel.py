"""Carry messages over a stream of the relay, encrypted end to end. Says nothing of who admitted the stream."""

from collections.abc import Sequence

import trio

from actors.executor._channel import CloseReason
from actors.relay import ExecutorStream, RelayError

__all__ = ["RelayChannel"]


class RelayChannel:
    """One stream of a relay connection, as the executor sees it."""

    # A peer that sends what cannot be read loses its stream: there is no address to name in an answer.
    answers_malformed = False

    def __init__(self, stream: ExecutorStream, *, close_s: float) -> None:
        self._stream, self._close_s = stream, close_s
        self.peer: str = f"relay stream {stream.stream_id}"

    async def receive(self) -> bytes:
        """Wait for the next message."""
        try:
            return await self._stream.receive()
        except RelayError as error:
            raise trio.EndOfChannel from error

    async def send(self, messages: Sequence[bytes]) -> None:
        """Queue messages one after the other: the stream packs those that wait into records."""
        try:
            for message in messages:
                await self._stream.send(message)
        except RelayError as error:
            raise trio.BrokenResourceError from error

    async def close(self, reason: CloseReason) -> None:
        """Let the last words out and end the stream. The reason stays here: a reset has none that anybody trusts."""
        del reason
        try:
            with trio.move_on_after(self._close_s):
                await self._stream.wait_until_written()
        finally:
            self._stream.close()
