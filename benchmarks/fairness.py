"""How long does a quiet actor's answer take beside one that never stops feeding itself?"""

import statistics
import time
from functools import partial

from actors import Actor, spawn
from benchmarks._cast import Counter, Total
from benchmarks._harness import Result, emit, measure, scaled
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
    alone, trivial, heavy = measure(partial(p99_us, None), partial(p99_us, 0.0), partial(p99_us, 20e-6))
    return [
        Result(
            question="p99 of a quiet ask beside a trivial flood", unit="us",
            beside="p99 with nothing beside it", beside_value=alone.value, bar="<= 100 us",
            **trivial.as_time(at_most=100),
        ),
        Result(
            question="p99 of a quiet ask beside a flood of 20 us", unit="us",
            beside="p99 with nothing beside it", beside_value=alone.value, bar="<= 3 ms",
            note="slices of time, as long on any machine", **heavy.as_is(met=heavy.value <= 3_000),
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    emit(main())
