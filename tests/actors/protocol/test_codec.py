"""Between messages and JSON values."""

import enum
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol import (
    METHODS,
    NEWS,
    PROCESS_START,
    InvalidParams,
    Nothing,
    StartParams,
    WriteParams,
    decode_value,
    encode_value,
)
from tests.actors.protocol.test_envelope import JSON, TEXT

KINDS = sorted(
    {m.params for m in METHODS.values()} | {m.result for m in METHODS.values()} | {n.params for n in NEWS.values()},
    key=lambda kind: kind.__name__,
)


JUNK: list[Any] = [None, True, 0, -1, 2**70, 1.5, "", "x", "aGk=", [], ["x"], [1], [None], {}, {"x": 1}, {"x": "y"}]


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Anything a field of this type may hold."""
    if get_origin(kind) is Annotated:
        allowed = kind.__metadata__[0]
        return st.integers(allowed.low, allowed.high)
    if get_origin(kind) in {typing.Union, types.UnionType}:
        return st.one_of(*map(values_of, get_args(kind)))
    if get_origin(kind) is tuple:
        return st.lists(values_of(get_args(kind)[0]), max_size=3).map(tuple)
    if get_origin(kind) is Mapping:
        return st.dictionaries(TEXT, values_of(get_args(kind)[1]), max_size=3)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return st.sampled_from(kind)
    if attrs.has(kind):
        fields = attrs.fields(attrs.resolve_types(kind, include_extras=True))
        return st.builds(kind, **{field.name: values_of(field.type) for field in fields})
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT, bool: st.booleans(), bytes: st.binary(), type(None): st.none(), Any: JSON,
    }  # fmt: skip
    return plain[kind]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_message_comes_back_as_it_was(kind: type, data: st.DataObject) -> None:
    """Kills: leaving out a member whose value is false instead of its default; one wire name for two fields."""
    message = data.draw(values_of(kind))

    assert decode_value(encode_value(message), kind) == message


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_whatever_stands_in_for_a_member_is_taken_or_refused_by_name(kind: type, data: st.DataObject) -> None:
    """Kills: taking `true` for a number; letting `TypeError` out for a list where text is wanted."""
    members = encode_value(data.draw(values_of(kind)))
    for name in list(members):
        if data.draw(st.booleans()):
            members[name] = data.draw(st.sampled_from(JUNK))

    try:
        message = decode_value(members, kind)
    except InvalidParams as fault:
        touched = fault.field.partition(".")[0].partition("[")[0]
        assert touched in members
        return
    assert isinstance(message, kind)


def start(**changes: Any) -> dict[str, Any]:
    return {"processId": "p", "argv": ["x"], "cwd": "file:///", "env": {}, "tty": False, **changes}


@pytest.mark.parametrize(
    ("members", "field", "rule"),
    [
        (start(argv=["a", 1]), "argv[1]", "invalid type: number, expected a string"),
        (start(env={"A": None}), "env.A", "invalid type: null, expected a string"),
        (start(env=[]), "env", "invalid type: sequence, expected a map"),
        (start(tty=1), "tty", "invalid type: number, expected a boolean"),
        (start(rows=-1), "rows", "invalid number"),
        (start(rows=1.5), "rows", "invalid number"),
        (start(rows=True), "rows", "invalid type: boolean `true`, expected u64"),
        (start(envPolicy={}), "envPolicy.inherit", "missing field `inherit`"),
        ({}, "processId", "missing field `processId`"),
        ([], "", "invalid type: sequence, expected struct StartParams"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_member_and_the_rule(members: Any, field: str, rule: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        PROCESS_START.decode_params(members)

    assert (caught.value.field, caught.value.rule) == (field, rule)


def test_text_of_the_peer_comes_back_short_and_without_control_characters() -> None:
    with pytest.raises(InvalidParams) as caught:
        PROCESS_START.decode_params(start(argv="\x1b[2J" + "x" * 1000))

    assert "\x1b" not in caught.value.rule
    assert len(caught.value.rule) < 300


def test_members_of_ours_are_not_written_unless_used() -> None:
    params = StartParams(process_id="p", argv=("x",), cwd="file:///", env={}, tty=False)

    assert encode_value(params) == start(pipeStdin=False)


@pytest.mark.parametrize("value", [None, {}])
def test_no_parameters_may_be_absent_null_or_empty(value: Any) -> None:
    assert METHODS["environment/status"].decode_params(value) == Nothing()


def test_no_parameters_may_not_be_something() -> None:
    with pytest.raises(InvalidParams, match="invalid type: map, expected unit"):
        METHODS["environment/status"].decode_params({"a": 1})


def test_what_may_be_secret_is_not_shown() -> None:
    params = StartParams(process_id="p", argv=("x",), cwd="file:///", env={"TOKEN": "secret"}, tty=False)
    write = WriteParams(process_id="p", chunk=b"secret", write_id="1")

    assert "env=<TOKEN>" in repr(params)
    assert "chunk=<6 bytes>" in repr(write)
    assert "secret" not in repr(params) + repr(write)
