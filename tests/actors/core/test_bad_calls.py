"""What a newcomer may pass by mistake is refused at once, by name, and nothing is sent."""

from typing import Any

import pytest
import trio

import actors
from actors import InvalidOption, NotAQuestion, StateMachineActor
from supervision import StartFailed, Supervisor
from tests.actors.core.troupe import Add, Counter, Total


class Door:
    def handle(self, event: str) -> tuple["Door", tuple[str, ...]]:
        return self, ()


class Porter(StateMachineActor[str, str]):
    async def carry_out(self, effect: str) -> None: ...


@pytest.mark.parametrize(
    ("question", "text"),
    [(Add(1), r"Add is no Question; send it with tell\(\)"), (Total, r"ask\(Total\(\.\.\.\)\)"), (None, "NoneType")],
)
async def test_what_is_no_question_is_refused_by_ask_and_not_sent(root: Supervisor, question: Any, text: str) -> None:
    """Mutants: the class of a question passes; only `ask` looks."""
    ref = await actors.spawn(root, Counter)
    with pytest.raises(NotAQuestion, match=text):
        await ref.ask(question)
    with pytest.raises(NotAQuestion, match=text):
        await actors.ask_all(ref, [Total(), question])

    assert await ref.ask(Total()) == 0
    assert ref.statistics().handled == 1


@pytest.mark.parametrize("machine", [Door, 5, None])
async def test_what_is_no_machine_is_refused_at_spawn(root: Supervisor, machine: Any) -> None:
    """Mutant: the class of a machine passes for one."""
    with pytest.raises(InvalidOption, match="it must be a machine"):
        await actors.spawn_machine(root, Porter, machine)
    with pytest.raises(InvalidOption, match="it must be a machine"):
        actors.spawn_machine_nowait(root, Porter, machine)

    assert root.children() == ()


@pytest.mark.parametrize("overseer", [Counter, None, "root"])
async def test_what_is_no_supervisor_is_refused_at_spawn(overseer: Any) -> None:
    with pytest.raises(InvalidOption, match="it must be a Supervisor"):
        await actors.spawn(overseer, Counter)
    with pytest.raises(InvalidOption, match="it must be a Supervisor"):
        actors.spawn_nowait(overseer, Counter)


async def test_a_nursery_is_no_supervisor() -> None:
    async with trio.open_nursery() as nursery:
        stranger: Any = nursery
        with pytest.raises(InvalidOption, match="open_root"):
            await actors.spawn(stranger, Counter)


async def test_an_actor_that_was_made_is_refused_at_spawn(root: Supervisor) -> None:
    made: Any = Counter()
    with pytest.raises(InvalidOption, match="such as their class"):
        await actors.spawn(root, made)


@pytest.mark.parametrize("wrong", ["c", None, Counter])
async def test_what_is_no_reference_is_refused(root: Supervisor, wrong: Any) -> None:
    """Mutants: each check left out; `ask_all` looks only whether it is a sequence."""

    class Curious(Counter):
        async def started(self) -> None:
            self.watch(wrong)

    with pytest.raises(InvalidOption, match="must be a reference"):
        actors.monitor(wrong)
    for references in (wrong, [wrong]):
        with pytest.raises(InvalidOption, match="must be a reference"):
            await actors.ask_all(references, [Total()])
    with pytest.raises(StartFailed) as caught:
        await actors.spawn(root, Curious)
    assert isinstance(caught.value.__cause__, InvalidOption)


@pytest.mark.parametrize("timeout_s", [None, "1", -1, float("nan"), True])
async def test_a_timeout_that_is_no_time_is_refused(root: Supervisor, timeout_s: Any) -> None:
    ref = await actors.spawn(root, Counter)
    with pytest.raises(InvalidOption, match="timeout_s"):
        await ref.ask(Total(), timeout_s=timeout_s)

    assert ref.statistics().handled == 0
