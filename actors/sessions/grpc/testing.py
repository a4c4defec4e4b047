"""An in-memory network: a dialler and a listener that no socket connects, for tests on a virtual clock."""

import math

import trio
import trio.testing

__all__ = ["MemoryNetwork"]

MemoryStream = trio.StapledStream[trio.testing.MemorySendStream, trio.testing.MemoryReceiveStream]


class MemoryListener(trio.abc.Listener[MemoryStream]):
    """Accepts what the network of the same test dials."""

    def __init__(self, arrivals: trio.MemoryReceiveChannel[MemoryStream]) -> None:
        self._arrivals = arrivals

    async def accept(self) -> MemoryStream:
        """Wait for the next connection."""
        return await self._arrivals.receive()

    async def aclose(self) -> None:
        """Refuse every further connection."""
        await self._arrivals.aclose()


class MemoryNetwork:
    """One address that can be listened on and dialled."""

    def __init__(self) -> None:
        self._dialled, arrivals = trio.open_memory_channel[MemoryStream](math.inf)
        self.listener: MemoryListener = MemoryListener(arrivals)
        self.pairs: list[tuple[MemoryStream, MemoryStream]] = []
        """Each connection made, the dialling end first."""

    async def dial(self) -> trio.abc.Stream:
        """Connect.

        Raises:
            ConnectionRefusedError: Nobody listens any more.

        Cancelled:
            Nobody was connected.
        """
        await trio.lowlevel.checkpoint()
        here, there = trio.testing.memory_stream_pair()
        try:
            self._dialled.send_nowait(there)
        except trio.BrokenResourceError:
            raise ConnectionRefusedError("nobody listens any more") from None
        self.pairs.append((here, there))
        return here
