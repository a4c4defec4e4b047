"""Two small things that can be awaited: a value that comes once, and a call that acted when it was made."""

from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, TypeVar

import attrs
import trio

Value = TypeVar("Value")


@attrs.frozen
class _Kept(Generic[Value]):
    value: Value


class Promise(Generic[Value]):
    """A value or an error that comes once and stays. Any number of tasks may wait for it."""

    def __init__(self) -> None:
        self._done = trio.Event()
        self._outcome: _Kept[Value] | Exception | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has come."""
        return self._outcome is not None

    def fulfil(self, value: Value) -> None:
        """Give the value, unless something was given before."""
        self._settle(_Kept(value))

    def fail(self, error: Exception) -> None:
        """Give an error, unless something was given before."""
        self._settle(error)

    def _settle(self, outcome: "_Kept[Value] | Exception") -> None:
        if self._outcome is None:
            self._outcome = outcome
            self._done.set()

    async def wait(self) -> Value:
        """Wait for it.

        Cancelled:
            Only this wait ends.
        """
        await self._done.wait()
        outcome = self._outcome
        assert outcome is not None, "a promise is settled before it wakes anyone"
        if isinstance(outcome, Exception):
            raise outcome
        return outcome.value


class Call(Coroutine[Any, Any, Value]):
    """What a plain function returns that has acted already: await it for the result.

    It is a coroutine to trio (`nursery.start_soon` takes such functions), but nobody warns when it is never awaited.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, Value]]) -> None:
        self._work = work
        self._running: Coroutine[Any, Any, Value] | None = None

    def _begun(self) -> Coroutine[Any, Any, Value]:
        if self._running is None:
            self._running = self._work()
        return self._running

    def __await__(self) -> Generator[Any, Any, Value]:
        if self._running is not None:
            raise RuntimeError("this call was awaited before; make another")
        return self._begun().__await__()

    def send(self, value: Any, /) -> Any:
        """Go on, as a coroutine does."""
        return self._begun().send(value)

    def throw(
        self,
        typ: type[BaseException] | BaseException,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
        /,
    ) -> Any:
        """Go on with an error, as a coroutine does."""
        error = typ if isinstance(typ, BaseException) else val if isinstance(val, BaseException) else typ()
        return self._begun().throw(error if tb is None else error.with_traceback(tb))

    def close(self) -> None:
        """End, as a coroutine does."""
        if self._running is not None:
            self._running.close()
