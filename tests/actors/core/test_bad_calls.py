"""What a newcomer may pass by mistake is refused at once, by name, and nothing is sent."""

from typing import Any

import pytest
import trio

import actors
from actors import InvalidEffect, InvalidOption, NotAQuestion, NotAwaited, StateMachineActor
from supervision import Restart, StartFailed, Supervisor
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


class Forgetful(Counter):
    """Answers with what it forgot to await."""

    async def handle(self, message: Any) -> Any:
        return super().handle(message)


async def test_a_handler_that_answers_with_a_coroutine_is_an_error_that_names_it_and_says_what_to_write(
    root: Supervisor, recwarn: pytest.WarningsRecorder
) -> None:
    """Mutants: the check left out (the asker gets the coroutine); the coroutine not closed (Python warns as well)."""
    for ask in (lambda ref: ref.ask(Total()), lambda ref: actors.ask_all(ref, [Total()])):
        ref = await actors.spawn(root, Forgetful, restart=Restart.TEMPORARY)
        with pytest.raises((NotAwaited, actors.AsksFailed)) as refused:
            await ask(ref)
        error: Any = refused.value
        error = error.exceptions[0] if isinstance(error, actors.AsksFailed) else error

        assert isinstance(error, NotAwaited)
        assert (error.handler, error.message) == ("Forgetful.handle", Total())
        assert "write `return await Counter.handle(...)`" in str(error)
        assert (await ref.wait_stopped()).cause is error
    assert not recwarn.list


async def test_one_question_is_no_list_of_questions(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)
    one: Any = Total()
    with pytest.raises(InvalidOption, match=r"it must be a list of questions; ask\(\.\.\.\) is for one"):
        await actors.ask_all(ref, one)


async def test_what_one_kind_of_reference_lacks_says_what_it_has_instead(root: Supervisor) -> None:
    plain: Any = await actors.spawn(root, Counter)
    stepped: Any = await actors.spawn_machine(root, Porter, Door())

    for name in ("ask", "tell", "tell_nowait", "tell_terminal"):
        with pytest.raises(AttributeError, match=rf"MachineReference has no '{name}': deliver\(\)"):
            getattr(stepped, name)
    for name in ("deliver", "machine", "replace_machine"):
        with pytest.raises(AttributeError, match=rf"Reference has no '{name}': tell\(\) or ask\(\)"):
            getattr(plain, name)
    assert not hasattr(stepped, "ask")


async def test_an_actor_of_the_other_kind_is_refused_with_the_function_that_starts_it(root: Supervisor) -> None:
    porter: Any = Porter
    counter: Any = Counter
    with pytest.raises(InvalidOption, match=r"is started by spawn_machine\(\)"):
        await actors.spawn(root, porter)
    with pytest.raises(InvalidOption, match=r"is started by spawn\(\)"):
        await actors.spawn_machine(root, counter, Door())


async def test_a_machine_whose_handle_is_a_coroutine_is_told_to_be_plain(
    root: Supervisor, recwarn: pytest.WarningsRecorder
) -> None:
    class Slow:
        async def handle(self, event: str) -> tuple["Slow", tuple[str, ...]]:
            return self, ()

    class Late(Door):
        def handle(self, event: str) -> Any:
            return Slow().handle(event)

    slow: Any = Slow()
    with pytest.raises(InvalidOption, match="`handle` must be `def` and not `async def`"):
        await actors.spawn_machine(root, Porter, slow)
    ref = await actors.spawn_machine(root, Porter, Late())
    with pytest.raises(InvalidEffect, match="write `def handle`, which awaits nothing"):
        ref.deliver("knock")
    assert not recwarn.list


async def test_a_wrong_call_of_a_supervisor_names_nothing_private(root: Supervisor) -> None:
    stranger: Any = root
    with pytest.raises(TypeError, match=r"^Overseer\.events\(\)"):
        stranger.events("x")
