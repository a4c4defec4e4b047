"""How a number is made: fresh process, warm-up, five repeats, median and spread, a bare-trio figure beside it.

Rates are per second of CPU time of the process, which on an idle core is wall time and on a shared one is not spoilt
by the others. So are latencies, where nothing waits for a device or a clock.
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

REPEATS: Final = int(os.environ.get("BENCH_REPEATS", "5"))
SCALE: Final = float(os.environ.get("BENCH_SCALE", "1"))
ROOT: Final = Path(__file__).parent.parent


@attrs.frozen(kw_only=True)
class Result:
    """One number with what it must be read beside."""

    question: str
    """What was asked."""
    unit: str
    """What the number counts."""
    value: float
    """Median of the repeats."""
    spread: float = 0.0
    """(largest - smallest) / median."""
    beside: str = ""
    """What the reference of the same run is."""
    beside_value: float | None = None
    """The reference, in the same unit."""
    bar: str = ""
    """What it must reach."""
    met: bool | None = None
    """Whether it does; None if there is no bar, or it could not be judged."""
    note: str = ""
    """Why there is no number, or how to read it."""


Sample = Callable[[], Awaitable[float]]


def scaled(count: int) -> int:
    """A count of messages, made smaller by BENCH_SCALE for a quick look."""
    return max(100, int(count * SCALE))


def rate(count: int, cpu_s: float) -> float:
    """Events per second of CPU."""
    return count / cpu_s if cpu_s > 0 else float("inf")


def measure(*samples: Sample) -> list[tuple[float, float]]:
    """Take samples in turns, so that a busy moment of the machine hits all alike; median and spread of each."""
    taken: list[list[float]] = [[] for _ in samples]
    for round_ in range(REPEATS + 1):
        for number, sample in enumerate(samples):
            gc.collect()
            value = trio.run(sample)
            if round_:  # The first round warms up.
                taken[number].append(value)
    return [(statistics.median(values), spread(values)) for values in taken]


def spread(values: Sequence[float]) -> float:
    """How far apart the repeats were."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def in_fresh_process(module: str, *arguments: str) -> float:
    """Run a module of this folder with arguments; its last line is the number."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{module} {arguments}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


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
