"""What a host keeps and writes in Server mode, against recordings and against a second reading of the rules."""

import re
from typing import Any

import pytest

from actors.sessions._cutting import bounded_error
from actors.sessions.host._items import TextItem
from actors.sessions.host._rendering import render
from actors.sessions.host._retention import Retention
from tests.actors.sessions.host.golden import expected_items, rows, simulate, spelled
from tests.support.skips import needs_recording

RECORDED = rows("codemode-truncation.jsonl")
BIG_THROW = re.compile(r"throw 'begin:' \+ 'X'.repeat\((\d+) \* 1024 \* 1024\) \+ ':end'")


def put_out(row: dict[str, Any]) -> Any:
    if big := BIG_THROW.fullmatch(row["script"]):
        return [], "begin:" + "X" * (int(big[1]) * 1024 * 1024) + ":end"
    return simulate(row["script"])


SIMPLE = [row for row in RECORDED if "then" not in row and put_out(row) is not None]


@pytest.mark.parametrize("row", SIMPLE, ids=[str(row["id"]) for row in SIMPLE])
def test_a_recorded_script_is_cut_as_it_was(row: dict[str, Any]) -> None:
    items, error = put_out(row)
    kept = Retention()
    for item in items:
        kept.add(item)
    if error is not None:
        kept.add(TextItem(f"Script error:\n{error}"))
    tokens = row["max_output_tokens"]

    written = render(kept, 10_000 if tokens is None else tokens)

    assert written == expected_items(row["items"])
    assert (None if error is None else bounded_error(error)) == spelled(row.get("error_text"))


@needs_recording("codemode-truncation.jsonl")
def test_most_recordings_need_no_engine() -> None:
    assert len(SIMPLE) > 250
