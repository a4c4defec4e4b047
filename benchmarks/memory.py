"""How many bytes does one idle actor weigh, with its supervision, and one that has had mail?"""

import gc
import statistics
import sys
from typing import Any

import trio
import trio.testing

from actors import spawn_nowait
from benchmarks._cast import Add, Counter
from benchmarks._harness import REPEATS, Result, emit, in_fresh_process, resident_bytes, spread
from supervision import Restart, open_root

COUNT = 20_000


async def weigh(kind: str) -> float:
    held: list[Any] = []
    async with open_root() as root, trio.open_nursery() as nursery:
        pool = await root.start_pool("actors")
        gc.collect()
        before = resident_bytes()
        for _ in range(COUNT):
            if kind == "task":
                nursery.start_soon(trio.sleep_forever)
            else:
                held.append(spawn_nowait(pool, Counter, restart=Restart.TEMPORARY))
        await trio.testing.wait_all_tasks_blocked()
        if kind == "used actor":
            for ref in held:
                ref.tell_nowait(Add(1))
            await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        weight = (resident_bytes() - before) / COUNT
        nursery.cancel_scope.cancel()
    return weight


def main() -> list[Result]:
    weights = {
        kind: [in_fresh_process("memory", kind)[0] for _ in range(min(REPEATS, 3))]
        for kind in ("task", "actor", "used actor")
    }
    task, idle, used = (statistics.median(weights[kind]) for kind in weights)
    return [
        Result(
            question="an idle supervised actor, reference included", unit="bytes", value=idle,
            spread=spread(weights["actor"]), beside="an idle trio task alone", beside_value=task,
            bar="<= 3.5 KB", met=idle <= 3_500,
        ),
        Result(
            question="the same after its first message", unit="bytes", value=used,
            spread=spread(weights["used actor"]), beside="an idle trio task alone", beside_value=task,
            note="the first message makes the inbox and enters the cancel scope",
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(trio.run(weigh, sys.argv[1]))
    else:
        emit(main())
