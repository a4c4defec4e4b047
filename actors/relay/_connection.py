"""What the two stream ends ask of a physical connection, and of whoever makes one. Says nothing of WebSockets."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

__all__ = ["Dialer", "EagerConnection", "PhysicalConnection"]


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


@runtime_checkable
class EagerConnection(Protocol):
    """A connection that can also write without a turn of the scheduler, and several frames in one piece."""

    @property
    def is_free(self) -> bool:
        """Whether it lives and nothing is being written."""
        ...

    def send_now(self, frames: Sequence[bytes]) -> None:
        """Write frames, as far as the system takes them at once; only while it is free.

        When it is free afterwards all is written; if it is not, `wait_free` has to be called.
        """
        ...

    async def wait_free(self) -> None:
        """Write what `send_now` left, and wait until the connection is free. Called by one task only.

        Raises:
            ConnectionLost: The connection is gone.

        Cancelled:
            Half a frame may be out: the connection is of no more use.
        """
        ...


class Dialer(Protocol):
    """Makes physical connections."""

    def dial(self, url: str) -> AbstractAsyncContextManager[PhysicalConnection]:
        """Connect to ``url`` for as long as the context lasts; leaving it closes the connection within a bound.

        Raises:
            DialFailed: No connection came about.

        Cancelled:
            The connection is closed within the same bound.
        """
        ...
