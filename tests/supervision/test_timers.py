"""One time per child, whichever way it is kept, against a plain dict of times."""

import math
from collections.abc import Callable

import trio
import trio.testing
from hypothesis import example, given, settings
from hypothesis import strategies as st

import supervision as sv
from supervision._states import Entry
from supervision._timers import Timers
from tests.supervision.players import quiet

TIMEOUTS_S = (1.0, 2.0, math.inf)


async def unused(*, task_status: sv.ChildStatus[None]) -> None:
    raise AssertionError("never started")


class Bench:
    """Timers at work, and beside them a dict that holds for each child when it is to be woken."""

    def __init__(self, again: Callable[["Bench", int], None] | None = None) -> None:
        self.timers = Timers(self.woke, lambda: 0)
        self.children = [
            Entry(sv.ChildSpec(str(number), unused, start_timeout_s=TIMEOUTS_S[number % 3])) for number in range(6)
        ]
        self.due: dict[int, float] = {}
        self.again = again

    def set_start(self, number: int) -> None:
        at_s = trio.current_time() + TIMEOUTS_S[number % 3]
        self.timers.set_start(self.children[number], at_s)
        self.expect(number, at_s)

    def set(self, number: int, after_s: float) -> None:
        at_s = trio.current_time() + after_s
        self.timers.set(self.children[number], at_s)
        self.expect(number, at_s)

    def expect(self, number: int, at_s: float) -> None:
        self.due.pop(number, None)
        if at_s != math.inf:
            self.due[number] = at_s

    def clear(self, number: int) -> None:
        if self.children[number].timer is not None:
            self.timers.clear(self.children[number])
        self.due.pop(number, None)

    def woke(self, entry: Entry, generation: int) -> None:
        number = self.children.index(entry)
        assert self.due.pop(number) == trio.current_time(), "woken when nothing was due, or not in time"
        assert entry.timer is None
        if self.again is not None:
            self.again(self, number)

    async def pass_time(self, seconds: float) -> None:
        await trio.sleep(seconds)
        await quiet()
        assert all(at_s > trio.current_time() for at_s in self.due.values()), "somebody was not woken in time"
        waiting = {number for number, child in enumerate(self.children) if child.timer is not None}
        assert waiting == self.due.keys()


def run(body: Callable[[Bench], object], bench: Callable[[], Bench] = Bench) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            made = bench()
            nursery.start_soon(made.timers.run)
            await quiet()
            await body(made)  # type: ignore[misc]
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


NUMBERS = st.integers(0, 5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), NUMBERS, st.none()),
        st.tuples(st.just("set"), NUMBERS, st.sampled_from([0.5, 1.0, 1.5, 3.0, math.inf])),
        st.tuples(st.just("clear"), NUMBERS, st.none()),
        st.tuples(st.just("pass"), st.none(), st.sampled_from([0.25, 0.5, 1.0])),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(STEPS)
@example([("start", 0, 0), ("pass", 0, 0.5), ("start", 3, 0), ("pass", 0, 0.25), ("start", 0, 0), ("pass", 0, 1.0)])
def test_everyone_is_woken_once_and_in_time(steps: list[tuple[str, int, float]]) -> None:
    """Mutants killed: a start that is not aimed at, `set_start` that keeps an older place in the line."""

    async def body(bench: Bench) -> None:
        for kind, number, seconds in steps:
            match kind:
                case "start":
                    bench.set_start(number)
                case "set":
                    bench.set(number, seconds)
                case "clear":
                    bench.clear(number)
                case _:
                    await bench.pass_time(seconds)
        await bench.pass_time(5.0)
        assert not bench.due

    run(body)


def test_whoever_is_forgotten_or_set_anew_by_what_another_is_told_is_not_woken() -> None:
    """Mutant killed: everyone who was due at the beginning of the round is told."""
    told: list[int] = []

    def again(bench: Bench, number: int) -> None:
        told.append(number)
        if told == [0]:
            bench.clear(3)
            bench.set(4, 1.0)
            bench.set_start(1)

    async def body(bench: Bench) -> None:
        for number in (0, 3):
            bench.set_start(number)
        await trio.sleep(1.0)
        await quiet()
        assert told == [0]
        await bench.pass_time(1.0)
        assert told == [0, 4]
        await bench.pass_time(1.0)

    run(body, lambda: Bench(again))

    assert told == [0, 4, 1]
