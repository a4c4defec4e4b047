"""The documents stay true: examples run, drawings are fresh, links lead somewhere, only the project is told of."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOP = HERE.parent
PAGES = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md")), *sorted((TOP / "benchmarks").rglob("*.md"))]


EXAMPLE = re.compile(r"<!-- example -->\n```python\n(?P<code>.*?)```\n(?:<!-- prints\n(?P<prints>.*?)-->)?", re.DOTALL)
EXAMPLES = [
    pytest.param(found["code"], found["prints"] or "hello from the green room\n", id=f"{page.name}-{number}")
    for page in (TOP / "README.md", TOP / "docs" / "guide.md")
    for number, found in enumerate(EXAMPLE.finditer(page.read_text()), 1)
]


def test_the_readme_and_the_guide_have_examples() -> None:
    assert len(EXAMPLES) == 7


@pytest.mark.parametrize(("code", "prints"), EXAMPLES)
def test_an_example_runs_as_it_stands_and_prints_what_the_page_says(code: str, prints: str) -> None:
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)

    assert (ran.returncode, ran.stdout) == (0, prints), ran.stderr


def test_the_drawings_of_the_lifecycles_are_what_the_tables_say() -> None:
    spec = importlib.util.spec_from_file_location("draw_lifecycles", TOP / "docs" / "draw_lifecycles.py")
    assert spec is not None
    assert spec.loader is not None
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)

    fresh = drawing.page()

    assert (TOP / "docs" / "lifecycles.md").read_text() == fresh, "stale: run `python docs/draw_lifecycles.py`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_module_or_test_that_a_page_names_exists(page: Path) -> None:
    for named in re.findall(r"`((?:actors|supervision|tests|benchmarks|docs)/[\w/.\-]+)`", page.read_text()):
        assert named.endswith("/") or (TOP / named).exists() or (package_root() / named).exists(), (
            f"{page.name}: {named}"
        )


def package_root() -> Path:
    import actors

    return Path(str(actors.__file__)).parent.parent


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_pages_speak_of_the_project_alone(page: Path) -> None:
    for word in ("/work/", "/root/", "/home/", "pyenv", "TODO", "FIXME", "this session", "issue 2", "helper-"):
        assert word not in page.read_text(), f"{page.name} says {word!r}"
