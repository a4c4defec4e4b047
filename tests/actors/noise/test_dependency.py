"""What this package takes for granted about its dependencies, and that the core stays light to import."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import noise.state
from noise.backends.default.ciphers import AESGCMCipher

import actors.noise
from actors.noise._symmetric import HYBRID, begin, split
from tests.support.skips import needs

TOP = Path(__file__).parents[3]
STUBS = TOP / "typings" / "noise"
PACKAGE = Path(actors.noise.__file__).parent


def stubbed_names() -> Iterator[tuple[str, str, str | None]]:
    """Module, class or function, and member, of everything that the local stubs claim."""
    for path in sorted(STUBS.rglob("*.pyi")):
        parts = ("noise", *path.relative_to(STUBS).with_suffix("").parts)
        module = ".".join(part for part in parts if part != "__init__")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield module, node.name, None
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        yield module, node.name, member.name


@needs(STUBS.exists(), "the folder of stubs for the type checkers", "run this test in a checkout of the repository")
def test_every_name_in_our_stubs_exists_in_the_installed_package() -> None:
    names = list(stubbed_names())

    assert len(names) > 8
    for module, owner, member in names:
        found: Any = getattr(importlib.import_module(module), owner)
        assert member is None or callable(getattr(found, member)), f"{module}.{owner}.{member}"


def test_the_attributes_that_appear_only_on_instances_exist_too() -> None:
    state = begin(HYBRID, initiator=True)

    assert len(state.h) == 32
    assert isinstance(noise.state.CipherState(state.noise_protocol).cipher, AESGCMCipher)  # type: ignore[attr-defined]
    assert all(callable(aead.encrypt) for aead in split(state))


def test_only_one_module_of_ours_imports_noiseprotocol() -> None:
    importers = {
        path.name
        for path in PACKAGE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "noise"
    }

    assert importers == {"_symmetric.py"}


def test_importing_the_core_does_not_import_any_cryptography() -> None:
    program = "import sys, actors; print({'noise', 'cryptography', 'actors.noise'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=TOP, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_the_package_imports_with_warnings_as_errors_and_without_a_network_library() -> None:
    program = (
        "import sys, actors.noise\n"
        "assert 'noise.connection' not in sys.modules, 'its connection fails open'\n"
        "print(actors.noise.SecureChannel.__module__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=TOP, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "actors.noise"
