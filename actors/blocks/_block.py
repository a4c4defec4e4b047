"""Context managers that say, to whoever forgets `async with`, what to write."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import Generic, NoReturn, ParamSpec, TypeVar

__all__ = ["ToBeEntered", "block"]

P = ParamSpec("P")
T = TypeVar("T")


class ToBeEntered:
    """What is a mistake with anything that is there to be entered once."""

    __slots__ = ("_is_used", "_name")

    def __init__(self, name: str) -> None:
        # What its users called to get it.
        self._name, self._is_used = name, False

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(self._mistaken(f"so there is no {name!r} yet", name), name=name, obj=self)

    # Python looks these up in the class. A type checker sees none of them: what `block` makes promises to be entered.

    def __await__(self) -> NoReturn:
        raise TypeError(self._mistaken("and there is nothing to await"))

    def __aiter__(self) -> NoReturn:
        raise TypeError(self._mistaken("so there is nothing to iterate yet", inside="async for ... in ...:"))

    def __iter__(self) -> NoReturn:
        raise TypeError(self._mistaken("so there is nothing to iterate yet", inside="async for ... in ...:"))

    def __enter__(self) -> NoReturn:
        raise TypeError(self._mistaken("and `with` alone cannot"))

    def __exit__(self, *_: object) -> None:
        """Never reached: `with` looks for it before it enters."""

    def _mistaken(self, what: str, name: str = "", *, inside: str = "") -> str:
        call = f"{self._name}(...)"
        if self._is_used:
            return (
                f"{call} itself has no {name!r}: use what it gave, the name behind `as`"
                if name
                else (f"{call} was entered already: use what it gave, the name behind `as`")
            )
        within = f", and in this block `{inside}`" if inside else ""
        return f"{call} was not entered, {what}: write `async with {call} as ...:`{within}"


class Block(ToBeEntered, AbstractAsyncContextManager[T, bool | None], Generic[T]):
    """Enter and leave what a function gave; anything else is a mistake."""

    __slots__ = ("_manager",)

    def __init__(self, manager: AbstractAsyncContextManager[T, bool | None], name: str) -> None:
        super().__init__(name)
        self._manager = manager

    async def __aenter__(self) -> T:
        if self._is_used:
            raise TypeError(f"{self._name}(...) gives a block that is entered once: call it again for another")
        self._is_used = True
        return await self._manager.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, trace)


def block(
    function: Callable[P, AsyncGenerator[T, None]], name: str | None = None
) -> Callable[P, AbstractAsyncContextManager[T, bool | None]]:
    """Make an async context manager of a generator function, as `contextlib.asynccontextmanager` does.

    Args:
        function: What runs around the block.
        name: What its users call, where that is another function.
    """
    made: Callable[P, AbstractAsyncContextManager[T, bool | None]] = asynccontextmanager(function)
    called: str = name or function.__qualname__

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Block[T]:
        return Block(made(*args, **kwargs), called)

    return call
