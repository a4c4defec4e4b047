"""What a test may lack here, each kind once: every skip says what is missing and how to get it.

Nothing else in the tests skips (`test_skips`).
"""

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

_BESIDE: Final = Path(__file__).parents[3] / "shared" / "golden"
RECORDINGS: Final = Path(os.environ.get("GREENROOM_GOLDEN") or _BESIDE)
"""Where recordings of other implementations are; they are kept outside the repository."""


def reason(missing: str, get: str) -> str:
    """Say in one sentence what is missing and what to do."""
    assert all((missing, get)), "a skip says what is missing and how to get it"
    return f"{missing} is missing: {get}"


def skip(missing: str, get: str) -> NoReturn:
    """Skip from within a test or a fixture."""
    pytest.skip(reason(missing, get))


def needs(there: object, missing: str, get: str) -> pytest.MarkDecorator:
    """Skip unless it is there."""
    return pytest.mark.skipif(not there, reason=reason(missing, get))


def needs_recording(name: str) -> pytest.MarkDecorator:
    """Skip without a file of recordings."""
    return needs((RECORDINGS / name).exists(), f"the recording {name}", where_recordings_go())


def where_recordings_go(folder: str = "") -> str:
    """Say where a recording is looked for."""
    return f"put it in {RECORDINGS / folder}, or set GREENROOM_GOLDEN to the folder that holds it"


def needs_package(module: str, install: str) -> pytest.MarkDecorator:
    """Skip without a package; `install` is what pip takes."""
    return needs(is_installed(module), f"the package of `{module}`", f"pip install '{install}'")


def is_installed(module: str) -> bool:
    """Whether a module could be imported; its parents are."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def package(module: str, install: str) -> Any:
    """Import a module, or skip from within a test, or all of a file; `install` is what pip takes."""
    return pytest.importorskip(module, reason=reason(f"the package of `{module}`", f"pip install '{install}'"))


def needs_engine() -> pytest.MarkDecorator:
    """Skip without any engine that runs JavaScript."""
    get = "pip install '.[sessions]' for deno, or '.[sessions-node]' for node"
    host: Any = importlib.import_module("actors.sessions.host") if is_installed("h2") else None
    try:
        found = host and host.find_engine()
    except host.EngineNotFound:
        found = None
    return needs(found, "a JavaScript engine", get)


def needs_deno(path: str | None) -> pytest.MarkDecorator:
    """Skip without deno."""
    return needs(path, "deno 2.9 or newer", "pip install '.[sessions]', or put it on PATH")


def needs_node(path: str | None) -> pytest.MarkDecorator:
    """Skip without node."""
    return needs(path, "node 20.18 or newer", "pip install '.[sessions-node]', or put it on PATH")


def needs_system(there: object, missing: str) -> pytest.MarkDecorator:
    """Skip where the operating system lacks something."""
    return needs(there, missing, "run this test on Linux, with /proc and /dev mounted")
