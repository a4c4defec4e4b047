"""The seam between the executor and whatever carries its messages."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

__all__ = ["CloseReason", "EagerChannel", "MessageChannel", "Outlet"]

CloseReason = tuple[int, str]
"""A WebSocket close code and a short text; a transport without codes shows the text."""


class MessageChannel(Protocol):
    """Carries whole messages both ways for one connection. One task receives, one sends."""

    @property
    def peer(self) -> str:
        """Who is at the other end, for texts and events: ``ip:port``."""
        ...

    @property
    def answers_malformed(self) -> bool:
        """Whether a message that cannot be read is answered; else the connection ends."""
        ...

    async def receive(self) -> bytes | str:
        """Wait for the next message.

        Raises:
            trio.EndOfChannel: The connection is over, for whatever reason.

        Cancelled:
            No message is lost.
        """
        ...

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages, packed as the transport likes.

        Raises:
            trio.BrokenResourceError: The connection is over.

        Cancelled:
            Part of the message may be out; nothing may be sent after it.
        """
        ...

    async def close(self, reason: CloseReason) -> None:
        """End the connection, telling the peer why if it listens; bounded, whatever the peer does.

        Cancelled:
            It ends all the same, perhaps without a word.
        """
        ...


class Outlet(Protocol):
    """Where an eager channel takes messages from by itself."""

    def uncork(self) -> None:
        """Leave what is there to the task that sends."""
        ...

    def take_now(self) -> Sequence[bytes]:
        """Take what is there."""
        ...

    def nudge(self) -> None:
        """Have the task that sends send what the channel holds back, if with nothing more."""
        ...


@runtime_checkable
class EagerChannel(Protocol):
    """A channel whose `receive` sends, before it waits for more, what was answered since it waited last.

    So one task answers, without a turn of another one. One write carries all answers to what came in one piece.
    """

    def send_when_idle(self, outlet: Outlet) -> None:
        """Take from there from now on."""
        ...
