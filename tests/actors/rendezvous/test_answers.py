"""What a registry's answers mean, word for word."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.noise import Identity
from actors.rendezvous import (
    RegistryAnswerInvalid,
    RegistryAuthFailed,
    RegistryError,
    RegistryHttpFailed,
)
from actors.rendezvous._answers import (
    connection_of,
    error_of,
    is_retryable,
    registration_of,
    validation_error_of,
    validity_of,
)

KEY = Identity.generate().public_key
REGISTRATION = {
    "environment_id": "env",
    "url": "wss://relay/x?ticket=secret",
    "security_profile": "noise_hybrid_ik_v1",
    "executor_registration_id": "reg",
}
CONNECTION = {**REGISTRATION, "executor_public_key": KEY.to_fields(), "harness_key_authorization": "secret"}


def body(fields: object, **changes: object) -> bytes:
    return json.dumps({**fields, **changes} if isinstance(fields, dict) else fields).encode()


def test_good_answers_are_read_and_unknown_members_ignored() -> None:
    assert registration_of(body(REGISTRATION, transport_policy={"x": 1}), "env").url == REGISTRATION["url"]
    connection = connection_of(body(CONNECTION), "env")
    assert connection.executor_public_key == KEY
    assert validity_of(b'{"valid": false, "x": 1}') is False


DIFFERENT = "environment registry returned a different environment id"
PROFILE = "environment registry returned unsupported security profile `plain`"
INCOMPLETE = "environment registry returned incomplete Noise connection data"
MISSING = "failed to serialize or deserialize exec-server JSON: missing field `url`"
WRONG = [
    (registration_of, body(REGISTRATION, environment_id="x"), DIFFERENT),
    (registration_of, body(REGISTRATION, security_profile="plain"), PROFILE),
    (registration_of, body({"environment_id": "env"}), MISSING),
    (connection_of, body(CONNECTION, environment_id="x"), DIFFERENT),
    (connection_of, body(CONNECTION, url=" "), INCOMPLETE),
    (connection_of, body(CONNECTION, executor_registration_id=""), INCOMPLETE),
    (connection_of, body(CONNECTION, harness_key_authorization="\t"), INCOMPLETE),
]


@pytest.mark.parametrize(("read", "data", "text"), WRONG, ids=range(len(WRONG)))
def test_wrong_answers_are_refused_in_the_words_of_the_protocol(read, data: bytes, text: str) -> None:
    with pytest.raises(RegistryAnswerInvalid) as caught:
        read(data, "env")

    assert str(caught.value) == text
    assert not caught.value.retryable


NAMES = st.sampled_from([*CONNECTION, "valid", "x"])
LEAVES = st.none() | st.booleans() | st.text() | st.integers()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=8,
)


@given(st.binary(max_size=50) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_read_or_refused_by_type(data: bytes) -> None:
    """Mutant: `_members_of` does not ask whether the answer is an object."""
    for read in (lambda d: registration_of(d, "env"), lambda d: connection_of(d, "env"), validity_of):
        with suppress(RegistryError):
            read(data)


def test_errors_have_the_status_the_code_and_the_message() -> None:
    error = error_of(409, b'{"error": {"code": "environment_offline", "message": "gone"}}', None)
    assert str(error) == "environment registry request failed (409, environment_offline): gone"
    assert error.retryable
    assert str(error_of(500, b"  oops  ", None)) == "environment registry request failed (500): oops"
    assert str(error_of(500, b"", None)).endswith(": empty or malformed error body")
    assert len(str(error_of(500, b"x" * 100_000, None))) < 4200
    for status in (401, 403):
        error = error_of(status, b'{"error": {"code": "c", "message": "no"}}', None)
        assert isinstance(error, RegistryAuthFailed)
        assert str(error) == f"environment registry authentication failed ({status}): no"


def test_a_failed_validation_shows_nothing_of_the_answer() -> None:
    assert str(validation_error_of(500, 3.0)) == "environment registry harness key validation failed"
    assert str(validation_error_of(401, None)) == (
        "environment registry harness key validation authentication failed (401)"
    )


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        *[(status, None, True) for status in (408, 429, 500, 502, 503)],
        (409, "environment_offline", True),
        (409, "registration_conflict", False),
        (404, None, False),
        (400, None, False),
    ],
)
def test_94_95_which_errors_may_be_gone_the_next_time(status: int, code: str | None, expected: bool) -> None:
    assert is_retryable(status, code) is expected


def test_no_secret_is_in_a_repr() -> None:
    shown = repr(registration_of(body(REGISTRATION), "env")) + repr(connection_of(body(CONNECTION), "env"))

    assert "secret" not in shown
    assert isinstance(error_of(500, b"", 1.0), RegistryHttpFailed)
