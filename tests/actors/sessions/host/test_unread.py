"""A process that does not read what it is sent."""

from typing import Any, cast

import pytest

from actors.sessions.host._launching import PlainLauncher
from actors.sessions.host._process import EngineProcess


async def test_what_waits_for_a_process_that_takes_nothing_is_let_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants killed: what waits is kept (300 MB for each such cell); what comes after the end waits as well."""
    monkeypatch.setattr("actors.sessions.host._process._PENDING_BYTES_MAX", 1000)
    nobody = cast("Any", None)
    process = EngineProcess(PlainLauncher("a test"), nobody, 1, "/", on_ready=nobody, on_end=nobody)
    process.write(bytes(900))
    held_before = sum(map(len, process._pending))
    for _ in range(5):
        process.write(bytes(900))

    assert held_before == 900
    assert process.dead
    assert not process._pending
