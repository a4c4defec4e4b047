"""A nursery of helpers that never shows in what its block raises."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import trio

__all__ = ["open_helpers"]


@asynccontextmanager
async def open_helpers() -> AsyncGenerator[trio.Nursery, None]:
    """Open a nursery for tasks that serve the block: they are cancelled at its end, and its error comes out as it is.

    What a helper raises is a bug of ours, or a failure that means to end the block. It comes out in a group, as from
    any nursery, together with what the block raises by itself.

    Raises:
        Exception: What the block raises, as it is; in a group with what a helper raises.

    Cancelled:
        The helpers are cancelled with the block.
    """
    failure: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except BaseException as error:
                # The nursery has to see it: a cancellation may be the nursery's own, and then it ends here.
                failure = error
                raise
            finally:
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if failure is None or not _wraps(group, failure):
            raise
    else:
        return
    # Outside the handler, so that the group does not become its context.
    raise failure


def _wraps(group: BaseExceptionGroup[BaseException], error: BaseException) -> bool:
    """Tell whether a nursery's group holds this alone. Of a group that the block raised it may have made another."""
    found, raised = _leaves(group), _leaves(error)
    if len(group.exceptions) != 1 or len(found) != len(raised):
        return False
    return all(one is other for one, other in zip(found, raised, strict=True))


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [leaf for inner in group.exceptions for leaf in _leaves(inner)]
    return [error]
