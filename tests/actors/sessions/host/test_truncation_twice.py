"""Server mode, cut by the host and by a naive second implementation: on recordings and on what Hypothesis thinks of.

The second one was written from the description alone, before its author had seen the first.
"""

import base64
import io
import json
import re
import wave
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.sessions import ContentItem, InputAudio, InputImage, InputText, Result, render_response
from actors.sessions._audio import audio_tokens
from actors.sessions._cutting import bounded_error
from actors.sessions.host import _retention as retention
from actors.sessions.host._items import AudioItem, ImageItem, Item, TextItem
from actors.sessions.host._rendering import render
from tests.actors.sessions.host import naive_truncation as naive
from tests.actors.sessions.host.golden import expected_items, rows, simulate, spelled
from tests.support.skips import needs_recording

RECORDED = [row for row in rows("codemode-truncation.jsonl") if "then" not in row]
ENDS_REPEATED = re.compile(
    r"""(?P<start>throw |text\()['"](?P<first>z|begin:)['"](?:\.repeat\((?P<n>\d+)\))?"""
    r"""(?: ?\+ ?(?P<unit>"[^"]*"|'X')\.repeat\((?P<count>[\d *]+)\))?(?: \+ '(?P<last>:end)')?\)?"""
)


def naively(item: Item) -> naive.Item:
    match item:
        case TextItem(text):
            return naive.Item("text", text)
        case ImageItem(url, detail):
            return naive.Item("image", url, detail)
        case AudioItem(url):
            return naive.Item("sound", url)


def ours(item: naive.Item) -> Item:
    match item.kind:
        case "text":
            return TextItem(item.body)
        case "image":
            return ImageItem(item.body, item.detail)
        case "sound":
            return AudioItem(item.body)


def put_out(script: str) -> tuple[list[Item], str | None]:
    simple = simulate(script)
    if simple is not None:
        return simple
    found = ENDS_REPEATED.fullmatch(script)
    assert found is not None, script
    unit = json.loads(found["unit"].replace("'", '"')) if found["unit"] else ""
    count = 1
    for factor in (found["count"] or "0").split("*"):
        count *= int(factor)
    text = found["first"] * int(found["n"] or 1) + unit * count + (found["last"] or "")
    return ([], text) if found["start"] == "throw " else ([TextItem(text)], None)


@needs_recording("codemode-truncation.jsonl")
@pytest.mark.slow
def test_the_naive_implementation_cuts_each_recorded_observation_as_it_was() -> None:
    wrong = []
    for row in RECORDED:
        items, error = put_out(row["script"])
        got = naive.truncate(map(naively, items), error, row["max_output_tokens"])
        if got != ([*map(naively, expected_items(row["items"]))], spelled(row.get("error_text"))):
            wrong.append(row["id"])

    assert wrong == []
    assert len(RECORDED) > 300


# Scaled down, so that few and small items reach every bound.
SMALL = naive.Limits(head_bytes=24, text_bytes=48, head_slots=5, slots=10, image_bytes=12, sound_bytes=20)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_HEAD_BYTES", SMALL.head_bytes)
    monkeypatch.setattr(retention, "TEXT_BYTES_MAX", SMALL.text_bytes)
    monkeypatch.setattr(retention, "_HEAD_SLOTS", SMALL.head_slots)
    monkeypatch.setattr(retention, "SLOTS_MAX", SMALL.slots)
    monkeypatch.setattr(retention, "IMAGE_BYTES_MAX", SMALL.image_bytes)
    monkeypatch.setattr(retention, "AUDIO_BYTES_MAX", SMALL.sound_bytes)
    # The bound on both together is ours alone: it keeps an answer sendable that the other host loses.
    monkeypatch.setattr(retention, "MEDIA_BYTES_MAX", 1_000)


texts = st.text(st.sampled_from("ab\n\u00e9\u20ac\U0001f600"), max_size=30).map(TextItem)
images = st.builds(lambda size: ImageItem("i" * size), st.integers(0, 14))
sounds = st.builds(lambda size: AudioItem("s" * size), st.integers(0, 24))
only_texts = st.lists(texts, max_size=30)
mixtures = st.lists(st.one_of(texts, texts, images, sounds), max_size=30)
budgets = st.one_of(st.integers(0, 16), st.just(1_000_000))


def host_cuts(items: list[Item], budget: int) -> list[naive.Item]:
    kept = retention.Retention()
    for item in items:
        kept.add(item)
    return [naively(item) for item in render(kept, budget)]


@settings(max_examples=300)
@given(st.one_of(only_texts, mixtures), budgets)
@pytest.mark.usefixtures("small_limits")
def test_host_and_naive_implementation_cut_alike(items: list[Item], budget: int) -> None:
    """Kills: a gap put before the newline, a trim that rounds down, a slot bound off by one, images not given back."""
    expected, _ = naive.truncate(map(naively, items), None, budget, SMALL)

    assert host_cuts(items, budget) == expected


@settings(max_examples=60)
@given(st.text(st.sampled_from("a\u00e9\u20ac\U0001f600"), max_size=5), st.sampled_from("a\u00e9\u20ac\U0001f600"))
@example("", "a")
def test_host_and_naive_implementation_cut_errors_alike(start: str, unit: str) -> None:
    size = len(unit.encode())
    for count in (65_530 // size, 65_540 // size, 70_000 // size):
        assert bounded_error(start + unit * count) == naive.cut_error(start + unit * count)


def clip(frames: int, rate_hz: int, width_bytes: int, channels: int) -> str:
    raw = io.BytesIO()
    with wave.open(raw, "wb") as written:
        written.setnchannels(channels)
        written.setsampwidth(width_bytes)
        written.setframerate(rate_hz)
        written.writeframes(bytes(frames * width_bytes * channels))
    return base64.b64encode(raw.getvalue()).decode()


@settings(max_examples=100)
@given(st.data())
def test_host_and_naive_implementation_price_clips_alike(data: Any) -> None:
    kind = data.draw(st.sampled_from(["audio/wav", "AUDIO/x", "application/octet-stream"]))
    rate_hz = data.draw(st.sampled_from([8_000, 22_050, 44_100, 48_000]))
    width, channels = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 2))
    frames = data.draw(st.one_of(st.integers(1, 3_000), st.just(rate_hz // 10), st.just(rate_hz)))
    address = f"data:{kind};base64,{clip(frames, rate_hz, width, channels)}"

    assert audio_tokens(address) == naive.sound_cost(address)


@given(st.lists(st.one_of(images, sounds), max_size=40))
@pytest.mark.usefixtures("small_limits")
def test_images_and_sounds_together_never_fill_more_than_one_message(items: list[Item]) -> None:
    """Each within its own bound would be too much together: no answer could be sent. Kills: no shared bound."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(retention, "MEDIA_BYTES_MAX", 25)
        shown = host_cuts(items, 1_000_000)

    assert sum(len(item.body) for item in shown if item.kind != "text") <= 25


UNBOUNDED = naive.Limits(*[10**9] * 6)


def given_to_client(item: Item) -> ContentItem:
    match item:
        case TextItem(text):
            return InputText(text)
        case ImageItem(url):
            return InputImage(url)
        case AudioItem(url):
            return InputAudio(url)


@given(st.one_of(only_texts, mixtures), st.one_of(st.none(), st.text("ab\u20ac")), st.one_of(st.none(), budgets))
def test_client_and_naive_implementation_cut_alike(items: list[Item], error: str | None, budget: int | None) -> None:
    """Client mode is the same cut without what a host retains. Kills: a joining newline too many, an error left out."""
    expected, _ = naive.truncate(map(naively, items), error, budget, UNBOUNDED)
    response = Result(cell_id="1", content_items=map(given_to_client, items), error_text=error)
    shown = render_response(response, max_output_tokens=budget)

    assert shown == tuple(given_to_client(ours(item)) for item in expected)
