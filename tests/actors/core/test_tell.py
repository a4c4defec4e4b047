"""Telling: order, room, policies, and mail that comes back."""

from typing import Any

import pytest
import trio
from trio.testing import assert_checkpoints, assert_no_checkpoints, wait_all_tasks_blocked

import actors
from actors import ActorGone, LeftBehind, Mailbox, MailboxFull, Undelivered, WhenFull
from supervision import Restart, Supervisor
from tests.actors.core.troupe import Add, Boom, Counter, Hold, Total, Understood
from tests.support.cancelling import cancel_at_each_step


async def busy(
    root: Supervisor, *, capacity: int, when_full: WhenFull, log: list[Any] | None = None
) -> tuple[actors.Reference[Understood], Hold]:
    """An actor that is held by its first message, so that its mailbox fills."""
    hold = Hold()
    ref = await actors.spawn(root, Counter, 0, log, mailbox=Mailbox(capacity=capacity, when_full=when_full))
    ref.tell_nowait(hold)
    await hold.begun.wait()
    return ref, hold


async def test_messages_are_handled_in_the_order_they_were_told(root: Supervisor) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Counter, 0, log)

    for number in range(200):
        ref.tell_nowait(Add(number))
    total = await ref.ask(Total())

    assert total == sum(range(200))
    assert log[:200] == [Add(number) for number in range(200)]


async def test_telling_at_once_never_waits_and_telling_always_checks_for_cancellation(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)

    with assert_no_checkpoints():
        ref.tell_nowait(Add(1))
        ref.tell_terminal(Add(1))
    with assert_checkpoints():
        await ref.tell(Add(1))

    assert await ref.ask(Total()) == 3


async def test_mail_sent_before_the_actor_is_up_is_handled_after_its_start_in_order(root: Supervisor) -> None:
    log: list[Any] = []

    class Slow(Counter):
        async def started(self) -> None:
            log.append("starting")
            await wait_all_tasks_blocked()
            log.append("up")

    ref = actors.spawn_nowait(root, Slow, 0, log)
    ref.tell_nowait(Add(1))
    ref.tell_nowait(Add(2))
    total = await ref.ask(Total())

    assert total == 3
    assert log == ["starting", "up", Add(1), Add(2), Total()]


async def test_mail_sent_before_a_start_that_fails_comes_back(root: Supervisor) -> None:
    broken = OSError("no licence")

    class Broken(Counter):
        async def started(self) -> None:
            await wait_all_tasks_blocked()
            raise broken

    ref = actors.spawn_nowait(root, Broken, restart=Restart.TEMPORARY)
    ref.tell_nowait(Add(1))
    with pytest.raises(LeftBehind) as left:
        await ref.ask(Total())

    assert left.value.message == Total()
    assert left.value.__cause__ is broken
    assert ref.statistics().dropped == 1
    assert ref.gone


async def test_a_full_mailbox_that_waits_refuses_who_cannot(root: Supervisor) -> None:
    ref, hold = await busy(root, capacity=2, when_full=WhenFull.WAIT)
    ref.tell_nowait(Add(1))
    ref.tell_nowait(Add(2))

    with pytest.raises(MailboxFull) as full:
        ref.tell_nowait(Add(3))
    hold.until.set()

    assert full.value.message == Add(3)
    assert full.value.capacity == 2
    assert "Counter" in str(full.value)
    assert "tell_nowait() waits for no room" in str(full.value)
    assert await ref.ask(Total()) == 3
    assert ref.statistics().refused == 1


async def test_those_who_wait_for_room_get_it_in_the_order_they_came(root: Supervisor) -> None:
    log: list[Any] = []
    ref, hold = await busy(root, capacity=1, when_full=WhenFull.WAIT, log=log)
    ref.tell_nowait(Add(0))

    async with trio.open_nursery() as nursery:
        for number in range(1, 6):
            nursery.start_soon(ref.tell, Add(number))
            await wait_all_tasks_blocked()
        in_line = ref.statistics().in_line
        with pytest.raises(MailboxFull):
            ref.tell_nowait(Add(99))
        hold.until.set()

    assert in_line == 5
    assert await ref.ask(Total()) == 15
    assert log[1:7] == [Add(number) for number in range(6)]


async def test_a_question_stands_in_the_same_line_as_what_is_told(root: Supervisor) -> None:
    ref, hold = await busy(root, capacity=1, when_full=WhenFull.WAIT)
    ref.tell_nowait(Add(1))
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await ref.ask(Total()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ref.tell, Add(10))
        await wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        nursery.start_soon(ref.tell, Add(100))
        await wait_all_tasks_blocked()
        hold.until.set()

    assert answers == [11]
    assert await ref.ask(Total()) == 111


async def test_a_sender_cancelled_in_line_has_sent_nothing_and_left_no_place_behind(root: Supervisor) -> None:
    ref, hold = await busy(root, capacity=1, when_full=WhenFull.WAIT)
    ref.tell_nowait(Add(1))

    for _ in range(20):
        with trio.move_on_after(0) as scope:
            await ref.tell(Add(100))
        assert scope.cancelled_caught
    in_line = ref.statistics().in_line
    hold.until.set()

    assert in_line == 0
    assert await ref.ask(Total()) == 1


async def test_telling_cancelled_at_each_step_tells_once_or_not_at_all(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)
    returned = 0

    async def tell() -> None:
        nonlocal returned
        await ref.tell(Add(1))
        returned += 1

    async def told_is_what_returned() -> None:
        assert await ref.ask(Total()) == returned

    runs = await cancel_at_each_step(tell, check=told_is_what_returned)

    assert runs == 3
    assert returned == 2


async def test_waiting_for_room_cancelled_at_each_step_leaves_the_line_empty(root: Supervisor) -> None:
    ref, hold = await busy(root, capacity=1, when_full=WhenFull.WAIT)
    ref.tell_nowait(Add(1))

    async def wait_for_room() -> None:
        with trio.move_on_after(0):
            await ref.tell(Add(100))

    async def nobody_is_in_line() -> None:
        assert ref.statistics().in_line == 0

    await cancel_at_each_step(wait_for_room, check=nobody_is_in_line)
    hold.until.set()

    assert await ref.ask(Total()) == 1


@pytest.mark.parametrize("when_full", [WhenFull.FAIL])
async def test_a_mailbox_that_fails_refuses_also_who_could_wait(root: Supervisor, when_full: WhenFull) -> None:
    ref, hold = await busy(root, capacity=1, when_full=when_full)
    ref.tell_nowait(Add(1))

    with pytest.raises(MailboxFull):
        await ref.tell(Add(2))
    with pytest.raises(MailboxFull):
        await ref.ask(Total())
    hold.until.set()
    await wait_all_tasks_blocked()

    assert await ref.ask(Total()) == 1
    assert ref.statistics().refused == 2


async def test_dropping_the_oldest_counts_it_and_tells_its_asker(root: Supervisor) -> None:
    ref, hold = await busy(root, capacity=2, when_full=WhenFull.DROP_OLDEST)
    errors: list[MailboxFull] = []

    async def ask() -> None:
        with pytest.raises(MailboxFull) as full:
            await ref.ask(Total())
        errors.append(full.value)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        for number in (1, 2, 4):
            ref.tell_nowait(Add(number))
    hold.until.set()
    await wait_all_tasks_blocked()

    assert [error.message for error in errors] == [Total()]
    assert await ref.ask(Total()) == 6
    assert ref.statistics().dropped == 2


async def test_dropping_the_newest_counts_it_and_refuses_a_question(root: Supervisor) -> None:
    ref, hold = await busy(root, capacity=1, when_full=WhenFull.DROP_NEWEST)

    for number in (1, 2, 4):
        await ref.tell(Add(number))
    with pytest.raises(MailboxFull):
        await ref.ask(Total())
    hold.until.set()
    await wait_all_tasks_blocked()

    assert await ref.ask(Total()) == 1
    assert ref.statistics().dropped == 3


async def test_mail_to_an_actor_that_is_gone_comes_back_with_the_message(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, restart=Restart.TEMPORARY)
    crash = ValueError("boom")
    with pytest.raises(ValueError, match="boom"):
        await ref.ask(Boom(crash))

    with pytest.raises(Undelivered) as undelivered:
        ref.tell_nowait(Add(1))
    with pytest.raises(ActorGone):
        await ref.tell(Add(1))
    with pytest.raises(ActorGone):
        ref.tell_terminal(Add(1))

    assert undelivered.value.message == Add(1)
    assert isinstance(undelivered.value, ActorGone)
    assert undelivered.value.__cause__ is crash


async def test_senders_in_line_get_their_message_back_when_the_actor_stops(root: Supervisor) -> None:
    ref, hold = await busy(root, capacity=1, when_full=WhenFull.WAIT)
    ref.tell_nowait(Add(1))
    errors: list[LeftBehind] = []

    async def tell() -> None:
        with pytest.raises(LeftBehind) as left:
            await ref.tell(Add(2))
        errors.append(left.value)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tell)
        await wait_all_tasks_blocked()
        ref.stop()
    dropped = ref.statistics().dropped
    hold.until.set()

    assert [error.message for error in errors] == [Add(2)]
    assert dropped == 1  # The one that was in the mailbox; the other went back to its sender.


async def test_what_the_mailbox_has_seen_is_counted(root: Supervisor) -> None:
    ref, hold = await busy(root, capacity=8, when_full=WhenFull.WAIT)
    for number in range(5):
        ref.tell_nowait(Add(number))
    waiting = ref.statistics()
    hold.until.set()
    await ref.ask(Total())
    after = ref.statistics()

    assert (waiting.capacity, waiting.queued, waiting.handled) == (8, 5, 0)
    assert (after.queued, after.queued_peak, after.handled) == (0, 6, 7)
