"""Carry messages over a stream of the relay, encrypted end to end. Says nothing of who admitted the stream."""

from collections.abc import Sequence

import trio

from actors.executor._channel import CloseReason, Outlet
from actors.relay import ExecutorStream, RelayError

__all__ = ["RelayChannel"]

# A peer that never pauses is answered all the same.
_RECEIVED_IN_A_ROW = 16


class RelayChannel:
    """One stream of a relay connection, as the executor sees it."""

    # A peer that sends what cannot be read loses its stream: there is no address to name in an answer.
    answers_malformed = False

    def __init__(self, stream: ExecutorStream, *, close_s: float) -> None:
        self._stream, self._close_s = stream, close_s
        self._outlet: Outlet | None = None
        # What was taken to be sent and found no room; it goes before everything else.
        self._rest: Sequence[bytes] = ()
        # Whether the task that sends has messages in its hands: what came later must not go before them.
        self._is_sending = False
        self._received_in_a_row = 0
        self.peer: str = f"relay stream {stream.stream_id}"

    def send_when_idle(self, outlet: Outlet) -> None:
        """Queue what is there to be sent whenever nothing more is there to be received."""
        self._outlet = outlet

    def _idle(self, outlet: Outlet) -> None:
        """Queue what there is room for, before anything is waited for."""
        self._received_in_a_row = 0
        if self._rest or self._is_sending:
            outlet.uncork()
            return
        messages = outlet.take_now()
        try:
            queued = self._stream.send_some(messages) if messages else 0
        except RelayError:  # The task that sends is told how it ended.
            queued = 0
        if queued < len(messages):
            self._rest = messages[queued:]
            outlet.nudge()

    async def receive(self) -> bytes:
        """Wait for the next message.

        Raises:
            trio.EndOfChannel: The connection is over, for whatever reason.

        Cancelled:
            No message is lost.
        """
        self._received_in_a_row += 1
        if self._outlet is not None and (self._stream.is_idle or self._received_in_a_row > _RECEIVED_IN_A_ROW):
            self._idle(self._outlet)
        try:
            return await self._stream.receive()
        except RelayError as error:
            raise trio.EndOfChannel from error

    async def send(self, messages: Sequence[bytes]) -> None:
        """Queue messages one after the other: the stream packs those that wait into records.

        Raises:
            trio.BrokenResourceError: The connection is over.

        Cancelled:
            The first of them may be queued, each whole; the others are not sent.
        """
        waiting, self._rest = (*self._rest, *messages), ()
        self._is_sending = True
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            for message in waiting[self._stream.send_some(waiting) :]:
                await self._stream.send(message)
        except RelayError as error:
            raise trio.BrokenResourceError from error
        finally:
            self._is_sending = False

    async def close(self, reason: CloseReason) -> None:
        """Let the last words out and end the stream. The reason stays here: a reset has none that anybody trusts.

        Cancelled:
            The stream ends at once; last words may be lost.
        """
        del reason
        try:
            with trio.move_on_after(self._close_s):
                await self._stream.wait_until_written()
        finally:
            self._stream.close()
