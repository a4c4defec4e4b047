"""Cutting output on the client's side: the recorded pairs, the rules one by one, and a second implementation."""

import base64
import json
import re
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.sessions import (
    ContentItem,
    ImageDetail,
    InputAudio,
    InputImage,
    InputText,
    Result,
    Terminated,
    render_response,
)
from actors.sessions._audio import audio_tokens
from actors.sessions._cutting import cut_middle, cut_with_header
from tests.support.skips import RECORDINGS, needs_recording

GOLDEN = RECORDINGS / "codemode-truncation.jsonl"
STATEMENT = re.compile(
    r"""(?:for\(let\ i=0;i<(?P<times>\d+);i\+\+\))?
        (?: T\((?P<count>\d+),(?P<text>"(?:[^"\\]|\\.)*")\)
          | I\((?P<image>\d+)\) | A\((?P<audio>\d+)\) | throw\ (?P<error>"(?:[^"\\]|\\.)*") );?""",
    re.VERBOSE,
)
TEXTS = st.text(st.sampled_from("ab\n\N{LATIN SMALL LETTER E WITH ACUTE}\N{EURO SIGN}\N{PERFORMING ARTS}"), max_size=60)


def result(*items: ContentItem, error: str | None = None) -> Result:
    return Result(cell_id="1", content_items=items, error_text=error)


# --- recorded pairs: what the existing host does in Server mode is what a client does in Client mode, below its limits


def parsed(script: str) -> Result | None:
    items: list[ContentItem] = []
    error: str | None = None
    at = 0
    while at < len(script):
        found = STATEMENT.match(script, at)
        if found is None:
            return None
        at = found.end()
        if found["error"] is not None:
            error = json.loads(found["error"])
            continue
        items += [_item(found)] * int(found["times"] or 1)
    return result(*items, error=error)


def _item(found: re.Match[str]) -> ContentItem:
    if found["text"] is not None:
        return InputText(json.loads(found["text"]) * int(found["count"]))
    if found["image"] is not None:
        return InputImage("data:image/png;base64," + "A" * int(found["image"]), ImageDetail.HIGH)
    return InputAudio("data:audio/mpeg;base64," + "A" * int(found["audio"]))


def unpacked(items: list[object]) -> Iterator[ContentItem]:
    for item in items:
        if isinstance(item, dict) and "repeat" in item:
            yield from [*unpacked([item["repeat"]])] * item["times"]
        elif isinstance(item, dict) and "image" in item:
            yield InputImage(plain(item["image"]), ImageDetail(item.get("detail", "high")))
        elif isinstance(item, dict) and "audio" in item:
            yield InputAudio(plain(item["audio"]))
        else:
            yield InputText(plain(item))


def plain(text: object) -> str:
    return text if isinstance(text, str) else "".join(part * times for part, times in text["parts"])  # type: ignore[index]


def pairs() -> list[tuple[str, Result, int | None, tuple[ContentItem, ...]]]:
    if not GOLDEN.exists():
        return []
    found = []
    for line in GOLDEN.read_text().splitlines()[1:]:
        row = json.loads(line)
        response = parsed(row["script"])
        if response is None or "then" in row or "output limit reached" in line or row["outcome"] != "completed":
            continue  # Not a plain list of items, or beyond what the host retains.
        found.append((row["id"], response, row["max_output_tokens"], tuple(unpacked(row["items"]))))
    return found


PAIRS = pairs()


@needs_recording(GOLDEN.name)
def test_enough_recorded_pairs_can_be_read() -> None:
    assert len(PAIRS) > 150


@pytest.mark.parametrize(("response", "tokens", "items"), [pytest.param(*pair[1:], id=pair[0]) for pair in PAIRS])
def test_a_recorded_response_is_cut_as_the_existing_host_cuts_it(
    response: Result, tokens: int | None, items: tuple[ContentItem, ...]
) -> None:
    assert render_response(response, max_output_tokens=tokens) == items


# --- the rules


def test_a_script_error_is_the_last_text() -> None:
    items = render_response(result(InputText("out"), error="boom"))

    assert items == (InputText("out"), InputText("Script error:\nboom"))


def test_an_empty_error_is_an_error_and_no_error_is_none() -> None:
    assert render_response(result(error="")) == (InputText("Script error:\n"),)
    assert render_response(result()) == ()
    assert render_response(Terminated(cell_id="1", content_items=[InputText("left")])) == (InputText("left"),)


def test_texts_are_cut_as_one_under_a_header() -> None:
    items = render_response(result(InputText("a" * 30), InputText("b" * 30)), max_output_tokens=5)

    ellipsis = "\N{HORIZONTAL ELLIPSIS}"
    header = "Warning: truncated output (original token count: 16)\nTotal output lines: 2\n\n"
    assert items == (InputText(f"{header}{'a' * 10}{ellipsis}11 tokens truncated{ellipsis}{'b' * 10}"),)


def test_beside_an_image_texts_are_cut_one_by_one() -> None:
    image = InputImage("data:image/png;base64,AAAA")
    items = render_response(
        result(InputText("abcd"), InputText(""), image, InputText("efghijklm"), InputText("gone"), image),
        max_output_tokens=2,
    )

    ellipsis = "\N{HORIZONTAL ELLIPSIS}"
    cut = f"ef{ellipsis}2 tokens truncated{ellipsis}lm"
    assert items == (InputText("abcd"), image, InputText(cut), image, InputText("[omitted 1 text items ...]"))


def test_a_clip_that_does_not_fit_is_counted_and_leaves_the_budget() -> None:
    items = render_response(
        result(InputAudio("data:audio/mpeg;base64," + "A" * 100), InputText("fits")), max_output_tokens=1
    )

    assert items == (InputText("fits"), InputText("[omitted 1 audio items ...]"))


def wav(frames: int, rate: int = 1_000) -> str:
    form = struct.pack("<HHIIHH", 1, 1, rate, rate, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", frames) + bytes(frames)
    return "data:audio/wav;base64," + base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


@pytest.mark.parametrize(("milliseconds", "tokens"), [(25, 1), (100, 1), (101, 2), (1_000, 10), (1_001, 11)])
def test_a_clip_costs_ten_tokens_a_second(milliseconds: int, tokens: int) -> None:
    assert audio_tokens(wav(milliseconds)) == tokens


@pytest.mark.parametrize("url", ["data:audio/wav;base64,!!!", "data:text/plain,abc", "data:audio/wav;base64,UklGRg=="])
def test_a_clip_that_cannot_be_read_costs_its_url(url: str) -> None:
    assert audio_tokens(url) == -(-len(url) // 4)


# --- a second implementation, by code points


def cut_slowly(text: str, tokens: int) -> str:
    size = sum(len(c.encode()) for c in text)
    if not text or (tokens and size <= 4 * tokens):
        return text
    left = (4 * tokens) // 2
    right = 4 * tokens - left
    head = ""
    for c in text:
        if len((head + c).encode()) > left:
            break
        head += c
    tail = ""
    for c in reversed(text[len(head) :]):
        if len((c + tail).encode()) > right:
            break
        tail = c + tail
    gone = -(-(size - 4 * tokens) // 4)
    return f"{head}\N{HORIZONTAL ELLIPSIS}{gone} tokens truncated\N{HORIZONTAL ELLIPSIS}{tail}"


@given(TEXTS, st.integers(0, 40))
def test_a_cut_is_the_same_as_one_made_character_by_character(text: str, tokens: int) -> None:
    """Killed mutants: the head rounded up to a character; the tail rounded down; `left` taking the odd byte."""
    assert cut_middle(text, tokens) == cut_slowly(text, tokens)


@given(TEXTS, st.integers(0, 40))
def test_a_header_stands_exactly_over_what_was_cut(text: str, tokens: int) -> None:
    """Killed mutants: `<` for `<=`; a trailing newline counted as a line."""
    cut = cut_with_header(text, tokens)

    if len(text.encode()) <= 4 * tokens:
        assert cut == text
    else:
        lines = len(text.split("\n")) - text.endswith("\n")
        first, second, empty, rest = cut.split("\n", 3)
        assert first == f"Warning: truncated output (original token count: {-(-len(text.encode()) // 4)})"
        assert (second, empty) == (f"Total output lines: {lines}", "")
        assert rest == cut_slowly(text, tokens)
