"""The documents stay true: examples run, drawings are fresh, links lead somewhere, only the project is told of."""

import ast
import importlib.util
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tokenize import COMMENT

import pytest

from tests.support.prepared import Prepared, open_prepared

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
    assert len(EXAMPLES) == 17


def test_the_guide_names_every_function_that_a_cell_is_given() -> None:
    prelude = (package_root() / "actors/sessions/host/_javascript/prelude.js").read_text()
    helpers = prelude.partition("const helpers = {")[2].partition("\n  };")[0]
    given = {*re.findall(r"^    (\w+)\(.*\{", helpers, re.MULTILINE), *re.findall(r"offer\('(\w+)'", prelude)}
    section = (TOP / "docs" / "guide.md").read_text().partition("### What a cell can use")[2].partition("\n## ")[0]

    assert len(given) == 16
    assert {name for name in given if not re.search(rf"`{name}\b", section)} == set()


@pytest.fixture(scope="module")
def prepared() -> Iterator[Prepared]:
    with open_prepared() as prepared:
        yield prepared


@pytest.mark.parametrize(("code", "prints"), EXAMPLES)
def test_an_example_runs_as_it_stands_and_prints_what_the_page_says(prepared: Prepared, code: str, prints: str) -> None:
    """Seen failing for an import left out, for an exception and for a task that was never awaited."""
    returncode, out, err = prepared.run(code)

    assert (returncode, out, err) == (0, prints, "")


@pytest.mark.slow
@pytest.mark.parametrize(("code", "prints"), EXAMPLES[:1])
def test_the_example_of_the_readme_runs_in_a_fresh_interpreter(code: str, prints: str) -> None:
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


SILENCED = re.compile(r"(?:type|pyright): ignore(?:\[[^\]]*\])?|noqa(?:: ?[A-Z]+\d+(?:, ?[A-Z]+\d+)*)?")


def modules_of_ours() -> list[Path]:
    return sorted(path for package in ("actors", "supervision") for path in (package_root() / package).rglob("*.py"))


def said_in(module: Path) -> str:
    """The comments and docstrings of a module."""
    code = module.read_text()
    said = [comment for _line, comment in comments_of(code)]
    for step in ast.walk(ast.parse(code)):
        match step:
            case ast.Expr(value=ast.Constant(value=str(text))):
                said.append(text)
            case _:
                pass
    return "\n".join(said)


def comments_of(code: str) -> list[tuple[int, str]]:
    """The comments of a module, with their lines."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == COMMENT]


@pytest.mark.parametrize("module", modules_of_ours(), ids=lambda path: str(path.relative_to(package_root())))
def test_an_assertion_says_what_it_protects_and_what_silences_a_checker_says_why(module: Path) -> None:
    """Seen failing for eight assertions and six silenced checkers."""
    code = module.read_text()

    mute = [step.lineno for step in ast.walk(ast.parse(code)) if isinstance(step, ast.Assert) and step.msg is None]
    for line, comment in comments_of(code):
        reason, silences = SILENCED.subn("", comment)
        if silences and not re.search(r"\w", reason):
            mute.append(line)

    assert mute == []


def names_of_tests() -> set[str]:
    """The names of all tests, and of the files and folders that hold them."""
    there: set[str] = set()
    for path in (TOP / "tests").rglob("test_*"):
        there.add(path.stem)
        if path.suffix == ".py":
            there |= set(re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE))
    return there


def test_every_test_that_a_comment_a_docstring_or_a_page_names_exists() -> None:
    """Seen failing for four names of tests that were renamed, and for a path that was made up.

    A name that ends in an underscore, as of `test_security_*.py`, stands for all that begin so.
    """
    there = names_of_tests()
    texts = {path: said_in(path) for path in modules_of_ours()} | {page: page.read_text() for page in PAGES}

    unknown = {
        f"{path.name}: {named}"
        for path, text in texts.items()
        for named in re.findall(r"\btest_\w+", text)
        if named not in there and not (named.endswith("_") and any(name.startswith(named) for name in there))
    }
    nowhere = {
        f"{path.name}: {named}"
        for path, text in texts.items()
        for named in re.findall(r"(?<![\w/])tests/[\w/]+(?:\.py)?", text)
        if not (TOP / named).exists() and not list(TOP.glob(f"{named}*"))
    }

    assert unknown == set()
    assert nowhere == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_pages_speak_of_the_project_alone(page: Path) -> None:
    for word in ("/work/", "/root/", "/home/", "pyenv", "TODO", "FIXME", "this session", "issue 2", "helper-"):
        assert word not in page.read_text(), f"{page.name} says {word!r}"


NUMBERED = re.compile(r"\b(?:case )?P\d\d\b|\bspec(?:ification)? \d|\bcases? [A-Z]?\d|\bshared/")


@pytest.mark.parametrize(
    "text", [*PAGES, *modules_of_ours()], ids=lambda path: str(path).rpartition("/site-packages/")[2]
)
def test_nothing_points_to_the_numbers_of_a_document_that_is_not_here(text: Path) -> None:
    """OTP's test cases are numbered in public, and the guarantees list them."""
    said = text.read_text() if text.suffix == ".md" else said_in(text)

    assert [line for line in said.splitlines() if NUMBERED.search(line) and "OTP" not in line] == []


# What the map calls each package; modules may also be named where two ways through several packages are told.
SECTIONS = {
    "supervision": "### Supervision",
    "actors": "### The actor core",
    "actors/environments": "### Environments",
    "actors/protocol": "### The exec protocol",
    "actors/harness": "### The harness",
    "actors/executor": "### The executor",
    "actors/noise": "### actors.noise",
    "actors/websocket": "### `actors.websocket`",
    "actors/relay": "### `actors.relay`",
    "actors/rendezvous": "### `actors.rendezvous`",
    "actors/sessions/grpc": "### `actors.sessions.grpc`",
    "actors/sessions/host": "### `actors.sessions.host`",
    "actors/sessions": "### Code sessions, the client",
    "actors/cli": "### The command line",
}
SHARED_SECTIONS = ("### Files", "### The way through a rendezvous")


def code_map() -> dict[str, str]:
    """The sections of the code map by their headings."""
    parts = re.split(r"^(?=### )", (TOP / "docs" / "architecture.md").read_text(), flags=re.MULTILINE)
    return {part.splitlines()[0]: part for part in parts[1:]}


def modules_of(package: str) -> set[str]:
    """The package's own modules, and those of packages below it that have no section; not what is generated."""
    top = package_root() / package
    below = [other for other in SECTIONS if other.startswith(f"{package}/")]
    return {
        path.stem
        for path in top.rglob("*.py")
        if not any(path.is_relative_to(package_root() / other) for other in below)
        and not path.stem.startswith("__")
        and not path.stem.endswith("_pb2")
    }


@pytest.mark.parametrize("package", SECTIONS)
def test_the_code_map_names_every_module_of_a_package(package: str) -> None:
    """Seen failing for 46 modules before they were named."""
    told = [t for heading, t in code_map().items() if heading.startswith((SECTIONS[package], *SHARED_SECTIONS))]

    missing = {module for module in modules_of(package) if not re.search(rf"\b{module}\b", "\n".join(told))}

    assert not missing, f"name them under {SECTIONS[package]!r} in docs/architecture.md"


def test_every_file_that_the_code_map_names_exists() -> None:
    """Seen failing for a file that was made up."""
    there = {path.name for package in ("actors", "supervision") for path in (package_root() / package).rglob("*.py")}
    there.add("_greenroom.py")

    named = re.findall(r"\b_?\w+\.py\b", "".join(code_map().values()))

    assert (
        not set(named)
        - there
        - {path.name for other in ("tests", "benchmarks") for path in (TOP / other).rglob("*.py")}
    )


def declared() -> list[str]:
    """The names of all that pyproject.toml asks for, but ourselves."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {re.split(r"[^\w.\-]", one)[0] for one in asked}
    return sorted(names - {"greenroom"})


@pytest.mark.parametrize("dependency", declared())
def test_every_dependency_has_its_reason(dependency: str) -> None:
    """Seen failing for `build`."""
    page = (TOP / "docs" / "dependencies.md").read_text()

    reasons = re.findall(r"^\*\*(.+?)\*\* —", page, re.MULTILINE)
    beside = re.findall(r"\*\*([\w.\-]+)(?:==[\d.]+)?\*\*", page)
    rows = re.findall(r"^\| ([\w.\-]+) \|", page, re.MULTILINE)

    assert dependency in {*beside, *rows, *(name for group in reasons for name in group.split(", "))}


@pytest.mark.parametrize(
    "row",
    re.findall(r"^\| (\S+) \| `([\w-]+)` \| (\S+) \|", (TOP / "docs" / "dependencies.md").read_text(), re.MULTILINE),
)
def test_a_range_in_the_table_of_dependencies_is_that_of_the_extra(row: tuple[str, str, str]) -> None:
    """Seen failing for a range that was changed."""
    name, extra, wanted = row
    extras = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    assert f"{name}{wanted}" in [one.partition(";")[0] for one in extras[extra]]


@pytest.mark.parametrize("news", sorted((TOP / "docs" / "changes").iterdir()), ids=lambda news: str(news.name))
def test_a_news_file_tells_one_change_in_sentences(news: Path) -> None:
    """Seen failing for a list."""
    text = news.read_text()

    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*\.(added|changed|fixed|removed)\.md", news.name)
    assert not text.startswith(("-", "#", "*"))
    assert "\n- " not in text
    assert text.endswith(".\n")
    assert "\n\n" not in text
