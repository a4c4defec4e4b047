"""Check what is given to an executor where it comes in: a setting that exists is valid."""

from collections.abc import Mapping
from typing import Any, cast

from actors.executor._errors import SettingInvalid

__all__ = ["check_callable", "check_kind", "check_variables", "require_count", "require_flag", "require_seconds"]


def require_seconds(_: object, attribute: Any, value: object) -> None:
    """Refuse, as a validator of attrs, what is no time that passes."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise SettingInvalid(attribute.name, f"must be above zero, in seconds, not {value!r}")


def require_count(_: object, attribute: Any, value: object) -> None:
    """Refuse, as a validator of attrs, what is no whole number from one."""
    if isinstance(value, bool) or not isinstance(value, int) or not value > 0:
        raise SettingInvalid(attribute.name, f"must be above zero, a whole number, not {value!r}")


def require_flag(_: object, attribute: Any, value: object) -> None:
    """Refuse, as a validator of attrs, what is neither true nor false."""
    if not isinstance(value, bool):
        raise SettingInvalid(attribute.name, f"must be True or False, not {value!r}")


def check_kind(name: str, value: object, kind: type) -> None:
    """Refuse what is of another kind; a value may be a secret, so only its type is told."""
    if not isinstance(value, kind):
        raise SettingInvalid(name, f"must be of type {kind.__name__}, not {type(value).__name__}")


def check_callable(name: str, value: object) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise SettingInvalid(name, f"must be callable, not {type(value).__name__}")


def check_variables(name: str, variables: object) -> None:
    """Refuse what is no mapping of texts to texts; values are not told."""
    if not isinstance(variables, Mapping):
        raise SettingInvalid(name, f"must map names to values, not be of type {type(variables).__name__}")
    for key, value in cast("Mapping[object, object]", variables).items():
        if not isinstance(key, str):
            raise SettingInvalid(name, f"must have texts as names, not {type(key).__name__}")
        if not isinstance(value, str):
            raise SettingInvalid(f"{name}[{key!r}]", f"must be text, not {type(value).__name__}")
