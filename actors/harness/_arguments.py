"""Check what users give, before anything is sent or changed: each refusal names the argument and the rule.

Values may be secrets: an error tells their names and types.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from actors.harness._errors import InvalidArgument
from actors.protocol import MalformedMessage, Notification, Signal, encode_message


def checked_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Give the program and its arguments as they travel."""
    if isinstance(argv, str | bytes) or not isinstance(cast("object", argv), Sequence):
        raise InvalidArgument("argv", f'give a list, such as ["sh", "-c", "echo hi"], not {_kind(argv)}')
    if not argv:
        raise InvalidArgument("argv", "must not be empty")
    for position, word in enumerate(argv):
        check_text(f"argv[{position}]", word)
    return tuple(argv)


def checked_env(env: Mapping[str, str] | None) -> dict[str, str]:
    """Give the variables as they travel."""
    if env is None:
        return {}
    if not isinstance(cast("object", env), Mapping):
        raise InvalidArgument("env", f"must map names to values, not be of type {_kind(env)}")
    for name, value in env.items():
        check_text("env", name)
        check_text(f"env[{name!r}]", value)
        if "=" in name or not name:
            raise InvalidArgument("env", f"{name!r} is no name of a variable")
    return dict(env)


def check_names(of: str, unknown: Mapping[str, object], known: Sequence[str]) -> None:
    """Refuse options that there are not, and name the one that may be meant."""
    for name in unknown:
        close = get_close_matches(name, known, n=1, cutoff=0.5)
        instead = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        raise InvalidArgument(name, f"{of}() has no such option; {instead}")


def check_text(field: str, value: object) -> None:
    """Refuse what is no text, or has no form on the wire."""
    check_kind(field, value, str)
    text = cast("str", value)
    if "\0" in text:
        raise InvalidArgument(field, "must not hold a NUL character")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidArgument(field, "must not hold half a character: bytes that are no UTF-8 cannot be sent as text")


def check_kind(field: str, value: object, kind: type) -> None:
    """Refuse what is of another kind."""
    if not isinstance(value, kind):
        raise InvalidArgument(field, f"must be {_NAMES.get(kind, kind.__name__)}, not {_kind(value)}")


def check_signal(value: object) -> None:
    """Refuse what the protocol cannot send, and say what can be done instead."""
    if not isinstance(value, Signal):
        ways = "signal() alone sends it, and terminate(grace_s=...) asks with SIGTERM and then kills"
        rule = f"must be actors.protocol.Signal.INTERRUPT, not {_kind(value)}: the protocol has no other; {ways}"
        raise InvalidArgument("signal", rule)


def checked_bytes(data: bytes, *, instead: str = "encode a text first") -> bytes:
    """Give bytes as they travel."""
    if isinstance(cast("object", data), str):
        raise InvalidArgument("data", f"must be bytes, not str; {instead}")
    if not isinstance(cast("object", data), bytes | bytearray | memoryview):
        raise InvalidArgument("data", f"must be bytes, not {_kind(data)}")
    return bytes(data)


def check_seconds(field: str, value: object, *, zero: bool = False) -> None:
    """Refuse what is no time; nothing at all only with ``zero``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(field, f"must be a number of seconds, not {_kind(value)}")
    if not (value >= 0 if zero else value > 0):
        raise InvalidArgument(field, "must not be below zero" if zero else "must be greater than zero")


def check_count(field: str, value: object, *, low: int = 1) -> None:
    """Refuse what is no whole number from ``low``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(field, f"must be a whole number, not {_kind(value)}")
    if value < low:
        raise InvalidArgument(field, "must be greater than zero" if low == 1 else f"must be at least {low}")


def check_callable(field: str, value: object) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise InvalidArgument(field, f"must be callable, not {_kind(value)}")


def check_json(field: str, value: Any) -> None:
    """Refuse what has no JSON form."""
    try:
        encode_message(Notification("", value))
    except MalformedMessage as fault:
        raise InvalidArgument(field, fault.reason) from None


_NAMES: dict[type, str] = {str: "text", bool: "True or False", bytes: "bytes"}


def _kind(value: object) -> str:
    return type(value).__name__
