"""Public keys: what is refused, in which words, and that two spellings of one key do not exist."""

import base64
import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.noise import InvalidPublicKey, NoiseError, PublicKey
from tests.actors.noise.support import EXECUTOR, HARNESS

FIELDS = EXECUTOR.public_key.to_fields()
PREFIX = "^invalid Noise channel public key: "


def changed(**members: Any) -> dict[str, Any]:
    return FIELDS | members


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (changed(suite="Noise_XX_25519_AESGCM_SHA256"), "unsupported Noise channel suite$"),
        (changed(suite=""), "unsupported Noise channel suite$"),
        (changed(x25519_public_key="*" * 44), "invalid X25519 public key$"),
        (
            changed(x25519_public_key=base64.b64encode(bytes(31)).decode()),
            "invalid X25519 public key length$",
        ),
        (
            changed(x25519_public_key=base64.b64encode(bytes(33)).decode()),
            "invalid X25519 public key length$",
        ),
        (changed(x25519_public_key=""), "invalid X25519 public key length$"),
        (changed(x25519_public_key="é" * 44), "invalid X25519 public key$"),
        (changed(mlkem768_public_key="*" * 1580), "invalid ML-KEM-768 public key$"),
        (changed(mlkem768_public_key="A" * 1584), "invalid ML-KEM-768 public key length$"),
        (changed(mlkem768_public_key="A" * 1576), "invalid ML-KEM-768 public key length$"),
        (
            changed(mlkem768_public_key=base64.b64encode(b"\xff" * 1184).decode()),
            "invalid ML-KEM-768 public key$",
        ),
        (changed(comment="x"), "expected an object of exactly three strings"),
        (changed(suite=None), "expected an object of exactly three strings"),
        (changed(x25519_public_key=7), "expected an object of exactly three strings"),
        ({"suite": FIELDS["suite"]}, "expected an object of exactly three strings"),
        ([], "expected an object of exactly three strings"),
        (None, "expected an object of exactly three strings"),
    ],
)
def test_every_other_form_is_refused_in_the_words_of_its_fault(fields: Any, text: str) -> None:
    with pytest.raises(InvalidPublicKey, match=PREFIX + text):
        PublicKey.from_fields(fields)
    with pytest.raises(InvalidPublicKey, match=PREFIX + text):
        PublicKey.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", b"\xff\xfe\xfd", "[" * 10_000, json.dumps(FIELDS)[:-1] + ', "suite": "x"}', "NaN"],
)
def test_a_text_that_is_no_such_object_is_refused_without_quoting_it(text: str | bytes) -> None:
    with pytest.raises(InvalidPublicKey, match="expected an object of exactly three strings") as refused:
        PublicKey.from_json(text)

    assert refused.value.__cause__ is refused.value.__context__ is None


def test_a_text_that_no_key_needs_is_refused_unread() -> None:
    with pytest.raises(InvalidPublicKey, match="the JSON is too long"):
        PublicKey.from_json(" " * 20_000 + EXECUTOR.public_key.to_json())


def test_stray_bits_before_the_padding_are_refused_so_that_a_key_has_one_spelling() -> None:
    encoded = FIELDS["x25519_public_key"]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    stray = encoded[:-2] + alphabet[alphabet.index(encoded[-2]) ^ 1] + "="

    assert base64.b64decode(stray) == base64.b64decode(encoded)
    with pytest.raises(InvalidPublicKey, match=r"invalid X25519 public key$"):
        PublicKey.from_fields(changed(x25519_public_key=stray))


@pytest.mark.parametrize("spelling", ["url", "unpadded", "spaced"])
def test_other_dialects_of_base64_are_refused(spelling: str) -> None:
    key = bytes([0xFB, 0xEF, 0xBE] * 10) + b"ab"
    dialect = {
        "url": base64.urlsafe_b64encode(key).decode(),
        "unpadded": base64.b64encode(key).decode().rstrip("="),
        "spaced": base64.b64encode(key).decode()[:20] + "\n" + base64.b64encode(key).decode()[20:-1],
    }[spelling]

    with pytest.raises(InvalidPublicKey, match="X25519"):
        PublicKey.from_fields(changed(x25519_public_key=dialect))


def test_a_key_survives_its_json_and_its_pickle_unchanged() -> None:
    key = EXECUTOR.public_key

    assert PublicKey.from_json(key.to_json()) == key
    assert PublicKey.from_json(key.to_json().encode()).to_json() == key.to_json()
    assert pickle.loads(pickle.dumps(key)) == key
    assert copy.deepcopy(key) is copy.copy(key) is key


def test_keys_are_equal_only_when_both_halves_are() -> None:
    ours, other = EXECUTOR.public_key, HARNESS.public_key

    assert ours == PublicKey(x25519=ours.x25519, mlkem768=ours.mlkem768)
    assert hash(ours) == hash(PublicKey(x25519=ours.x25519, mlkem768=ours.mlkem768))
    assert ours != PublicKey(x25519=other.x25519, mlkem768=ours.mlkem768)
    assert ours != PublicKey(x25519=ours.x25519, mlkem768=other.mlkem768)
    assert ours != ours.to_json()


def test_a_caller_cannot_change_a_key_after_pinning_it() -> None:
    raw = bytearray(EXECUTOR.public_key.x25519)
    key = PublicKey(x25519=raw, mlkem768=EXECUTOR.public_key.mlkem768)
    raw[0] ^= 1

    assert key == EXECUTOR.public_key


@given(
    st.none()
    | st.integers()
    | st.dictionaries(st.sampled_from([*FIELDS, "x"]), st.text() | st.none() | st.lists(st.text()))
)
def test_whatever_json_comes_only_our_error_comes_out(value: Any) -> None:
    """Mutant killed: `except ValueError` in `_parse` and `_three_strings` without the type check."""
    with pytest.raises(NoiseError):
        PublicKey.from_json(json.dumps(value))


@given(st.sampled_from(sorted(FIELDS)), st.text(max_size=60))
def test_whatever_a_member_says_only_our_error_comes_out(member: str, text: str) -> None:
    """Mutant killed: the check for undecodable text dropped in `_decode`."""
    with pytest.raises(InvalidPublicKey):
        PublicKey.from_fields(FIELDS | {member: text})
