"""Run one async program to its exit code, and end it in order when a signal asks for that."""

import contextlib
import errno
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import trio

__all__ = ["INTERRUPTED", "INTERRUPTED_FROM", "cannot_listen", "run_program", "run_program_politely"]

INTERRUPTED_FROM: Final = 128
"""Exit codes above this say which signal ended the program, as a shell says it."""
INTERRUPTED: Final = INTERRUPTED_FROM + signal.SIGINT
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_ENDS: Final[dict[int, str]] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def cannot_listen(address: str, error: OSError) -> str:
    """Say why an address cannot be listened on, and what can be done."""
    ways = "; another program listens there: end it, or take another port (0 for any that is free)"
    why = error.strerror or str(error)
    said = why if why.startswith("cannot listen") else f"cannot listen on {address}: {why}"
    return said + (ways if error.errno == errno.EADDRINUSE else "")


def run_program(program: Callable[[], Awaitable[int]], *, stopping: trio.Event | None = None, tell: bool = True) -> int:
    """Run a program; SIGINT and SIGTERM cancel it, so that everything it started is stopped and reaped.

    Args:
        program: Gives its exit code.
        stopping: Set by a first SIGTERM in the place of being cancelled: the program is asked to end, in its own time.
        tell: Whether the signal that ended it gets a line; else the caller has a better one.

    Returns:
        What the program returned, or 128 + n after signal n.
    """

    async def guarded() -> int:
        caught: list[int] = []
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_on_signal, signals, nursery.cancel_scope, caught, stopping)
                code = await program()
                nursery.cancel_scope.cancel()
                if not caught:
                    return code
        return _ended_by(caught[0], tell=tell)

    return _plainly(guarded)


def run_program_politely(program: Callable[[trio.Event], Awaitable[int]]) -> int:
    """As `run_program`, but the first SIGINT or SIGTERM only sets an event; the second one cancels.

    Returns:
        What the program returned, or 128 + n after signal n.
    """

    async def guarded() -> int:
        caught: list[int] = []
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            async with trio.open_nursery() as nursery:
                asked = trio.Event()
                nursery.start_soon(_ask_then_cancel, signals, asked, nursery.cancel_scope, caught)
                code = await program(asked)
                nursery.cancel_scope.cancel()
                if not caught:
                    return code
        return _ended_by(caught[-1])

    return _plainly(guarded)


def _ended_by(number: int, *, tell: bool = True) -> int:
    """Say in one line which signal ended the program, and give its exit code."""
    if tell and sys.stderr is not None:  # None is Python's way to say that it was closed before we began.
        with contextlib.suppress(OSError):
            print(f"greenroom: {_ENDS[number]}", file=sys.stderr, flush=True)
    return INTERRUPTED_FROM + number


async def _ask_then_cancel(
    signals: AsyncIterator[int], asked: trio.Event, scope: trio.CancelScope, caught: list[int]
) -> None:
    async for number in signals:
        caught.append(number)
        if asked.is_set():
            scope.cancel()
            return
        asked.set()


def _plainly(guarded: Callable[[], Awaitable[int]]) -> int:
    """Nurseries of the command line have one child that can fail: its error comes out as it is."""
    try:
        return trio.run(guarded)
    except BaseExceptionGroup as group:
        error = _only_leaf(group)
        raise error from error.__cause__


def _only_leaf(error: BaseException) -> BaseException:
    match error:
        case BaseExceptionGroup(exceptions=[only]):
            return _only_leaf(only)
        case _:
            return error


async def _cancel_on_signal(
    signals: AsyncIterator[int], scope: trio.CancelScope, caught: list[int], stopping: trio.Event | None
) -> None:
    async for number in signals:
        caught.append(number)
        if stopping is not None and caught == [signal.SIGTERM]:
            stopping.set()
            continue
        scope.cancel()
        return
