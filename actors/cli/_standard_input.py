"""Pass our own standard input on to a command: as fast as it is taken, and to its end.

Nothing is read before there is something to read, so a command that ends leaves the rest to whoever reads next.
"""

import contextlib
import os
import stat
import sys

import trio

from actors.harness import HarnessError, Process

__all__ = ["feed", "has_something_to_pass_on"]

_BLOCK_BYTES = 64 * 1024


def has_something_to_pass_on() -> bool:
    """Whether there is a standard input that a command could want: not a terminal, and not nothing."""
    try:
        descriptor = sys.stdin.fileno()
        return not os.isatty(descriptor) and not os.path.samestat(os.fstat(descriptor), os.stat(os.devnull))
    except (AttributeError, OSError, ValueError):  # Python has no standard input if it was closed before we began.
        return False


async def feed(process: Process) -> None:
    """Pass it on to its end, and close the command's; a command that closes its own earlier has had enough.

    Cancelled:
        What was not read yet stays where it is, save for a block that had come already.
    """
    descriptor = sys.stdin.fileno()
    try:
        while block := await _read(descriptor):
            await process.stdin.write(block)
        await process.stdin.aclose()
    except HarnessError:
        return  # It wants no more, or the connection is lost: its output's end tells which.


async def _read(descriptor: int) -> bytes:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        with contextlib.suppress(OSError):  # Some devices cannot be waited for; then a thread waits for them.
            await trio.lowlevel.wait_readable(descriptor)
    try:
        return await trio.to_thread.run_sync(os.read, descriptor, _BLOCK_BYTES, abandon_on_cancel=True)
    except OSError as error:
        print(f"greenroom run: the input cannot be read any further: {error.strerror}", file=sys.stderr)
        return b""
