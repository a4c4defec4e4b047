"""A harness, a network in memory and an executor in it, for tests."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from actors.harness import LIMITS, RECOVERY, Client, ConnectionChange, HarnessLimits, RecoveryPolicy, open_client
from actors.harness.testing import FakeExecutor, FakeProcess, MemoryNetwork, Program
from actors.protocol import Request, Stream

URL = "ws://memory"


async def echo(process: FakeProcess) -> int:
    """Write the arguments."""
    process.write((" ".join(process.params.argv[1:]) + "\n").encode())
    return 0


async def fail(process: FakeProcess) -> int:
    """Exit with the code in the first argument."""
    process.write(b"wrong\n", stream=Stream.STDERR)
    return int(process.params.argv[1])


async def cat(process: FakeProcess) -> int:
    """Write what comes in."""
    async for data in process.stdin:
        process.write(data)
    return 0


async def sleep(process: FakeProcess) -> int:
    """Sleep for the seconds in the first argument."""
    await trio.sleep(float(process.params.argv[1]))
    return 0


async def tick(process: FakeProcess) -> int:
    """Write a line a second for 100 seconds and exit with 7."""
    for second in range(100):
        await trio.sleep(1)
        process.write(f"{second}\n".encode())
    return 7


async def flood(process: FakeProcess) -> int:
    """Write as many chunks of a KiB as the first argument says."""
    for number in range(int(process.params.argv[1])):
        process.write(number.to_bytes(4, "big") * 256)
        await trio.lowlevel.checkpoint()
    return 0


async def sample(process: FakeProcess) -> int:
    """Write text of every width, its last character cut, one byte at a time."""
    data = "aé漢🙂z\nfurther text".encode() + "漢".encode()[:2]
    for at in range(len(data)):
        process.write(data[at : at + 1])
    return 0


async def long(process: FakeProcess) -> int:
    """Write a line and run for ever."""
    process.write(b"0\n")
    await trio.sleep_forever()
    return 0


async def both(process: FakeProcess) -> int:
    """Write to both outputs."""
    process.write(b"out")
    process.write(b"err", stream=Stream.STDERR)
    return 0


PROGRAMS: dict[str, Program] = {
    "echo": echo, "fail": fail, "cat": cat, "sleep": sleep, "tick": tick, "flood": flood,
    "sample": sample, "both": both, "long": long,
}  # fmt: skip


@attrs.define
class World:
    """What a test can look at and break."""

    network: MemoryNetwork
    executor: FakeExecutor
    client: Client
    changes: list[ConnectionChange]


@asynccontextmanager
async def open_world(
    *,
    recovery: RecoveryPolicy | None = RECOVERY,
    limits: HarnessLimits = LIMITS,
    programs: Mapping[str, Program] = PROGRAMS,
    **options: Any,
) -> AsyncIterator[World]:
    """Connect a client to an executor in memory."""
    changes: list[ConnectionChange] = []
    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, programs)
        network = MemoryNetwork(executor.serve)
        async with open_client(
            URL, dialer=network, recovery=recovery, limits=limits, on_change=changes.append, **options
        ) as client:
            yield World(network, executor, client, changes)
        nursery.cancel_scope.cancel()


def only(method: str, action: Callable[[], Awaitable[bool]]) -> Callable[[Request], Awaitable[bool]]:
    """Do something at each request of one method."""

    async def hook(request: Request) -> bool:
        return await action() if request.method == method else True

    return hook
