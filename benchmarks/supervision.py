"""What supervision costs, beside bare trio in the same run. Prints one line a question.

Question, unit: microseconds of CPU (`time.process_time`) an operation, median of 5 repeats; bytes a child from
`tracemalloc`. The bare figure beside each is the plainest trio that does the same job without supervision. Beside each
time stands what it is on a core of the reference's speed, by trio's raw switch right before and after; see `_harness`.

    python -m benchmarks.supervision [--quick]
"""

import argparse
import gc
import statistics
import time
import tracemalloc
from collections.abc import Awaitable, Callable

import trio
import trio.testing

import supervision as sv
from benchmarks._harness import REFERENCE_SWITCHES, raw_switch

REPEATS = 5
BIG = sv.RestartIntensity(1_000_000, 3600.0)


async def idle(*, task_status: trio.TaskStatus[None]) -> None:
    task_status.started()
    await trio.sleep_forever()


async def brief(*, task_status: trio.TaskStatus[None]) -> None:
    task_status.started()


async def timed(operation: Callable[[int], Awaitable[None]], count: int) -> float:
    """Return the median cost of one of ``count`` operations, in microseconds of CPU."""
    costs: list[float] = []
    for _ in range(REPEATS):
        gc.collect()
        begin = time.process_time()
        await operation(count)
        costs.append((time.process_time() - begin) / count * 1e6)
    return statistics.median(costs)


async def bare_brief(count: int) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            await nursery.start(brief)


async def start_only(count: int) -> float:
    async with sv.open_root() as root:
        pool = await root.start_pool("pool", intensity=BIG)
        spec = sv.ChildSpec("child", idle, restart=sv.Restart.TEMPORARY)
        gc.collect()
        begin = time.process_time()
        for _ in range(count):
            await pool.start_child(spec)
        return (time.process_time() - begin) / count * 1e6


async def bare_start_only(count: int, *, slot: bool) -> float:
    me = trio.lowlevel.current_task()

    async def child() -> None:
        with trio.CancelScope():
            trio.lowlevel.reschedule(me)
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        gc.collect()
        begin = time.process_time()
        for _ in range(count):
            if slot:
                nursery.start_soon(child)
                await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
            else:
                await nursery.start(idle)
        cost = (time.process_time() - begin) / count * 1e6
        nursery.cancel_scope.cancel()
    return cost


async def start_and_end(count: int) -> None:
    async with sv.open_root() as root:
        pool = await root.start_pool("pool", intensity=BIG)
        spec = sv.ChildSpec("child", brief, restart=sv.Restart.TEMPORARY)
        for _ in range(count):
            await pool.start_child(spec)


async def stop_one_by_one(count: int) -> float:
    async with sv.open_root() as root:
        pool = await root.start_pool("pool", intensity=BIG)
        spec = sv.ChildSpec("child", idle, restart=sv.Restart.TEMPORARY)
        children = [await pool.start_child(spec) for _ in range(count)]
        gc.collect()
        begin = time.process_time()
        for child in children:
            await pool.stop_child(child)
        return (time.process_time() - begin) / count * 1e6


async def stop_all(count: int) -> float:
    async with sv.open_root() as root:
        pool = await root.start_pool("pool", intensity=BIG)
        spec = sv.ChildSpec("child", idle, restart=sv.Restart.TEMPORARY)
        for _ in range(count):
            await pool.start_child(spec)
        gc.collect()
        begin = time.process_time()
    return (time.process_time() - begin) / count * 1e6


async def bare_stop_all(count: int) -> float:
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(trio.sleep_forever)
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        begin = time.process_time()
        nursery.cancel_scope.cancel()
    return (time.process_time() - begin) / count * 1e6


async def crash_restart(count: int) -> None:
    """A child that crashes ``count`` times at once: each is raise, judgement, new task, started."""
    left = count
    done = trio.Event()

    async def crashing(*, task_status: trio.TaskStatus[None]) -> None:
        nonlocal left
        task_status.started()
        if left:
            left -= 1
            raise ValueError
        done.set()
        await trio.sleep_forever()

    async with sv.open_root(intensity=BIG) as root:
        await root.start_child(sv.ChildSpec("child", crashing))
        await done.wait()


async def bare_crash_restart(count: int) -> None:
    """A loop that starts a task with a scope and a catch, waits until it crashed, and starts the next."""

    async def crashing() -> None:
        raise ValueError

    async def life(me: trio.lowlevel.Task) -> None:
        try:
            with trio.CancelScope():
                await crashing()
        except ValueError:
            trio.lowlevel.reschedule(me)

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(life, trio.lowlevel.current_task())
            await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)


async def bytes_per_child(count: int) -> tuple[float, float]:
    """Return the bytes of an idle bare task and of an idle supervised child."""
    async with trio.open_nursery() as nursery:
        gc.collect()
        tracemalloc.start()
        for _ in range(count):
            nursery.start_soon(trio.sleep_forever)
        await trio.testing.wait_all_tasks_blocked()
        bare = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
        nursery.cancel_scope.cancel()
    async with sv.open_root() as root:
        pool = await root.start_pool("pool", intensity=BIG)
        gc.collect()
        tracemalloc.start()
        for _ in range(count):
            await pool.start_child(sv.ChildSpec("child", idle, restart=sv.Restart.TEMPORARY))
        ours = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
    return bare, ours


async def median_of(measure: Callable[[], Awaitable[float]]) -> float:
    return statistics.median([await measure() for _ in range(REPEATS)])


async def show(what: str, measure: Callable[[], Awaitable[float]], **bare: Callable[[], Awaitable[float]]) -> None:
    """Print one line: the time here, the time at the reference's speed, and the bare figures of the same run."""
    before = await raw_switch()
    ours = await measure()
    speed = (before + await raw_switch()) / 2
    beside = ", ".join([f"{name.replace('_', ' ')} {await other():.1f}" for name, other in bare.items()])
    print(
        f"{what:<30} {ours:6.1f} us   at {REFERENCE_SWITCHES:,} switches/s {ours * speed / REFERENCE_SWITCHES:6.1f} us "
        f"(here {speed:,.0f})   {f'bare: {beside}' if beside else ''}".rstrip()
    )


async def main(count: int) -> None:
    await show(
        "await pool.start_child",
        lambda: median_of(lambda: start_only(count)),
        slot_and_scope=lambda: median_of(lambda: bare_start_only(count, slot=True)),
        nursery_start=lambda: median_of(lambda: bare_start_only(count, slot=False)),
    )
    await show(
        "start, say started, return",
        lambda: timed(start_and_end, count),
        nursery_start=lambda: timed(bare_brief, count),
    )
    await show("await pool.stop_child", lambda: median_of(lambda: stop_one_by_one(count)))
    await show(
        "leave the root, each child",
        lambda: median_of(lambda: stop_all(count)),
        nursery_cancelled=lambda: median_of(lambda: bare_stop_all(count)),
    )
    await show(
        "crash and restart",
        lambda: timed(crash_restart, count),
        task_scope_catch_reschedule=lambda: timed(bare_crash_restart, count),
    )
    bare, ours = await bytes_per_child(count)
    print(f"{'idle child':<30} {ours:6.0f} B    bare: task {bare:.0f} B")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the children")
    trio.run(main, 1_000 if parser.parse_args().quick else 10_000)
