"""How many supervised actors a second can be started, one awaited after the other, and how fast is one restarted?"""

import statistics
import time

import trio

from actors import Actor, Mailbox, spawn
from benchmarks._cast import Boom, Counter, Total
from benchmarks._harness import Result, cpu_s, emit, measure, rate, scaled
from benchmarks._plain import plain_spawn
from supervision import Restart, RestartIntensity, open_root


async def spawn_one_by_one() -> float:
    count = scaled(5_000)
    async with open_root() as root:
        pool = await root.start_pool("actors")
        begun_s = cpu_s()
        for _ in range(count):
            await spawn(pool, Counter, restart=Restart.TEMPORARY)
        took_s = cpu_s() - begun_s
    return rate(count, took_s)


async def stop_one_by_one() -> float:
    count = scaled(5_000)
    async with open_root() as root:
        pool = await root.start_pool("actors")
        refs = [await spawn(pool, Counter, restart=Restart.TEMPORARY) for _ in range(count)]
        begun_s = cpu_s()
        for ref in refs:
            ref.stop()
            await ref.wait_stopped()
        took_s = cpu_s() - begun_s
    return rate(count, took_s)


class Crasher(Actor[Boom | Total]):
    """Notes when it crashes and when the next generation begins its first line."""

    def __init__(self, times: list[float]) -> None:
        self.times = times
        times.append(time.process_time())

    async def handle(self, message: Boom | Total) -> int:
        if type(message) is Boom:
            self.times.append(time.process_time())
            raise RuntimeError("boom")
        return len(self.times)


async def restart_us() -> float:
    """From the line before the raise to the first line of the next generation, median."""
    count, times = min(scaled(1_000), 5_000), list[float]()
    async with open_root(intensity=RestartIntensity(restarts=10 * count, period_s=3600.0)) as root:
        ref = await spawn(root, Crasher, times, mailbox=Mailbox(capacity=count + 1))
        # All wait in the mailbox, so that nobody but the actor runs: a task that looks on would be measured too.
        for _ in range(count):
            ref.tell_nowait(Boom())
        await ref.ask(Total(), timeout_s=60)
    crashes, births = times[1::2], times[2::2]
    return statistics.median(born - crashed for crashed, born in zip(crashes, births, strict=True)) * 1e6


async def nursery_restart_us() -> float:
    """The same by hand: a loop that opens a nursery for each generation."""
    count, times = min(scaled(1_000), 5_000), list[float]()

    async def child() -> None:
        times.append(time.process_time())
        await trio.lowlevel.checkpoint()
        times.append(time.process_time())
        raise RuntimeError("boom")

    for _ in range(count + 1):
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child)
        except* RuntimeError:
            pass
    crashes, births = times[1:-1:2], times[2::2]
    return statistics.median(born - crashed for crashed, born in zip(crashes, births, strict=True)) * 1e6


def main() -> list[Result]:
    spawned, stopped, plain, restarted, by_hand = measure(
        spawn_one_by_one, stop_one_by_one, plain_spawn, restart_us, nursery_restart_us
    )
    return [
        Result(
            question="await spawn in a pool, one by one", unit="actors/s",
            beside="nursery.start", beside_value=plain.value,
            bar=">= 35 k/s", note=f"{spawned.value / plain.value:.2f} x", **spawned.as_rate(at_least=35_000),
        ),
        Result(
            question="stop and wait_stopped, one by one", unit="actors/s",
            beside="nursery.start", beside_value=plain.value, **stopped.as_rate(),
        ),
        Result(
            question="crash to the next generation's first line", unit="us",
            beside="a nursery for each generation", beside_value=by_hand.value,
            bar="<= 20 us", note=f"{restarted.value / by_hand.value:.2f} x", **restarted.as_time(at_most=20),
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    emit(main())
