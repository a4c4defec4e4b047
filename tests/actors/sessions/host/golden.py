"""Recorded pairs of a deployed host, and the items that their simple scripts put out."""

import json
import re
from collections.abc import Iterator
from typing import Any

from actors.sessions.host._items import AudioItem, ImageItem, Item, TextItem
from tests.support.skips import RECORDINGS

PLACE = RECORDINGS


def rows(name: str) -> list[dict[str, Any]]:
    path = PLACE / name
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()][1:]


def spelled(text: str | dict[str, Any] | None) -> str | None:
    """Write out a text that the recording abbreviates."""
    if isinstance(text, dict):
        return "".join(part * times for part, times in text["parts"])
    return text


def expected_items(recorded: list[Any]) -> list[Item]:
    items: list[Item] = []
    for one in recorded:
        if isinstance(one, dict) and "repeat" in one:
            items += expected_items([one["repeat"]]) * one["times"]
        elif isinstance(one, dict) and "image" in one:
            items.append(ImageItem(spelled(one["image"]) or "", one["detail"]))
        elif isinstance(one, dict) and "audio" in one:
            items.append(AudioItem(spelled(one["audio"]) or ""))
        else:
            items.append(TextItem(spelled(one) or ""))
    return items


_STEP = re.compile(
    r"""(?P<kind>[TIA])\((?P<count>\d+)(?:,(?P<text>"(?:[^"\\]|\\.)*"))?\);?|throw (?P<error>"(?:[^"\\]|\\.)*")$"""
)
_LOOP = re.compile(r"for\(let i=0;i<(\d+);i\+\+\)(?:\{(.*?)\}|([TIA]\([^;]*\);))")


def simulate(script: str) -> tuple[list[Item], str | None] | None:
    """Say what a script of the recording puts out and throws; None when it needs a real engine."""
    script = _LOOP.sub(lambda m: (m[2] or m[3]) * int(m[1]), script) if len(script) < 2000 else script
    items: list[Item] = []
    at = 0
    while at < len(script):
        step = _STEP.match(script, at)
        if step is None:
            return None
        at = step.end()
        if step["error"] is not None:
            return items, json.loads(step["error"])
        items += _put_out(step)
    return items, None


def _put_out(step: re.Match[str]) -> Iterator[Item]:
    count = int(step["count"])
    match step["kind"]:
        case "T":
            yield TextItem(json.loads(step["text"]) * count)
        case "I":
            yield ImageItem("data:image/png;base64," + "A" * count)
        case _:
            yield AudioItem("data:audio/mpeg;base64," + "A" * count)
