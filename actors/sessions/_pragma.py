"""Read what a script says of its own execution in its first line: `// @exec: {"yield_time_ms": 1000}`.

Whoever takes scripts from a model applies this before `Session.execute`; hosts do not.
"""

import json
from typing import Final

import attrs

from actors.sessions._errors import InvalidRequest

_MARK: Final = "// @exec:"
_LARGEST: Final = 2**53 - 1
_FIELDS: Final = ("yield_time_ms", "max_output_tokens")
_SUPPORTED: Final = "`yield_time_ms` and `max_output_tokens`"


@attrs.frozen(kw_only=True)
class ExecSource:
    """A script and what its first line asked for.

    Attributes:
        source: Without the line.
        yield_time_ms: As `ExecuteRequest` takes it.
        max_output_tokens: As `ExecuteRequest` takes it.
    """

    source: str

    yield_time_ms: int | None = None

    max_output_tokens: int | None = None


def read_exec_source(text: str) -> ExecSource:
    """Take the pragma off a script, where it has one.

    Raises:
        InvalidRequest: There is no script, or the pragma is not valid.
    """
    if not text.strip():
        raise InvalidRequest(
            "exec expects raw JavaScript source text (non-empty). Provide JS only, with an optional first line "
            '`// @exec: {"yield_time_ms": 10000, "max_output_tokens": 1000}`.'
        )
    first, newline, rest = text.partition("\n")
    line = first.lstrip()
    if not line.startswith(_MARK):
        return ExecSource(source=text)
    if not newline or not rest.strip():
        raise InvalidRequest("exec pragma must be followed by JavaScript source on subsequent lines")
    fields = _fields(line[len(_MARK) :].strip())
    return ExecSource(source=rest, **{name: _number(name, value) for name, value in fields.items()})


def _fields(directive: str) -> dict[str, object]:
    not_an_object = f"exec pragma must be a JSON object with supported fields {_SUPPORTED}"
    if not directive:
        raise InvalidRequest(not_an_object)
    try:
        value: object = json.loads(directive)
    except (ValueError, RecursionError) as broken:
        text = f"exec pragma must be valid JSON with supported fields {_SUPPORTED}: {broken}"
        raise InvalidRequest(text) from broken
    if not isinstance(value, dict):
        raise InvalidRequest(not_an_object)
    fields: dict[str, object] = {str(name): one for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # Looked at next.
    for name in fields:
        if name not in _FIELDS:
            raise InvalidRequest(f"exec pragma only supports {_SUPPORTED}; got `{name}`")
    return fields


def _number(name: str, value: object) -> int | None:
    if value is None:
        return None
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(whole, bool) or not isinstance(whole, int) or not 0 <= whole <= _LARGEST:
        raise InvalidRequest(f"exec pragma field `{name}` must be a non-negative safe integer")
    return whole
