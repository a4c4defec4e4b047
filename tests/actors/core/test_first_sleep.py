"""An actor that has had no mail yet sleeps outside of its cancel scope, and nobody can tell."""

from typing import Any

import pytest
import trio
import trio.testing

import actors
from actors import Actor, Question, Reference
from supervision import Restart, StartTimedOut, Supervisor, open_root


class Nap(Question[str]):
    """Be asked to sleep for ever."""


class Quiet(Actor[Nap]):
    def __init__(self, log: list[str]) -> None:
        self.log = log

    async def handle(self, message: Nap) -> str:
        try:
            await trio.sleep_forever()
        finally:
            self.log.append("handler cancelled")


class SlowToStop(Quiet):
    async def stopping(self, cause: Exception | None) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.log.append("clean-up cancelled")


class SlowToStart(Quiet):
    async def started(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.log.append("start cancelled")


@pytest.mark.parametrize("restart", [Restart.TEMPORARY, Restart.PERMANENT])
async def test_one_that_had_no_mail_is_killed_at_once(root: Supervisor, restart: Restart) -> None:
    ref = await actors.spawn(root, Quiet, [], name="quiet", restart=restart, shutdown_s=0)
    await root.stop_child("quiet")

    notice = await ref.wait_stopped()
    assert notice.ending is actors.Ending.KILLED
    assert ref.generation == 1


async def test_one_that_had_no_mail_is_killed_while_it_cleans_up(
    root: Supervisor, autojump_clock: trio.testing.MockClock
) -> None:
    log: list[str] = []
    ref = await actors.spawn(root, SlowToStop, log, restart=Restart.TEMPORARY, shutdown_s=1.0)
    ref.stop()

    notice = await ref.wait_stopped()
    assert notice.ending is actors.Ending.KILLED
    assert log == ["clean-up cancelled"]
    assert trio.current_time() == pytest.approx(1.0)


async def test_one_that_had_no_mail_stops_when_asked_and_handles_last_words_first(root: Supervisor) -> None:
    heard: list[str] = []

    class Hears(Actor[str]):
        async def handle(self, message: str) -> None:
            heard.append(message)

    silent, spoken_to = [await actors.spawn(root, Hears, name=name) for name in ("silent", "spoken to")]
    silent.stop()
    spoken_to.tell_terminal("last words")
    spoken_to.stop()

    assert (await silent.wait_stopped()).ending is actors.Ending.STOPPED
    assert (await spoken_to.wait_stopped()).ending is actors.Ending.STOPPED
    assert heard == ["last words"]


async def test_one_whose_first_mail_keeps_it_busy_is_killed(
    root: Supervisor, autojump_clock: trio.testing.MockClock
) -> None:
    log: list[str] = []
    ref = await actors.spawn(root, Quiet, log, restart=Restart.TEMPORARY, shutdown_s=1.0)
    ref.tell_nowait(Nap())
    await trio.testing.wait_all_tasks_blocked()
    ref.stop()

    assert (await ref.wait_stopped()).ending is actors.Ending.KILLED
    assert log == ["handler cancelled"]


async def test_mail_and_a_kill_in_the_same_step_end_in_the_kill(root: Supervisor) -> None:
    log: list[str] = []
    ref = await actors.spawn(root, Quiet, log, name="quiet", restart=Restart.TEMPORARY, shutdown_s=0)
    ref.tell_nowait(Nap())
    await root.stop_child("quiet")

    assert (await ref.wait_stopped()).ending is actors.Ending.KILLED
    assert log in ([], ["handler cancelled"])


async def test_a_start_that_waits_is_inside_of_the_scope(
    root: Supervisor, autojump_clock: trio.testing.MockClock
) -> None:
    log: list[str] = []
    with pytest.raises(StartTimedOut):
        await actors.spawn(root, SlowToStart, log, start_timeout_s=1.0)

    assert log == ["start cancelled"]


async def test_a_start_that_is_put_on_the_instance_is_awaited_too(root: Supervisor) -> None:
    log: list[str] = []

    class Made(Quiet):
        def __init__(self, log: list[str]) -> None:
            super().__init__(log)

            async def started() -> None:
                await trio.lowlevel.checkpoint()
                log.append("started")

            self.started: Any = started  # type: ignore[assignment]

    await actors.spawn(root, Made, log)

    assert log == ["started"]


async def test_a_cancelled_root_ends_those_that_had_no_mail() -> None:
    refs: list[Reference[Nap]] = []
    with trio.CancelScope() as scope:
        async with open_root() as root:
            pool = await root.start_pool("pool")
            refs += [await actors.spawn(pool, Quiet, []) for _ in range(3)]
            scope.cancel()
            await trio.sleep_forever()

    assert [ref.gone for ref in refs] == [True] * 3
