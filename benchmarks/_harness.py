"""How a number is made: fresh process, warm-up, five repeats, median and spread, a bare-trio figure beside it.

Rates are per second of CPU time of the process, which on an idle core is wall time and on a shared one is not spoilt
by the others. So are latencies, where nothing waits for a device or a clock.

How fast the core is right now is measured too, before and after each sample: the raw switch, two trio tasks that wake
each other. A bar is judged by what was measured. Absolute bars are those of a core that makes `REFERENCE_SWITCHES` of
these round trips a second, so how the number would stand at that speed is shown beside the judgement, as an estimate.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import trio
import trio.testing
from trio.lowlevel import Abort, current_task, reschedule, wait_task_rescheduled

REPEATS: Final = int(os.environ.get("BENCH_REPEATS", "5"))
SCALE: Final = float(os.environ.get("BENCH_SCALE", "1"))
ROOT: Final = Path(__file__).parent.parent
REFERENCE_SWITCHES: Final = 130_000


@attrs.frozen(kw_only=True)
class Result:
    """One number with what it must be read beside."""

    question: str
    """What was asked."""
    unit: str
    """What the number counts."""
    value: float
    """Median of the repeats, as it was on this machine in this run."""
    scaled: float | None = None
    """An estimate of the same on a core of the reference's speed."""
    switches: float | None = None
    """How many raw switches and back this machine made a second, right before and after."""
    spread: float = 0.0
    """(largest - smallest) / median."""
    beside: str = ""
    """What the reference of the same run is."""
    beside_value: float | None = None
    """The reference, in the same unit."""
    bar: str = ""
    """What it must reach."""
    met: bool | None = None
    """Whether it does, here; None if there is no bar, or it could not be judged."""
    met_scaled: bool | None = None
    """Whether the estimate does; None where there is none, or the bar is a ratio."""
    note: str = ""
    """Why there is no number, or how to read it."""


Sample = Callable[[], Awaitable[float]]


@attrs.frozen
class Taken:
    """The repeats of one sample, each with the speed of the machine around it."""

    values: Sequence[float]
    """What was measured."""
    speeds: Sequence[float]
    """Raw switches and back a second, in the same order."""

    @property
    def value(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def switches(self) -> float:
        """The median speed of the machine."""
        return statistics.median(self.speeds)

    @property
    def per_switch(self) -> float:
        """A rate as a share of the raw switch."""
        return statistics.median(value / speed for value, speed in zip(self.values, self.speeds, strict=True))

    def as_rate(self, *, at_least: float | None = None) -> dict[str, Any]:
        """Give the fields of a result that is a rate: a faster machine makes more of it."""
        fields = self._fields(self.per_switch * REFERENCE_SWITCHES)
        if at_least is not None:
            fields |= {"met": self.value >= at_least, "met_scaled": fields["scaled"] >= at_least}
        return fields

    def as_time(self, *, at_most: float | None = None) -> dict[str, Any]:
        """Give the fields of a result that is a time: a faster machine takes less of it."""
        products = [value * speed for value, speed in zip(self.values, self.speeds, strict=True)]
        fields = self._fields(statistics.median(products) / REFERENCE_SWITCHES)
        if at_most is not None:
            fields |= {"met": self.value <= at_most, "met_scaled": fields["scaled"] <= at_most}
        return fields

    def as_is(self, *, met: bool | None = None) -> dict[str, Any]:
        """Give the fields of a result that the speed of the machine does not change."""
        return {"value": self.value, "spread": spread(self.values), "met": met}

    def _fields(self, scaled_to: float) -> dict[str, Any]:
        return {**self.as_is(), "scaled": scaled_to, "switches": self.switches}


def scaled(count: int) -> int:
    """A count of messages, made smaller by BENCH_SCALE for a quick look."""
    return max(100, int(count * SCALE))


def rate(count: int, cpu_s: float) -> float:
    """Events per second of CPU."""
    return count / cpu_s if cpu_s > 0 else float("inf")


def measure(*samples: Sample) -> list[Taken]:
    """Take samples in turns, so that a busy moment of the machine hits all alike."""
    taken = [(list[float](), list[float]()) for _ in samples]
    for round_ in range(REPEATS + 1):
        for (values, speeds), sample in zip(taken, samples, strict=True):
            value, speed = with_speed(sample)
            if round_:  # The first round warms up.
                values.append(value)
                speeds.append(speed)
    return [Taken(values, speeds) for values, speeds in taken]


def with_speed(sample: Sample) -> tuple[float, float]:
    """Take a sample, and measure how fast the machine is around it."""
    before = trio.run(raw_switch)
    gc.collect()
    value = trio.run(sample)
    gc.collect()
    return value, (before + trio.run(raw_switch)) / 2


async def raw_switch() -> float:
    """Two tasks that wake each other: no actor on trio can answer faster than one of these round trips."""
    count = 4_000  # A twentieth of a second.
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


def spread(values: Sequence[float]) -> float:
    """How far apart the repeats were."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def in_fresh_process(module: str, *arguments: str) -> list[float]:
    """Run a module of this folder with arguments; its last line are the numbers."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{module} {arguments}: {done.stderr[-2000:]}")
    return [float(word) for word in done.stdout.strip().splitlines()[-1].split()]


def resident_bytes() -> int:
    """Memory of this process that is really there."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_s() -> float:
    """CPU time of this process."""
    return time.process_time()


def emit(results: Sequence[Result]) -> None:
    """Print results for the collecting process: one line of JSON, last."""
    print(json.dumps([attrs.asdict(result) for result in results]))


def collect(module: str) -> list[Result]:
    """Run one benchmark in a process of its own and give its results."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}"],
        cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    if done.returncode:
        tail = done.stderr.strip().splitlines()[-1:] or ["no output"]
        return [Result(question=f"benchmarks.{module}", unit="", value=0.0, met=False, note=f"failed: {tail[0]}")]
    rows: list[dict[str, Any]] = json.loads(done.stdout.strip().splitlines()[-1])
    return [Result(**row) for row in rows]
