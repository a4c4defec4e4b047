"""Wait for files that are not there yet, by looking again and again: links and folders on the way may change, too."""

from collections.abc import Sequence

import trio

from actors.executor._file_tree import FileTree
from actors.executor._limits import Limits
from actors.executor._outbox import Outbox
from actors.executor._refusals import RequestRefused
from actors.executor._threads import NoThread, in_thread
from actors.protocol import (
    FS_MISSING_CHANGED,
    MissingChanged,
    Notification,
    encode_message,
    file_os_failure,
    invalid_request,
)

__all__ = ["FileWatches"]

_PATHS_MAX = 256


class FileWatches:
    """Those of one connection."""

    def __init__(
        self, tree: FileTree, outbox: Outbox, nursery: trio.Nursery, *, threads: trio.CapacityLimiter, limits: Limits
    ) -> None:
        self._tree, self._outbox, self._nursery = tree, outbox, nursery
        self._threads, self._limits = threads, limits
        self._running = 0

    async def begin(self, watch_id: int, missing: Sequence[str], present: str) -> bool:
        """Begin to wait, unless there is nothing to wait for.

        Raises:
            RequestRefused: There are too many, or the system has no thread to look with.

        Cancelled:
            Nothing is waited for.
        """
        if self._running >= self._limits.watches_max or len(missing) > _PATHS_MAX:
            raise RequestRefused(
                invalid_request(f"at most {self._limits.watches_max} watches of {_PATHS_MAX} paths per connection")
            )
        self._running += 1
        try:
            if not missing or not await self._any_exists([present]) or await self._any_exists(missing):
                self._running -= 1
                return False
        except NoThread as error:
            self._running -= 1
            raise RequestRefused(file_os_failure(error.errno or 0, error.strerror or "", present)) from None
        except BaseException:
            self._running -= 1
            raise
        self._nursery.start_soon(self._wait, watch_id, missing)
        return True

    async def _wait(self, watch_id: int, missing: Sequence[str]) -> None:
        try:
            while not await self._look_again(missing):  # noqa: ASYNC110 - the system's folders set no events of ours.
                await trio.sleep(self._limits.watch_s)
        finally:
            self._running -= 1
        params = FS_MISSING_CHANGED.encode_params(MissingChanged(watch_id=watch_id))
        self._outbox.add_news(encode_message(Notification(FS_MISSING_CHANGED.name, params)))

    async def _look_again(self, paths: Sequence[str]) -> bool:
        try:
            return await self._any_exists(paths)
        except NoThread:  # The system is short of them: the next look may have one.
            return False

    async def _any_exists(self, paths: Sequence[str]) -> bool:
        def look() -> bool:
            return any(self._tree.status(path) is not None for path in paths)

        return await in_thread(look, limiter=self._threads)
