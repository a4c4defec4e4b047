"""Cancel each public async function at each of its steps: nothing is left, the connection stays usable."""

import trio
import trio.testing

from actors.sessions import grpc
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.grpc.peers import run_ours
from tests.actors.sessions.grpc.service import CHAT, COUNT, ECHO, Seen
from tests.support.cancelling import cancel_at_each_step


async def nothing_is_left(server: grpc.Server, channel: grpc.Channel) -> None:
    await trio.testing.wait_all_tasks_blocked()
    assert server.statistics().calls_open == 0
    assert await channel.unary(ECHO, b"usable") == b"usable"
    assert channel.connections_open <= 1


async def test_unary_can_be_cancelled_anywhere(server: grpc.Server, channel: grpc.Channel) -> None:
    runs = await cancel_at_each_step(lambda: channel.unary(ECHO, b"x"), check=lambda: nothing_is_left(server, channel))

    assert runs > 2
    assert channel.connections_dialled == 1


async def test_the_first_call_of_a_channel_can_be_cancelled_anywhere(
    server: grpc.Server, network: MemoryNetwork
) -> None:
    async def first_call() -> None:
        async with grpc.open_channel("http://m", dial=network.dial) as channel:
            assert await channel.unary(ECHO, b"x") == b"x"

    async def check() -> None:
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().connections_open == 0

    assert await cancel_at_each_step(first_call, check=check) > 4


async def test_a_stream_can_be_cancelled_anywhere(server: grpc.Server, channel: grpc.Channel) -> None:
    async def read_all() -> None:
        async with channel.stream(COUNT, b"5 0") as stream:
            assert len([message async for message in stream]) == 5

    assert await cancel_at_each_step(read_all, check=lambda: nothing_is_left(server, channel)) > 4


async def test_sending_can_be_cancelled_anywhere(server: grpc.Server, channel: grpc.Channel) -> None:
    async def chat() -> None:
        async with channel.open_call(CHAT) as call:
            for _ in range(3):
                await call.send(bytes(1_500_000))
                assert len(await call.receive()) == 1_500_004
            call.finish_sending()
            await call.headers()

    assert await cancel_at_each_step(chat, check=lambda: nothing_is_left(server, channel)) > 6


async def test_draining_can_be_cancelled_anywhere() -> None:
    async def drain() -> None:
        network = MemoryNetwork()
        async with trio.open_nursery() as nursery:
            server = grpc.Server([])
            await nursery.start(server.serve, [network.listener])
            stream = await network.dial()
            await stream.send_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            await server.drain(grace_s=0.01)

    assert await cancel_at_each_step(drain) > 4


async def test_serving_can_be_cancelled_anywhere() -> None:
    async def serve() -> None:
        network = MemoryNetwork()
        async with (
            run_ours(Seen(), [network.listener]),
            grpc.open_channel("http://m", dial=network.dial) as channel,
        ):
            await channel.unary(ECHO, b"x")

    assert await cancel_at_each_step(serve) > 4
