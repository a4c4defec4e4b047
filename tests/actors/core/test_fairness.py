"""One actor's diligence is not another's hunger."""

from typing import Any

import pytest
import trio

import actors
from actors._loop import BATCH, SMALL_BATCH
from supervision import Supervisor, open_root
from tests.actors.core.troupe import Add, Counter, Total


class Flood(Counter):
    """Feeds itself for ever."""

    async def handle(self, message: Any) -> Any:
        self.reference.tell_nowait(message)
        return await super().handle(message)


async def test_an_actor_that_feeds_itself_lets_others_have_their_turn(root: Supervisor) -> None:
    """Mutants: every batch is whole; others are forgotten after one turn."""
    flood = await actors.spawn(root, Flood, name="flood")
    quiet = await actors.spawn(root, Counter, 5, name="quiet")
    flood.tell_nowait(Add(0))
    assert await quiet.ask(Total()) == 5  # From here on the flood has seen that others are awake.
    assert await quiet.ask(Total()) == 5

    before = flood.statistics().handled
    for _ in range(10):
        assert await quiet.ask(Total()) == 5
    after = flood.statistics().handled
    flood.stop()

    # Two turns of the run an ask, and a small batch a turn; one more where the order of tasks has changed.
    assert 0 < after - before <= (10 * 2 + 1) * SMALL_BATCH


async def test_an_actor_that_is_alone_takes_whole_batches(root: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes here, since on a busy machine the slice of time may end a batch early. Mutant: each is small."""
    monkeypatch.setattr("actors._loop.perf_counter", lambda: 0.0)
    flood = await actors.spawn(root, Flood, name="flood")
    flood.tell_nowait(Add(0))
    for _ in range(3):
        await trio.lowlevel.checkpoint()

    before = flood.statistics().handled
    for _ in range(10):
        await trio.lowlevel.checkpoint()
    after = flood.statistics().handled
    flood.stop()

    assert after - before >= 9 * BATCH


async def test_an_actor_with_much_mail_can_be_cancelled_between_batches() -> None:
    with trio.move_on_after(0.2) as scope:
        async with open_root(name="root") as root:
            flood = await actors.spawn(root, Flood, shutdown_s=0)
            flood.tell_nowait(Add(0))
            await trio.sleep_forever()

    assert scope.cancelled_caught
    assert flood.gone
