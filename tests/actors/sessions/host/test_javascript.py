"""What a script may rely on, without recordings: ends, exits, stored values, globals, helpers, media."""

# ruff: noqa: E501  # Scripts are easier to read on one line.
from typing import Any

import pytest
import trio
import trio.testing

from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import Channel
from actors.sessions.host._items import AudioItem, ImageItem, TextItem
from tests.actors.sessions.host.peer import Peer, open_peer, tool

REMOTE = "Tool call failed: remote image URLs are not supported in tool outputs. Pass a base64 data URI instead"
NO_IMAGE = "Tool call failed: invalid image output. Pass a base64 data URI instead"
NO_AUDIO = "Tool call failed: invalid audio output. Pass a base64 data URI instead"
SHAPE = (
    "image expects a non-empty image URL string, an object with image_url and optional detail, or a raw MCP image block"
)


@pytest.fixture
async def peer(channel: Channel, nursery: trio.Nursery) -> Peer:
    return await open_peer(channel, nursery)


async def test_a_thrown_text_is_the_error_and_a_failing_cell_keeps_what_it_stored(peer: Peer) -> None:
    failed = await peer.run("store('k', 'kept'); throw 'just text'")
    later = await peer.run("text(load('k'))")

    assert (failed.outcome, failed.error) == ("completed", "just text")
    assert later.texts == ["kept"]


EXITS = {
    "plain": "exit();",
    "loop": "for (;;) exit();",
    "catch and finally": "try { exit() } catch { text('caught') } finally { text('finally'); store('k', 'later') }",
    "microtask": "Promise.resolve().then(() => text('micro')); exit();",
    "in a microtask": "await Promise.resolve().then(() => exit());",
    "timer": "await new Promise(() => setTimeout(() => exit(), 1));",
    "parallel promises": "await Promise.all([1, 2].map(async (n) => { if (n === 2) exit(); text('one') }).reverse());",
    "toJSON": "text({ toJSON() { exit() } });",
    "key": "store({ toString() { exit() } }, 'later');",
    "getter": "text({ get a() { exit() } });",
    "stack getter": "throw { get stack() { exit() } };",
}


@pytest.mark.parametrize("how", EXITS)
async def test_nothing_after_an_exit_has_an_effect_and_what_was_before_stands(peer: Peer, how: str) -> None:
    ended = await peer.run(f"store('k', 'before'); text('before'); {EXITS[how]} text('after'); store('k', 'after')")
    later = await peer.run("text(load('k'))")

    assert (ended.outcome, ended.error) == ("completed", None)
    assert [text for text in ended.texts if text != "one"] == ["before"]
    assert later.texts == ["before"]


async def test_an_exit_after_a_yield_and_a_tool_leaves_what_came_since(peer: Peer, nursery: trio.Nursery) -> None:
    async def answer(_: wire.ToolCall) -> Any:
        return "answer"

    await nursery.start(peer.answer_tools, answer)
    first = await peer.run(
        "text('a'); yield_control(); text(await tools.t()); exit(); text('never')", enabled_tools=[tool("t")]
    )
    _, second = await peer.wait(first.cell_id)

    assert (first.outcome, first.texts) == ("yielded", ["a"])
    assert (second.outcome, second.texts, second.error) == ("completed", ["answer"], None)


async def test_helpers_do_nothing_once_an_exit_was_asked_for(peer: Peer) -> None:
    """From inside the conversion of another helper's argument, where script code still runs."""
    source = (
        "setTimeout(() => text('timer'), 1);"
        "text({ toJSON() { try { exit() } catch {} text('x'); notify('x'); store('k', 1); tools.t(); setTimeout(() => 1, 0); clearTimeout(1); return 1 } })"
    )
    ended = await peer.run(source, enabled_tools=[tool("t")])
    later = await peer.run("text(load('k'))")

    assert (ended.outcome, ended.texts, ended.error) == ("completed", [], None)
    assert later.texts == ["undefined"]
    assert peer.notifications == []


async def test_values_are_shared_within_a_session_and_not_across(
    peer: Peer, channel: Channel, nursery: trio.Nursery
) -> None:
    other = await open_peer(channel, nursery)
    await peer.run("store('k', { deep: [1, null] })")

    assert (await peer.run("text(load('k'))")).texts == ['{"deep":[1,null]}']
    assert (await other.run("text(load('k'))")).texts == ["undefined"]


async def test_what_json_has_no_form_for_is_not_stored(peer: Peer) -> None:
    seen = await peer.run(
        "store('k', null); try { store('k', undefined) } catch (e) { text(e) } text(load('k'));"
        "store('n', [NaN, Infinity, undefined]); text(load('n'))"
    )

    assert seen.texts == [
        'Unable to store "k". Only plain serializable objects can be stored.', "null", "[null,null,null]",
    ]  # fmt: skip


async def test_127_levels_are_stored_and_128_are_not(peer: Peer) -> None:
    deep = "const deep = (n) => n ? [deep(n - 1)] : 0;"
    seen = await peer.run(f"{deep} store('k', deep(127)); try {{ store('l', deep(128)) }} catch (e) {{ text(e) }}")

    assert seen.texts == ["failed to serialize JavaScript value: recursion limit exceeded at line 1 column 128"]


async def test_the_globals_are_exactly_these(peer: Peer) -> None:
    ours = "tools ALL_TOOLS clearTimeout setTimeout text content image audio generatedImage store load notify yield_control exit as_settled stream_settled"
    absent = "console Atomics SharedArrayBuffer WebAssembly require process fetch URL TextEncoder setInterval setImmediate queueMicrotask structuredClone performance crypto atob Deno"
    seen = await peer.run(
        f"const names = '{absent}'.split(' '); text(names.filter((n) => n in globalThis));"
        f"text('{ours}'.split(' ').filter((n) => !Object.keys(globalThis).includes(n)));"
        "text(Object.keys(globalThis))"
    )

    assert seen.texts[:2] == ["[]", "[]"]
    assert seen.texts[2] == str(ours.split()).replace("'", '"').replace(", ", ",")


async def test_dates_are_written_in_the_language_asked_for(peer: Peer) -> None:
    seen = await peer.run(
        "text(new Intl.DateTimeFormat('fr-FR', { timeZone: 'UTC', weekday: 'long', day: 'numeric', month: 'long', hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(new Date('2025-01-02T03:04:05Z')))"
    )

    assert seen.texts == ["jeudi 2 janvier \u00e0 03:04:05"]


async def test_helpers_return_nothing_and_say_what_went_wrong_inside_them(peer: Peer) -> None:
    seen = await peer.run(
        "text([text('a'), store('k', 1), notify('n'), yield_control()]); text({ a: [1, { b: 2 }] });"
        "const ring = {}; ring.self = ring; try { text(ring) } catch (e) { text(e.split('\\n')[0]) }"
        "try { text({ get a() { throw new Error('from a getter') } }) } catch (e) { text(e.split('\\n')[0]) }"
    )
    _, rest = await peer.wait(seen.cell_id)

    assert seen.texts + rest.texts == [
        "a", "[null,null,null,null]", '{"a":[1,{"b":2}]}', "TypeError: Converting circular structure to JSON",
        "Error: from a getter",
    ]  # fmt: skip


async def test_sounds_are_taken_in_their_forms_and_nothing_else_is(peer: Peer) -> None:
    seen = await peer.run(
        "audio('data:audio/mpeg;base64,AAAA'); audio({ audio_url: 'data:audio/mpeg;base64,AAAA' });"
        "audio({ type: 'audio', data: 'AAAA', mimeType: 'audio/mpeg' });"
        "for (const bad of ['http://x/a.mp3', '', { type: 'image', data: 'A' }, { type: 'audio', data: '' }])"
        "{ try { audio(bad) } catch (e) { text(e) } }"
    )

    assert seen.items[:3] == [AudioItem("data:audio/mpeg;base64,AAAA")] * 3
    assert seen.texts[3:] == [
        NO_AUDIO, "audio expects a non-empty audio URL string, an object with audio_url, or a raw MCP audio block",
        'audio only accepts MCP audio blocks, got "image"', "audio expected MCP audio data",
    ]  # fmt: skip


async def test_images_are_taken_in_their_forms_and_nothing_else_is(peer: Peer) -> None:
    url = "data:image/png;base64,AAAA"
    seen = await peer.run(
        f"const url = '{url}'; image(url); image({{ image_url: url, detail: 'auto' }}, 'LOW');"
        "image({ type: 'image', data: 'AAAA', mimeType: 'image/png', _meta: { 'codex/imageDetail': 'original' } });"
        "generatedImage({ image_url: url, output_hint: 'a hint' });"
        "for (const bad of [['http://x'], ['https://x'], ['junk'], [url, 'huge'], [{ content: [] }], [url, 3], ['', 3], ['']])"
        "{ try { image(...bad) } catch (e) { text(e) } }"
    )

    assert seen.items[:5] == [
        ImageItem(url, "high"), ImageItem(url, "low"), ImageItem(url, "original"), ImageItem(url, "high"),
        TextItem("a hint"),
    ]  # fmt: skip
    assert seen.texts[5:] == [
        REMOTE, REMOTE, NO_IMAGE, "image detail must be one of: auto, low, high, original", SHAPE,
        "image detail must be a string when provided", "image detail must be a string when provided", SHAPE,
    ]  # fmt: skip


async def test_a_tool_that_ends_in_the_grace_of_a_long_observation_is_part_of_it(
    peer: Peer, nursery: trio.Nursery, mock_clock: trio.testing.MockClock
) -> None:
    """Its limit would be cut by a session of 10 s; without one a second more is granted. Mutant killed: no grace."""

    async def late(_: wire.ToolCall) -> Any:
        mock_clock.jump(10.3)
        await trio.testing.wait_all_tasks_blocked()
        return "in time"

    await nursery.start(peer.answer_tools, late)
    seen = await peer.run("text(await tools.t())", enabled_tools=[tool("t")], yield_time_ms=10_000)

    assert (seen.outcome, seen.texts) == ("completed", ["in time"])
