"""Check what callers give, before anything is sent or opened: each refusal names the argument and the rule.

Values may be secrets: a refusal tells their types, and of values only numbers.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, cast

from actors.sessions._invalid import InvalidArgument

T = TypeVar("T")
_COUNT_MAX: Final = 2**64 - 1


def check_kind(field: str, value: object, kind: type, *, or_none: bool = False) -> None:
    """Refuse what is of another kind."""
    if isinstance(value, kind) or (or_none and value is None):
        return
    wanted = _NAMES.get(kind) or f"{'an' if kind.__name__.startswith(_VOWELS) else 'a'} {kind.__name__}"
    raise InvalidArgument(field, f"must be {wanted}{' or None' if or_none else ''}, not {_kind(value)}")


def check_count(field: str, value: object, *, or_none: bool = False) -> None:
    """Refuse what is no whole number that the wire can carry."""
    if or_none and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(field, f"must be a whole number{' or None' if or_none else ''}, not {_kind(value)}")
    if not 0 <= value <= _COUNT_MAX:
        raise InvalidArgument(field, f"must lie between 0 and 2^64-1, not be {value}")


def check_callable(field: str, value: object, *, or_none: bool = False) -> None:
    """Refuse what cannot be called."""
    if not callable(value) and not (or_none and value is None):
        raise InvalidArgument(field, f"must be a function{' or None' if or_none else ''}, not {_kind(value)}")


def checked_items(field: str, items: Iterable[T], kind: type[T]) -> tuple[T, ...]:
    """Give what several things hold, each of one kind."""
    if isinstance(items, str | bytes) or not isinstance(cast("object", items), Iterable):
        raise InvalidArgument(field, f"must be a tuple or list of {kind.__name__}s, not {_kind(items)}")
    held = tuple(items)
    for position, item in enumerate(held):
        check_kind(f"{field}[{position}]", item, kind)
    return held


def check_delegate(delegate: object) -> None:
    """Refuse what cannot serve a script: a class, or what lacks a method, or has one that cannot be awaited."""
    if isinstance(delegate, type):
        raise InvalidArgument(
            "delegate", f"must be an object, not the class {delegate.__name__}: write {delegate.__name__}()"
        )
    for name, is_async in _METHODS.items():
        method: Any = getattr(delegate, name, None)
        shape = f"{'async def' if is_async else 'def'} {name}"
        if not callable(method):
            raise InvalidArgument("delegate", f"must have `{shape}`; {_kind(delegate)} has none")
        function = getattr(method, "__func__", method)
        if (
            inspect.isfunction(function)
            and inspect.iscoroutinefunction(function) is not is_async
            and not hasattr(function, "__wrapped__")
        ):
            raise InvalidArgument("delegate", f"{name} of {_kind(delegate)} must be `{shape}`")


# What wraps another function may give what is awaited without being async itself, so only plain functions are judged.
_METHODS: Final = {"call_tool": True, "notify": True, "cell_closed": False}

_VOWELS: Final = ("A", "E", "I", "O", "U", "SSL")
_NAMES: Final[dict[type, str]] = {str: "text", bool: "True or False", bytes: "bytes"}


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def text(_: object, attribute: Any, value: Any) -> None:
    """Refuse, as a validator of attrs, what is no text."""
    check_kind(attribute.name, value, str)


def text_or_none(_: object, attribute: Any, value: Any) -> None:
    """Refuse, as a validator of attrs, what is neither text nor None."""
    check_kind(attribute.name, value, str, or_none=True)


def flag(_: object, attribute: Any, value: Any) -> None:
    """Refuse, as a validator of attrs, what is neither true nor false."""
    check_kind(attribute.name, value, bool)


def count(_: object, attribute: Any, value: Any) -> None:
    """Refuse, as a validator of attrs, what is no whole number."""
    check_count(attribute.name, value)


def count_or_none(_: object, attribute: Any, value: Any) -> None:
    """Refuse, as a validator of attrs, what is neither a whole number nor None."""
    check_count(attribute.name, value, or_none=True)


def positive(_: object, attribute: Any, value: Any) -> None:
    """Refuse, as a validator of attrs, what is neither a number above 0 nor None where that is the default."""
    if value is None and attribute.default is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(attribute.name, f"must be a number, not {_kind(value)}")
    if not value > 0:
        raise InvalidArgument(attribute.name, f"must be above 0, not {value}")


def not_negative(_: object, attribute: Any, value: Any) -> None:
    """Refuse, as a validator of attrs, what is no number of things."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(attribute.name, f"must be a whole number, not {_kind(value)}")
    if value < 0:
        raise InvalidArgument(attribute.name, f"must be 0 or more, not {value}")


def of_kind(kind: type, *, or_none: bool = False) -> Callable[[object, Any, Any], None]:
    """Make a validator of attrs that refuses what is of another kind."""

    def check(_: object, attribute: Any, value: Any) -> None:
        check_kind(attribute.name, value, kind, or_none=or_none)

    return check
