"""Reads the recorded exchanges with the other implementation, where they are present."""

import json
from typing import Any

from tests.support.skips import RECORDINGS, needs_recording

GOLDEN = RECORDINGS / "exec-rpc.jsonl"

needs_golden = needs_recording(GOLDEN.name)


def golden_steps() -> list[dict[str, Any]]:
    """Each recorded step, in order."""
    if not GOLDEN.exists():
        return []
    text = (
        GOLDEN.read_text().replace("{ROOT}", "/root/of/test").replace('"{PATH_DIRS}"', '["/a"]').replace('"{MS}"', "1")
    )
    steps = [json.loads(line) for line in text.splitlines()]
    return [step for step in steps if "scenario" in step]
