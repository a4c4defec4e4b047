"""Pass bytes on to our own outputs: raw, at once, and never in the way of anything else.

A pipe that nobody reads blocks whoever writes to it. So a thread writes, and the connection goes on living meanwhile.
"""

import os
from typing import TextIO

import trio

__all__ = ["OutputRefused", "write_to"]


class OutputRefused(Exception):
    """One of our outputs takes nothing more; what was to be written is lost."""

    def __init__(self, reason: str, *, reader_left: bool) -> None:
        super().__init__(f"the output cannot be written: {reason}")
        self.reason = reason
        """As the system says it."""
        self.reader_left = reader_left
        """Whoever read it has what they wanted, as `head` does."""


async def write_to(output: TextIO | None, data: bytes) -> None:
    """Write everything to a standard output, past its buffer.

    Raises:
        OutputRefused: It is closed, full, or nobody reads it any more.

    Cancelled:
        A part may be written; a thread may still be at it, and ends with the program.
    """
    if output is None:  # Python's way to say that we were started without.
        raise OutputRefused("it was closed from the start", reader_left=False)
    try:
        await trio.to_thread.run_sync(_write_all, output.fileno(), data, abandon_on_cancel=True)
    except BrokenPipeError as error:
        raise OutputRefused(str(error.strerror), reader_left=True) from error
    except OSError as error:
        raise OutputRefused(str(error.strerror), reader_left=False) from error


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
