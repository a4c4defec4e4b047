"""Asking: every question ends in a value, an error of the handler, or the news that the actor is gone."""

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import actors
from actors import (
    ActorGone,
    ActorsError,
    AsksFailed,
    AskTimedOut,
    InvalidOption,
    LeftBehind,
    Mailbox,
    WaitsForItself,
    WhenFull,
)
from supervision import Restart, Shutdown, Supervisor
from tests.actors.core.troupe import Add, Boom, Counter, Decline, Declined, Hold, Total, Understood
from tests.support.cancelling import cancel_at_each_step


async def test_an_ask_ends_in_the_value_that_the_handler_returned(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, 41)

    ref.tell_nowait(Add(1))

    assert await ref.ask(Total()) == 42


async def test_the_error_of_a_handler_reaches_asker_and_supervisor_and_the_reference_lives_on(
    root: Supervisor,
) -> None:
    ref = await actors.spawn(root, Counter, 41)
    ref.tell_nowait(Add(1))

    with pytest.raises(ValueError, match=r"^boom$"):
        await ref.ask(Boom())

    assert await ref.ask(Total()) == 41
    assert ref.generation == 2


async def test_a_refusal_answers_and_the_actor_lives_on(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)

    with pytest.raises(Declined):
        await ref.ask(Decline())
    ref.tell_nowait(Decline())
    await ref.ask(Total())

    assert ref.generation == 1
    assert ref.statistics().refusals_unheard == 1
    assert ref.statistics().handled == 3


async def test_an_ask_has_an_end_by_default(root: Supervisor, autojump_clock: MockClock) -> None:
    ref = await actors.spawn(root, Counter)
    begun_s = trio.current_time()

    with pytest.raises(AskTimedOut) as late:
        await ref.ask(Hold())

    assert trio.current_time() - begun_s == pytest.approx(actors.ASK_TIMEOUT_S)
    assert late.value.taken
    assert isinstance(late.value, TimeoutError)
    assert "within 5 s (ask's timeout_s)" in str(late.value)
    assert "being worked on" in str(late.value)


async def test_a_late_answer_is_counted_and_hurts_nobody(root: Supervisor, autojump_clock: MockClock) -> None:
    ref = await actors.spawn(root, Counter, 7)
    hold = Hold()

    with pytest.raises(AskTimedOut):
        await ref.ask(hold, timeout_s=1)
    hold.until.set()

    assert await ref.ask(Total()) == 7
    assert ref.statistics().late_replies == 1
    assert ref.generation == 1


async def test_a_question_that_times_out_in_the_mailbox_is_withdrawn(
    root: Supervisor, autojump_clock: MockClock
) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Counter, 0, log)
    hold = Hold()
    ref.tell_nowait(hold)

    with pytest.raises(AskTimedOut) as late:
        await ref.ask(Boom(), timeout_s=1)
    hold.until.set()

    assert not late.value.taken
    assert "withdrawn" in str(late.value)
    assert await ref.ask(Total()) == 0
    assert log == [hold, Total()]
    assert ref.statistics().withdrawn == 1


async def test_timeouts_of_many_lengths_end_each_at_its_own_time(root: Supervisor, autojump_clock: MockClock) -> None:
    ref = await actors.spawn(root, Counter)
    begun_s = trio.current_time()
    ended: dict[float, float] = {}

    async def ask(timeout_s: float) -> None:
        with pytest.raises(AskTimedOut):
            await ref.ask(Hold(), timeout_s=timeout_s)
        ended[timeout_s] = trio.current_time() - begun_s

    async with trio.open_nursery() as nursery:
        for timeout_s in (7, 0.5, 5, 1, 0, 3.25):
            nursery.start_soon(ask, timeout_s)

    assert ended == pytest.approx({timeout_s: timeout_s for timeout_s in ended})
    assert len(ended) == 6


async def test_an_ask_that_was_answered_is_never_ended_again(root: Supervisor, autojump_clock: MockClock) -> None:
    """Mutant killed: the loop leaves `task` set, and the sweeper wakes the asker where it sleeps next."""
    ref = await actors.spawn(root, Counter, 7)

    answers = [await ref.ask(Total(), timeout_s=timeout_s) for timeout_s in (5, 1, 0.5)]
    answers += await actors.ask_all(ref, [Total()], timeout_s=2)
    await trio.sleep(60)

    assert answers == [7, 7, 7, 7]


async def test_an_ask_may_wait_for_ever_if_told_so(root: Supervisor, autojump_clock: MockClock) -> None:
    ref = await actors.spawn(root, Counter)
    hold = Hold()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: ref.ask(hold, timeout_s=math.inf))
        await trio.sleep(80_000)
        hold.until.set()

    assert ref.statistics().handled == 1


@pytest.mark.parametrize("timeout_s", [-1, math.nan])
async def test_a_timeout_that_is_no_time_is_refused_and_nothing_is_sent(root: Supervisor, timeout_s: float) -> None:
    ref = await actors.spawn(root, Counter)

    with pytest.raises(InvalidOption):
        await ref.ask(Boom(), timeout_s=timeout_s)
    with pytest.raises(InvalidOption):
        await actors.ask_all(ref, [Boom()], timeout_s=timeout_s)

    assert await ref.ask(Total()) == 0


async def test_a_cancelled_asker_does_not_hurt_the_actor(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, 3)
    hold = Hold()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ref.ask, hold)
        await hold.begun.wait()
        nursery.cancel_scope.cancel()
    hold.until.set()

    assert await ref.ask(Total()) == 3
    assert ref.statistics().late_replies == 1


async def test_an_ask_is_correct_when_cancelled_at_each_step(root: Supervisor) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Counter, 0, log)

    async def check() -> None:
        assert await ref.ask(Total()) == 0

    runs = await cancel_at_each_step(lambda: ref.ask(Total()), check=check)

    # Cancelled before it was taken: withdrawn. Cancelled when the answer was on its way: the answer stands.
    assert runs == 3
    assert ref.statistics().withdrawn == 1
    assert len(log) == (runs - 1) + runs


async def test_asking_a_busy_actor_is_correct_when_cancelled_at_each_step(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, mailbox=Mailbox(capacity=1))
    hold = Hold()
    ref.tell_nowait(hold)
    await hold.begun.wait()
    ref.tell_nowait(Add(1))

    async def ask_in_line() -> None:
        with trio.move_on_after(0):
            await ref.ask(Total())

    async def nobody_is_in_line() -> None:
        assert ref.statistics().in_line == 0

    await cancel_at_each_step(ask_in_line, check=nobody_is_in_line)
    hold.until.set()

    assert await ref.ask(Total()) == 1


async def test_an_actor_that_asks_itself_is_told_why_that_cannot_work(root: Supervisor) -> None:
    class Narcissus(Counter):
        async def handle(self, message: Understood) -> Any:
            if isinstance(message, Decline):
                return await self.reference.ask(Total())
            if isinstance(message, Boom):
                return await actors.ask_all(self.reference, [Total(), Total()])
            if isinstance(message, Hold):
                return await self.reference.wait_stopped()
            return await super().handle(message)

    ref = await actors.spawn(root, Narcissus, restart=Restart.PERMANENT)

    with pytest.raises(WaitsForItself, match="asks itself"):
        await ref.ask(Decline())
    with pytest.raises(AsksFailed) as failed:
        await ref.ask(Boom())
    with pytest.raises(WaitsForItself, match="its own end"):
        await ref.ask(Hold())

    assert failed.group_contains(WaitsForItself)
    assert await ref.ask(Total()) == 0


async def test_every_waiting_asker_learns_of_the_end_in_the_same_step(root: Supervisor) -> None:
    """Nobody waits for a timeout: the clock does not move."""
    ref = await actors.spawn(root, Counter, restart=Restart.TEMPORARY)
    errors: list[tuple[int, Exception, bool]] = []
    hold = Hold()
    ref.tell_nowait(hold)

    async def ask(number: int) -> None:
        try:
            await ref.ask(Boom() if number == 0 else Total())
        except (ActorsError, ValueError) as error:
            errors.append((number, error, ref.gone))

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(ask, number)
            await wait_all_tasks_blocked()
        hold.until.set()

    by_number = {number: error for number, error, _ in errors}
    assert all(gone for *_, gone in errors)
    assert isinstance(by_number[0], ValueError)
    assert [type(by_number[number]) for number in (1, 2, 3)] == [LeftBehind] * 3
    assert {error.__cause__ for number, error in by_number.items() if number} == {by_number[0]}


async def test_an_asker_whose_actor_is_killed_on_it_learns_that_it_is_gone(
    root: Supervisor, autojump_clock: MockClock
) -> None:
    ref = await actors.spawn(root, Counter, shutdown_s=2)
    hold = Hold()
    errors: list[ActorGone] = []

    async def ask() -> None:
        with pytest.raises(ActorGone) as gone:
            await ref.ask(hold, timeout_s=math.inf)
        errors.append(gone.value)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await hold.begun.wait()
        ref.stop()
        down = await ref.wait_stopped()

    assert not isinstance(errors[0], LeftBehind)
    assert errors[0].message is hold
    assert errors[0].__cause__ is None  # A cancellation belongs to its own task.
    assert down.ending is actors.Ending.KILLED


async def test_a_handler_that_shuts_its_actor_down_tells_its_asker_that_it_is_gone(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, restart=Restart.TRANSIENT)

    with pytest.raises(ActorGone) as gone:
        await ref.ask(Boom(Shutdown("enough")))
    down = await ref.wait_stopped()

    assert isinstance(gone.value.__cause__, Shutdown)
    assert down.ending is actors.Ending.STOPPED


async def test_asking_an_actor_that_is_gone_fails_at_once(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)
    ref.stop()

    with pytest.raises(LeftBehind, match="stopping"):
        await ref.ask(Total())
    await ref.wait_stopped()
    with pytest.raises(LeftBehind, match="gone"):
        await ref.ask(Total())


# --- many at once ---------------------------------------------------------------------------------------------------


async def test_many_questions_to_one_actor_are_answered_in_their_order(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, 5)

    answers = await actors.ask_all(ref, [Total() for _ in range(100)])

    assert answers == [5] * 100


async def test_many_questions_to_many_actors_are_answered_in_their_order(root: Supervisor) -> None:
    refs = [await actors.spawn(root, Counter, number, name=f"counter {number}") for number in range(5)]

    answers = await actors.ask_all(refs, [Total()] * 5)

    assert answers == [0, 1, 2, 3, 4]


async def test_asking_nobody_anything_gives_nothing_and_still_checks_for_cancellation(root: Supervisor) -> None:
    with trio.testing.assert_checkpoints():
        assert await actors.ask_all([], []) == []


async def test_there_must_be_an_actor_for_each_question(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)

    with pytest.raises(InvalidOption, match="one for each of the 2 questions"):
        await actors.ask_all([ref], [Total(), Total()])


async def test_more_questions_than_the_mailbox_holds_stand_in_line(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, 5, mailbox=Mailbox(capacity=3))

    answers = await actors.ask_all(ref, [Total()] * 50)

    assert answers == [5] * 50
    assert ref.statistics().queued_peak == 3


async def test_failures_among_many_questions_come_together_with_the_answers(root: Supervisor) -> None:
    good = await actors.spawn(root, Counter, 5, name="good")
    bad = await actors.spawn(root, Counter, name="bad", mailbox=Mailbox(when_full=WhenFull.FAIL))
    gone = await actors.spawn(root, Counter, name="gone")
    gone.stop()

    with pytest.raises(AsksFailed) as failed:
        await actors.ask_all([good, bad, gone, good], [Total(), Boom(), Total(), Total()])

    outcomes = failed.value.outcomes
    assert (outcomes[0], outcomes[3]) == (5, 5)
    assert [type(error) for error in failed.value.exceptions] == [ValueError, LeftBehind]
    assert isinstance(failed.value, ActorsError)
    assert "2 of 4" in str(failed.value)


async def test_when_all_of_many_questions_fail_at_once_nobody_waits(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)
    ref.stop()

    with pytest.raises(AsksFailed) as failed:
        await actors.ask_all(ref, [Total(), Total()])

    assert len(failed.value.exceptions) == 2


async def test_many_questions_end_together_when_their_time_is_up(root: Supervisor, autojump_clock: MockClock) -> None:
    quick = await actors.spawn(root, Counter, 5, name="quick")
    stuck = await actors.spawn(root, Counter, name="stuck")

    with pytest.raises(AsksFailed) as failed:
        await actors.ask_all([quick, stuck, stuck], [Total(), Hold(), Total()], timeout_s=2)

    first, taken, waiting = failed.value.outcomes
    assert first == 5
    assert isinstance(taken, AskTimedOut)
    assert isinstance(waiting, AskTimedOut)
    assert (taken.taken, waiting.taken) == (True, False)


async def test_many_questions_are_correct_when_cancelled_at_each_step(root: Supervisor) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Counter, 0, log, mailbox=Mailbox(capacity=2))

    async def nothing_waits() -> None:
        statistics = ref.statistics()
        assert (statistics.queued, statistics.in_line) == (0, 0)

    runs = await cancel_at_each_step(lambda: actors.ask_all(ref, [Total()] * 5), check=nothing_waits)

    # Only the run that was cancelled before it began was withdrawn; its two in the mailbox are counted.
    assert log.count(Total()) == 5 * (runs - 1)
    assert ref.statistics().withdrawn == 2
