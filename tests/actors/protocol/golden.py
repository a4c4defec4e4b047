"""Reads the recorded exchanges with the other implementation, where they are present."""

import json
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "exec-rpc.jsonl"

needs_golden = pytest.mark.skipif(not GOLDEN.exists(), reason="the recorded exchanges are not beside this checkout")


def golden_steps() -> list[dict[str, Any]]:
    """Each recorded step, in order."""
    if not GOLDEN.exists():
        return []
    text = GOLDEN.read_text().replace("{ROOT}", "/root/of/test").replace('"{PATH_DIRS}"', '["/a"]')
    steps = [json.loads(line) for line in text.splitlines()]
    return [step for step in steps if "scenario" in step]
