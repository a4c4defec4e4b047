"""Read and write a connection's bytes with one turn of the loop each, where it is a plain socket.

trio's streams look before they wait and take a turn after each success. That is right for streams in general; here
every turn is a part of what a small call costs (`benchmarks/grpc.py`). One task reads and one writes: nothing else here
touches the socket.
"""

import os

import trio


class Wire:
    """One stream of bytes. Whoever closes the stream closes this."""

    def __init__(self, transport: trio.abc.Stream) -> None:
        self._transport = transport
        # Only trio's own sockets: what stands on them, TLS for one, has bytes of its own to see to.
        self._socket = transport.socket if type(transport) is trio.SocketStream else None

    async def receive(self, size: int) -> bytes:
        """Wait for bytes; none at the end.

        Raises:
            trio.BrokenResourceError, trio.ClosedResourceError, OSError: There will be no more.

        Cancelled:
            Nothing was taken.
        """
        if self._socket is None:
            return bytes(await self._transport.receive_some(size))
        while True:
            number = self._socket.fileno()
            await trio.lowlevel.wait_readable(number)
            try:
                return os.read(number, size)
            except BlockingIOError:
                continue  # Another reason to wake than bytes.

    async def send(self, data: bytearray) -> None:
        """Write all of it. It takes no turn where the socket has room: whoever sends without end takes one.

        Raises:
            trio.BrokenResourceError, trio.ClosedResourceError, OSError: It is gone.

        Cancelled:
            Part of it may be written: nothing can be sent any more.
        """
        left = self.send_now(data)
        if left:
            await self._transport.send_all(left)

    def send_now(self, data: bytearray) -> bytearray:
        """Write what goes without waiting, and return the rest; what is broken shows when that is sent."""
        if self._socket is None or not data:
            return data
        try:
            written = os.write(self._socket.fileno(), data)
        except OSError:
            return data
        return data[written:]
