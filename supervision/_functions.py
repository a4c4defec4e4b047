"""Whether a function can be a child: asked when its spec is made, and again when it is called."""

import inspect
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, NoReturn

from supervision._errors import InvalidSpec

__all__: list[str] = []

FIELD: Final = "ChildSpec.run"

_HOW: Final = "write `async def {name}(..., *, task_status)` and call `task_status.started()` in it once it can serve"


def check_function(run: object) -> None:
    """Refuse what cannot be a child by what can be seen of it; what cannot be seen is judged when it is called."""
    if not callable(run):
        rule = f"must be an async function, given beside its arguments and not called, not {type(run).__qualname__}"
        if inspect.iscoroutine(run):
            run.close()  # Else Python warns, far from here, that nobody awaited it.
        raise InvalidSpec(FIELD, rule)
    function = _innermost(run)
    if function is None:
        return
    code, name = function.__code__, function.__name__
    if not _can_take_status(code):
        raise InvalidSpec(FIELD, f"{name}() takes no argument `task_status`: {_HOW.format(name=name)}")
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR) or _is_plain(function, code):
        raise InvalidSpec(FIELD, f"{name}() is not an async function: {_HOW.format(name=name)}")


def _innermost(run: Any) -> FunctionType | None:
    """The function whose signature counts, if it can be told at a glance."""
    while True:
        if isinstance(run, FunctionType):
            return run
        if isinstance(run, MethodType):
            run = run.__func__
        elif isinstance(run, partial):
            if "task_status" in run.keywords:
                return None
            run = run.func
        else:
            return None


def _can_take_status(code: CodeType) -> bool:
    named = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    return "task_status" in named or bool(code.co_flags & inspect.CO_VARKEYWORDS)


def _is_plain(function: FunctionType, code: CodeType) -> bool:
    """Whether it was surely meant to do the work itself, not to call an async function and pass on the awaitable."""
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_VARKEYWORDS):
        return False
    if function.__name__ == "<lambda>" or hasattr(function, "__wrapped__"):
        return False
    return function.__annotations__.get("return") in (None, "None")


def raise_misfit(error: TypeError) -> NoReturn:
    """Raise what a call of a child's function raised, told in full if nothing of the function ran."""
    trace = error.__traceback__
    if trace is not None and trace.tb_next is None:
        raise InvalidSpec(FIELD, f"it cannot be called with its arguments and `task_status`: {error}") from error
    raise error


def check_awaitable(run: object, body: object) -> None:
    """Refuse a function that gave back something that cannot be awaited."""
    if not inspect.isawaitable(body):
        name = getattr(run, "__name__", type(run).__name__)
        gave = f"{name}() is not an async function: it gave back {type(body).__qualname__}"
        raise InvalidSpec(FIELD, f"{gave}; {_HOW.format(name=name)}")
