"""Refuse what is of the wrong kind, where a value is made or a function is called: the error names field and rule.

What is refused is shown by its type, unless it is a small number: it may be huge, and it may hold a secret.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from inspect import signature
from typing import Any, TypeAlias, TypeGuard, cast

import attrs

from actors import InvalidOption

Demand: TypeAlias = Callable[[object, "attrs.Attribute[Any]", Any], None]
"""What attrs calls with the owner, the field and the value."""

_SMALL_BITS = 64


class Shown(str):
    """A text that stands for a refused value in the sentence of its error."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def refuse(field: str, value: object, rule: str) -> InvalidOption:
    """The error for a value that breaks a rule."""
    is_small = (
        value is None or type(value) in (bool, float) or (type(value) is int and value.bit_length() <= _SMALL_BITS)
    )
    return InvalidOption(field, value if is_small else Shown(f"<{type(value).__name__}>"), rule)


def must_be(kind: type, field: str, value: object, rule: str | None = None) -> None:
    """Demand an instance of a class."""
    if not isinstance(value, kind):
        raise refuse(field, value, rule or f"it must be a {kind.__name__}")


def must_be_text(field: str, value: object, rule: str = "it must be a text") -> None:
    """Demand a text; what it says is somebody else's rule."""
    must_be(str, field, value, rule)


def must_be_count(field: str, value: object, least: int = 0) -> None:
    """Demand a whole number; true and false are none."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise refuse(field, value, f"it must be a whole number, at least {least}")


def must_be_seconds(field: str, value: object) -> None:
    """Demand a time that passes and ends."""
    if not _is_number(value) or not 0 < value < math.inf:
        raise refuse(field, value, "it must be a positive finite number of seconds")


def must_be_grace(field: str, value: object) -> None:
    """Demand a time to wait, which may be none at all or without an end."""
    if not _is_number(value) or not value >= 0:
        raise refuse(field, value, "it must be a number of seconds, 0 or more")


def must_offer(method: str, field: str, value: object) -> None:
    """Demand an object with a method of this name."""
    if not callable(getattr(value, method, None)):
        raise refuse(field, value, f"it must have a method {method}()")


def must_be_provider(value: object) -> None:
    """Demand an object whose `connect_bundle` takes the harness's key, and nothing else that must be given."""
    if isinstance(value, type):
        raise refuse("provider", value, f"it must be an object, not the class: write {value.__name__}(...)")
    must_offer("connect_bundle", "provider", value)
    method: Any = getattr(value, "connect_bundle")  # noqa: B009  # No protocol is promised yet.
    function, own = getattr(method, "__func__", method), int(hasattr(method, "__func__"))
    try:
        fits = _takes(function, own + 1)
    except TypeError:  # It cannot be remembered.
        fits = _takes.__wrapped__(function, own + 1)
    if not fits:
        raise refuse("provider", value, "its connect_bundle() must take one argument, the harness's public key")


@lru_cache(maxsize=256)
def _takes(function: Callable[..., object], count: int) -> bool:
    """Whether a function can be called with so many arguments; one that does not tell is believed."""
    try:
        signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def must_be_options(of: str, given: Mapping[str, object], options: type) -> None:
    """Demand that options have names which a class lists, and say which one may be meant."""
    known = [*options.__annotations__]
    for name, value in given.items():
        if name not in known:
            close = get_close_matches(name, known, n=1, cutoff=0.5)
            instead = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise refuse(name, value, f"{of}() has no such option; {instead}")


def all_of(field: str, values: object, fits: Callable[[Any], bool], rule: str) -> tuple[Any, ...]:
    """Demand a collection of such values, and keep it."""
    kept = tuple(cast("Iterable[object]", values)) if isinstance(values, Iterable) else (values,)
    for value in kept:
        if not fits(value):
            raise refuse(field, value, rule)
    return kept


def a_text(_owner: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Demand a text of a field."""
    must_be_text(field.name, value)


def a_count(_owner: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Demand a whole number of a field, 0 or more."""
    must_be_count(field.name, value)


def seconds(_owner: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Demand a positive finite number of seconds of a field."""
    must_be_seconds(field.name, value)


def of(kind: type) -> Demand:
    """Demand an instance of a class of a field."""
    return lambda _owner, field, value: must_be(kind, field.name, value)


def offering(method: str) -> Demand:
    """Demand of a field an object with a method of this name."""
    return lambda _owner, field, value: must_offer(method, field.name, value)


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, int) and not isinstance(value, bool):
        return value.bit_length() <= 1023  # Else it cannot be added to a time.
    return isinstance(value, float)
