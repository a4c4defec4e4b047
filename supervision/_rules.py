"""What a value must be to be used: each rule refuses with the field's name, before anything has changed."""

import enum
import unicodedata
from typing import Any, Final, NoReturn, TypeGuard

from supervision._errors import InvalidSpec

__all__: list[str] = []

NAME_CHARS_MAX: Final = 256
"""The longest name, in characters."""


def check_name(field: str, name: object) -> None:
    """Refuse a name that could be taken for another one, forge a line of a log or steer a terminal.

    An accepted name is kept exactly as given and compared exactly: nothing is folded, trimmed or shortened.
    """
    if not isinstance(name, str):
        refuse(field, "must be a text", name)
    if fault := _fault_of(name):
        raise InvalidSpec(field, f"{shown(name)} is refused: {fault}")


def _fault_of(name: str) -> str | None:
    if not name:
        return "it must have at least 1 character"
    if len(name) > NAME_CHARS_MAX:
        return f"it is longer than {NAME_CHARS_MAX} characters"
    if not name.isprintable():
        position, character = next(both for both in enumerate(name) if not both[1].isprintable())
        return f"character {character!a} at position {position} cannot be printed as itself"
    if "/" in name:
        return "it holds '/', which joins names to paths"
    if name.startswith(" ") or name.endswith(" "):
        return "it begins or ends with ' '"
    if not unicodedata.is_normalized("NFC", name):
        return f"it is not in normal form C; {shown(unicodedata.normalize('NFC', name))} is"
    return None


def check_seconds(field: str, value: object, *, zero: str | None = None, infinite: str | None = None) -> None:
    """Refuse what is no time; ``zero`` and ``infinite`` say what these mean where they are allowed."""
    notes = ", ".join(note for note in (zero and f"0 {zero}", infinite and f"math.inf {infinite}") if note)
    number = is_number(value) and (value > 0 or (zero is not None and value == 0))
    if not number or (infinite is None and value == float("inf")):
        least = "at least 0 seconds" if zero is not None else "more than 0 seconds"
        finite = "" if infinite is not None else ", and finite"
        refuse(field, f"must be {least}{finite}" + (f" ({notes})" if notes else ""), value)


def is_number(value: object) -> TypeGuard[float]:
    """Whether it can be reckoned with; a bool is an int in Python, but True is no time."""
    if isinstance(value, int) and not isinstance(value, bool):
        # One that no float can hold cannot be added to a time.
        return value.bit_length() <= 1023
    return isinstance(value, float)


def check_whole(field: str, value: Any, *, low: int, high: int | None = None) -> None:
    """Refuse what is no whole number between two bounds, both allowed."""
    if not isinstance(value, int) or isinstance(value, bool) or value < low or (high is not None and value > high):
        bounds = f"of at least {low:,}" if high is None else f"from {low:,} to {high:,}"
        refuse(field, f"must be a whole number {bounds}", value)


def check_kind(field: str, value: object, kind: type, *, optional: bool = False) -> None:
    """Refuse what is not of one kind."""
    if not isinstance(value, kind) and not (optional and value is None):
        choice = f": {', '.join(map(str, kind))}" if issubclass(kind, enum.Enum) else ""
        name = kind.__name__ if kind is not bool else "True or False"
        article = "" if kind is bool else "an " if name[0] in "AEIOU" else "a "
        refuse(field, f"must be {article}{name}{choice}{' or None' if optional else ''}", value)


def printable(text: str, longest: int = NAME_CHARS_MAX) -> str:
    """A foreign text as one line that steers nothing: what does not print as itself is escaped, what is long is cut."""
    cut = text if len(text) <= longest else f"{text[:longest]} and {len(text) - longest} more characters"
    if cut.isprintable():
        return cut
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in cut)


def refuse(field: str, rule: str, value: object) -> NoReturn:
    """Refuse a value, shown short and in one line."""
    raise InvalidSpec(field, f"{rule}, not {shown(value)}")


def shown(value: object, longest: int = 80) -> str:
    """A foreign value as one short line of printable ASCII."""
    if isinstance(value, str):
        cut = ascii(value[:longest])
        return cut if len(value) <= longest else f"{cut} and {len(value) - longest} more characters"
    if isinstance(value, int) and value.bit_length() > 1023:
        return f"a number of {value.bit_length()} bits"  # Python writes out none of more than 4,300 digits.
    if value is None or isinstance(value, int | float | enum.Enum):
        return ascii(value)[:longest]
    # Its own repr may hold secrets, be endless or raise.
    return (
        f"a {type(value).__qualname__}" if not callable(value) else ascii(getattr(value, "__qualname__", "a callable"))
    )
