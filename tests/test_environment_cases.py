"""Every numbered case of the specification of environments has a test, by name.

The table is `environment_cases.txt`; the specification itself is not part of the repository.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TABLE = TESTS / "environment_cases.txt"
NUMBERS = {
    "7 test cases": [str(number) for number in range(1, 108)],
    "2.8 refresh": [
        "matching-key-keeps-the-session",
        "changed-key-retires-it",
        "superseded-attempts-never-install",
        "failed-look-up-changes-nothing",
        "live-status",
        "needs-a-registry",
        "needs-a-remote-one",
        "first-client",
    ],
    "9.2 observed faults": [str(number) for number in range(1, 27)],
    "noise 6 security": [str(number) for number in range(1, 27)],
    "reported cases": [
        f"P{number:02}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 20, 22, 25)
    ],
}
# Nothing of these is promised: programs on pipes, looking across environments, a draft of retransmission, and relays in
# plaintext.
MAY_BE_MISSING = {"40", "41", "86", "89", "90", "91", "103", "104", "105", "106", "107"}


def read_table(file: Path = TABLE) -> dict[str, dict[str, list[str]]]:
    table: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in file.read_text().splitlines():
        if line.startswith("["):
            section = table.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            number, what = line.split(maxsplit=1)
            section.setdefault(number, []).append(what)
    return table


@cache
def names_in(file: Path) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(names)


@pytest.mark.parametrize("section", NUMBERS)
def test_every_number_has_a_line_and_no_other_number_has(section: str) -> None:
    assert set(read_table()[section]) == set(NUMBERS[section])


@pytest.mark.parametrize("section", NUMBERS)
def test_every_test_of_the_table_exists(section: str) -> None:
    told = [what for tests in read_table()[section].values() for what in tests if not what.startswith("none: ")]
    missing = [what for what in told if what.split("::")[1] not in names_in(TESTS / what.split("::")[0])]

    assert missing == []


def test_only_what_is_promised_by_nobody_has_no_test() -> None:
    without = {
        number
        for section in read_table().values()
        for number, tests in section.items()
        if all(what.startswith("none: ") for what in tests)
    }

    assert without <= MAY_BE_MISSING


def test_a_test_that_carries_the_number_of_a_case_is_in_the_table() -> None:
    """So that a case whose test is renamed or added does not fall out of sight."""
    told = {what for section in read_table().values() for tests in section.values() for what in tests}
    faults = [
        f"{file.relative_to(TESTS)}::{name}"
        for file in (TESTS / "actors").rglob("test_*.py")
        for name in names_in(file)
        if name.startswith(("test_9_2_", "test_case_"))
    ]

    assert [name for name in faults if name not in told] == []
