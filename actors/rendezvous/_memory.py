"""The twin behind `actors.rendezvous.testing`: the network between a rendezvous and its clients, without a socket."""

import h11
import httpx2
import trio
from trio.testing import memory_stream_pair

__all__ = ["MemoryNetwork"]


class _MemoryListener(trio.abc.Listener[trio.abc.Stream]):
    """Accepts what is dialled in its network."""

    def __init__(self) -> None:
        self._dialled, self._accepting = trio.open_memory_channel[trio.abc.Stream](100)

    def connect(self, stream: trio.abc.Stream) -> None:
        self._dialled.send_nowait(stream)

    async def accept(self) -> trio.abc.Stream:
        try:
            return await self._accepting.receive()
        except trio.EndOfChannel:
            raise trio.ClosedResourceError from None

    async def aclose(self) -> None:
        self._accepting.close()
        await trio.lowlevel.checkpoint()


class _MemoryTransport(httpx2.AsyncBaseTransport):
    """Carries each request of an HTTP client on a connection of its own."""

    def __init__(self, network: "MemoryNetwork") -> None:
        self._network = network

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask, and read the whole answer."""
        body = await request.aread()
        try:
            async with await self._network.open_stream(request.url.host, request.url.port or 80) as stream:
                return await self._exchange(stream, request, body)
        except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError) as error:
            raise httpx2.ConnectError(str(error), request=request) from error

    async def _exchange(self, stream: trio.abc.Stream, request: httpx2.Request, body: bytes) -> httpx2.Response:
        http = h11.Connection(h11.CLIENT)
        head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
        out = [http.send(head), http.send(h11.Data(data=body)) if body else b"", http.send(h11.EndOfMessage())]
        await stream.send_all(b"".join(part or b"" for part in out))
        answer, content = None, bytearray()
        while True:
            match http.next_event():
                case h11.NEED_DATA:
                    http.receive_data(bytes(await stream.receive_some()))
                case h11.Response() as response:
                    answer = response
                case h11.Data(data=data):
                    content += data
                case _:
                    break
        if answer is None:
            raise h11.RemoteProtocolError("no answer came")
        return httpx2.Response(answer.status_code, headers=list(answer.headers), content=bytes(content))


class MemoryNetwork:
    """A network with one address, in one process: listen in it, dial in it, ask by HTTP in it.

    Give `listeners` to `open_rendezvous` (with `url` as its `public_url`), `open_stream` to `WebSocketDialer`, and
    `transport()` to `open_registry_client`. Everything runs on trio's clock, also a virtual one.
    """

    def __init__(self, url: str = "http://rendezvous.memory:80") -> None:
        self.url = url
        """The one address."""
        self._listener: _MemoryListener | None = None
        self.dialled: int = 0
        """How many connections were asked for."""

    def listeners(self) -> list[trio.abc.Listener[trio.abc.Stream]]:
        """Begin to listen; whoever listened before is no longer reached."""
        self._listener = _MemoryListener()
        return [self._listener]

    def unplug(self) -> None:
        """Let nobody connect any more, until somebody listens again. What is connected stays."""
        self._listener = None

    async def open_stream(self, host: str, port: int) -> trio.abc.Stream:
        """Connect.

        Raises:
            OSError: Nobody listens, or too many wait to be accepted.

        Cancelled:
            Nobody was connected.
        """
        await trio.lowlevel.checkpoint()
        self.dialled += 1
        if self._listener is None:
            raise OSError(f"nobody listens at {host}:{port}")
        near, far = memory_stream_pair()
        try:
            self._listener.connect(far)
        except (trio.WouldBlock, trio.BrokenResourceError):
            raise OSError(f"nobody accepts at {host}:{port}") from None
        return near

    def transport(self) -> httpx2.AsyncBaseTransport:
        """Give what carries an HTTP client's requests."""
        return _MemoryTransport(self)
