"""What everything is measured beside: the plainest actor on bare trio, and trio's raw switch between two tasks."""

import math
from typing import Any

import trio
import trio.testing
from trio.lowlevel import Abort, current_task, reschedule, wait_task_rescheduled

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


async def raw_switch() -> float:
    """Two tasks that wake each other: no actor on trio can answer faster than one of these round trips."""
    count = scaled(20_000)
    parked: list[trio.lowlevel.Task | None] = [None]
    me = current_task()

    def abort(_raise_cancel: Any) -> Abort:
        return Abort.SUCCEEDED

    async def other() -> None:
        for _ in range(count):
            parked[0] = current_task()
            await wait_task_rescheduled(abort)
            reschedule(me)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await trio.testing.wait_all_tasks_blocked()
        begun_s = cpu_s()
        for _ in range(count):
            task = parked[0]
            assert task is not None
            reschedule(task)
            await wait_task_rescheduled(abort)
        return rate(count, cpu_s() - begun_s)


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
