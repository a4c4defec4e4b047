"""Recorded observations in Server mode that need a real engine: several of one cell, long scripts, notifications."""

import json
from typing import Any

import pytest
import trio

from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import Channel
from tests.actors.sessions.host.golden import PLACE, expected_items, rows, spelled
from tests.actors.sessions.host.peer import Seen, open_peer
from tests.actors.sessions.host.test_truncation import SIMPLE
from tests.support.skips import needs_recording

# The recordings were made with a pause before each further call, so that the script had put out what comes next.
PAUSE_S = 0.4
NAME = "codemode-truncation.jsonl"
LEFT = [row for row in rows(NAME) if row not in SIMPLE]


def preamble() -> str:
    return str(json.loads((PLACE / NAME).read_text().split("\n", 1)[0])["script_preamble"])


@pytest.mark.slow
@needs_recording(NAME)
async def test_recorded_observations_are_cut_as_they_were(channel: Channel, nursery: trio.Nursery) -> None:
    found: list[str] = []

    def compare(row: dict[str, Any], seen: Seen, recorded: dict[str, Any]) -> None:
        got = (seen.outcome, seen.items, seen.error)
        if got != (recorded["outcome"], expected_items(recorded["items"]), spelled(recorded.get("error_text"))):
            found.append(f"{row['id']}: {str(got)[:200]} is not {str(recorded)[:200]}")

    def budget(recorded: dict[str, Any]) -> dict[str, Any]:
        tokens = recorded.get("max_output_tokens")
        return {} if tokens is None else {"max_output_tokens": tokens}

    for row in LEFT:
        peer = await open_peer(channel, nursery, output_truncation=wire.OUTPUT_TRUNCATION_SERVER)
        seen = await peer.run(preamble() + row["script"], yield_time_ms=9_000, **budget(row))
        compare(row, seen, row)
        for step in row.get("then", ()):
            await trio.sleep(PAUSE_S)
            later = peer.terminate if step.get("call") == "terminate" else peer.wait
            _, after = await later(seen.cell_id, **budget(step))
            compare(row, after, step)
        await peer.close()

    assert not found, "\n".join(found)
