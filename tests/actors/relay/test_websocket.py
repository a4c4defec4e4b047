"""Physical connections by WebSocket: signs of life (P13), closing (P22), limits, and what a refused dial says.

Real protocol objects on streams in memory, on a virtual clock; one test dials a real socket.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import attrs
import pytest
import trio
import trio.testing
import trio_websocket
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, Pong, RejectConnection, Request

from actors.relay import (
    AddressUnusable,
    ConnectionLost,
    DialFailed,
    DialRefused,
    DisconnectReason,
    RelayLimits,
    WebSocketConnection,
    WebSocketDialer,
    cut_url,
    new_request_id,
    retry_after_s,
)
from tests.support.cancelling import cancel_at_each_step

URL = "ws://relay.example:8080/rendezvous/harness?ticket=a-secret-ticket"


@attrs.define
class Server:
    """The other side, made of protocol events: it does only what a test tells it to."""

    stream: trio.testing.MemoryReceiveStream
    protocol: WSConnection = attrs.field(factory=lambda: WSConnection(ConnectionType.SERVER))
    seen: list[Event] = attrs.field(factory=list)

    async def send(self, event: Event) -> None:
        await self.stream.send_all(self.protocol.send(event))

    async def next(self) -> Event | None:
        while True:
            for event in self.protocol.events():
                self.seen.append(event)
                return event
            data = await self.stream.receive_some(65536)
            if not data:
                return None
            self.protocol.receive_data(data)

    async def accept(self) -> None:
        assert isinstance(await self.next(), Request)
        await self.send(AcceptConnection())


@asynccontextmanager
async def connected(
    limits: RelayLimits | None = None, *, capacity: int | None = None
) -> AsyncGenerator[tuple[WebSocketConnection, Server], None]:
    async with trio.open_nursery() as nursery:
        ours, theirs = memory_pair(capacity)
        server = Server(theirs)
        nursery.start_soon(server.accept)
        async with dialer(ours, limits or RelayLimits(close_s=0.02)).dial(URL) as connection:
            yield connection, server
        nursery.cancel_scope.cancel()


class Reader:
    """Reads a connection at all times, as both ends of a stream do, and keeps what came and how it ended."""

    def __init__(self, connection: WebSocketConnection) -> None:
        self._connection = connection
        self._put, self._taken = trio.open_memory_channel[bytes | str](100)
        self.lost: ConnectionLost | None = None
        self.ended = trio.Event()

    async def run(self) -> None:
        try:
            while True:
                self._put.send_nowait(await self._connection.receive())
        except ConnectionLost as lost:
            self.lost = lost
            self.ended.set()

    async def next(self) -> bytes | str:
        return await self._taken.receive()

    async def end(self) -> ConnectionLost:
        await self.ended.wait()
        assert self.lost is not None
        return self.lost


@asynccontextmanager
async def read(limits: RelayLimits | None = None) -> AsyncGenerator[tuple[WebSocketConnection, Server, Reader], None]:
    async with connected(limits) as (connection, server), trio.open_nursery() as nursery:
        reader = Reader(connection)
        nursery.start_soon(reader.run)
        yield connection, server, reader
        nursery.cancel_scope.cancel()


def memory_pair(capacity: int | None) -> tuple[trio.StapledStream, trio.StapledStream]:
    ours, theirs = trio.testing.memory_stream_pair() if capacity is None else trio.testing.lockstep_stream_pair()
    return ours, theirs


def dialer(stream: trio.abc.Stream, limits: RelayLimits | None = None) -> WebSocketDialer:
    async def open_stream(host: str, port: int) -> trio.abc.Stream:
        assert (host, port) == ("relay.example", 8080)
        return stream

    return WebSocketDialer(limits=limits or RelayLimits(), open_stream=open_stream)


async def test_frames_go_both_ways_and_the_server_sees_path_and_query() -> None:
    async with connected() as (connection, server):
        await connection.send(b"to the server")
        event = await server.next()
        await server.send(BytesMessage(b"to the client"))

        assert isinstance(event, BytesMessage)
        assert event.data == b"to the server"
        assert await connection.receive() == b"to the client"
        assert server.seen[0].target == "/rendezvous/harness?ticket=a-secret-ticket"  # type: ignore[attr-defined]


async def test_77_a_keepalive_ping_is_sent_without_other_traffic(autojump_clock: trio.testing.MockClock) -> None:
    async with connected() as (_, server):
        began_s = trio.current_time()
        event = await server.next()

        assert isinstance(event, Ping)
        assert event.payload == b""
        assert trio.current_time() - began_s == pytest.approx(30)


async def test_76_answered_pings_keep_the_connection_and_a_close_of_the_peer_ends_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with read() as (_, server, reader):
        for round_ in range(1, 7):
            event = await server.next()
            assert isinstance(event, Ping)
            assert trio.current_time() == pytest.approx(30 * round_)
            await server.send(event.response())
        await server.send(CloseConnection(code=1000))

        assert (await reader.end()).reason is DisconnectReason.PEER_CLOSE


async def test_75_p13_a_peer_that_is_silent_is_given_up_within_interval_and_limit(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with connected() as (connection, _):
        began_s = trio.current_time()
        with pytest.raises(ConnectionLost) as caught:
            await connection.receive()

        assert caught.value.reason is DisconnectReason.PONG_TIMEOUT
        assert str(caught.value) == "pong_timeout: no frame for 90 s"
        assert trio.current_time() - began_s == pytest.approx(90)
        with pytest.raises(ConnectionLost):
            await connection.send(b"x")


async def test_84_p13_a_peer_that_answers_no_ping_but_says_something_is_not_cut(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The protocol's own test cuts such a peer; ours counts any inbound frame as life (case P13)."""
    async with read() as (_, server, reader):
        for _ in range(20):
            await trio.sleep(45)
            await server.send(BytesMessage(b"busy"))
            assert await reader.next() == b"busy"
        await trio.sleep(30)
        last_s = trio.current_time() - 30

        assert (await reader.end()).reason is DisconnectReason.PONG_TIMEOUT
        assert trio.current_time() - last_s == pytest.approx(60)


async def test_83_what_is_queued_unread_is_life_too_and_silence_counts_from_the_last_of_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with connected() as (connection, server):
        for number in range(40):
            await server.send(BytesMessage(b"%d" % number))
        await trio.sleep(300)

        assert [await connection.receive() for _ in range(40)] == [b"%d" % number for number in range(40)]
        with pytest.raises(ConnectionLost) as caught:
            await connection.receive()
        assert caught.value.reason is DisconnectReason.PONG_TIMEOUT


async def test_82_a_ping_that_is_due_goes_between_two_frames(autojump_clock: trio.testing.MockClock) -> None:
    async with connected() as (connection, server):
        await trio.sleep(29)
        await connection.send(b"data 0")
        await trio.sleep(2)
        await connection.send(b"data 1")
        kinds = [type(await server.next()) for _ in range(3)]

        assert kinds == [BytesMessage, Ping, BytesMessage]


async def test_a_ping_of_the_peer_is_answered() -> None:
    async with read() as (_, server, _reader):
        await server.send(Ping(b"are you there"))

        assert await server.next() == Pong(b"are you there")


async def test_a_peer_that_pings_and_does_not_read_costs_one_task_and_one_answer() -> None:
    """Mutant killed, as it was before: a task for each ping, for as long as the write before may take."""
    async with connected(capacity=0) as (connection, server), trio.open_nursery() as nursery:
        nursery.start_soon(Reader(connection).run)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(100):
            await server.send(Ping(b"%d" % number))
            await trio.testing.wait_all_tasks_blocked()
        answers = [await server.next() for _ in range(2)]

        assert answers == [Pong(b"0"), Pong(b"99")]
        assert connection.pongs_merged == 98
        nursery.cancel_scope.cancel()


async def test_a_message_above_the_limit_ends_the_connection() -> None:
    async with connected() as (connection, server):
        await server.send(BytesMessage(bytes(256 * 1024)))
        assert len(await connection.receive()) == 256 * 1024
        await server.send(BytesMessage(bytes(256 * 1024 + 1)))

        with pytest.raises(ConnectionLost):
            await connection.receive()


async def test_a_write_that_nobody_takes_ends_the_connection(autojump_clock: trio.testing.MockClock) -> None:
    async with connected(capacity=0) as (connection, server):
        server.stream.receive_stream._lbq._receiver_closed = False  # type: ignore[attr-defined]
        with pytest.raises(ConnectionLost) as caught:
            await connection.send(b"x")

        assert caught.value.reason in (DisconnectReason.WRITE_ERROR, DisconnectReason.PONG_TIMEOUT)
        assert trio.current_time() <= 91


@pytest.mark.parametrize("case", ["unread messages", "peer never answers", "peer cuts", "blocked send", "cancelled"])
async def test_p22_closing_never_waits_for_a_peer_that_waits_for_us(
    autojump_clock: trio.testing.MockClock, case: str
) -> None:
    began_s = trio.current_time()
    with trio.CancelScope() as scope:
        async with connected() as (_connection, server):
            if case == "unread messages":
                for number in range(100):
                    await server.send(BytesMessage(b"%d" % number))
                await trio.testing.wait_all_tasks_blocked()
            elif case == "peer cuts":
                await server.send(CloseConnection(code=1000))
                await server.stream.aclose()
            elif case == "cancelled":
                scope.cancel()
                await trio.sleep_forever()
            elif case == "blocked send":
                server.stream.send_stream.close()  # type: ignore[attr-defined]

    assert trio.current_time() - began_s <= 2.0


async def test_p22_a_ping_that_comes_after_our_close_is_no_error(autojump_clock: trio.testing.MockClock) -> None:
    """The library under us answers it, and raises for that."""
    async with connected(RelayLimits()) as (connection, server):

        async def ping_when_closed() -> None:
            assert isinstance(await server.next(), CloseConnection)
            await server.stream.send_all(b"\x89\x00")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ping_when_closed)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.deadline = trio.current_time() + 5
            await connection.close()


async def test_p22_what_made_us_leave_is_what_comes_out() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(theirs).accept)

        with pytest.raises(KeyError, match="mine"):
            async with dialer(ours, RelayLimits(close_s=0.02)).dial(URL):
                raise KeyError("mine")


async def test_p22_a_blocked_reader_ends_with_closed() -> None:
    async with trio.open_nursery() as nursery:
        lost: list[ConnectionLost] = []

        async def read(connection: WebSocketConnection) -> None:
            try:
                await connection.receive()
            except ConnectionLost as error:
                lost.append(error)

        async with connected() as (connection, _):
            nursery.start_soon(read, connection)
            await trio.testing.wait_all_tasks_blocked()

    assert lost[0].reason is DisconnectReason.LOCAL_SHUTDOWN


@pytest.mark.parametrize(("status", "header", "expected"), [(401, None, None), (503, b"7", 7.0), (404, b"soon", None)])
async def test_a_refused_dial_gives_status_and_retry_after_and_no_secret(
    status: int, header: bytes | None, expected: float | None
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    server = Server(theirs)

    async def reject() -> None:
        assert isinstance(await server.next(), Request)
        headers = [(b"content-length", b"0")] + ([(b"retry-after", header)] if header else [])
        await server.send(RejectConnection(status_code=status, headers=headers))

    with pytest.raises(DialRefused) as caught:
        await dialled(ours, reject)
    assert (caught.value.status, caught.value.retry_after_s) == (status, expected)
    assert "ticket" not in str(caught.value) + repr(caught.value)
    assert "`ws://relay.example:8080/rendezvous/harness`" in str(caught.value)


async def test_each_handshake_bears_a_request_id_of_its_own_where_one_is_made_and_errors_know_it() -> None:
    seen: list[str | None] = []
    failed: list[DialFailed] = []
    for make in (new_request_id, new_request_id, None):
        ours, theirs = trio.testing.memory_stream_pair()

        async def reject(server: Server) -> None:
            request = await server.next()
            assert isinstance(request, Request)
            found = dict(request.extra_headers).get(b"x-request-id")
            seen.append(None if found is None else found.decode())
            await server.send(RejectConnection(status_code=503, headers=[(b"content-length", b"0")]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reject, Server(theirs))
            try:
                async with attrs.evolve(dialer(ours), request_id=make).dial(URL):
                    pass
            except DialFailed as error:
                failed.append(error)

    assert [re.fullmatch("req_[0-9a-f]{32}", one or "") is not None for one in seen] == [True, True, False]
    assert seen[0] != seen[1]
    assert [error.request_id for error in failed] == seen
    assert "x-request-id" not in str(failed[0]), "the sentence is the one that peers know"


async def dialled(ours: trio.abc.Stream, serve: object) -> None:
    failure: DialFailed | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)  # type: ignore[arg-type]
        try:
            async with dialer(ours).dial(URL):
                pass
        except DialFailed as error:
            failure = error
    assert failure is not None
    raise failure


async def test_a_peer_that_hangs_up_during_the_handshake_is_noticed_at_once() -> None:
    ours, theirs = trio.testing.memory_stream_pair()

    async def hang_up() -> None:
        await theirs.receive_some(10)
        await theirs.aclose()

    with pytest.raises(DialFailed, match="hung up during the WebSocket handshake"):
        await dialled(ours, hang_up)


async def test_a_peer_that_says_nothing_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    ours, _theirs = trio.testing.memory_stream_pair()

    with pytest.raises(DialFailed, match="timed out after 10 s"):
        await dialled(ours, trio.lowlevel.checkpoint)


@pytest.mark.parametrize("url", ["", "http://relay.example/x", "relay", "ws://", "ws://relay.example:99999/"])
async def test_an_unusable_address_is_refused(url: str) -> None:
    with pytest.raises(AddressUnusable, match="it is no"):
        async with WebSocketDialer().dial(url):
            pass


async def test_a_port_where_nobody_listens_says_so_without_the_ticket() -> None:
    with pytest.raises(DialFailed) as caught:
        async with WebSocketDialer().dial("ws://127.0.0.1:1/x?ticket=secret"):
            pass

    assert "secret" not in str(caught.value)


def test_addresses_are_cut_where_a_secret_could_begin() -> None:
    assert cut_url("wss://user:pass@host:1/a/b?t=1#f") == "wss://host:1/a/b"
    assert cut_url("ws://host/a#x") == "ws://host/a"


@pytest.mark.parametrize(
    ("text", "seconds"), [("5", 5.0), (" 10 ", 10.0), ("-1", None), ("Wed, 21 Oct", None), ("", None)]
)
def test_retry_after_is_read_in_seconds_only(text: str, seconds: float | None) -> None:
    assert retry_after_s(text) == seconds


async def test_cancelling_a_dial_at_each_step_leaves_no_task() -> None:
    tasks = trio.lowlevel.current_statistics().tasks_living

    async def operation() -> None:
        async with connected() as (connection, server):
            await connection.send(b"x")
            await server.next()

    async def check() -> None:
        assert trio.lowlevel.current_statistics().tasks_living == tasks

    assert await cancel_at_each_step(operation, check=check) > 3


async def test_it_speaks_with_trio_websockets_own_server() -> None:
    async def serve(request: trio_websocket.WebSocketRequest) -> None:
        socket = await request.accept()
        with suppress(trio_websocket.ConnectionClosed):
            while True:
                await socket.send_message(await socket.get_message())

    async with trio.open_nursery() as nursery:
        server = await nursery.start(trio_websocket.serve_websocket, serve, "127.0.0.1", 0, None)
        async with WebSocketDialer().dial(f"ws://127.0.0.1:{server.port}/x") as connection:
            for size in (1, 125, 126, 65535, 65536, 262144):
                await connection.send(bytes(size))
                assert await connection.receive() == bytes(size)
        nursery.cancel_scope.cancel()
