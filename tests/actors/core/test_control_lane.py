"""Overflow never throws away the message that mattered."""

import contextlib
import random
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import actors
from actors import ActorsError, AskTimedOut, Down, Ending, LeftBehind, Mailbox, MailboxDeadlock, MailboxFull, WhenFull
from supervision import Supervisor
from tests.actors.core.troupe import Add, Counter, Decline, Hold, Hooked, Total, Understood


@pytest.mark.parametrize("when_full", WhenFull)
async def test_a_terminal_message_overtakes_a_full_mailbox_under_every_policy(
    root: Supervisor, when_full: WhenFull
) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Counter, 0, log, mailbox=Mailbox(capacity=1, when_full=when_full))
    hold = Hold()
    ref.tell_nowait(hold)
    await hold.begun.wait()
    ref.tell_nowait(Add(1))

    for number in (10, 20, 30):
        ref.tell_terminal(Add(number))
    waiting = ref.statistics()
    hold.until.set()
    await wait_all_tasks_blocked()

    assert log == [hold, Add(10), Add(20), Add(30), Add(1)]
    assert (waiting.control_queued, waiting.queued) == (3, 1)
    assert ref.statistics().control_peak == 3


async def test_a_terminal_message_told_before_a_stop_is_handled_before_it(root: Supervisor) -> None:
    log: list[Any] = []
    ref = await actors.spawn(root, Counter, 0, log)
    ref.tell_nowait(Add(1))

    ref.tell_terminal(Add(2))
    ref.stop()
    await ref.wait_stopped()

    assert log == [Add(2)]


async def test_a_refusal_of_a_terminal_message_is_counted(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)

    ref.tell_terminal(Decline())

    assert await ref.ask(Total()) == 0
    assert ref.statistics().refusals_unheard == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("when_full", WhenFull)
async def test_of_a_thousand_senders_to_a_busy_actor_none_is_left_without_an_end(
    root: Supervisor, autojump_clock: MockClock, when_full: WhenFull, seed: int
) -> None:
    """Plain messages, questions, notices of an end and stops, mixed; the actor is busy and its mailbox small."""
    log: list[Any] = []

    class Watcher(Hooked):
        async def started(self) -> None:
            for child in watched:
                self.watch(child)

        async def handle(self, message: Understood) -> Any:
            await super().handle(message)
            return 1

    watched = [await actors.spawn(root, Counter, name=f"watched {number}") for number in range(5)]
    ref = await actors.spawn(root, Watcher, log, mailbox=Mailbox(capacity=10, when_full=when_full), shutdown_s=60)
    hold = Hold()
    ref.tell_nowait(hold)
    await hold.begun.wait()
    ends: list[str] = []

    async def ask() -> None:
        try:
            ends.append(f"answered {await ref.ask(Total())}")
        except ActorsError as error:
            ends.append(type(error).__name__)

    async def tell(number: int) -> None:
        with contextlib.suppress(LeftBehind, MailboxFull):
            await ref.tell(Add(number))

    async with trio.open_nursery() as nursery:
        senders: list[Any] = [lambda number=number: tell(number) for number in range(980)]
        senders += [ask] * 10 + [self_stop(other) for other in watched]
        random.Random(seed).shuffle(senders)
        for sender in senders:
            nursery.start_soon(sender)
        await wait_all_tasks_blocked()
        full = ref.statistics()
        # The actor is busy until now; its control lane goes first when it is free.
        hold.until.set()
        await wait_all_tasks_blocked()
        for _ in range(5):
            ref.stop()
    await ref.wait_stopped()
    notices = [entry for entry in log if isinstance(entry, Down)]
    first_user = next((index for index, entry in enumerate(log) if isinstance(entry, Add)), len(log))

    assert full.queued <= 10
    assert len(ends) == 10
    assert set(ends) <= {"answered 1", "MailboxFull", "LeftBehind", "AskTimedOut"}
    assert sorted(notice.name for notice in notices) == sorted(child.name for child in watched)
    assert all(index < first_user for index, entry in enumerate(log) if isinstance(entry, Down))
    if when_full in {WhenFull.DROP_NEWEST, WhenFull.DROP_OLDEST}:
        assert ref.statistics().dropped > 900
    if when_full is WhenFull.FAIL:
        assert ref.statistics().refused > 900


def self_stop(ref: actors.Address) -> Any:
    async def stop() -> None:
        ref.stop()

    return stop


# --- two actors that wait for each other ----------------------------------------------------------------------------


class Chatty(actors.Actor[Understood]):
    """Answers every message with two to its friend, waiting for room."""

    def __init__(self, friends: dict[str, actors.Reference[Understood]], friend: str, errors: list[Any]) -> None:
        self.friends, self.friend, self.errors = friends, friend, errors

    async def handle(self, message: Understood) -> None:
        if isinstance(message, Hold):
            await message.until.wait()
        try:
            for _ in range(2):
                await self.friends[self.friend].tell(Add(1))
        except MailboxDeadlock as error:
            self.errors.append(error)
            raise


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c", "d")])
async def test_actors_in_a_ring_of_full_mailboxes_are_told_of_the_deadlock(
    root: Supervisor, names: tuple[str, ...]
) -> None:
    friends: dict[str, actors.Reference[Understood]] = {}
    errors: list[MailboxDeadlock] = []
    for number, name in enumerate(names):
        friend = names[(number + 1) % len(names)]
        friends[name] = await actors.spawn(
            root, Chatty, friends, friend, errors, name=name, mailbox=Mailbox(capacity=1)
        )

    with trio.move_on_after(30):
        for ref in friends.values():
            ref.tell_nowait(Add(1))
        while not errors:
            await trio.lowlevel.checkpoint()
    for ref in friends.values():
        ref.stop()

    assert errors[0].message == Add(1)
    assert len(errors[0].ring) == len(names)
    assert "ring" in str(errors[0])
    for ref in friends.values():
        assert (await ref.wait_stopped()).ending in {Ending.STOPPED, Ending.CRASHED}


async def test_an_actor_that_tells_itself_into_its_own_full_mailbox_is_told_of_the_deadlock(root: Supervisor) -> None:
    class Narcissus(Counter):
        async def handle(self, message: Understood) -> Any:
            if isinstance(message, Hold):
                for _ in range(3):
                    await self.reference.tell(Add(1))
            return await super().handle(message)

    ref = await actors.spawn(root, Narcissus, mailbox=Mailbox(capacity=2))

    with pytest.raises(MailboxDeadlock) as deadlock:
        await ref.ask(Hold())

    assert deadlock.value.message == Add(1)
    assert await ref.ask(Total()) == 2


async def test_actors_that_ask_each_other_end_by_their_timeouts(root: Supervisor, autojump_clock: MockClock) -> None:
    friends: dict[str, actors.Reference[Understood]] = {}
    errors: list[AskTimedOut] = []

    class Curious(Counter):
        def __init__(self, friend: str) -> None:
            super().__init__()
            self.friend = friend

        async def handle(self, message: Understood) -> Any:
            try:
                return await friends[self.friend].ask(Total())
            except AskTimedOut as error:
                errors.append(error)

    friends["a"] = await actors.spawn(root, Curious, "b", name="a")
    friends["b"] = await actors.spawn(root, Curious, "a", name="b")
    friends["a"].tell_nowait(Total())
    await trio.sleep(60)

    assert len(errors) == 2
    assert {error.taken for error in errors} == {True, False}
