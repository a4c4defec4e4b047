"""Check what a rendezvous and a client are given. A value may be a secret: only its type is told."""

import math
from collections.abc import Iterable
from typing import cast

from actors.relay import RelayError

__all__ = ["RendezvousSettingInvalid", "check_header_word", "check_kind", "check_seconds", "checked_sequence"]


class RendezvousSettingInvalid(RelayError, ValueError):
    """What a rendezvous, a grant or a client was given breaks a rule; nothing was opened."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field} {rule}")
        self.field: str = field
        self.rule: str = rule


def check_kind(field: str, value: object, kind: type, *, hint: str = "") -> None:
    """Refuse what is of another kind."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RendezvousSettingInvalid(field, f"must be of type {kind.__name__}, not {_kind(value)}{hint}")


def check_seconds(field: str, value: object) -> None:
    """Refuse what is no time that passes and ends."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < cast("float", value) < math.inf:
        raise RendezvousSettingInvalid(field, "must be a number of seconds above 0")


def check_header_word(field: str, value: object) -> None:
    """Refuse what no header can carry as one word."""
    check_kind(field, value, str)
    text = cast("str", value)
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise RendezvousSettingInvalid(field, "must be one word of printable ASCII: no header can carry another")


def checked_sequence(field: str, values: object, kind: type) -> list[object]:
    """Give the members of an iterable; refuse one without any, and members of another kind."""
    name = kind.__name__
    if isinstance(values, kind):
        raise RendezvousSettingInvalid(field, f"must be an iterable of {name}: put the one into a list, [{name}(...)]")
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise RendezvousSettingInvalid(field, f"must be an iterable of {name}, not {_kind(values)}")
    members = list(cast("Iterable[object]", values))
    if not members:
        raise RendezvousSettingInvalid(field, f"must hold at least one {name}: without it nobody gets in")
    for at, member in enumerate(members):
        check_kind(f"{field}[{at}]", member, kind)
    return members


def _kind(value: object) -> str:
    """What to call what was given; the class in the place of an object is a mistake of its own."""
    return f"the class {value.__name__} itself" if isinstance(value, type) else type(value).__name__
