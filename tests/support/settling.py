"""Wait for what happens: in this program at the very step, with the system by its own word, and else by asking."""

import os
from collections.abc import Awaitable, Callable

import trio

__all__ = ["eventually", "process_end", "until"]


class _Watch(trio.abc.Instrument):
    """Asks after every step of any task: whatever changes in this program changes in one."""

    def __init__(self, holds: Callable[[], bool]) -> None:
        self.holds, self.answered = holds, trio.Event()
        self.error: Exception | None = None

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        try:
            answered = self.holds()
        except Exception as error:
            self.error, answered = error, True
        if answered:
            self.answered.set()


async def until(holds: Callable[[], bool], *, within_s: float = 20.0) -> None:
    """Wait for a state of this program, and go on right after the step that brought it, also if it does not last."""
    await trio.lowlevel.checkpoint()
    if holds():
        return
    watch = _Watch(holds)
    trio.lowlevel.add_instrument(watch)
    try:
        with trio.fail_after(within_s):
            await watch.answered.wait()
    finally:
        trio.lowlevel.remove_instrument(watch)
    if watch.error is not None:
        raise watch.error


async def process_end(pid: int, *, within_s: float = 20.0) -> None:
    """Wait until a process has ended, whoever is its parent; it may still be a zombie."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        await trio.lowlevel.checkpoint()
        return
    try:
        with trio.fail_after(within_s):
            await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)


async def eventually(holds: Callable[[], bool | Awaitable[bool]], *, within_s: float = 20.0) -> None:
    """Ask again and again, for what nobody announces: the process table, the disk, the memory of another program."""
    with trio.fail_after(within_s):
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return
            await trio.sleep(0.01)
