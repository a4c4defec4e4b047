"""The seam to the world: how a harness reaches an executor.

A dialer makes a message channel out of an address. The real one speaks WebSocket; its twin lives in memory
(`actors.harness.testing`); a secure one will speak through a relay.
"""

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class ChannelClosed(Exception):
    """No further message goes or comes through this channel."""

    def __init__(self, reason: str | None = None, *, written: bool = True) -> None:
        super().__init__(reason or "channel closed")
        self.reason = reason
        """Why, when the other end or the network said so."""
        self.written = written
        """False only when it is certain that nothing of the refused message left."""


class MessageChannel(Protocol):
    """Whole messages both ways, in order. One task sends, one task receives."""

    async def send(self, message: bytes) -> None:
        """Send one message.

        Raises:
            ChannelClosed: The channel has ended; says whether anything was written.

        Cancelled:
            Part of the message may be out: the channel is of no use any more.
        """
        ...

    async def receive(self) -> bytes | str:
        """Give the next message.

        Raises:
            ChannelClosed: The channel has ended and all messages were given.

        Cancelled:
            No message is lost.
        """
        ...

    async def ping(self) -> None:
        """Return when the other end has shown that it lives.

        Raises:
            ChannelClosed: The channel has ended.

        Cancelled:
            Only the wait ends.
        """
        ...


class Dialer(Protocol):
    """Opens channels to executors."""

    def dial(self, url: str) -> AbstractAsyncContextManager[MessageChannel]:
        """Open a channel; leaving the context closes it within a bound, whatever the other end does.

        Raises:
            HarnessError: It could not be opened.

        Cancelled:
            The channel is closed within the same bound; what was used to open it is used up.
        """
        ...
