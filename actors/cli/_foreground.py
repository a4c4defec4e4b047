"""What commands that serve have in common: say where, stay in the foreground, and end with whoever started them."""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping

import trio

from actors.cli._output import OutputRefused

__all__ = ["announce", "stay"]


def announce(facts: Mapping[str, object], plainly: str, *, as_json: bool) -> None:
    """Print one line that others can wait for.

    Raises:
        OutputRefused: Nobody takes it.
    """
    try:
        print(json.dumps({**facts, "pid": os.getpid()}) if as_json else plainly, flush=True)
    except OSError as error:
        raise OutputRefused(str(error.strerror), reader_left=isinstance(error, BrokenPipeError)) from error


async def stay(serve: Callable[[], Awaitable[object]], *, exit_with_parent: bool) -> int:
    """Serve until cancelled, or until the standard input ends if that is asked for."""
    if not exit_with_parent:
        await serve()
        return 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await _wait_until_stdin_ends()
        nursery.cancel_scope.cancel()
    return 0


async def _wait_until_stdin_ends() -> None:
    """Whoever started us holds the other end; the system closes it with them, however they go."""
    if sys.stdin is None:  # Python's way to say that it was closed before we began.
        return
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stdin:
        while await stdin.receive_some(4096):
            pass
