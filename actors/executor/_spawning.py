"""Ask the system for a child process, and wait for its end. Knows nothing of pipes, groups, guards or what it is for.

Where children can be started by `vfork` and waited for by a handle, it is done in the task that asks: Python holds its
one lock until the child has executed its program, so a thread would hold up everybody just as long, and cost two
turns of the scheduler and two of the system's besides: half a millisecond of the two that a small program takes
(benchmarks/executor.py). Elsewhere it is trio's to do, in a thread.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypedDict, Unpack

import trio

from actors.executor._threads import NoThread, in_thread, no_thread_told

__all__ = ["Child", "Spawner"]

# A crowd of starts lets everybody else have a turn after so many.
_IN_A_ROW = 4
# How often we look for a death when the system has neither a handle nor a thread for it.
_LOOK_AGAIN_S = 0.05


class Child(Protocol):
    """A process of ours."""

    @property
    def pid(self) -> int:
        """Its number."""
        ...

    async def wait(self) -> int:
        """Wait until it is dead and reaped; the exit status, or minus the signal that killed it.

        Cancelled:
            It lives on, or stays unreaped until the next call.
        """
        ...


class _Offspring:
    """A child of ours, with a handle that the system makes readable at its death."""

    def __init__(self, process: "subprocess.Popen[bytes]", handle: int | None) -> None:
        self._process = process
        self._handle = handle
        self.pid: int = process.pid

    async def wait(self) -> int:
        """Wait until it is dead and reaped."""
        if self._process.returncode is not None:
            await trio.lowlevel.checkpoint()
        elif self._handle is not None:
            await trio.lowlevel.wait_readable(self._handle)
        else:
            await self._wait_in_thread()
        status = self._process.wait()
        self._close()
        return status

    async def _wait_in_thread(self) -> None:
        look = os.WEXITED | os.WNOWAIT
        while True:
            try:
                dead = partial(os.waitid, os.P_PID, self.pid, look)
                await in_thread(dead, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))
                return
            except NoThread:
                if os.waitid(os.P_PID, self.pid, look | os.WNOHANG) is not None:  # noqa: ASYNC222 - it does not wait.
                    return
                await trio.sleep(_LOOK_AGAIN_S)

    def _close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def __del__(self) -> None:
        # Of a child that did not die within any limit.
        self._close()


class Start(TypedDict):
    """What a child is started with, beside its arguments."""

    executable: str
    stdin: int
    stdout: int
    stderr: int
    env: Mapping[str, str]
    cwd: str


class Spawner:
    """Starts children, a few at a time."""

    def __init__(self, *, in_task: bool = sys.platform == "linux") -> None:
        self._in_task = in_task
        self._in_a_row = 0
        self._crowd = trio.StrictFIFOLock()
        self.started: int = 0
        """Children so far, of those that were started here."""

    async def spawn(
        self, argv: Sequence[str], *, about_to_start: Callable[[], None] = lambda: None, **start: Unpack[Start]
    ) -> Child:
        """Start a child as the leader of a session and a group of its own.

        Args:
            argv: What it sees as its arguments.
            about_to_start: Called in the same breath as the start, where children are started in the task.
            start: What else it is started with.

        Raises:
            OSError: The system refused.
            ValueError: The system cannot take a text.

        Cancelled:
            Only before the child exists. Once the system was asked, its answer is waited for.
        """
        if not self._in_task:
            with no_thread_told():
                return await trio.lowlevel.open_process(argv, start_new_session=True, **start)
        await self._take_turn()
        about_to_start()
        # The system's answer is there at once; nobody else runs meanwhile, in a thread or here.
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - see above; what to run is checked.
            argv, start_new_session=True, **start
        )
        self.started += 1
        return _Offspring(process, _handle_of(process.pid))

    async def _take_turn(self) -> None:
        if self._in_a_row < _IN_A_ROW and not self._crowd.locked():
            self._in_a_row += 1
            await trio.lowlevel.checkpoint_if_cancelled()
            return
        async with self._crowd:
            self._in_a_row = 0
            await trio.lowlevel.checkpoint()


def _handle_of(pid: int) -> int | None:
    """Give what becomes readable when a child dies; None when the system is too old, or has no more to give."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
