"""How long does a quiet actor's answer take beside one that never stops feeding itself?"""

import statistics
import time

import trio

from actors import Actor, spawn
from benchmarks._cast import Counter, Total
from benchmarks._harness import REPEATS, Result, emit, scaled, spread
from supervision import open_root


class Flood(Actor[float]):
    """Sends itself the next message from each message, and burns the time it is told to."""

    async def started(self) -> None:
        self.tell = self.reference.tell_nowait

    async def handle(self, message: float) -> None:
        self.tell(message)
        if message:
            ends_s = time.perf_counter() + message
            while time.perf_counter() < ends_s:
                pass


async def p99_us(burn_s: float | None) -> float:
    """CPU time of the process while an ask is under way: on an idle core its wall time, since nothing here waits."""
    took: list[float] = []
    async with open_root() as root:
        quiet = await spawn(root, Counter)
        if burn_s is not None:
            flood = await spawn(root, Flood, name="flood")
            flood.tell_nowait(burn_s)
        for _ in range(scaled(2_000)):
            begun_s = time.process_time()
            await quiet.ask(Total())
            took.append(time.process_time() - begun_s)
    return statistics.quantiles(took, n=100)[98] * 1e6


def main() -> list[Result]:
    alone = [trio.run(p99_us, None) for _ in range(REPEATS)]
    trivial = [trio.run(p99_us, 0.0) for _ in range(REPEATS)]
    heavy = [trio.run(p99_us, 20e-6) for _ in range(REPEATS)]
    reference = statistics.median(alone)
    return [
        Result(
            question="p99 of a quiet ask beside a trivial flood", unit="us", value=statistics.median(trivial),
            spread=spread(trivial), beside="p99 with nothing beside it", beside_value=reference, bar="<= 100 us",
            met=statistics.median(trivial) <= 100,
        ),
        Result(
            question="p99 of a quiet ask beside a flood of 20 us", unit="us", value=statistics.median(heavy),
            spread=spread(heavy), beside="p99 with nothing beside it", beside_value=reference, bar="<= 3 ms",
            met=statistics.median(heavy) <= 3_000,
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    emit(main())
