"""How many typed messages a second go through a reference, a bounded mailbox and a handler?"""

from actors import Mailbox, spawn
from benchmarks._cast import Add, Counter, Total
from benchmarks._harness import Result, cpu_s, emit, measure, rate, scaled
from benchmarks._plain import plain_tell
from supervision import open_root


async def tell_at_once() -> float:
    """Tell all without waiting, then ask once: the answer proves that all were handled."""
    count = scaled(200_000)
    async with open_root() as root:
        ref = await spawn(root, Counter, mailbox=Mailbox(capacity=count + 1))
        tell = ref.tell_nowait
        begun_s = cpu_s()
        for _ in range(count):
            tell(Add(1))
        assert await ref.ask(Total(), timeout_s=60) == count
        took_s = cpu_s() - begun_s
    return rate(count, took_s)


async def tell_and_wait_for_room() -> float:
    count = scaled(20_000)
    async with open_root() as root:
        ref = await spawn(root, Counter, mailbox=Mailbox(capacity=64))
        begun_s = cpu_s()
        for _ in range(count):
            await ref.tell(Add(1))
        assert await ref.ask(Total()) == count
        took_s = cpu_s() - begun_s
    return rate(count, took_s)


def main() -> list[Result]:
    quick, waiting, plain = measure(tell_at_once, tell_and_wait_for_room, plain_tell)
    return [
        Result(
            question="tell_nowait, typed message, through a reference", unit="messages/s",
            beside="memory channel, an int", beside_value=plain.value, bar=">= 1.0 M/s",
            **quick.as_rate(at_least=1e6),
        ),
        Result(
            question="await tell, mailbox of 64", unit="messages/s",
            beside="memory channel, an int", beside_value=plain.value, **waiting.as_rate(),
            note="each tell is a checkpoint, as trio asks for",
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    emit(main())
