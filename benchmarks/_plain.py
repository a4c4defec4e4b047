"""What actors are measured beside: the plainest ones on bare trio."""

import math
from typing import Any

import trio

from benchmarks._harness import cpu_s, rate, scaled


class PlainActor:
    """A memory channel in front of a loop; the answer comes by a second memory channel."""

    def __init__(self) -> None:
        self.send, self.receive = trio.open_memory_channel[Any](math.inf)
        self.total = 0

    async def run(self) -> None:
        async for number, answer in self.receive:
            self.total += number
            if answer is not None:
                answer.send_nowait(self.total)

    def tell(self, number: int) -> None:
        self.send.send_nowait((number, None))

    async def ask(self, number: int) -> int:
        send, receive = trio.open_memory_channel[int](1)
        self.send.send_nowait((number, send))
        return await receive.receive()


async def plain_tell() -> float:
    count, actor = scaled(50_000), PlainActor()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        begun_s = cpu_s()
        for _ in range(count):
            actor.tell(1)
        assert await actor.ask(0) == count
        took_s = cpu_s() - begun_s
        nursery.cancel_scope.cancel()
    return rate(count, took_s)


async def plain_ask(callers: int) -> float:
    each, actor = scaled(10_000) // callers, PlainActor()

    async def caller() -> None:
        for _ in range(each):
            await actor.ask(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        begun_s = cpu_s()
        async with trio.open_nursery() as callers_nursery:
            for _ in range(callers):
                callers_nursery.start_soon(caller)
        took_s = cpu_s() - begun_s
        nursery.cancel_scope.cancel()
    return rate(each * callers, took_s)


async def plain_spawn() -> float:
    """Start a task that says it is ready, in a nursery: what a supervised spawn stands beside."""
    count = scaled(5_000)

    async def child(task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        begun_s = cpu_s()
        for _ in range(count):
            await nursery.start(child)
        took_s = cpu_s() - begun_s
        nursery.cancel_scope.cancel()
    return rate(count, took_s)
