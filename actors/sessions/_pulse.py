"""Notice that a stream has lost its heartbeat."""

from types import TracebackType
from typing import Self

import trio

from actors.sessions._errors import HostTimedOut
from actors.sessions._heartbeats import silence_allowed_s
from actors.sessions._wording import Operation


class Pulse:
    """Cuts a block short when the heartbeats in it stay away. Without an interval it never does."""

    def __init__(self, interval_s: int | None, operation: Operation) -> None:
        self._interval_s, self._operation = interval_s, operation
        self._heard = False
        self._scope = trio.CancelScope()

    def felt(self, *, heartbeat: bool) -> None:
        """Note that something came."""
        self._heard = self._heard or heartbeat
        self._scope.deadline = trio.current_time() + silence_allowed_s(self._interval_s, heard=self._heard)

    def __enter__(self) -> Self:
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        swallowed = bool(self._scope.__exit__(kind, error, trace))
        if self._scope.cancelled_caught:
            raise HostTimedOut(self._operation)
        return swallowed
