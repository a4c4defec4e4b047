"""Children are started in the task that asks, wherever the system allows it, and waited for in any case."""

import os
from collections.abc import Callable
from functools import partial

import pytest
import trio

from actors.executor._spawning import Child, Spawner
from tests.support.skips import needs_system


async def _spawn(spawner: Spawner, code: int = 0) -> Child:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        return await spawner.spawn(
            ("sh", "-c", f"exit {code}"),
            executable="/bin/sh",
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            env={},
            cwd="/",
        )
    finally:
        os.close(nothing)


@pytest.mark.parametrize("make", [Spawner, partial(Spawner, in_task=False)], ids=["usual", "by trio"])
async def test_a_child_is_waited_for_and_may_be_again(make: Callable[[], Spawner]) -> None:
    child = await _spawn(make(), code=3)

    assert await child.wait() == 3
    assert await child.wait() == 3


@needs_system(hasattr(os, "pidfd_open"), "a handle for processes")
async def test_a_child_without_a_handle_is_waited_for_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int) -> int:
        raise OSError("no more descriptors")

    monkeypatch.setattr(os, "pidfd_open", refuse)

    child = await _spawn(Spawner(in_task=True), code=4)

    assert await child.wait() == 4
    assert await child.wait() == 4


async def test_a_wait_that_is_cancelled_can_be_made_again() -> None:
    child = await _spawn(Spawner())

    with trio.move_on_after(0) as scope:
        await child.wait()
    assert scope.cancelled_caught
    assert await child.wait() == 0


async def test_a_crowd_of_starts_lets_others_have_a_turn() -> None:
    """Seen to fail with `_IN_A_ROW = 1000`."""
    spawner = Spawner(in_task=True)
    turns = 0

    async def start_one() -> None:
        await (await _spawn(spawner)).wait()

    async with trio.open_nursery() as crowd:
        for _ in range(20):
            crowd.start_soon(start_one)
        while spawner.started < 20:
            await trio.lowlevel.checkpoint()
            turns += 1

    assert turns > 10
