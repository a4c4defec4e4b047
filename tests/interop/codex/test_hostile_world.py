"""Our executor, relay and channel on real sockets in an unkind world: pauses, resets, crowds, shuffled records."""

import os
import random
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from actors.executor import serve_executor
from actors.harness import ConnectionChange, RelayDialer, RequestRejected, open_client
from actors.relay import Data, PhysicalConnection, decode
from actors.relay import WebSocketDialer as RelayWebSocketDialer
from tests.actors.executor.client import Refused
from tests.actors.websocket.test_frames import client_frame
from tests.interop.codex.bodies import HARNESS, OURS, Place, open_world
from tests.interop.codex.test_processes import resume
from tests.support.settling import until

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, trio
from actors.executor import Limits, serve_executor
async def main():
    async with trio.open_nursery() as nursery:
        limits = Limits(keepalive_s=0.2, pong_s=0.2)
        endpoint = await nursery.start(lambda task_status: serve_executor(limits=limits, task_status=task_status))
        print(endpoint.url, flush=True)
trio.run(main)
"""


@asynccontextmanager
async def executor_process(program: str = PROGRAM) -> AsyncGenerator[tuple[int, str], None]:
    """An executor in a process of its own that gives silent peers up after 0.4 s."""
    async with trio.open_nursery() as nursery:
        run = partial(trio.run_process, [sys.executable, "-c", program], stdout=subprocess.PIPE, check=False)
        process = await nursery.start(run)
        yield process.pid, (await process.stdout.receive_some(1000)).decode().strip()
        nursery.cancel_scope.cancel()


async def test_a_paused_executor_does_not_take_its_own_pause_for_the_silence_of_its_peers() -> None:
    """Mutant: no `was_stopped`. As when a machine is frozen and thawed: every client was cut, and lost its files."""
    changes: list[ConnectionChange] = []
    with trio.fail_after(30):
        async with executor_process() as (pid, url), open_client(url, on_change=changes.append) as client:
            for _ in range(3):
                os.kill(pid, signal.SIGSTOP)
                await trio.sleep(0.8)
                os.kill(pid, signal.SIGCONT)
                assert (await client.run(["/bin/echo", "here"])).stdout == b"here\n"

    assert [change.connected for change in changes][:1] == [True]
    assert not [change for change in changes[1:] if not change.final]


class Shuffled:
    """A physical connection whose records come twice, out of order, with old ones again in between."""

    def __init__(self, connection: PhysicalConnection, chance: random.Random) -> None:
        self._connection, self._chance = connection, chance
        self._ready: list[bytes] = []
        self._sent: list[bytes] = []
        self.shuffled = 0

    async def send(self, frame: bytes) -> None:
        await self._connection.send(frame)
        if isinstance(decode(frame).body, Data):
            self._sent = [*self._sent[-20:], frame]
            await self._connection.send(frame)
            await self._connection.send(self._chance.choice(self._sent))

    async def receive(self) -> bytes | str:
        if not self._ready:
            batch = [await self._next()]
            with trio.move_on_after(0.003):
                while len(batch) < 12:
                    batch.append(await self._next())
            data = [number for number, frame in enumerate(batch) if isinstance(decode(frame).body, Data)]
            order = self._chance.sample(data, len(data))
            self.shuffled += order != data
            mixed = list(batch)
            for place, taken in zip(data, order, strict=True):
                mixed[place] = batch[taken]
            self._ready = [frame for frame in mixed for _ in range(1 + isinstance(decode(frame).body, Data))]
        return self._ready.pop(0)

    async def _next(self) -> bytes:
        message = await self._connection.receive()
        assert isinstance(message, bytes)
        return message


class ShufflingDialer:
    def __init__(self) -> None:
        self.connections: list[Shuffled] = []

    @asynccontextmanager
    async def dial(self, url: str) -> AsyncGenerator[PhysicalConnection, None]:
        async with RelayWebSocketDialer().dial(url) as connection:
            self.connections.append(Shuffled(connection, random.Random(5)))
            yield self.connections[-1]


async def test_records_that_come_twice_late_and_out_of_order_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    content = random.Random(6).randbytes(1_500_000)
    (tmp_path / "file").write_bytes(content)
    dialer = ShufflingDialer()
    with trio.fail_after(60):
        async with open_world(OURS, tmp_path / "home") as world:
            next_bundle = partial(world.registry.connect, "env", HARNESS.public_key)
            relayed = RelayDialer(next_bundle, HARNESS, dialer=dialer)
            async with open_client("env", dialer=relayed, recovery=None) as client:
                assert await client.files.read_bytes(tmp_path / "file") == content
                await client.files.write_bytes(tmp_path / "copy", content)
                told = await client.run(["/bin/sh", "-c", "seq 1 20000; cat"], stdin=content[:300_000])

    assert told.stdout == b"".join(b"%d\n" % n for n in range(1, 20_001)) + content[:300_000]
    assert (tmp_path / "copy").read_bytes() == content
    assert len(dialer.connections) == 1
    assert dialer.connections[0].shuffled > 3


async def test_of_those_who_race_for_one_session_one_has_it_and_the_others_are_told(our_place: Place) -> None:
    """Nobody waits for ever, and the processes of the session neither end nor double."""
    async with our_place.talk() as first:
        await first.start("p", "/bin/sleep", "100")
        session_id = first.session_id
    with trio.fail_after(30):
        for _ in range(5):
            outcomes: list[int] = []
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(_race, our_place, session_id, outcomes)
            assert sorted(outcomes) == [-32010, -32010, 0]
        async with our_place.talk(greet=False) as last:
            await resume(last, session_id)
            assert await last.call("process/terminate", processId="p") == {"running": True}


async def _race(place: Place, session_id: str, outcomes: list[int]) -> None:
    async with place.talk(greet=False) as client:
        try:
            await client.greet(session_id)
        except Refused as refused:
            outcomes.append(refused.code)
        else:
            outcomes.append(0)
            assert (await client.call("process/read", processId="p"))["exited"] is False
        # Whoever has it keeps it until the others have been told.
        await until(lambda: len(outcomes) == 3)


async def test_an_executor_that_is_out_of_descriptors_refuses_and_works_again_when_it_has_some() -> None:
    program = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n" + PROGRAM
    refused: list[int] = []
    with trio.fail_after(60):
        async with executor_process(program) as (_, url), open_client(url) as client:
            async with AsyncExitStack() as stack:
                for _ in range(40):
                    try:
                        await stack.enter_async_context(client.processes.start(["/bin/sleep", "100"]))
                    except RequestRejected as rejected:
                        refused.append(rejected.code)
                assert len(refused) > 5
                assert set(refused) == {-32603}
                await client.status()
            assert (await client.run(["/bin/echo", "again"])).stdout == b"again\n"


async def test_connections_cut_by_a_reset_at_every_byte_leave_nothing_behind() -> None:
    said = b"".join(client_frame(1, message) for message in MESSAGES)
    reset = struct.pack("ii", 1, 0)
    async with trio.open_nursery() as nursery:
        endpoint = await nursery.start(serve_executor)
        before = len(os.listdir("/proc/self/fd"))
        whole = HANDSHAKE + said
        for length in range(0, len(whole), 5):
            stream = await trio.open_tcp_stream("127.0.0.1", endpoint.port)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            await stream.send_all(whole[:length])
            if length % 15 == 0:
                await trio.testing.wait_all_tasks_blocked(0.001)
            await stream.aclose()
        await until(lambda: not endpoint.executor.statistics().connections, within_s=20)
        async with open_client(endpoint.url) as client:
            assert (await client.run(["/bin/echo", "ok"])).stdout == b"ok\n"
        running = endpoint.executor.statistics().processes

        assert len(os.listdir("/proc/self/fd")) <= before + 8 + 4 * running
        nursery.cancel_scope.cancel()


HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
MESSAGES = [
    b'{"id":1,"method":"initialize","params":{"clientName":"x"}}',
    b'{"method":"initialized"}',
    b'{"id":2,"method":"process/start","params":{"processId":"p","argv":["true"],"cwd":"file:///","env":{},"tty":false}}',
    b'{"id":3,"method":"process/read","params":{"processId":"p","waitMs":10000}}',
]
