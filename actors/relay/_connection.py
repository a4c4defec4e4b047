"""What the two stream ends ask of a physical connection, and of whoever makes one. Says nothing of WebSockets."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

__all__ = ["Dialer", "PhysicalConnection"]


class PhysicalConnection(Protocol):
    """One connection to the rendezvous. It keeps itself alive, and says by `ConnectionLost` that it is gone."""

    async def send(self, frame: bytes) -> None:
        """Write one frame. Called by one task only.

        Raises:
            ConnectionLost: The connection is gone, perhaps because this write took too long.

        Cancelled:
            Half a frame may be out: the connection is of no more use.
        """
        ...

    async def receive(self) -> bytes | str:
        """Wait for the next message. Text is none of ours, but each end has its own rule for it.

        Raises:
            ConnectionLost: The connection is gone.

        Cancelled:
            No message is lost.
        """
        ...


class Dialer(Protocol):
    """Makes physical connections."""

    def dial(self, url: str) -> AbstractAsyncContextManager[PhysicalConnection]:
        """Connect to ``url`` for as long as the context lasts; leaving it closes the connection within a bound.

        Raises:
            DialFailed: No connection came about.
        """
        ...
