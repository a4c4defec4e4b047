"""Answers that the reading task writes itself: whole, in order and each once, whatever the socket takes at a time."""

import json
import struct

import pytest
import trio
import trio.testing

from actors.executor import open_executor, serve_executor
from actors.executor._outbox import Outbox
from tests.actors.executor.client import memory_client

COUNT = 60_000


def masked(data: bytes) -> bytes:
    return struct.pack("!BB", 0x81, 0x80 | len(data)) + bytes(4) + data


def request(number: int) -> bytes:
    return masked(json.dumps({"id": number, "method": "environment/status"}).encode())


async def answers(stream: trio.SocketStream, count: int) -> list[int]:
    """Read small frames; fail on anything that is none."""
    held, ids = bytearray(), list[int]()
    while len(ids) < count:
        while len(held) >= 2 and len(held) >= 2 + held[1]:
            assert held[0] == 0x81
            ids.append(json.loads(held[2 : 2 + held[1]])["id"])
            del held[: 2 + held[1]]
        if len(ids) < count:
            held += await stream.receive_some(1 << 20)
    assert not held
    return ids


@pytest.mark.slow
async def test_answers_are_whole_when_the_peer_reads_late_and_the_socket_takes_parts() -> None:
    """Mutant that was seen to fail: what is left of a write is dropped."""
    async with trio.open_nursery() as nursery:
        endpoint = await nursery.start(serve_executor)
        stream = await trio.open_tcp_stream("127.0.0.1", endpoint.port)
        head = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        await stream.send_all(
            head + b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert b"101" in await stream.receive_some()
        greeting = {"id": 0, "method": "initialize", "params": {"clientName": "x"}}
        await stream.send_all(masked(json.dumps(greeting).encode()) + masked(b'{"method":"initialized"}'))
        await stream.receive_some()

        async def flood() -> None:
            for first in range(1, COUNT + 1, 1000):
                await stream.send_all(b"".join(request(number) for number in range(first, first + 1000)))

        nursery.start_soon(flood)
        # Nobody reads: the socket fills up, and the executor stops reading in turn.
        await trio.testing.wait_all_tasks_blocked(0.1)
        with trio.fail_after(30):
            assert await answers(stream, COUNT) == list(range(1, COUNT + 1))
        await stream.aclose()
        nursery.cancel_scope.cancel()


async def test_what_is_added_while_corked_wakes_nobody_and_is_taken_at_once() -> None:
    outbox = Outbox(room_bytes=1000)
    taken: list[list[bytes]] = []

    async def take() -> None:
        while True:
            taken.append(await outbox.take())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        outbox.cork()
        outbox.add_answer(b"a")
        await trio.testing.wait_all_tasks_blocked()
        assert taken == []
        assert outbox.take_now() == [b"a"]
        assert outbox.take_now() == []
        outbox.cork()
        outbox.add_news(b"b")
        outbox.uncork()
        await trio.testing.wait_all_tasks_blocked()
        assert taken == [[b"b"]]
        outbox.nudge()
        await trio.testing.wait_all_tasks_blocked()
        assert taken == [[b"b"], []]
        nursery.cancel_scope.cancel()


async def test_a_channel_that_is_not_eager_is_served_by_the_task_that_sends() -> None:
    async with open_executor() as executor, memory_client(executor) as client:
        assert await client.call("environment/status") == {"status": "ready"}
