"""Between frozen messages and JSON values, by the field types alone.

Wire names are the camelCase of ours. Unknown members are ignored. Each refusal is an `InvalidParams` that says which
member and which rule, in the words of the other implementation. Knows no message by name.
"""

import enum
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar, cast, get_args, get_origin

import attrs
from cattrs import Converter

from actors.protocol._base64 import decode_bytes, encode_bytes
from actors.protocol._faults import InvalidParams
from actors.protocol._shapes import unknown_variant, wrong_type

M = TypeVar("M")
Hook = Callable[[Any, Any], Any]


@attrs.frozen
class Range:
    """The whole numbers a field takes."""

    name: str
    """How a refusal calls them: `u64`."""
    low: int
    """The lowest."""
    high: int
    """The highest."""


@attrs.frozen
class Length:
    """The texts a field takes."""

    characters_max: int
    """The longest."""


NAME_CHARACTERS_MAX: Final = 1024
"""The longest name of a process, write, session or client: the other end keeps it, and says it with every event."""

Name = Annotated[str, Length(NAME_CHARACTERS_MAX)]
"""What one end calls something, and the other repeats."""
U64 = Annotated[int, Range("u64", 0, 2**64 - 1)]
"""A count, a position, a number of milliseconds or bytes."""
I32 = Annotated[int, Range("i32", -(2**31), 2**31 - 1)]
"""An exit code."""
LEFT_OUT: Final = {"left_out": True}
"""Metadata of a field that is not written while it has its default."""
WIRE_NAME: Final = "wire_name"
"""Metadata key: what the wire calls a field, where that is not the camelCase of ours."""


def decode_value(value: object, kind: type[M]) -> M:
    """Make a message from a decoded JSON value.

    Raises:
        InvalidParams: A member is missing or has a wrong type; names the member and the rule.
    """
    return _converter.structure(value, kind)


def encode_value(message: object) -> Any:
    """Make the JSON value of a message."""
    return _converter.unstructure(message)


def wire_name(name: str) -> str:
    """Give the wire's name of a field: ``process_id`` is ``processId``."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def _wire_name_of(field: Any) -> str:
    return str(field.metadata.get(WIRE_NAME) or wire_name(field.name))


def _string(value: object, _: object) -> str:
    if type(value) is not str:
        raise wrong_type(value, "a string")
    return value


def _boolean(value: object, _: object) -> bool:
    if type(value) is not bool:
        raise wrong_type(value, "a boolean")
    return value


def _bytes(value: object, _: object) -> bytes:
    return decode_bytes(_string(value, str))


def _annotated_hook(kind: Any) -> Hook:
    (allowed,) = kind.__metadata__
    return _name_hook(allowed) if isinstance(allowed, Length) else _number_hook(allowed)


def _name_hook(allowed: Length) -> Hook:
    def name(value: object, _: object) -> str:
        text = _string(value, str)
        if len(text) > allowed.characters_max:
            raise InvalidParams(
                f"invalid length {len(text)}, expected a string of at most {allowed.characters_max} characters"
            )
        return text

    return name


def _number_hook(allowed: Range) -> Hook:

    def number(value: object, _: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_type(value, allowed.name)
        if not isinstance(value, int) or not allowed.low <= value <= allowed.high:
            raise InvalidParams("invalid number")
        return value

    return number


def _sequence_hook(kind: Any) -> Hook:
    item_type = get_args(kind)[0]
    item_hook = _converter.get_structure_hook(item_type)

    def sequence(value: object, _: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise wrong_type(value, "a sequence")
        items: list[Any] = []
        for position, item in enumerate(cast("list[object]", value)):
            try:
                items.append(item_hook(item, item_type))
            except InvalidParams as fault:
                raise fault.inside(f"[{position}]") from None
        return tuple(items)

    return sequence


def _mapping_hook(kind: Any) -> Hook:
    item_type = get_args(kind)[1]
    item_hook = _converter.get_structure_hook(item_type)

    def mapping(value: object, _: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise wrong_type(value, "a map")
        items: dict[str, Any] = {}
        for name, item in cast("dict[str, object]", value).items():
            try:
                items[name] = item_hook(item, item_type)
            except InvalidParams as fault:
                raise fault.inside(name) from None
        return items

    return mapping


def _variant_hook(kind: Any) -> Hook:
    known = {member.value: member for member in kind}

    def variant(value: object, _: object) -> Any:
        text = _string(value, str)
        if text not in known:
            raise unknown_variant(text, tuple(known))
        return known[text]

    return variant


def _struct_hook(kind: Any) -> Hook:
    """Read members in the order of the class; the first broken rule is the one that is told."""
    fields: list[tuple[str, str, bool, Any, Hook]] = []
    for field in attrs.fields(attrs.resolve_types(kind, include_extras=True)):
        required = field.default is attrs.NOTHING
        hook = _converter.get_structure_hook(field.type)
        fields.append((field.name, _wire_name_of(field), required, field.type, hook))

    def struct(value: object, _: object) -> Any:
        if not isinstance(value, dict):
            raise wrong_type(value, f"struct {kind.__name__}")
        members = cast("dict[str, object]", value)
        made: dict[str, Any] = {}
        for name, wire, required, field_type, hook in fields:
            if wire in members:
                try:
                    made[name] = hook(members[wire], field_type)
                except InvalidParams as fault:
                    raise fault.inside(wire) from None
            elif required:
                raise InvalidParams(f"missing field `{wire}`", field=wire)
        return kind(**made)

    return struct


def _struct_writer(kind: Any) -> Callable[[Any], Any]:
    """Write members in the order of the class, which is the other implementation's order.

    Not made by cattrs: its generated writers put what may be left out behind the rest.
    """
    fields = [
        (field.name, _wire_name_of(field), _converter.get_unstructure_hook(field.type), field.default)
        if field.metadata.get("left_out")
        else (field.name, _wire_name_of(field), _converter.get_unstructure_hook(field.type), attrs.NOTHING)
        for field in attrs.fields(attrs.resolve_types(kind, include_extras=True))
    ]

    def write(message: Any) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for name, wire, hook, left_out in fields:
            value = getattr(message, name)
            if value != left_out:
                members[wire] = hook(value)
        return members

    return write


def _made_of(origin: object) -> Callable[[Any], bool]:
    return lambda kind: cast("object", get_origin(kind)) is origin


def _is_variant(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


_converter = Converter(detailed_validation=False)
_converter.register_structure_hook(str, _string)
_converter.register_structure_hook(bool, _boolean)
_converter.register_structure_hook(bytes, _bytes)
_converter.register_structure_hook_factory(_made_of(Annotated), _annotated_hook)
_converter.register_structure_hook_factory(_made_of(tuple), _sequence_hook)
_converter.register_structure_hook_factory(_made_of(Mapping), _mapping_hook)
_converter.register_structure_hook_factory(_is_variant, _variant_hook)
_converter.register_structure_hook_factory(attrs.has, _struct_hook)
_converter.register_unstructure_hook(bytes, encode_bytes)
_converter.register_unstructure_hook_factory(attrs.has, _struct_writer)
