"""Waiting for a state of this program and for the end of a process."""

import os
import signal
import subprocess
from functools import partial

import pytest
import trio
import trio.testing

from tests.support.settling import eventually, process_end, until


async def test_it_goes_on_right_after_the_step_that_brought_it(nursery: trio.Nursery) -> None:
    """Mutant killed: it looks again only after a while."""
    seen: list[int] = []

    async def count() -> None:
        for number in range(100):
            seen.append(number)
            await trio.lowlevel.checkpoint()

    nursery.start_soon(count)
    await until(lambda: len(seen) == 3)

    assert len(seen) in {3, 4}, "it may have stepped first in the next turn"


async def test_what_never_comes_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(trio.TooSlowError):
        await until(lambda: False, within_s=3)
    assert trio.current_time() == 3

    with pytest.raises(trio.TooSlowError):
        await eventually(lambda: False, within_s=2)
    assert trio.current_time() == pytest.approx(5)


async def test_an_error_of_the_question_comes_out_of_the_wait(nursery: trio.Nursery) -> None:
    known: dict[str, bool] = {"ready": False}

    async def forget() -> None:
        known.clear()

    nursery.start_soon(forget)
    with pytest.raises(KeyError):
        await until(lambda: known["ready"])


async def test_the_end_of_a_process_is_heard_of_by_whoever_is_no_parent_and_after_it_is_buried(
    nursery: trio.Nursery,
) -> None:
    run = partial(trio.run_process, ["/bin/sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, check=False)
    shell: trio.Process = await nursery.start(run)
    assert shell.stdout is not None
    child = int(await shell.stdout.receive_some())
    with pytest.raises(trio.TooSlowError):
        await process_end(child, within_s=0.01)
    os.kill(child, signal.SIGKILL)
    await process_end(child)
    await shell.wait()
    await process_end(child)

    assert shell.returncode is not None
