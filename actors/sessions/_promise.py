"""Two small things that can be awaited: a value that comes once, and a call that acted when it was made."""

import warnings
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

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

    It is a coroutine to trio (`nursery.start_soon` takes such functions), and warns like one when it is never awaited,
    unless that changes nothing.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, Value]], forgotten: str = "") -> None:
        self._work = work
        self._running: Coroutine[Any, Any, Value] | None = None
        # What was called, where it does nothing before it is awaited; empty: not awaiting it is no mistake.
        self._forgotten = forgotten

    def __del__(self) -> None:
        # This may be any thread, or the middle of a collection, and the interpreter may be half gone: as for the
        # coroutines of Python, all that happens here is the warning.
        held = self.__dict__
        if held.get("_forgotten") and held.get("_running") is None and warnings is not None:
            name = held["_forgotten"]
            text = f"{name}(...) was never awaited, so nothing was sent: write `await {name}(...)`"
            warnings.warn(text, RuntimeWarning, stacklevel=2, source=self)

    def __getattr__(self, name: str) -> NoReturn:
        called = self.__dict__.get("_forgotten") or "this call"
        text = f"{called} gives what has to be awaited, so there is no {name!r} yet: await it first"
        raise AttributeError(text, name=name, obj=self)

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
        self._forgotten = ""
        if self._running is not None:
            self._running.close()
