"""Which engine is found, and what is said when there is none."""

from pathlib import Path

import pytest

from actors.sessions.host import EngineNotFound, find_engine


def test_an_engine_that_was_named_is_the_only_one_looked_at(tmp_path: Path) -> None:
    with pytest.raises(EngineNotFound) as missing:
        find_engine(str(tmp_path / "deno"))

    assert missing.value.looked == ("the engine that was named: not there",)


def test_an_engine_that_is_too_old_is_named_with_its_version(tmp_path: Path) -> None:
    old = tmp_path / "deno"
    old.write_text("#!/bin/sh\necho deno 2.5.6\n")
    old.chmod(0o755)

    with pytest.raises(EngineNotFound, match=r"2\.5\.6 is too old"):
        find_engine(str(old))


def test_a_process_gets_no_permission_and_a_bounded_heap(tmp_path: Path) -> None:
    new = tmp_path / "node"
    new.write_text("#!/bin/sh\necho v24.1.0\n")
    new.chmod(0o755)
    engine = find_engine(str(new))
    command = engine.command(64 * 1024 * 1024)

    assert (engine.kind, engine.version) == ("node", "24.1.0")
    assert "--permission" in command
    assert "--max-heap-size=64" in command
