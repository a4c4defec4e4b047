"""Every numbered case of the specification of code sessions has a test, by name.

The table is `session_cases.txt`; the specification itself is not part of the repository.
"""

import pytest

from tests.test_environment_cases import TESTS, names_in, read_table

TABLE = TESTS / "session_cases.txt"
COUNTS = {
    "A seed": 15,
    "B client end to end": 22,
    "C admission and routing": 9,
    "D getters": 2,
    "E host service": 16,
    "F timing and notifications": 5,
    "G provider contract": 6,
    "H standalone host": 7,
    "I cell state machine": 10,
    "J session runtime": 5,
    "K service contract": 7,
    "L javascript": 20,
    "M client bookkeeping": 16,
}
NUMBERS = {section: {str(number) for number in range(1, count + 1)} for section, count in COUNTS.items()} | {
    "N server truncation": {"0", "1", "2", "3"},
    "reported cases": {"P09", "P11", "P14", "P15", "P25"},
}
# What no message of the protocol can ask for.
MAY_BE_MISSING = {"I10", "L20"}


@pytest.mark.parametrize("section", NUMBERS)
def test_every_number_has_a_line_and_no_other_number_has(section: str) -> None:
    assert {*read_table(TABLE)[section]} == NUMBERS[section]


def test_there_is_no_other_section() -> None:
    assert {*read_table(TABLE)} == {*NUMBERS}


@pytest.mark.parametrize("section", NUMBERS)
def test_every_test_of_the_table_exists(section: str) -> None:
    told = [what for tests in read_table(TABLE)[section].values() for what in tests if not what.startswith("none: ")]
    missing = [what for what in told if what.split("::")[1] not in names_in(TESTS / what.split("::")[0])]

    assert missing == []


def test_only_what_is_promised_by_nobody_has_no_test() -> None:
    without = {
        f"{section[0]}{number}"
        for section, cases in read_table(TABLE).items()
        for number, tests in cases.items()
        if all(what.startswith("none: ") for what in tests)
    }

    assert without == MAY_BE_MISSING


def test_every_test_of_the_seed_runs_over_real_sockets_or_on_a_virtual_clock() -> None:
    files = {what.split("::")[0] for tests in read_table(TABLE)["A seed"].values() for what in tests}

    assert files <= {
        "actors/sessions/client/test_seed_scripts.py",
        "actors/sessions/client/test_seed_cases.py",
        "actors/sessions/test_wire.py",
    }
