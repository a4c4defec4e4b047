"""Who may import whom, who reaches past a door, and what *pure* means."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import actors

HERE = Path(__file__).parent
# Where the packages under test stand: the checkout, or the place a wheel was installed to.
ROOT = Path(str(actors.__file__)).parent.parent

# What each package may import of ours. `actors` here is the core alone: its door and its own underscore files.
MAY_IMPORT: dict[str, set[str]] = {
    "supervision": set(),
    "actors": {"supervision"},
    "actors.noise": set(),
    "actors.protocol": set(),
    "actors.websocket": set(),
    "actors.blocks": set(),
    "actors.relay": {"actors.noise", "actors.websocket", "actors.blocks"},
    "actors.rendezvous": {"actors.relay", "actors.noise", "actors.websocket", "actors.blocks"},
    "actors.executor": {"actors.protocol", "actors.relay", "actors.noise", "actors.websocket", "actors.blocks"},
    "actors.harness": {"actors.protocol", "actors.relay", "actors.noise", "actors", "supervision", "actors.blocks"},
    "actors.sessions": {"actors", "supervision", "actors.sessions.grpc", "actors.blocks"},
    # Stands on its own, so that it could become a distribution of its own.
    "actors.sessions.grpc": set(),
}
MAY_IMPORT["actors.environments"] = {*MAY_IMPORT} - {"actors.sessions", "actors.sessions.grpc"}
MAY_IMPORT["actors.testing"] = {*MAY_IMPORT}
MAY_IMPORT["actors.cli"] = {*MAY_IMPORT}

# In `relay`, frames and ordering know nothing of the channel: only the two ends of a stream do.
MAY_IMPORT_NOISE_IN_RELAY = {"actors.relay._harness_end", "actors.relay._executor_end"}

# Modules that decide. They take time, randomness and bytes as arguments.
PURE = {
    line.strip()
    for line in (HERE / "pure_modules.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
}
IMPURE_IMPORTS = {
    "asyncio", "contextlib", "io", "logging", "multiprocessing", "os", "outcome", "pathlib", "random", "secrets",
    "selectors", "shutil", "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time", "trio",
    "trio_websocket", "uuid", "weakref",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}


def modules() -> Iterator[tuple[str, Path]]:
    for package in ("supervision", "actors"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def package_of(module: str) -> str:
    """The row of the table a module belongs to: the longest one that holds it."""
    return max((p for p in MAY_IMPORT if module == p or module.startswith(p + ".")), key=len)


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Each imported module or name with its line, also those inside functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in MODULES else str(node.module)), node.lineno


def ours(module: str) -> bool:
    return module.split(".")[0] in {"actors", "supervision"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_row_of_the_table_allows(module: str) -> None:
    here = package_of(module)

    for imported, line in imports_of(MODULES[module]):
        if not ours(imported) or package_of(imported) == here:
            continue
        assert package_of(imported) in MAY_IMPORT[here], f"{module}:{line}: {here} may not import {imported}"


@pytest.mark.parametrize("module", MODULES)
def test_nobody_reaches_past_the_door_of_another_package(module: str) -> None:
    for imported, line in imports_of(MODULES[module]):
        if ours(imported) and package_of(imported) != package_of(module):
            private = [part for part in imported.split(".") if part.startswith("_")]
            assert not private, f"{module}:{line}: {imported} is private to its package"


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("actors.relay.")])
def test_only_the_two_stream_ends_of_the_relay_know_noise(module: str) -> None:
    if module not in MAY_IMPORT_NOISE_IN_RELAY and not module.startswith("actors.relay.testing"):
        assert not [i for i, _ in imports_of(MODULES[module]) if i.startswith("actors.noise")]


def test_the_core_door_imports_no_sub_package() -> None:
    sub_packages = {p for p in MAY_IMPORT if p.startswith("actors.")}

    for module, path in MODULES.items():
        if package_of(module) == "actors":
            assert not [i for i, _ in imports_of(path) if ours(i) and package_of(i) in sub_packages], module


@pytest.mark.parametrize("module", sorted(PURE))
def test_a_module_that_decides_has_no_clock_wait_randomness_or_io(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text())

    for imported, line in imports_of(MODULES[module]):
        assert imported.split(".")[0] not in IMPURE_IMPORTS, f"{module}:{line} imports {imported}"
        if ours(imported) and imported in MODULES:
            reaches = package_of(imported) == package_of(module) and "." in imported.removeprefix("actors.")
            assert not reaches or imported in PURE or is_plain(imported), f"{module}:{line}: {imported} is not pure"
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await), f"{module}:{node.lineno} waits"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in IMPURE_CALLS, f"{module}:{node.lineno} calls {node.func.id}"


def is_plain(module: str) -> bool:
    """A module of values or errors: it, too, imports nothing that acts."""
    return not [i for i, _ in imports_of(MODULES[module]) if i.split(".")[0] in IMPURE_IMPORTS]


def test_every_module_on_the_pure_list_exists() -> None:
    assert set(MODULES) >= PURE, PURE - set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_on_the_path_of_its_own_name(module: str) -> None:
    name = module.rsplit(".", 1)[-1]

    assert name.isascii()
    assert name.strip("_") not in {"utils", "helpers", "common", "misc", "types"}


def broad_catches(module: str) -> Iterator[ast.ExceptHandler]:
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.ExceptHandler):
            caught = "BaseException" if node.type is None else ast.unparse(node.type)
            if {"Exception", "BaseException", "trio.Cancelled", "Cancelled"} & set(re.findall(r"[\w.]+", caught)):
                yield node


@pytest.mark.parametrize("module", [module for module in MODULES if any(broad_catches(module))])
def test_a_broad_catch_raises_again_or_says_why_not(module: str) -> None:
    """Seen failing in seven modules, before they said why."""
    lines = MODULES[module].read_text().splitlines()

    for catch in broad_catches(module):
        again = isinstance(catch.body[-1], ast.Raise) and catch.body[-1].exc is None
        said = any("# " in line for line in lines[catch.lineno - 1 : catch.body[0].lineno])

        assert again or said, f"{module}:{catch.lineno}: why is this caught?"
