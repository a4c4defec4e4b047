"""The life of an actor: start, restart, stop, and who is told."""

import gc
import math
import weakref
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import actors
from actors import Down, Ending, LeftBehind, Mailbox, NotOnStage, OnRestart, WaitsForItself
from actors._reference import seat_behind
from supervision import (
    AlreadyStarted,
    Backoff,
    ChildSpec,
    Restart,
    RestartIntensity,
    RestartIntensityExceeded,
    Shutdown,
    StartAborted,
    StartFailed,
    Strategy,
    Supervisor,
    open_root,
)
from tests.actors.core.troupe import Add, Boom, Counter, Hold, Hooked, Total, Understood
from tests.support.cancelling import cancel_at_each_step

# --- start ----------------------------------------------------------------------------------------------------------


async def test_an_actor_is_up_when_spawn_returns(root: Supervisor) -> None:
    log: list[Any] = []

    ref = await actors.spawn(root, Hooked, log, name="hooked")

    assert log == ["made", ("started", 1)]
    assert (ref.name, ref.generation, ref.gone) == ("hooked", 1, False)
    assert "up" in repr(ref)


async def test_any_function_that_makes_an_actor_will_do(root: Supervisor) -> None:
    def make(start: int) -> Counter:
        return Counter(start * 2)

    ref = await actors.spawn(root, make, 21)

    assert await ref.ask(Total()) == 42


async def test_a_start_that_fails_comes_out_as_one_error_with_its_cause_and_leaves_nothing(root: Supervisor) -> None:
    broken = OSError("no licence")
    made: list[actors.Reference[Understood]] = []

    class Broken(Counter):
        async def started(self) -> None:
            made.append(self.reference)
            raise broken

    with pytest.raises(StartFailed) as failed:
        await actors.spawn(root, Broken)

    assert failed.value.__cause__ is broken
    assert made[0].gone
    assert root.children() == ()
    await actors.spawn(root, Counter, name="Broken")  # The name is free again.


async def test_a_start_that_takes_too_long_fails_and_leaves_nothing(
    root: Supervisor, autojump_clock: MockClock
) -> None:
    class Slow(Counter):
        async def started(self) -> None:
            await trio.sleep_forever()

    with pytest.raises(StartFailed, match="2 s"):
        await actors.spawn(root, Slow, start_timeout_s=2)

    assert trio.current_time() >= 2
    assert root.children() == ()


async def test_a_taken_name_is_refused_and_free_again_right_after_the_stop(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, 1, name="only", restart=Restart.TEMPORARY)

    with pytest.raises(AlreadyStarted):
        await actors.spawn(root, Counter, name="only")
    with pytest.raises(AlreadyStarted):
        actors.spawn_nowait(root, Counter, name="only")
    ref.stop()
    await ref.wait_stopped()
    again = await actors.spawn(root, Counter, 2, name="only")

    assert await again.ask(Total()) == 2


async def test_spawning_cancelled_at_each_step_leaves_an_actor_or_nothing(root: Supervisor) -> None:
    refs: list[actors.Reference[Understood]] = []

    async def spawn() -> None:
        refs.append(await actors.spawn(root, Counter, 5, name="counter", restart=Restart.TEMPORARY))

    async def is_whole_or_absent() -> None:
        if refs:
            ref = refs.pop()
            assert await ref.ask(Total()) == 5
            ref.stop()
            await ref.wait_stopped()
        else:
            # A cancel that comes after the start cannot take it back: the child is there, and is found there.
            for child in root.children():
                await root.stop_child(child)
        assert root.children() == ()

    assert await cancel_at_each_step(spawn, check=is_whole_or_absent) > 1


async def test_an_actor_has_no_reference_before_it_has_a_seat() -> None:
    with pytest.raises(NotOnStage, match="Counter"):
        _ = Counter().reference


async def test_many_actors_live_in_a_pool(root: Supervisor) -> None:
    pool = await root.start_pool("counters")

    refs = [await actors.spawn(pool, Counter, number, restart=Restart.TEMPORARY) for number in range(50)]
    refs += [actors.spawn_nowait(pool, Counter, number, restart=Restart.TEMPORARY) for number in range(50)]
    totals = await actors.ask_all(refs, [Total()] * 100)

    assert totals == [*range(50), *range(50)]


# --- restart --------------------------------------------------------------------------------------------------------


async def test_a_restart_keeps_the_reference_and_the_waiting_mail_and_raises_the_generation(root: Supervisor) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Hooked, log)
    crash = ValueError("boom")

    ref.tell_nowait(Add(1))
    ref.tell_nowait(Boom(crash))
    ref.tell_nowait(Add(2))
    await ref.ask(Total())

    assert log == [
        "made", ("started", 1), Add(1), ("stopping", crash), "made", ("started", 2), Add(2), Total(),
    ]  # fmt: skip
    assert ref.generation == 2


async def test_a_mailbox_may_fail_what_waits_at_a_crash(root: Supervisor) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Hooked, log, mailbox=Mailbox(on_restart=OnRestart.FAIL))
    crash = ValueError("boom")
    errors: list[LeftBehind] = []

    async def ask() -> None:
        with pytest.raises(LeftBehind) as left:
            await ref.ask(Total())
        errors.append(left.value)

    hold = Hold()
    ref.tell_nowait(hold)
    await hold.begun.wait()
    ref.tell_nowait(Boom(crash))
    ref.tell_nowait(Add(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        hold.until.set()
    await ref.ask(Total())

    assert [error.__cause__ for error in errors] == [crash]
    assert Add(1) not in log
    assert ref.statistics().dropped == 1
    assert ref.generation == 2


async def test_mail_may_be_sent_while_the_actor_waits_to_be_brought_back(
    autojump_clock: MockClock,
) -> None:
    async with open_root(intensity=RestartIntensity(restarts=3, period_s=60)) as root:
        ref = await actors.spawn(root, Counter, backoff=Backoff(first_s=1.0, jitter=0))
        ref.tell_nowait(Boom())
        await wait_all_tasks_blocked()

        ref.tell_nowait(Add(3))

        assert "not up" in repr(ref)
        assert await ref.ask(Total()) == 3


async def test_an_actor_stopped_as_a_bystander_keeps_its_mail_and_its_reference() -> None:
    async with open_root(strategy=Strategy.ONE_FOR_ALL) as root:
        bystander = await actors.spawn(root, Counter, name="bystander")
        culprit = await actors.spawn(root, Counter, name="culprit")
        hold = Hold()
        bystander.tell_nowait(hold)
        await hold.begun.wait()
        bystander.tell_nowait(Add(3))

        culprit.tell_nowait(Boom())
        await wait_all_tasks_blocked()
        hold.until.set()

        assert await bystander.ask(Total()) == 3
        assert bystander.generation == 2


async def test_when_the_budget_is_spent_everyone_who_waits_is_told() -> None:
    notices: list[Down] = []

    with pytest.raises(RestartIntensityExceeded):  # noqa: PT012 - the block is what fails
        async with open_root(intensity=RestartIntensity(restarts=1, period_s=60)) as root:
            ref = await actors.spawn(root, Counter)
            sibling = await actors.spawn(root, Counter, name="sibling")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: collect(ref, notices))
                nursery.start_soon(lambda: collect(sibling, notices))
                await wait_all_tasks_blocked()
                for _ in range(2):
                    ref.tell_nowait(Boom())

    assert {(notice.name, notice.ending) for notice in notices} == {
        ("Counter", Ending.CRASHED),
        ("sibling", Ending.STOPPED),
    }


async def collect(ref: actors.Address, notices: list[Down]) -> None:
    with trio.CancelScope(shield=True):
        notices.append(await ref.wait_stopped())


# --- stop -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", Restart)
async def test_a_stop_is_for_good_whatever_the_restart_kind(root: Supervisor, restart: Restart) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Hooked, log, restart=restart)

    ref.stop()
    ref.stop()
    down = await ref.wait_stopped()

    assert down == Down(name="Hooked", generation=1, ending=Ending.STOPPED, cause=None, undelivered=0)
    assert log == ["made", ("started", 1), ("stopping", None)]
    assert ref.gone
    ref.stop()


async def test_a_stop_lets_the_message_under_way_finish_and_gives_the_rest_back(root: Supervisor) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Hooked, log)
    hold = Hold()
    ref.tell_nowait(hold)
    await hold.begun.wait()
    ref.tell_nowait(Add(1))

    ref.stop()
    with pytest.raises(LeftBehind, match="stopping"):
        ref.tell_nowait(Add(2))
    hold.until.set()
    await ref.wait_stopped()

    assert log[-1] == ("stopping", None)
    assert Add(1) not in log
    assert ref.statistics().dropped == 1


async def test_an_actor_may_stop_itself(root: Supervisor) -> None:
    class Tired(Counter):
        async def handle(self, message: Understood) -> Any:
            self.reference.stop()
            return await super().handle(message)

    ref = await actors.spawn(root, Tired, 8, restart=Restart.PERMANENT)

    assert await ref.ask(Total()) == 8
    assert (await ref.wait_stopped()).ending is Ending.STOPPED
    with pytest.raises(LeftBehind, match="is gone: it was stopped or returned; Add was not delivered"):
        ref.tell_nowait(Add(1))


async def test_an_actor_may_stop_itself_while_it_starts(root: Supervisor) -> None:
    refs: list[actors.Reference[Understood]] = []

    class Reluctant(Counter):
        async def started(self) -> None:
            refs.append(self.reference)
            self.reference.stop()
            await trio.sleep_forever()

    with pytest.raises(StartAborted):
        await actors.spawn(root, Reluctant, restart=Restart.PERMANENT)

    assert refs[0].gone
    assert refs[0].generation == 1
    assert root.children() == ()


async def test_an_actor_may_be_stopped_before_it_is_up(root: Supervisor) -> None:
    log: list[Any] = []
    ref = actors.spawn_nowait(root, Hooked, log)

    ref.stop()
    await ref.wait_stopped()

    assert ref.gone
    assert ("started", 1) not in log


async def test_an_actor_that_does_not_stop_in_time_is_killed(root: Supervisor, autojump_clock: MockClock) -> None:
    ref = await actors.spawn(root, Counter, shutdown_s=3)
    ref.tell_nowait(Hold())
    await wait_all_tasks_blocked()

    ref.stop()
    down = await ref.wait_stopped()

    assert down.ending is Ending.KILLED
    assert trio.current_time() == pytest.approx(3)


async def test_leaving_the_root_stops_its_actors_politely() -> None:
    log: list[Any] = []

    async with open_root() as root:
        ref = await actors.spawn(root, Hooked, log)

    assert ref.gone
    assert log[-1] == ("stopping", None)


async def test_an_actor_that_shuts_down_on_purpose_is_no_crash(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, restart=Restart.TRANSIENT)

    ref.tell_nowait(Boom(Shutdown("done")))
    down = await ref.wait_stopped()

    assert down.ending is Ending.STOPPED
    assert isinstance(down.cause, Shutdown)


async def test_a_stopped_actor_is_not_brought_back_by_hand_under_the_old_reference(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, name="counter")
    ref.stop()
    await ref.wait_stopped()

    with pytest.raises(StartFailed) as failed:
        await root.restart_child("counter")

    assert isinstance(failed.value.__cause__, actors.ActorGone)
    assert "spawn" in str(failed.value.__cause__)


async def test_waiting_for_the_end_is_correct_when_cancelled_at_each_step(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)

    async def wait() -> None:
        with trio.move_on_after(0):
            await ref.wait_stopped()

    await cancel_at_each_step(wait)
    ref.stop()

    assert (await ref.wait_stopped()).ending is Ending.STOPPED
    assert await cancel_at_each_step(ref.wait_stopped) > 1


@pytest.mark.parametrize("second", [OSError("could not let go"), Shutdown("on purpose")])
async def test_a_crash_and_a_failure_of_its_clean_up_both_come_out(root: Supervisor, second: Exception) -> None:
    """Mutant: the second takes the place of the first, so that a `Shutdown` hides a crash from a transient restart."""
    crash = ValueError("boom")
    crash.__cause__ = KeyError("behind the crash")
    second.__cause__ = KeyError("behind the clean-up")

    class Clumsy(Counter):
        async def stopping(self, cause: Exception | None) -> None:
            raise second

    ref = await actors.spawn(root, Clumsy, restart=Restart.TEMPORARY)
    ref.tell_nowait(Boom(crash))
    down = await ref.wait_stopped()

    assert down.ending is Ending.CRASHED
    assert isinstance(down.cause, ExceptionGroup)
    assert down.cause.exceptions == (crash, second)
    assert str(crash.__cause__) == "'behind the crash'"
    assert str(second.__cause__) == "'behind the clean-up'"


async def test_a_crash_that_its_clean_up_raises_again_is_one_crash(root: Supervisor) -> None:
    """Mutant: a group of the same error twice."""

    class Honest(Counter):
        async def stopping(self, cause: Exception | None) -> None:
            assert cause is not None
            raise cause

    crash = ValueError("boom")
    ref = await actors.spawn(root, Honest, restart=Restart.TEMPORARY)
    ref.tell_nowait(Boom(crash))

    assert (await ref.wait_stopped()).cause is crash


async def test_a_kill_during_the_clean_up_of_a_crash_leaves_the_crash_visible(
    root: Supervisor, autojump_clock: MockClock
) -> None:
    class Slow(Counter):
        async def stopping(self, cause: Exception | None) -> None:
            await trio.sleep_forever()

    crash = ValueError("boom")
    ref = await actors.spawn(root, Slow, restart=Restart.TEMPORARY, shutdown_s=1)
    ref.tell_nowait(Boom(crash))
    await wait_all_tasks_blocked()
    ref.stop()
    down = await ref.wait_stopped()

    assert isinstance(down.cause, ExceptionGroup)
    assert down.cause.exceptions == (crash,)


# --- who is told ----------------------------------------------------------------------------------------------------


async def test_a_monitor_gets_exactly_one_notice_with_the_cause(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, restart=Restart.TEMPORARY)
    crash = ValueError("boom")

    async with actors.monitor(ref) as down:
        ref.tell_nowait(Boom(crash))
        ref.tell_nowait(Add(1))
        first = await down.wait()
        again = await down.wait()

    assert first is again is down.notice
    assert (first.name, first.generation, first.ending) == ("Counter", 1, Ending.CRASHED)
    assert first.cause is crash
    assert first.undelivered == 1


async def test_a_monitor_of_one_who_is_gone_already_is_told_at_once(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)
    ref.stop()
    await ref.wait_stopped()

    async with actors.monitor(ref) as down:
        notice = down.notice

    assert notice is not None
    assert notice.ending is Ending.STOPPED


async def test_a_restart_is_no_end_for_a_monitor(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)

    async with actors.monitor(ref) as down:
        ref.tell_nowait(Boom())
        await ref.ask(Total())

        assert down.notice is None


async def test_many_may_wait_at_one_monitor_and_one_who_left_is_not_woken(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)
    told: list[Down] = []

    async with actors.monitor(ref) as down, trio.open_nursery() as nursery:

        async def wait() -> None:
            told.append(await down.wait())

        for _ in range(3):
            nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        with trio.move_on_after(0):
            await down.wait()
        ref.stop()

    assert len(told) == 3


async def test_a_monitor_is_correct_when_cancelled_at_each_step(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)

    async def watch() -> None:
        async with actors.monitor(ref) as down:
            with trio.move_on_after(0):
                await down.wait()

    await cancel_at_each_step(watch)
    ref.stop()

    assert (await ref.wait_stopped()).ending is Ending.STOPPED


async def test_an_actor_that_watches_another_is_told_once_through_the_control_lane(root: Supervisor) -> None:
    log: list[Any] = []

    class Watcher(Hooked):
        async def started(self) -> None:
            await super().started()
            self.watch(watched)
            self.watch(watched)

    watched = await actors.spawn(root, Counter, name="watched")
    watcher = await actors.spawn(root, Watcher, log)
    watcher.tell_nowait(Boom())  # Its next generation wishes the same again, and is still told once.
    await watcher.ask(Total())
    watched.stop()
    await watched.wait_stopped()
    await watcher.ask(Total())

    assert [entry.name for entry in log if isinstance(entry, Down)] == ["watched"]


async def test_a_watcher_that_is_gone_is_forgotten_by_the_one_it_watched(root: Supervisor) -> None:
    watched = await actors.spawn(root, Counter, name="watched")

    class Watcher(Counter):
        async def started(self) -> None:
            self.watch(watched)

    for number in range(3):
        watcher = await actors.spawn(root, Watcher, name=f"watcher {number}")
        watcher.stop()
        await watcher.wait_stopped()
    seat = seat_behind(watched)

    assert not seat.watchers


async def test_an_actor_cannot_wait_at_a_monitor_of_itself(root: Supervisor) -> None:
    class Narcissus(Counter):
        async def handle(self, message: Understood) -> Any:
            async with actors.monitor(self.reference) as down:
                return await down.wait()

    ref = await actors.spawn(root, Narcissus)

    with pytest.raises(WaitsForItself):
        await ref.ask(Total())


# --- what a reference holds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["stop", "crash", "ask and crash"])
async def test_a_reference_does_not_hold_the_actor(root: Supervisor, end: str) -> None:
    born: list[weakref.ref[Any]] = []

    def make() -> Counter:
        actor = Counter()
        born.append(weakref.ref(actor))
        return actor

    ref = await actors.spawn(root, make, restart=Restart.TEMPORARY)
    if end == "stop":
        ref.stop()
    elif end == "crash":
        ref.tell_nowait(Boom())
    else:
        with pytest.raises(ValueError, match="boom"):
            await ref.ask(Boom())
    await ref.wait_stopped()
    await wait_all_tasks_blocked()
    gc.collect()

    assert born[0]() is None
    assert ref.gone


async def test_an_idle_actor_keeps_neither_its_last_message_nor_its_last_answer(root: Supervisor) -> None:
    class Parcel(actors.Question[Any]):
        pass

    class Echo(actors.Actor[Parcel]):
        async def handle(self, message: Parcel) -> Any:
            return message

    ref = await actors.spawn(root, Echo)
    parcel = Parcel.__new__(type("Weak", (Parcel,), {}))
    witness = weakref.ref(parcel)
    assert await ref.ask(parcel, timeout_s=math.inf) is parcel
    del parcel
    await wait_all_tasks_blocked()
    gc.collect()

    assert witness() is None


async def test_references_to_one_actor_are_equal(root: Supervisor) -> None:
    class Known(Counter):
        async def handle(self, message: Understood) -> Any:
            return self.reference

    ref = await actors.spawn(root, Known)
    other = await actors.spawn(root, Counter)

    itself = await ref.ask(Total())

    assert itself == ref
    assert len({ref, itself, other}) == 2


async def test_an_actor_is_an_ordinary_child_among_others(root: Supervisor) -> None:
    async def idle(*, task_status: Any) -> None:
        task_status.started()
        await trio.sleep_forever()

    await root.start_child(ChildSpec("idle", idle))
    await actors.spawn(root, Counter)

    assert [child.name for child in root.children()] == ["idle", "Counter"]


async def test_a_monitor_that_is_not_open_is_not_waited_for_in_vain(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, name="clerk")

    with pytest.raises(actors.MonitorNotOpen, match="no notice can come: `async with monitor"):
        await actors.monitor(ref).wait()


async def test_who_waits_at_a_monitor_that_is_left_is_told(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, name="clerk")
    told: list[type[Exception]] = []

    async def wait(down: actors.Monitor) -> None:
        try:
            await down.wait()
        except actors.MonitorNotOpen as error:
            told.append(type(error))

    async with trio.open_nursery() as nursery, actors.monitor(ref) as down:
        nursery.start_soon(wait, down)
        await wait_all_tasks_blocked()

    assert told == [actors.MonitorNotOpen]


class Raiser(actors.Actor[Add]):
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def handle(self, message: Add) -> None:
        raise self.error


async def test_a_task_that_once_caught_an_error_lives_on_when_an_actor_dies_of_it(root: Supervisor) -> None:
    kept: list[Exception] = []
    went_on = trio.Event()
    go_on = trio.Event()

    async def broken() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("first raised elsewhere")

    async def holder() -> None:
        try:
            await broken()
        except ValueError as error:
            kept.append(error)
        await go_on.wait()
        went_on.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(holder)
        await wait_all_tasks_blocked()
        ref = await actors.spawn(root, Raiser, kept[0], restart=Restart.TEMPORARY)
        ref.tell_nowait(Add(1))
        await ref.wait_stopped()
        go_on.set()

    assert went_on.is_set()
