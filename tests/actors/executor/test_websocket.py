"""The WebSocket server, with real sockets: who comes in, signs of life, and closing. Case P22."""

import base64
import contextlib
import os
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from actors.executor import (
    ConnectionEnded,
    ConnectionRefused,
    ExecutorEndpoint,
    ExecutorEvent,
    Limits,
    ListenAddressInvalid,
    ListenRefused,
    serve_executor,
)
from actors.executor._websocket import WebSocketChannel
from actors.executor.testing import open_memory_launcher
from tests.actors.executor.client import Client, socket_client
from tests.actors.executor.test_sessions import PROGRAMS
from tests.actors.websocket.test_frames import client_frame
from tests.support.settling import until


@asynccontextmanager
async def served(
    *, events: list[ExecutorEvent] | None = None, listen: str = "ws://127.0.0.1:0", **more: Any
) -> AsyncGenerator[ExecutorEndpoint, None]:
    seen: list[ExecutorEvent] = [] if events is None else events
    with trio.fail_after(20):
        async with open_memory_launcher(PROGRAMS) as launcher, trio.open_nursery() as nursery:

            async def serve(task_status: Any) -> None:
                await serve_executor(
                    listen, launcher=launcher, variables={}, observer=seen.append, task_status=task_status, **more
                )

            yield await nursery.start(serve)
            nursery.cancel_scope.cancel()


async def test_a_peer_greets_starts_and_hears_of_the_end() -> None:
    async with served() as endpoint, socket_client(endpoint.url) as client:
        await client.start("p", "hello")
        await client.finish("p")

        assert client.output("p") == b"hello\n"
        assert endpoint.url == f"ws://127.0.0.1:{endpoint.port}"
        assert endpoint.executor.statistics().connections == 1


@pytest.mark.parametrize("listen", ["ws://[::1]:0", "ws://localhost:0"])
async def test_other_names_of_loopback_are_served(listen: str) -> None:
    async with served(listen=listen) as endpoint, socket_client(endpoint.url) as client:
        assert await client.call("environment/status") == {"status": "ready"}


@pytest.mark.parametrize(
    "listen",
    [
        "ws://0.0.0.0:0",
        "ws://192.168.0.1:1",
        "ws://example.org:80",
        "ws://[::]:0",
        "ws://127.1:0",
        "ws://0:0",
        "ws://2130706433:0",
        "ws://[::ffff:127.0.0.1]:0",
        "ws://localhost.:0",
    ],
)
async def test_anything_but_loopback_is_refused_without_a_token(listen: str) -> None:
    with pytest.raises(ListenRefused, match=r"Give a token, or listen on 127\.0\.0\.1"):
        await serve_executor(listen)


async def test_a_name_of_loopback_that_leads_elsewhere_is_refused_without_a_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = len(os.listdir("/proc/self/fd"))

    async def everywhere(*_: Any, **__: Any) -> list[trio.SocketListener]:
        return await open_really(0, host="0.0.0.0")

    open_really = trio.open_tcp_listeners
    monkeypatch.setattr(trio, "open_tcp_listeners", everywhere)
    with pytest.raises(ListenRefused, match="leads to an address that is not loopback"):
        await serve_executor("ws://localhost:0")

    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_name_with_two_addresses_is_announced_by_the_one_that_is_served() -> None:
    async with served(listen="ws://localhost:0") as endpoint:
        assert endpoint.url in {f"ws://127.0.0.1:{endpoint.port}", f"ws://[::1]:{endpoint.port}"}


async def test_a_blank_token_is_no_token() -> None:
    with pytest.raises(ListenRefused, match="the token is blank"):
        await serve_executor("ws://0.0.0.0:0", token=" ")


@pytest.mark.parametrize(
    "listen",
    [
        "http://127.0.0.1:0",
        "ws://127.0.0.1",
        "ws://127.0.0.1:99999",
        "x",
        "ws://127.0.0.1:0/x",
        "ws://user@127.0.0.1:0",
        "ws://127.0.0.1:0/#x",
        "ws://127.0.0.1:0?x",
        r"ws://0.0.0.0\@127.0.0.1:0",
        " ws://127.0.0.1:0",
    ],
)
async def test_an_address_of_another_shape_is_refused(listen: str) -> None:
    with pytest.raises(ListenAddressInvalid, match="give ws://HOST:PORT"):
        await serve_executor(listen)


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic secret", "secret", "Bearer ", "Bearer secretsecret"])
async def test_with_a_token_only_who_knows_it_comes_in(header: str | None) -> None:
    events: list[ExecutorEvent] = []
    async with served(events=events, token="secret", listen="ws://0.0.0.0:0") as endpoint:
        url = f"ws://127.0.0.1:{endpoint.port}"
        status = await status_of(endpoint, f"authorization: {header}" if header is not None else "x: y")
        async with socket_client(url, token="secret") as client:
            assert await client.call("environment/status") == {"status": "ready"}

        assert status == 401
        assert any(isinstance(event, ConnectionRefused) and event.reason == "HTTP 401" for event in events)
        assert "secret" not in repr(events)


async def test_a_web_page_is_turned_away_from_an_executor_without_a_token() -> None:
    async with served() as endpoint:
        assert await status_of(endpoint, "Origin: https://evil.example") == 403


async def test_one_connection_too_many_is_refused_with_503_and_counted() -> None:
    async with served(limits=Limits(connections_max=1)) as endpoint, socket_client(endpoint.url):
        assert await status_of(endpoint, "x: y") == 503
        await until(lambda: endpoint.executor.statistics().connections_refused == 1)


async def test_peers_that_only_knock_are_bounded_in_number_and_time() -> None:
    limits = Limits(handshakes_max=2, handshake_s=0.3)
    async with served(limits=limits) as endpoint:
        streams = [await trio.open_tcp_stream("127.0.0.1", endpoint.port) for _ in range(3)]
        await until(lambda: endpoint.executor.statistics().connections_refused == 1)
        await until(lambda: endpoint.executor.statistics().connections_refused == 3)
        async with socket_client(endpoint.url) as client:
            assert await client.call("environment/status") == {"status": "ready"}
        for stream in streams:
            await stream.aclose()


@pytest.mark.parametrize(
    "words",
    [
        b"\x16\x03\x01",
        b"GET / HTTP/1.1\r\n\r\n",
        b"junk\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: \xff\xfe\r\n\r\n",
        b"x" * 70_000,
    ],
)
async def test_who_does_not_shake_hands_is_turned_away_and_hurts_nobody(words: bytes) -> None:
    async with served(limits=Limits(handshake_s=0.2)) as endpoint:
        stream = await trio.open_tcp_stream("127.0.0.1", endpoint.port)
        await stream.send_all(words)
        await until(lambda: endpoint.executor.statistics().connections_refused == 1)
        async with socket_client(endpoint.url) as client:
            assert await client.call("environment/status") == {"status": "ready"}
        await stream.aclose()


async def test_a_message_may_come_in_fragments_and_in_one_piece_with_the_handshake() -> None:
    async with served() as endpoint:
        stream = await trio.open_tcp_stream("127.0.0.1", endpoint.port)
        request = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'
        frames = client_frame(1, request[:10], final=False) + client_frame(9, b"?") + client_frame(0, request[10:])
        await stream.send_all(HANDSHAKE + frames)
        await read_until(stream, b'"sessionId"')
        await stream.aclose()


async def test_broken_framing_is_answered_with_its_close_code() -> None:
    async with raw_client() as (stream, _):
        await stream.send_all(client_frame(1, b"x", masked=False))
        answer = await read_until(stream, b"mask")

        assert struct.pack("!H", 1002) in answer


async def test_accepted_sockets_send_small_answers_at_once() -> None:
    """Without this exit and close reach a client 40 ms late."""
    async with served() as endpoint:
        stream = await shake_hands(endpoint)
        every = _own_sockets()
        accepted = [
            end
            for end in every
            if end.getsockname()[1] == endpoint.port and end.getpeername() == stream.socket.getsockname()
        ]

        no_delay = [end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for end in accepted]
        for end in every:
            end.close()

        assert no_delay == [1]
        await stream.aclose()


def _own_sockets() -> list[socket.socket]:
    """Look at every connected socket of this process, without touching it."""
    found: list[socket.socket] = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            copy = socket.socket(fileno=os.dup(int(number)))
            try:
                copy.getpeername()
                if copy.family == socket.AF_INET:
                    found.append(copy)
                    continue
            except OSError:
                pass
            copy.close()
    return found


async def test_a_silent_peer_is_asked_and_then_given_up_but_any_byte_is_life(
    mock_clock: trio.testing.MockClock,
) -> None:
    events: list[ExecutorEvent] = []
    limits = Limits(keepalive_s=0.1, pong_s=0.2, close_s=0.1)
    async with served(events=events, limits=limits) as endpoint:
        alive = await shake_hands(endpoint)
        silent = await shake_hands(endpoint)
        try:
            for number in range(6):
                mock_clock.jump(0.1)
                await alive.send_all(client_frame(9, b"life %d" % number))
                await read_until(alive, b"life %d" % number)
            heard = await read_until(silent, b"no frame for")
        finally:
            mock_clock.rate = 1  # Saying good-bye has limits of its own.
        await until(lambda: endpoint.executor.statistics().connections_silent > 0)
        statistics = endpoint.executor.statistics()

        assert (statistics.connections, statistics.connections_silent) == (1, 1)
        assert b"alive?" in heard, "it was asked first"
        (ended,) = [event for event in events if isinstance(event, ConnectionEnded)]
        assert ended.reason.startswith("no frame for ")
        await alive.aclose()
        await silent.aclose()


async def test_p22_a_peer_that_sends_and_never_reads_does_not_hold_up_the_end() -> None:
    limits = Limits(close_s=0.3, kill_s=0.3)
    streams: list[trio.SocketStream] = []
    began_s = trio.current_time()
    async with served(limits=limits) as endpoint:
        for _ in range(5):
            stream = await shake_hands(endpoint)
            streams.append(stream)
            await stream.send_all(GREETING)
            flood = b'{"id":2,"method":"environment/info"}'
            with trio.move_on_after(0.1):
                while True:
                    await stream.send_all(client_frame(1, flood) * 100)
        began_s = trio.current_time()
    took_s = trio.current_time() - began_s
    for stream in streams:
        await trio.aclose_forcefully(stream)

    assert took_s < 20  # who waited for these peers would wait for ever


async def test_p22_a_peer_that_says_close_and_cuts_ends_quietly() -> None:
    events: list[ExecutorEvent] = []
    async with served(events=events) as endpoint:
        stream = await shake_hands(endpoint)
        await stream.send_all(client_frame(8, b"\x03\xe8"))
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await trio.aclose_forcefully(stream)
        await until(lambda: any(isinstance(event, ConnectionEnded) for event in events))

        assert endpoint.executor.statistics().connections == 0


async def test_p22_a_peer_that_never_agrees_to_a_close_is_left_within_the_limit() -> None:
    async with raw_client(limits=Limits(close_s=0.2)) as (stream, endpoint):
        await stream.send_all(client_frame(1, b'{"method":"initialized"}'))
        heard = await read_until(stream, b"initialized before initialize")
        await until(lambda: endpoint.executor.statistics().connections == 0)

        assert struct.pack("!H", 1002) in heard


async def test_p22_a_cancelled_server_tells_its_peers_and_leaves_within_the_largest_limit() -> None:
    with trio.fail_after(60):
        async with trio.open_nursery() as outer:
            told: list[Client] = []
            async with served(limits=Limits(close_s=1.0)) as endpoint:
                for _ in range(20):
                    opened = trio.Event()
                    outer.start_soon(_stay, endpoint.url, told, opened)
                    await opened.wait()
                began_s = trio.current_time()

    assert all(client.ended.is_set() for client in told)
    assert trio.current_time() - began_s < 10  # one after the other they would take 20


async def _stay(url: str, told: list[Client], opened: trio.Event) -> None:
    async with socket_client(url) as client:
        told.append(client)
        opened.set()
        await client.ended.wait()


async def test_a_slow_client_of_one_connection_does_not_slow_another() -> None:
    async with raw_client() as (slow, endpoint), socket_client(endpoint.url) as quick:
        await slow.send_all(GREETING)
        start = b'{"id":5,"method":"process/start","params":{"processId":"p","argv":["flood"],"cwd":"file:///","env":{},"tty":false}}'
        await slow.send_all(client_frame(1, start))
        await until(lambda: endpoint.executor.statistics().processes == 1)
        await quick.start("p", "flood")
        await quick.finish("p")

        assert len(quick.output("p")) == 100 * 32 * 1024


async def test_a_flood_in_one_piece_leaves_others_their_turns() -> None:
    frames = 3000
    flood = (
        client_frame(9, b"") * frames + client_frame(1, b"", final=False) + client_frame(0, b"", final=False) * frames
    )
    ours, theirs = map(trio.SocketStream, trio.socket.socketpair())
    channel = WebSocketChannel(ours, peer="p", first=flood + client_frame(0, b"end"), limits=Limits())
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with ours, theirs, trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        nursery.start_soon(drain, theirs)
        message = await channel.receive()
        nursery.cancel_scope.cancel()

    assert message == b"end"
    assert turns > 2 * frames / 100


async def drain(stream: trio.SocketStream) -> None:
    while await stream.receive_some():
        pass


KEY = base64.b64encode(bytes(16))
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: " + KEY + b"\r\n\r\n"
)
GREETING = client_frame(1, b'{"id":1,"method":"initialize","params":{"clientName":"x"}}') + client_frame(
    1, b'{"method":"initialized"}'
)


async def shake_hands(endpoint: ExecutorEndpoint) -> trio.SocketStream:
    stream = await trio.open_tcp_stream("127.0.0.1", endpoint.port)
    await stream.send_all(HANDSHAKE)
    await read_until(stream, b"\r\n\r\n")
    return stream


async def status_of(endpoint: ExecutorEndpoint, header: str) -> int:
    stream = await trio.open_tcp_stream("127.0.0.1", endpoint.port)
    await stream.send_all(HANDSHAKE.replace(b"host: x", b"host: x\r\n" + header.encode()))
    answer = await read_until(stream, b"\r\n\r\n")
    await stream.aclose()
    return int(answer.split()[1])


async def read_until(stream: trio.SocketStream, text: bytes) -> bytes:
    heard = b""
    with trio.fail_after(5):
        while text not in heard:
            data = await stream.receive_some()
            assert data, heard
            heard += data
    return heard


@asynccontextmanager
async def raw_client(limits: Limits | None = None) -> AsyncGenerator[tuple[trio.SocketStream, ExecutorEndpoint], None]:
    async with served(limits=limits) as endpoint:
        stream = await shake_hands(endpoint)
        try:
            yield stream, endpoint
        finally:
            await trio.aclose_forcefully(stream)
