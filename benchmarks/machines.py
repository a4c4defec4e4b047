"""How many events a second step a pure machine through a reference?"""

from collections.abc import Sequence
from typing import Any

import attrs
import trio.testing

from actors import Mailbox, StateMachineActor, spawn_machine
from benchmarks._harness import Result, cpu_s, emit, measure, rate, scaled
from supervision import open_root


@attrs.frozen
class Push:
    """The one event of a turnstile without time."""


@attrs.frozen
class Turnstile:
    """Two values, each knowing the step it takes: what a table-driven machine without data comes down to."""

    locked: bool

    def handle(self, event: Push) -> tuple["Turnstile", Sequence[str]]:
        return STEP[self.locked]


STEP: dict[bool, tuple[Turnstile, tuple[str, ...]]] = {
    True: (Turnstile(locked=False), ()),
    False: (Turnstile(locked=True), ()),
}


@attrs.frozen
class Tick:
    now_s: float
    """Time travels in the event."""


@attrs.frozen
class Meter:
    """Makes a new value and an effect for each event."""

    ticks: int = 0
    last_s: float = 0.0

    def handle(self, event: Tick) -> tuple["Meter", Sequence[int]]:
        return Meter(self.ticks + 1, event.now_s), (self.ticks,)


class Quiet(StateMachineActor[Any, Any]):
    async def carry_out(self, effect: object) -> None:
        pass


async def events_alone() -> float:
    count, machine, push = scaled(200_000), Turnstile(locked=True), Push()
    begun_s = cpu_s()
    for _ in range(count):
        machine, _effects = machine.handle(push)
    return rate(count, cpu_s() - begun_s)


async def events_through_a_reference() -> float:
    count, push = scaled(200_000), Push()
    async with open_root() as root:
        ref = await spawn_machine(root, Quiet, Turnstile(locked=True))
        deliver = ref.deliver
        begun_s = cpu_s()
        for _ in range(count):
            deliver(push)
        took_s = cpu_s() - begun_s
    return rate(count, took_s)


async def events_with_new_values_and_effects() -> float:
    count = scaled(50_000)
    async with open_root() as root:
        ref = await spawn_machine(root, Quiet, Meter(), mailbox=Mailbox(capacity=count))
        begun_s = cpu_s()
        for number in range(count):
            ref.deliver(Tick(float(number)))
        await trio.testing.wait_all_tasks_blocked()
        took_s = cpu_s() - begun_s
        assert ref.statistics().handled == count
    return rate(count, took_s)


def main() -> list[Result]:
    delivered, heavy, alone = measure(events_through_a_reference, events_with_new_values_and_effects, events_alone)
    return [
        Result(
            question="deliver, a step without effects", unit="events/s",
            beside="the machine alone", beside_value=alone.value, bar=">= 1.0 M/s",
            **delivered.as_rate(at_least=1e6),
        ),
        Result(
            question="deliver, a new event, value and effect each", unit="events/s",
            beside="the machine alone", beside_value=alone.value, **heavy.as_rate(),
            note="three frozen values made and one effect carried out for each event",
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    emit(main())
