"""triotp: tell, ask and ask from 100 callers, per second of CPU. Runs in the peers' own environment."""

import json
import statistics
import sys
import time
import types
from typing import Any

import trio
import trio.testing
from triotp import gen_server, mailbox  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

counter: Any = types.ModuleType("counter")


async def init(argument: Any) -> list[int]:
    return [0]


async def handle_call(number: int, caller: Any, state: list[int]) -> Any:
    state[0] += number
    return gen_server.Reply(payload=state[0]), state


async def handle_cast(number: int | None, state: list[int]) -> Any:
    if number is None:
        return gen_server.Stop(), state
    state[0] += number
    return gen_server.NoReply(), state


counter.init, counter.handle_call, counter.handle_cast = init, handle_call, handle_cast


async def measured(callers: int, count: int, *, tell: bool) -> float:
    mailbox._init()

    async def caller() -> None:
        for _ in range(count // callers):
            await (gen_server.cast("counter", 1) if tell else gen_server.call("counter", 1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(gen_server.start, counter, None, "counter")
        await trio.testing.wait_all_tasks_blocked()
        begun_s = time.process_time()
        async with trio.open_nursery() as inner:
            for _ in range(callers):
                inner.start_soon(caller)
        assert await gen_server.call("counter", 0) == count
        took_s = time.process_time() - begun_s
        await gen_server.cast("counter", None)
    return count / took_s


def median(callers: int, count: int, *, tell: bool) -> float:
    async def main() -> float:
        return await measured(callers, count, tell=tell)

    return statistics.median(trio.run(main) for _ in range(int(sys.argv[1])))


print(
    json.dumps(
        {
            "tell": median(1, 5_000, tell=True),
            "ask": median(1, 5_000, tell=False),
            "ask100": median(100, 5_000, tell=False),
        }
    )
)
