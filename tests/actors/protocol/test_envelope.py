"""One message in, one message out."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol import (
    ErrorResponse,
    Failure,
    MalformedMessage,
    Message,
    MessageTooLarge,
    Notification,
    Request,
    Response,
    decode_message,
    encode_message,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
IDS = st.integers(-(2**63), 2**63 - 1) | TEXT
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Request, IDS, TEXT, JSON),
    st.builds(Notification, TEXT, JSON),
    st.builds(Response, IDS, JSON),
    st.builds(ErrorResponse, IDS, st.builds(Failure, st.integers(), TEXT, JSON)),
)


@given(MESSAGES)
def test_a_message_comes_back_as_it_was_sent(message: Message) -> None:
    """Kills: ids checked against 32 bits; `data` of a failure dropped; a string id read as a number."""
    data = encode_message(message)

    assert decode_message(data) == message
    assert decode_message(data.decode()) == message
    assert "jsonrpc" not in json.loads(data)


@given(MESSAGES, st.dictionaries(st.sampled_from(["jsonrpc", "trace", "extra"]), JSON))
def test_unknown_members_change_nothing(message: Message, extra: dict[str, Any]) -> None:
    """Kills: refusing any member that is not known."""
    members = {**extra, **json.loads(encode_message(message))}

    assert decode_message(json.dumps(members)) == message


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_a_message_or_a_typed_refusal(data: bytes) -> None:
    """Kills: letting `RecursionError`, `UnicodeDecodeError` or a missing check of `error` through."""
    try:
        message = decode_message(data)
    except MalformedMessage:
        return

    assert decode_message(encode_message(message)) == message


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "EOF while parsing a value at line 1 column 0"),
        (b"[1]", "expected a JSON-RPC object"),
        (b'{"id":true,"method":"m"}', "data did not match any variant of untagged enum RequestId"),
        (b'{"id":1,"error":{"message":"m"}}', "missing field `code`"),
        (b'{"id":1,"error":{"code":1}}', "missing field `message`"),
        (b'{"id":1,"error":5}', "invalid type: number, expected struct Failure"),
        (b'{"result":1}', "missing field `error`"),
        (b'{"error":{"code":1,"message":"m"}}', "missing field `id`"),
        (b'{"method":"m","params":"\\ud800"}', "lone surrogate in a string escape"),
        (b'{"method":"m","params":NaN}', "NaN is not JSON"),
        (b"\xff", "invalid UTF-8 at offset 0"),
        (b"[" * 100_000, "recursion limit exceeded"),
    ],
)
def test_each_malformed_message_is_refused_with_its_rule(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        decode_message(data)

    assert caught.value.reason == reason


def test_a_malformed_answer_still_tells_which_call_it_was_for() -> None:
    with pytest.raises(MalformedMessage) as caught:
        decode_message(b'{"id":7,"error":{"code":"x","message":"m"}}')

    assert caught.value.request_id == 7


def test_a_surrogate_pair_is_one_character() -> None:
    message = decode_message(b'{"method":"m","params":"\\ud83d\\ude42"}')

    assert message == Notification("m", "🙂")


@pytest.mark.parametrize("text", ["x", "é", "漢", "🙂"])
def test_the_limit_is_exact_in_bytes_both_ways(text: str) -> None:
    message = Notification("m", text * 100)
    size_bytes = len(encode_message(message))

    assert decode_message(encode_message(message, limit_bytes=size_bytes), limit_bytes=size_bytes) == message
    assert decode_message(encode_message(message).decode(), limit_bytes=size_bytes) == message
    for give in (encode_message(message), encode_message(message).decode()):
        with pytest.raises(MessageTooLarge) as caught:
            decode_message(give, limit_bytes=size_bytes - 1)
        assert (caught.value.size_bytes, caught.value.limit_bytes) == (size_bytes, size_bytes - 1)
    with pytest.raises(MessageTooLarge):
        encode_message(message, limit_bytes=size_bytes - 1)


@pytest.mark.parametrize("value", [object(), {"a": {1, 2}}, "\ud800", float("nan")])
def test_what_has_no_json_form_is_refused_when_it_is_sent(value: object) -> None:
    with pytest.raises(MalformedMessage, match="no JSON form"):
        encode_message(Notification("m", value))
