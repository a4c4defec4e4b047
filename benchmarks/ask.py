"""How many questions a second are answered, one after the other, from 100 callers, and 100 with one wait?"""

from functools import partial

import trio

from actors import ask_all, spawn
from benchmarks._cast import Counter, Total
from benchmarks._harness import Result, cpu_s, emit, measure, rate, raw_switch, scaled
from benchmarks._plain import plain_ask
from supervision import open_root


async def ask(callers: int) -> float:
    """With the default timeout on."""
    each = scaled(20_000) // callers
    async with open_root() as root:
        ref = await spawn(root, Counter)

        async def caller() -> None:
            for _ in range(each):
                await ref.ask(Total())

        begun_s = cpu_s()
        async with trio.open_nursery() as nursery:
            for _ in range(callers):
                nursery.start_soon(caller)
        took_s = cpu_s() - begun_s
    return rate(each * callers, took_s)


async def ask_with_scope_each() -> float:
    """What it would cost to give each ask a cancel scope for its timeout, as is usual."""
    count = scaled(10_000)
    async with open_root() as root:
        ref = await spawn(root, Counter)
        begun_s = cpu_s()
        for _ in range(count):
            with trio.fail_after(5):
                await ref.ask(Total(), timeout_s=float("inf"))
        took_s = cpu_s() - begun_s
    return rate(count, took_s)


async def ask_a_hundred_at_once() -> float:
    rounds = scaled(100_000) // 100
    async with open_root() as root:
        ref = await spawn(root, Counter)
        questions = [Total() for _ in range(100)]
        begun_s = cpu_s()
        for _ in range(rounds):
            await ask_all(ref, questions)
        took_s = cpu_s() - begun_s
    return rate(rounds * 100, took_s)


def main() -> list[Result]:
    one, hundred, scoped, together, switch, plain_one, plain_hundred = measure(
        partial(ask, 1), partial(ask, 100), ask_with_scope_each, ask_a_hundred_at_once, raw_switch,
        partial(plain_ask, 1), partial(plain_ask, 100),
    )  # fmt: skip
    return [
        Result(
            question="ask, one caller, default timeout", unit="asks/s",
            beside="trio's raw switch and back", beside_value=switch.value, bar=">= 0.75 x raw switch",
            **one.as_rate() | {"met": one.per_switch >= 0.75},
        ),
        Result(
            question="ask, 100 callers, default timeout", unit="asks/s",
            beside="memory channels, 100 callers", beside_value=plain_hundred.value, bar=">= 3.5 x memory channels",
            **hundred.as_rate() | {"met": hundred.per_switch >= 3.5 * plain_hundred.per_switch},
        ),
        Result(
            question="ask_all of 100", unit="asks/s",
            beside="memory channels, one caller", beside_value=plain_one.value, bar=">= 1.0 M/s",
            **together.as_rate(at_least=1e6),
        ),
        Result(
            question="ask, one caller, a cancel scope each instead", unit="asks/s",
            beside="memory channels, one caller", beside_value=plain_one.value, **scoped.as_rate(),
            note="why there is one sweeper of deadlines",
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    emit(main())
