"""What must check and what must not, of the actor core. Read by mypy and pyright, never run."""

from collections.abc import Sequence
from typing import Any, assert_type

import attrs

import actors
from actors import Actor, Mailbox, Postpone, Question, Reference, StateMachineActor, Timer, WhenFull
from supervision import Pool, Restart, Supervisor


@attrs.frozen
class Add:
    number: int


@attrs.frozen
class Total(Question[int]):
    pass


@attrs.frozen
class Name(Question[str]):
    pass


class Counter(Actor[Add | Total | Name]):
    def __init__(self, start: int, name: str = "counter") -> None:
        self.total, self.name = start, name

    async def handle(self, message: Add | Total | Name) -> int | str | None:
        match message:
            case Add(number):
                self.total += number
                return None
            case Total():
                return self.total
            case Name():
                return self.name


class Bare(Actor[Add]):
    async def handle(self, message: Add) -> None: ...


class Wrong(Actor[Add]):
    async def handle(self, message: int) -> None: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]


async def a_reference_takes_what_its_actor_understands(root: Supervisor, pool: Pool) -> None:
    ref = await actors.spawn(root, Counter, 1, "counter", name="counter")
    assert_type(ref, Reference[Add | Total | Name])
    assert_type(actors.spawn_nowait(pool, Bare), Reference[Add])

    ref.tell_nowait(Add(1))
    await ref.tell(Total())
    ref.tell_terminal(Add(1))
    ref.tell_nowait(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await ref.tell("add")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ref.tell_terminal(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def an_answer_has_the_type_of_its_question(ref: Reference[Add | Total | Name]) -> None:
    assert_type(await ref.ask(Total()), int)
    assert_type(await ref.ask(Name(), timeout_s=1), str)
    assert_type(await actors.ask_all(ref, [Total(), Total()]), list[int])
    assert_type(await actors.ask_all([ref, ref], [Name(), Name()]), list[str])
    await ref.ask(Add(1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    name: str = await ref.ask(Total())  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType]
    del name


async def the_arguments_of_spawn_are_those_of_the_actor(root: Supervisor) -> None:
    await actors.spawn(root, Counter, 1)  # A default stays a default.
    await actors.spawn(root, Counter, "one", "counter")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await actors.spawn(root, Bare, 1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await actors.spawn(root, int)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await actors.spawn(root, Bare, restart="always")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await actors.spawn(root, Bare, restart=Restart.TRANSIENT, mailbox=Mailbox(when_full=WhenFull.FAIL))


def a_reference_to_more_will_do_for_less(ref: Reference[Add | Total]) -> None:
    less: Reference[Add] = ref
    more: Reference[Add | Total | str] = ref  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    del less, more


async def an_actor_knows_its_own_reference(counter: Counter) -> None:
    assert_type(counter.reference, Reference[Add | Total | Name])


async def options_are_typed() -> None:
    Mailbox(64)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Mailbox(capacity="64")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Mailbox(when_full="wait")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# --- machines -------------------------------------------------------------------------------------------------------


@attrs.frozen
class Open:
    now_s: float


@attrs.frozen
class Ring:
    times: int


@attrs.frozen
class Gate:
    opened: int = 0

    def handle(self, event: Open) -> tuple["Gate", Sequence[Ring | Postpone | Timer]]:
        return attrs.evolve(self, opened=self.opened + 1), (Ring(self.opened), Postpone())


class Deaf:
    def handle(self, event: str) -> tuple["Deaf", Sequence[Ring]]:
        return self, ()


class Porter(StateMachineActor[Open, Ring]):
    def __init__(self, bell: str) -> None:
        self.bell = bell

    async def carry_out(self, effect: Ring) -> None:
        assert_type(effect.times, int)


async def a_machine_and_its_actor_must_fit(root: Supervisor, pool: Pool) -> None:
    ref = await actors.spawn_machine(root, Porter, Gate(), "bell")
    assert_type(ref.machine, Gate)
    assert_type(actors.spawn_machine_nowait(pool, Porter, Gate(), "bell").machine, Gate)

    ref.deliver(Open(1.0))
    ref.deliver("open")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ref.replace_machine(lambda gate: attrs.evolve(gate, opened=0))
    await actors.spawn_machine(root, Porter, Deaf(), "bell")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await actors.spawn_machine(root, Porter, Gate())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await actors.spawn_machine(root, Bare, Gate())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def a_machine_reference_only_delivers(root: Supervisor) -> None:
    ref: Any = None
    machine: actors.MachineReference[Open, Gate] = ref
    machine.tell_nowait(Open(1.0))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    async with actors.monitor(machine) as down:
        assert_type(await down.wait(), actors.Down)
