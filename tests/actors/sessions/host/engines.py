"""The engines that every probe runs on, and what they are doing as processes of the system."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from actors.sessions.host import EngineNotFound, find_engine
from actors.sessions.host._engines import node_of_the_wheel
from tests.support.skips import needs_deno, needs_node, needs_system


def _usable(path: str | None, kind: str) -> str | None:
    try:
        engine = find_engine(path)
    except EngineNotFound:
        return None
    return engine.path if engine.kind == kind else None


DENO = _usable(None, "deno")
_SOME_NODE = node_of_the_wheel() or shutil.which("node")
NODE = None if _SOME_NODE is None else _usable(_SOME_NODE, "node")
ENGINES = [
    pytest.param(DENO, id="deno", marks=needs_deno(DENO)),
    pytest.param(NODE, id="node", marks=needs_node(NODE)),
]
IN_PROC = needs_system(Path("/proc/self/task").exists(), "/proc")


def engine_pids() -> set[int]:
    """The engine processes of hosts in this program: children of the guard, which is our child."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            found |= {int(one) for one in Path(f"/proc/{child}/task/{child}/children").read_text().split()}
    return found


@contextmanager
def handle_of(pid: int) -> Generator[int, None, None]:
    """Name a process for good, also once it has ended and its number is another's."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


async def gone(handle: int) -> None:
    """Wait until a process has ended, whoever's child it is."""
    with trio.fail_after(10):
        await trio.lowlevel.wait_readable(handle)
