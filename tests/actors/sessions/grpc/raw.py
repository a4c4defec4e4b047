"""A peer made of plain h2, to say on the wire what neither of our ends would say."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
import trio

from actors.sessions import grpc
from actors.sessions.grpc._framing import message_prefix
from actors.sessions.grpc._headers import read_response, read_trailers
from actors.sessions.grpc.testing import MemoryNetwork

REQUEST = [
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "raw"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
]


class Raw:
    """One end of a connection, driven by the test line by line."""

    def __init__(self, stream: trio.abc.Stream, *, client: bool) -> None:
        self.stream = stream
        config = h2.config.H2Configuration(client_side=client, header_encoding=None, validate_outbound_headers=False)
        self.h2 = h2.connection.H2Connection(config)
        self.events: list[Any] = []

    async def flush(self) -> None:
        data = self.h2.data_to_send()
        if data:
            await self.stream.send_all(data)

    async def begin(self) -> None:
        self.h2.initiate_connection()
        await self.flush()

    async def take(self, *, answer: bool = True) -> list[Any]:
        """Read once; the new events are returned and kept."""
        data = await self.stream.receive_some(65_536)
        if not data:
            raise EOFError
        news = self.h2.receive_data(bytes(data))
        self.events += news
        if answer:
            await self.flush()
        return news

    async def wait_for(self, kind: type[Any], stream_id: int | None = None) -> Any:
        """Return the first event of a kind, kept or to come."""
        with trio.fail_after(60):
            while True:
                for event in self.events:
                    if isinstance(event, kind) and stream_id in {None, getattr(event, "stream_id", None)}:
                        return event
                await self.take()

    async def goaway(self, last_stream_id: int) -> None:
        """Send GOAWAY and go on, which h2 would not."""
        await self.stream.send_all(b"\0\0\x08\x07\0\0\0\0\0" + last_stream_id.to_bytes(4) + bytes(4))

    async def wait_end(self) -> None:
        """Read until the other end closes."""
        with trio.fail_after(60):
            try:
                while True:
                    await self.take(answer=False)
            except (EOFError, trio.BrokenResourceError):
                return

    # --- as a client

    async def request(
        self,
        method: grpc.Method[bytes, bytes],
        message: bytes | None = b"",
        *more: tuple[str, str],
        ends: bool = True,
    ) -> int:
        number = self.h2.get_next_available_stream_id()
        self.h2.send_headers(number, [*REQUEST[:3], (":path", method.path), *REQUEST[3:], *more])
        if message is not None:
            self.h2.send_data(number, message_prefix(len(message)) + message, end_stream=ends)
        await self.flush()
        return number

    async def status_of(self, number: int) -> grpc.Status:
        """Wait for the end of a call."""
        with trio.fail_after(60):
            while True:
                for event in self.events:
                    if getattr(event, "stream_id", None) != number:
                        continue
                    if isinstance(event, h2.events.TrailersReceived):
                        return read_trailers(event.headers).status
                    if isinstance(event, h2.events.ResponseReceived) and event.stream_ended is not None:
                        ending = read_response(event.headers, ended=True)
                        return ending.status  # type: ignore[union-attr]  # it has ended
                    if isinstance(event, h2.events.StreamReset):
                        raise AssertionError(f"reset with {event.error_code}")
                await self.take()

    def data_of(self, number: int) -> bytes:
        return b"".join(
            event.data
            for event in self.events
            if isinstance(event, h2.events.DataReceived) and event.stream_id == number
        )

    # --- as a server

    async def answer(self, number: int, message: bytes = b"", *, status: str = "0", ends: bool = True) -> None:
        self.h2.send_headers(number, [(":status", "200"), ("content-type", "application/grpc")])
        self.h2.send_data(number, message_prefix(len(message)) + message)
        if ends:
            self.h2.send_headers(number, [("grpc-status", status)], end_stream=True)
        await self.flush()


@asynccontextmanager
async def raw_client(network: MemoryNetwork) -> AsyncGenerator[Raw]:
    """Connect to whoever listens on a network."""
    stream = await network.dial()
    client = Raw(stream, client=True)
    await client.begin()
    try:
        yield client
    finally:
        await trio.aclose_forcefully(stream)


async def accept_raw(network: MemoryNetwork, *, calls_max: int = 100) -> Raw:
    """Accept a connection as a server."""
    server = Raw(await network.listener.accept(), client=False)
    server.h2.local_settings = h2.settings.Settings(
        client=False, initial_values={h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: calls_max}
    )
    await server.begin()
    return server
