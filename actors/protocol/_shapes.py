"""Say what a JSON value is, in the words the other implementation uses."""

from actors.protocol._faults import InvalidParams


def shape_of(value: object) -> str:
    """Name the shape of a decoded JSON value: ``null``, ``number``, ``string "x"``, ``sequence``, ``map``."""
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{'true' if value else 'false'}`"
        case int() | float():
            return "number"
        case str():
            return f"string {_quoted(value)}"
        case list() | tuple():
            return "sequence"
        case _:
            return "map"


def wrong_type(value: object, expected: str) -> InvalidParams:
    """Give the fault "invalid type: number, expected a string"."""
    return InvalidParams(f"invalid type: {shape_of(value)}, expected {expected}")


def unknown_variant(value: str, known: tuple[str, ...]) -> InvalidParams:
    """Give the fault "unknown variant `kill`, expected `interrupt`"."""
    names = [f"`{name}`" for name in known]
    expected = " or ".join(names) if len(names) <= 2 else "one of " + ", ".join(names)
    return InvalidParams(f"unknown variant `{value}`, expected {expected}")


_QUOTED_MAX = 200


def _quoted(text: str) -> str:
    # A peer's text goes back to the peer: bounded, and with nothing a terminal would obey.
    shown = text if len(text) <= _QUOTED_MAX else text[:_QUOTED_MAX] + "…"
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in escaped) + '"'
