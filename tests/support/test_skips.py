"""Every skip says what is missing and how to get it, since only `tests.support.skips` skips."""

import ast
from pathlib import Path

import pytest

from tests.support.skips import needs, needs_recording, reason

TESTS = Path(__file__).parents[1]
HOME = TESTS / "support" / "skips.py"
SKIPS = {"skip", "skipif", "importorskip", "SkipTest", "skipTest", "skipUnless", "skipIf", "Skipped"}


def skips_in(source: str) -> list[int]:
    """The lines that skip by themselves."""
    found: list[int] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in SKIPS and not _is_of_home(node):
            found.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module in {"pytest", "unittest", "_pytest.outcomes"}:
            found += [node.lineno for name in node.names if name.name in SKIPS]
    return found


def _is_of_home(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "skips"


def test_nothing_skips_but_what_says_how_to_get_what_is_missing() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{line}: skip by tests.support.skips, which asks what is missing and how to get it"
        for path in sorted(TESTS.rglob("*.py"))
        if path != HOME
        for line in skips_in(path.read_text())
    ]

    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "pytest.skip('no')",
        "x = pytest.importorskip('x')",
        "@pytest.mark.skipif(True, reason='no')\ndef f(): ...",
        "pytestmark = pytest.mark.skip",
        "from pytest import skip as leave",
        "raise unittest.SkipTest",
    ],
)
def test_a_skip_of_its_own_is_found(line: str) -> None:
    assert len(skips_in(line)) == 1


def test_a_skip_from_home_is_none_of_its_own() -> None:
    assert skips_in("from tests.support import skips\nskips.skip('x', 'y')") == []


def test_a_reason_names_what_is_missing_and_what_to_do() -> None:
    assert needs(False, "tea", "boil water").kwargs["reason"] == "tea is missing: boil water"
    assert "GREENROOM_GOLDEN" in needs_recording("none.jsonl").kwargs["reason"]
    for missing, get in (("", "x"), ("x", "")):
        with pytest.raises(AssertionError, match="what is missing and how to get it"):
            reason(missing, get)
