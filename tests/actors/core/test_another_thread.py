"""A call from outside of the run is refused before it changes anything."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
import trio

import actors
import supervision
from actors import Actor, MachineReference, NotInThisRun, Reference, StateMachineActor
from supervision import Supervisor
from tests.actors.core.troupe import Add, Counter, Total


class Door:
    """A machine whose every event has an effect."""

    def handle(self, event: str) -> tuple["Door", tuple[str, ...]]:
        return self, (event,)


class Porter(StateMachineActor[str, str]):
    async def carry_out(self, effect: str) -> None: ...


class Watcher(Actor[object]):
    me: "Watcher"

    async def started(self) -> None:
        type(self).me = self

    async def handle(self, message: object) -> None: ...


def through_a_thread(call: Callable[[], object]) -> Callable[[], Any]:
    """From a thread of trio's, which has no run of its own but may ask one."""

    async def go() -> None:
        await trio.to_thread.run_sync(call)

    return go


def through_another_run(call: Callable[[], object]) -> Callable[[], Any]:
    """From a run in another thread."""

    async def other() -> None:
        call()

    async def go() -> None:
        await trio.to_thread.run_sync(trio.run, other)

    return go


def through_a_plain_thread(call: Callable[[], object]) -> Callable[[], Any]:
    async def go() -> None:
        caught: list[BaseException] = []

        def body() -> None:
            try:
                call()
            except BaseException as error:
                caught.append(error)

        thread = Thread(target=body)
        thread.start()
        thread.join()
        raise caught[0]

    return go


Outside = Callable[[Callable[[], object]], Callable[[], Any]]
OUTSIDE = [through_a_thread, through_another_run, through_a_plain_thread]

CALLS: dict[str, Callable[[Supervisor, Reference[Any], MachineReference[Any, Any]], object]] = {
    "tell_nowait": lambda root, ref, door: ref.tell_nowait(Add(1)),
    "tell_terminal": lambda root, ref, door: ref.tell_terminal(Add(1)),
    "stop": lambda root, ref, door: ref.stop(),
    "stop of a machine": lambda root, ref, door: door.stop(),
    "deliver": lambda root, ref, door: door.deliver("open"),
    "replace_machine": lambda root, ref, door: door.replace_machine(lambda old: Door()),
    "watch": lambda root, ref, door: Watcher.me.watch(ref),
    "spawn_nowait": lambda root, ref, door: actors.spawn_nowait(root, Counter, name="other"),
    "spawn_machine_nowait": lambda root, ref, door: actors.spawn_machine_nowait(root, Porter, Door(), name="other"),
}


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("name", CALLS)
async def test_a_call_from_outside_of_the_run_is_refused_and_changes_nothing(
    root: Supervisor, name: str, outside: Outside
) -> None:
    """Mutants: the check left out of the quick path of `tell_nowait`, of `tell_terminal`, of `stop`."""
    ref = await actors.spawn(root, Counter)
    door = await actors.spawn_machine(root, Porter, Door())
    await actors.spawn(root, Watcher)
    assert await ref.ask(Total()) == 0  # The first message goes another way than those that follow.
    await trio.testing.wait_all_tasks_blocked()
    before = ref.statistics(), door.statistics(), door.machine, root.children()

    with pytest.raises(supervision.NotInThisRun, match=r"trio\.from_thread\.run_sync\("):
        await outside(lambda: CALLS[name](root, ref, door))()

    assert (ref.statistics(), door.statistics(), door.machine, root.children()) == before
    assert not ref.gone
    assert not door.gone
    assert await ref.ask(Total()) == 0


async def test_what_the_text_says_to_write_works(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)
    await trio.to_thread.run_sync(lambda: trio.from_thread.run_sync(ref.tell_nowait, Add(2)))

    assert await ref.ask(Total()) == 2


async def test_a_question_from_another_run_is_refused(root: Supervisor) -> None:
    """Mutant: `Seat.accept_ask` does not look; the test then never ends."""
    ref = await actors.spawn(root, Counter)
    await trio.testing.wait_all_tasks_blocked()

    with pytest.raises(NotInThisRun):
        await trio.to_thread.run_sync(lambda: trio.run(ref.ask, Total()))

    assert await ref.ask(Total()) == 0


@pytest.mark.parametrize("outside", OUTSIDE)
async def test_the_first_message_of_all_is_refused_from_outside_of_the_run(root: Supervisor, outside: Outside) -> None:
    """It goes by `Seat.accept`, since there is no inbox yet. Mutant: that does not look; the test then never ends."""
    ref = await actors.spawn(root, Counter)
    await trio.testing.wait_all_tasks_blocked()

    with pytest.raises(NotInThisRun):
        await outside(lambda: ref.tell_nowait(Add(1)))()

    assert ref.statistics().queued == 0
    assert await ref.ask(Total()) == 0


async def test_a_question_to_one_that_sleeps_is_refused_from_another_run(root: Supervisor) -> None:
    """Mutant: the quick path of `Reference.ask` does not look at who wakes the actor."""
    ref = await actors.spawn(root, Counter)
    assert await ref.ask(Total()) == 0  # From here on there is an inbox, and the quick path is taken.
    await trio.testing.wait_all_tasks_blocked()

    with pytest.raises(NotInThisRun):
        await trio.to_thread.run_sync(lambda: trio.run(ref.ask, Total()))

    assert ref.statistics().queued == 0
    assert await ref.ask(Total()) == 0


@pytest.mark.parametrize("outside", OUTSIDE)
async def test_a_wish_to_watch_from_outside_of_the_run_is_not_kept(root: Supervisor, outside: Outside) -> None:
    """Mutants: `Seat.watch_for` does not look, and believes ever after that it watches already; `Seat.watch` neither,
    and the notice comes."""
    heard: list[str] = []

    class Listener(Watcher):
        async def down(self, notice: actors.Down) -> None:
            heard.append(notice.name)

    ref = await actors.spawn(root, Counter, restart=supervision.Restart.TEMPORARY)
    other = await actors.spawn(root, Counter, name="other", restart=supervision.Restart.TEMPORARY)
    await actors.spawn(root, Listener)
    await trio.testing.wait_all_tasks_blocked()

    for who in (ref, other):
        with pytest.raises(NotInThisRun):
            await outside(lambda who=who: Listener.me.watch(who))()  # type: ignore[misc]
    Listener.me.watch(ref)
    other.stop()
    ref.stop()
    await trio.testing.wait_all_tasks_blocked()

    assert heard == ["Counter"]


async def test_a_wait_for_the_end_from_another_run_is_refused(root: Supervisor) -> None:
    """Mutant: `Seat.watch` does not look; the test then never ends."""
    ref = await actors.spawn(root, Counter, restart=supervision.Restart.TEMPORARY)

    with pytest.raises(NotInThisRun):
        await trio.to_thread.run_sync(trio.run, ref.wait_stopped)

    ref.stop()
    assert (await ref.wait_stopped()).name == "Counter"


class Alarm:
    """A machine whose first event starts a timer; from then on deliveries go the long way."""

    def __init__(self, seen: tuple[str, ...] = ()) -> None:
        self.seen = seen

    def handle(self, event: str) -> tuple["Alarm", tuple[object, ...]]:
        timer = actors.Timer(name="alarm", event="rings", after_s=3600)
        return Alarm((*self.seen, event)), () if self.seen else (timer,)


class Sleeper(StateMachineActor[str, object]):
    async def carry_out(self, effect: object) -> None: ...


@pytest.mark.parametrize("outside", OUTSIDE)
async def test_an_event_for_a_machine_with_a_timer_is_refused_from_outside_of_the_run(
    root: Supervisor, outside: Outside
) -> None:
    """Mutant: `MachineSeat.deliver` does not look."""
    alarm = await actors.spawn_machine(root, Sleeper, Alarm())
    alarm.deliver("set")

    with pytest.raises(NotInThisRun):
        await outside(lambda: alarm.deliver("again"))()

    assert alarm.machine.seen == ("set",)
    alarm.deliver("again")
    assert alarm.machine.seen == ("set", "again")
