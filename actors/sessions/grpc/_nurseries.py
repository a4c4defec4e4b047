"""A nursery of helpers that does not change how errors of the body look."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def open_helpers() -> AsyncGenerator[trio.Nursery]:
    """Open a nursery for tasks that serve the body: they end with it, and its error comes out plain.

    The tasks must not fail; if one does, that is a bug of ours and comes out in a group, as trio does it.
    """
    failure: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except BaseException as error:
                # Held, not swallowed: it is raised again below, outside the nursery that would wrap it.
                failure = error
            nursery.cancel_scope.cancel()
    except BaseException:
        # A body that was only stopped by the failure of a task has nothing better to say.
        if failure is None or isinstance(failure, trio.Cancelled):
            raise
    if failure is not None:
        raise failure
