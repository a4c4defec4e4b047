"""Two ids are one name only if they are equal; what could pass for another is refused and shown escaped."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.environments import InvalidEnvironmentId, ProtocolError
from actors.environments._ids import MAX_ENVIRONMENT_ID_BYTES, check_environment_id, printable, shown

ACCEPTED = [
    "env-a",
    "ENV-A",
    "caf\u00e9",
    "a/b",
    "a_b",
    "a",
    "x" * 256,
    "con",
    "remote",
    "a b",
    "...",
    "\U0001f600",
    "`",
]
REFUSED = {
    "cafe\u0301": r"normal form C; 'caf\xe9' is",
    "a ": "begins or ends with ' '",
    " a": "begins or ends with ' '",
    "x" * 4096: "longer than 256 bytes",
    "x" * 4095 + "y": "longer than 256 bytes",
    "\u00e9" * 129: "longer than 256 bytes",
    ".": "names a directory",
    "..": "names a directory",
    "a\u200fb": r"'\u200f' at position 1",
    "a\nb": r"'\n' at position 1",
    "a\x1b[2J": r"'\x1b' at position 1",
    "a\ud800": r"'\ud800' at position 1",
    "a\tb": r"'\t' at position 1",
    "a\u00a0b": r"'\xa0' at position 1",
    "\u200d": r"'\u200d' at position 0",
}


@pytest.mark.parametrize("environment_id", ACCEPTED, ids=ascii)
def test_a_plain_id_is_accepted(environment_id: str) -> None:
    check_environment_id(environment_id)


@pytest.mark.parametrize(("environment_id", "part"), [*REFUSED.items()], ids=lambda value: ascii(value)[:20])
def test_an_id_that_could_pass_for_another_is_refused_with_the_offending_part_escaped(
    environment_id: str, part: str
) -> None:
    with pytest.raises(InvalidEnvironmentId) as refused:
        check_environment_id(environment_id)

    assert part in str(refused.value)
    assert str(refused.value).isprintable()
    assert str(refused.value).isascii()
    assert len(str(refused.value)) < 400
    assert refused.value.environment_id == environment_id


def test_the_empty_id_is_refused_with_the_text_that_peers_know() -> None:
    with pytest.raises(ProtocolError) as refused:
        check_environment_id("")

    assert str(refused.value) == "exec-server protocol error: environment id cannot be empty"


def test_the_id_of_this_machine_is_reserved() -> None:
    with pytest.raises(ProtocolError) as refused:
        check_environment_id("local")

    text = "exec-server protocol error: environment id `local` is reserved for EnvironmentManager"
    assert str(refused.value) == text


def test_accepted_ids_are_told_apart_by_nothing_but_equality() -> None:
    for one, other in itertools.combinations(ACCEPTED, 2):
        assert one != other


@given(st.text(max_size=400))
def test_any_text_is_accepted_as_it_is_or_refused_in_one_printable_line(text: str) -> None:
    """Mutants seen killed: no printable check; `len(bytes) > 512`; message built with `str` in place of `ascii`."""
    refused = refusal_of(text)

    if refused is not None:
        assert refused.isprintable()
    else:
        assert text.isprintable()
        assert text == text.strip()
        assert 0 < len(text.encode()) <= MAX_ENVIRONMENT_ID_BYTES


def refusal_of(environment_id: str) -> str | None:
    try:
        check_environment_id(environment_id)
    except InvalidEnvironmentId as refused:
        return str(refused)
    return None


@given(st.text())
def test_a_printable_form_is_one_line_and_leaves_printable_text_alone(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(text) == text or not text.isprintable()


def test_a_long_text_is_shown_cut_and_says_so() -> None:
    assert shown("a" * 70) == repr("a" * 64) + " and 6 more characters"
