"""A nursery for our own helpers: it ends with its block, and never shows in what the block raises (case P20)."""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import cast

import trio

__all__ = ["open_background"]


class open_background:  # noqa: N801  # Used as a function: `async with open_background() as nursery`.
    """Run helper tasks beside a block. Leaving the block cancels them.

    An exception of the block comes out as it is. One that only a helper raised is a bug of ours or a failure that the
    helper means to end the block with, and comes out as a group, as from any nursery.
    """

    def __init__(self) -> None:
        self._manager: AbstractAsyncContextManager[trio.Nursery, bool | None] = trio.open_nursery()
        self._nursery: trio.Nursery | None = None

    async def __aenter__(self) -> trio.Nursery:
        """Open the nursery."""
        self._nursery = await self._manager.__aenter__()
        return self._nursery

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Cancel what still runs and wait for it."""
        assert self._nursery is not None, "the background was entered"
        self._nursery.cancel_scope.cancel()
        try:
            suppressed: bool | None = await self._manager.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if error is not None and _leaves(group) == _leaves(error) and len(group.exceptions) == 1:
                return False  # The nursery may have made a group of the block anew.
            raise
        return suppressed


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [leaf for inner in group.exceptions for leaf in _leaves(inner)]
    return [error]
