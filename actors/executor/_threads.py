"""Do blocking work in a thread, where the system may have none to give."""

import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import trio

__all__ = ["NoThread", "in_thread", "no_thread_told"]

R = TypeVar("R")


class NoThread(OSError):
    """The system gave no thread: the work was not begun."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, os.strerror(errno.EAGAIN))


@contextmanager
def no_thread_told() -> Generator[None, None, None]:
    """Turn what Python says when a library of others could start no thread into `NoThread`, for a block."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "can't start new thread":
            raise
        raise NoThread from None


async def in_thread(
    work: Callable[[], R], *, limiter: trio.CapacityLimiter | None = None, abandon_on_cancel: bool = False
) -> R:
    """Do blocking work in a thread.

    Raises:
        NoThread: There was none; nothing was done. Whatever else is raised is the work's own.

    Cancelled:
        As `trio.to_thread.run_sync` has it.
    """
    begun = False

    def begin() -> R:
        nonlocal begun
        begun = True
        return work()

    try:
        return await trio.to_thread.run_sync(begin, limiter=limiter, abandon_on_cancel=abandon_on_cancel)
    except RuntimeError:
        if begun:
            raise
        raise NoThread from None
