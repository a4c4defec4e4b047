"""Context managers that say, to whoever forgets `async with`, what to write."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import Generic, NoReturn, ParamSpec, TypeVar

__all__ = ["block"]

P = ParamSpec("P")
T = TypeVar("T")


class Block(AbstractAsyncContextManager[T, bool | None], Generic[T]):
    """Enter and leave what a function gave; anything else is a mistake."""

    __slots__ = ("_manager", "_name")

    def __init__(self, manager: AbstractAsyncContextManager[T, bool | None], name: str) -> None:
        self._manager, self._name = manager, name

    async def __aenter__(self) -> T:
        return await self._manager.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, trace)

    def __getattr__(self, name: str) -> NoReturn:
        call = f"{self._name}(...)"
        text = f"{call} was not entered, so there is no {name!r} yet: write `async with {call} as ...:`"
        raise AttributeError(text, name=name, obj=self)


def block(function: Callable[P, AsyncGenerator[T, None]]) -> Callable[P, AbstractAsyncContextManager[T, bool | None]]:
    """Make an async context manager of a generator function, as `contextlib.asynccontextmanager` does."""
    made = asynccontextmanager(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Block[T]:
        return Block(made(*args, **kwargs), function.__qualname__)

    return call
