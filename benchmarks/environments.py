"""What does a waiting fleet weigh, how soon does a waiter learn of a completion, do replacements leave growth?"""

import argparse
import gc
import os
import statistics
import sys
import time
from typing import Any

import trio
import trio.testing

from actors.environments import Environment, EnvironmentManager, ReadyInfo
from actors.environments.testing import ENDPOINT, open_manager_in_memory
from benchmarks.__main__ import line
from benchmarks._harness import (
    REPEATS,
    Result,
    Taken,
    cpu_s,
    in_fresh_process,
    rate,
    resident_bytes,
    scaled,
    with_speed,
)

FLEET = 100_000
INFO = ReadyInfo()


class Here:
    """A provider that answers at once."""

    async def connect_bundle(self, _key: Any, /) -> Any:
        return ENDPOINT


async def wait_for(event: trio.Event) -> None:
    await event.wait()


async def weigh_fleet() -> float:
    """Bytes of one pending environment: actor, gate, handle and registration."""
    count, provider = scaled(FLEET), Here()
    async with open_manager_in_memory() as manager:
        ids = [f"env-{number}" for number in range(count)]
        gc.collect()
        before = resident_bytes()
        held = [manager.register_deferred(key, provider) for key in ids]
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        weight = (resident_bytes() - before) / count
        for registration in held:
            registration.abandon()
    return weight


async def weigh_tasks() -> float:
    """Bytes of what one would write by hand: a task that waits for an event."""
    count = scaled(FLEET)
    async with trio.open_nursery() as nursery:
        gc.collect()
        before = resident_bytes()
        held = [trio.Event() for _ in range(count)]
        for event in held:
            nursery.start_soon(wait_for, event)
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        weight = (resident_bytes() - before) / count
        nursery.cancel_scope.cancel()
    return weight


async def register_fleet() -> float:
    """Registrations per CPU second, until all of their actors are up and idle."""
    count, provider = scaled(FLEET), Here()
    async with open_manager_in_memory() as manager:
        ids = [f"env-{number}" for number in range(count)]
        begun_s = cpu_s()
        held = [manager.register_deferred(key, provider) for key in ids]
        await trio.testing.wait_all_tasks_blocked()
        took_s = cpu_s() - begun_s
        for registration in held:
            registration.abandon()
    return rate(count, took_s)


async def start_tasks() -> float:
    """The same by hand."""
    count = scaled(FLEET)
    async with trio.open_nursery() as nursery:
        begun_s = cpu_s()
        for _ in range(count):
            nursery.start_soon(wait_for, trio.Event())
        await trio.testing.wait_all_tasks_blocked()
        took_s = cpu_s() - begun_s
        nursery.cancel_scope.cancel()
    return rate(count, took_s)


async def one_wake(manager: EnvironmentManager, key: str, how: str) -> float:
    woken_s: list[float] = []

    async def wait(environment: Environment) -> None:
        try:
            await environment.wait_until_ready()
        except Exception:
            if how == "complete":
                raise
        woken_s.append(time.process_time())

    with manager.register_deferred(key, Here()) as registration:
        environment = manager.get(key)
        assert environment is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, environment)
            await trio.testing.wait_all_tasks_blocked()
            begun_s = time.process_time()
            if how == "complete":
                registration.complete(INFO)
            else:
                registration.fail("no machine")
    return (woken_s[0] - begun_s) * 1e6


async def wake_us(how: str) -> float:
    """Median of many, each with an environment of its own."""
    async with open_manager_in_memory() as manager:
        return statistics.median([await one_wake(manager, f"env-{number}", how) for number in range(500)][50:])


async def wake_by_hand_us() -> float:
    """An event and a task."""
    taken: list[float] = []
    for _ in range(500):
        event, woken_s = trio.Event(), list[float]()

        async def wait(event: trio.Event = event, woken_s: list[float] = woken_s) -> None:
            await event.wait()
            woken_s.append(time.process_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            begun_s = time.process_time()
            event.set()
        taken.append((woken_s[0] - begun_s) * 1e6)
    return statistics.median(taken[50:])


async def replace() -> float:
    """Bytes that 100,000 replacements of one id leave behind, beyond those of the first thousand."""
    count, provider, before = scaled(FLEET), Here(), 0
    async with open_manager_in_memory() as manager:
        for number in range(count + 1_000):
            if number == 1_000:
                gc.collect()
                before = resident_bytes()
            manager.register_deferred("tools", provider).abandon()
            if number % 100 == 0:
                await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        assert manager.statistics().alive == 1
        return float(resident_bytes() - before)


SAMPLES = {
    "weigh_fleet": weigh_fleet,
    "weigh_tasks": weigh_tasks,
    "register_fleet": register_fleet,
    "start_tasks": start_tasks,
    "wake_by_hand_us": wake_by_hand_us,
    "replace": replace,
    "complete_us": lambda: wake_us("complete"),
    "fail_us": lambda: wake_us("fail"),
}


def take(name: str) -> Taken:
    """Take one sample three times, each in a fresh process."""
    pairs = [in_fresh_process("environments", name) for _ in range(min(REPEATS, 3))]
    return Taken([value for value, _ in pairs], [speed for _, speed in pairs])


def main() -> list[Result]:
    taken = {name: take(name) for name in SAMPLES}
    fleet, left = taken["weigh_fleet"], taken["replace"]
    by_hand_us = taken["wake_by_hand_us"].value
    return [
        Result(
            question="one of 100,000 pending environments: actor, gate, handle, registration", unit="bytes",
            beside="a trio task that waits for an event", beside_value=taken["weigh_tasks"].value,
            bar="<= 12 KB", **fleet.as_is(met=fleet.value <= 12_000),
        ),
        Result(
            question="register_deferred, until its actor is up and idle", unit="per CPU s",
            beside="a trio task, likewise", beside_value=taken["start_tasks"].value, bar=">= 10 k/s",
            **taken["register_fleet"].as_rate(at_least=10_000),
        ),
        Result(
            question="from fail() until its waiter runs", unit="us", beside="Event.set until its waiter runs",
            beside_value=by_hand_us, bar="<= 100 us", **taken["fail_us"].as_time(at_most=100),
        ),
        Result(
            question="from complete() until its waiter runs, provider asked and link in memory open", unit="us",
            beside="Event.set until its waiter runs", beside_value=by_hand_us, bar="<= 100 us",
            note="the environment's actor connects in its own task: one switch to it, one to the waiter",
            **taken["complete_us"].as_time(at_most=100),
        ),
        Result(
            question="what 100,000 replacements of one id leave", unit="bytes", bar="<= 1 MB",
            note="of the whole process; one environment is left", **left.as_is(met=left.value <= 1_000_000),
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.environments", description=__doc__)
    parser.add_argument("sample", nargs="?", choices=SAMPLES, help="take one sample: its value and the raw switches/s")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the environments, once, for a look")
    options = parser.parse_args()
    if options.sample is not None:
        print(*with_speed(SAMPLES[options.sample]))
    elif options.quick and "BENCH_SCALE" not in os.environ:
        # How much work is decided when `_harness` is imported, here and in the processes of the samples.
        os.environ |= {"BENCH_SCALE": "0.02", "BENCH_REPEATS": "1"}
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.environments", "--quick"])
    else:
        for result in main():
            print(line(result), flush=True)
