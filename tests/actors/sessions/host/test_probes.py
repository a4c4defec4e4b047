"""Ways out of a cell, traces it might leave for the next, and ends it might bring to its process; on both engines.

What a probe reaches, it says itself: `reached` is a text with what it found of the world around the cell.
"""

# ruff: noqa: E501  # Probes are easier to read on one line.
import functools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import Channel, open_channel
from actors.sessions.host import HostOptions, serve_host
from tests.actors.sessions.host.engines import ENGINES
from tests.actors.sessions.host.peer import open_peer, tool

AROUND = "[typeof Deno, typeof process, typeof require, typeof fetch].join(` `)"
NOTHING = "undefined undefined undefined undefined"
MAKE = f"'return {AROUND}'"

ESCAPES = {
    "indirect eval": f"(0, eval)({MAKE.replace('return ', '')})",
    "function constructor": f"Function({MAKE})()",
    "async function constructor": f"await (async () => {{}}).constructor({MAKE})()",
    "generator constructor": f"(function* () {{}}).constructor({MAKE})().next().value",
    "async generator constructor": f"(await (async function* () {{}}).constructor({MAKE})().next()).value",
    "helper": f"text.constructor({MAKE})()",
    "bound helper": f"text.bind(null).constructor({MAKE})()",
    "tools": f"tools.constructor.constructor({MAKE})()",
    "promise of a tool": f"tools.t().constructor.constructor({MAKE})()",
    "then of a tool": f"tools.t().then.constructor({MAKE})()",
    "error of a tool": f"await tools.bad().catch((e) => e.constructor.constructor({MAKE})())",
    "import.meta": f"(import.meta.constructor ?? Object).constructor({MAKE})()",
    "settled": f"as_settled([]).constructor.constructor({MAKE})?.().next?.().value ?? '{NOTHING}'",
    "toJSON": f"(() => {{ let made; text({{ toJSON() {{ made = this.constructor.constructor({MAKE})() }} }}); return made }})()",
    "polluted prototypes": f"""(() => {{
        let made = '{NOTHING}';
        const look = function () {{ try {{ made = look.caller.constructor({MAKE})() }} catch {{}} return undefined }};
        for (const name of ['kind', 'cell', 'live', 'inside', 'then', 'get', 'constructor2']) {{
            Object.defineProperty(Object.prototype, name, {{ get: look, configurable: true }}) }}
        text('x'); for (const name of ['kind', 'cell', 'live', 'inside', 'then', 'get', 'constructor2']) {{
            delete Object.prototype[name] }}
        return made }})()""",
    "replaced array methods": f"""(() => {{
        let made = '{NOTHING}'; const push = Array.prototype.push;
        Array.prototype.push = function (...a) {{
            try {{ made = this.constructor.constructor({MAKE})() }} catch {{}} return push.apply(this, a) }};
        tools.t(); text('x'); return made }})()""",
    "species": f"""(() => {{
        let made = '{NOTHING}';
        class Spy extends Promise {{ constructor(run) {{
            super((a, b) => {{ try {{ made = a.constructor.constructor({MAKE})() }} catch {{}} run(a, b) }}) }} }}
        Object.defineProperty(Promise, Symbol.species, {{ get: () => Spy }});
        tools.t().then(() => 1); return made }})()""",
    "prepareStackTrace": f"""(() => {{
        Error.prepareStackTrace = (e, sites) => sites.map((s) => [s.getThis?.(), s.getFunction?.()]).flat();
        for (const one of new Error().stack) {{
            if (one != null && one !== globalThis) {{
                try {{ const made = one.constructor.constructor({MAKE})(); if (made !== '{NOTHING}') return made }}
                catch {{}} }} }}
        return '{NOTHING}' }})()""",
    "call site chain": f"""(() => {{
        Error.prepareStackTrace = (e, sites) => sites; const [site] = new Error().stack;
        for (let one = site; one !== null; one = Object.getPrototypeOf(one)) {{
            for (const key of Reflect.ownKeys(one)) {{
                try {{ const made = one[key].constructor({MAKE})(); if (made !== '{NOTHING}') return made }} catch {{}} }} }}
        return '{NOTHING}' }})()""",
    "overflow": f"""(() => {{
        let made; const f = () => {{ try {{ f() }} catch (e) {{ made ??= e.constructor.constructor({MAKE})() }} }};
        f(); return made }})()""",
    "overflow in helpers": f"""(() => {{
        const seen = []; const f = (h) => {{ try {{ h(); f(h) }} catch (e) {{ if (seen.length < 50) seen[seen.length] = e }} }};
        for (const h of [() => load('k'), () => store('k', 1), () => setTimeout(() => {{}}, 1e6), () => tools.t()]) f(h);
        for (const e of seen) if (typeof e === 'object' && e !== null) {{
            const made = e.constructor.constructor({MAKE})(); if (made !== '{NOTHING}') return made }}
        return '{NOTHING}' }})()""",
    "refused import": f"""await import('node:fs').then((m) => 'got ' + typeof m.readFileSync, (e) => {{
        try {{ return e.constructor.constructor({MAKE})() }} catch {{ return '{NOTHING}' }} }})""",
    "promise of a refused import": f"""(() => {{
        const refused = import('x'); refused.catch(() => {{}});
        try {{ return refused.constructor.constructor({MAKE})() }} catch {{ return '{NOTHING}' }} }})()""",
    "import from a made function": f"""await Function('return import("node:fs")')().then((m) => 'got it', (e) => {{
        try {{ return e.constructor.constructor({MAKE})() }} catch {{ return '{NOTHING}' }} }})""",
}

# Each plants something in one cell and looks for it in the next.
TRACES = {
    "global": ("globalThis.left = 1", "typeof left"),
    "object prototype": ("Object.prototype.left = 1", "typeof ({}).left"),
    "array method": ("Array.prototype.map = 1", "typeof [].map === 'function' ? 'undefined' : 'left'"),
    "promise": ("Promise.prototype.then = 1", "typeof Promise.prototype.then === 'function' ? 'undefined' : 'left'"),
    "json": ("JSON.stringify = () => 'left'", "JSON.stringify(1) === '1' ? 'undefined' : 'left'"),
    "iterator": (
        "Object.getPrototypeOf([][Symbol.iterator]()).left = 1",
        "typeof Object.getPrototypeOf([][Symbol.iterator]()).left",
    ),
    "generator": (
        "Object.getPrototypeOf(function* () {}).left = 1",
        "typeof Object.getPrototypeOf(function* () {}).left",
    ),
    "stack limit": ("Error.stackTraceLimit = 1", "Error.stackTraceLimit === 1 ? 'left' : 'undefined'"),
    "stack hook": ("Error.prepareStackTrace = () => 'left'", "typeof Error.prepareStackTrace"),
    "call sites": (
        "Error.prepareStackTrace = (e, s) => s; for (let o = new Error().stack[0]; o; o = Object.getPrototypeOf(o)) try { o.left = 1 } catch {}",
        "(Error.prepareStackTrace = (e, s) => s, typeof new Error().stack[0].left)",
    ),
    "regexp": ("/(left)/.exec('left')", "RegExp.$1 === 'left' ? 'left' : 'undefined'"),
    "intl": ("Intl.NumberFormat.prototype.left = 1", "typeof Intl.NumberFormat.prototype.left"),
    "symbol": ("Symbol.for('left').constructor.left = 1", "typeof Symbol.left"),
    "helper": ("text.left = 1; tools.left = 1", "`${typeof text.left}`"),
    "tools": ("tools.t = () => 'left'", "typeof tools.t === 'function' && tools.t.name === '' ? 'undefined' : 'left'"),
    "import.meta": ("import.meta.left = 1", "typeof import.meta.left"),
    "timer": ("setTimeout(() => text('left'), 0)", "'undefined'"),
    "late microtask": (
        "(async () => { for (let i = 0; i < 1000; i++) await null; text('left'); store('left', 1) })(); exit()",
        "typeof load('left')",
    ),
    "rejection": ("Promise.reject(new Error('left'))", "'undefined'"),
    "thrown in a microtask": ("Promise.resolve().then(() => { throw 'left' })", "'undefined'"),
    "finally after exit": ("try { exit() } finally { store('left', 1) }", "typeof load('left')"),
    "registry": (
        "new FinalizationRegistry(() => text('left')).register({}, 1)",
        "(Array.from({ length: 1e5 }, () => ({})), 'undefined')",
    ),
}

ENDINGS = {
    "a rejection nobody waits for": "Promise.reject(1); text('end')",
    "a rejection with a hostile stack": (
        "const e = new Error(); Object.defineProperty(e, 'stack', { get() { throw 1 } }); Promise.reject(e); text('end')"
    ),
    "a proxy as a rejection": (
        "Promise.reject(new Proxy({}, { get() { store('trap', 1) }, getPrototypeOf() { store('trap', 1) } })); text('end')"
    ),
    "a hostile prepareStackTrace": (
        "Error.prepareStackTrace = () => { store('trap', 1) }; Promise.reject(Object.create(Error.prototype)); text('end')"
    ),
    "a thenable at the top": "text('end'); export default { then() { store('trap', 1) } }",
    "a call nobody waits for": "tools.t(); text('end')",
    "a timer nobody waits for": "setTimeout(() => { throw 1 }, 1e6); text('end')",
    "an exit within a call": "text('end'); [3, 1, 2].sort(() => exit())",
    "two million microtasks": "(async () => { for (let i = 0; i < 2e6; i++) await null })(); text('end'); exit()",
    "helpers once it is over": (
        "(async () => { for (let i = 0; i < 100; i++) await null; text('left'); notify('left'); store('trap', 1); tools.t();"
        " setTimeout(() => store('trap', 1), 0) })(); text('end'); exit()"
    ),
    "hijacked promises": (
        "const trap = { get() { store('trap', 1) }, configurable: true };"
        "for (const name of ['then', 'catch']) Object.defineProperty(Object.prototype, name, trap);"
        "Object.defineProperty(Promise, Symbol.species, trap); Object.defineProperty(Promise.prototype, 'constructor', trap);"
        "text('end')"
    ),
}

# What a cell may rely on, whichever engine runs it: what it puts out, and how it ends.
SAYS: dict[str, tuple[str, list[str], str | None]] = {
    "top-level await": ("text(await Promise.resolve(1))", ["1"], None),
    "static import": ("import 'node:fs'; text(1)", [], "Unsupported import in exec: node:fs"),
    "static import of a file": ("import x from './harness.mjs'; text(1)", [], "Unsupported import in exec: ./harness.mjs"),
    "static import of data": ("import 'data:text/javascript,1'", [], "Unsupported import in exec: data:text/javascript,1"),
    "import": ("await import('node:fs').catch((e) => text([typeof e, e]))", ['["string","unsupported import in exec"]'], None),
    "import from eval": ("await eval('import(`x`)').catch((e) => text(e))", ["unsupported import in exec"], None),
    "uncaught import": ("await import('./x.mjs')", [], "unsupported import in exec"),
    "import made of pieces": ("await Function('return imp' + 'ort(`x`)')()", [], "unsupported import in exec"),
    "deep recursion": ("const f = () => f(); try { f() } catch (e) { text(e instanceof RangeError) }", ["true"], None),
    "a million nested arrays": ("JSON.parse('['.repeat(1e6) + ']'.repeat(1e6)); text('read')", ["read"], None),
    "a text too long": ("try { 'x'.repeat(2 ** 30) } catch (e) { text(e instanceof RangeError) }", ["true"], None),
    "made functions": ("text(eval('1+1') + Function('return 3')())", ["5"], None),
    "dates": (
        ("text(new Date(Date.UTC(2025, 0, 2, 3, 4, 5)).toLocaleString('fr-FR', { timeZone: 'UTC', weekday: 'long', month: 'long',"
        " year: 'numeric', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' }))"),
        ["jeudi 2 janvier 2025 \u00e0 03:04:05"],
        None,
    ),
    "circular": (
        "const a = {}; a.a = a; try { text(a) } catch (e) { text(e.split('\\n')[0]) }",
        ["TypeError: Converting circular structure to JSON"],
        None,
    ),
    "half a code point": ("text('a\\ud800')", ["a\ufffd"], None),
    "nul": ("text('a\\0b')", ["a\0b"], None),
    "first line of a program": ("#!/usr/bin/env node\ntext(1)", ["1"], None),
    "stack": (
        "function f() { throw new Error('e') }\n  f()",
        [],
        "Error: e\n    at f (exec_main.mjs:1:22)\n    at exec_main.mjs:2:3",
    ),
    "stack before the first await": ("text(new Error('e').stack)", ["Error: e\n    at exec_main.mjs:1:6"], None),
    "stack in a helper": (
        "text({ get a() { text(new Error('e').stack.split('\\n').length > 1); return 1 } })", ["true", '{"a":1}'], None,
    ),
    "absent": (
        ("text(['console', 'Atomics', 'SharedArrayBuffer', 'WebAssembly', 'Temporal', 'require', 'process', 'fetch', 'URL', 'Deno',"
        "'TextEncoder', 'setInterval', 'setImmediate', 'queueMicrotask', 'structuredClone', 'performance', 'crypto', 'atob',"
        "'ShadowRealm', 'navigator', 'Buffer', 'global', 'self', 'window'].filter((name) => name in globalThis))"),
        ["[]"],
        None,
    ),
    "own globals": (
        "text(Object.getOwnPropertyNames(globalThis).filter((n) => Object.getOwnPropertyDescriptor(globalThis, n).enumerable).length)",
        ["16"],
        None,
    ),
    "quick globals": (  # With an interceptor in the way, a million calls take a hundred times as long.
        "const from = Date.now(); for (let i = 0; i < 1e6; i++) Math.abs(i); text(Date.now() - from < 1000)", ["true"], None,
    ),
}  # fmt: skip


async def answer(call: wire.ToolCall) -> Any:
    return LookupError("refused") if call.tool_name.name == "bad" else None


@pytest.fixture(params=ENGINES)
async def engine(request: pytest.FixtureRequest, nursery: trio.Nursery) -> AsyncIterator[Channel]:
    options = HostOptions(engine_path=request.param, warm_engines=1)
    endpoint: str = await nursery.start(functools.partial(serve_host, options=options), "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        yield channel


@pytest.mark.slow
async def test_a_cell_reaches_nothing_of_the_engine_around_it(engine: Channel, nursery: trio.Nursery) -> None:
    """Killed: a main realm left as it was; helpers that let its errors through when the stack is full."""
    peer = await open_peer(engine, nursery)
    await nursery.start(peer.answer_tools, answer)
    reached: dict[str, str] = {}
    for way, probe in ESCAPES.items():
        source = f"const answer = {probe}; text('reached: ' + answer); exit()"
        seen = await peer.run(source, enabled_tools=[tool("t"), tool("bad")])
        reached[way] = next((text for text in seen.texts if text.startswith("reached")), str(seen.error))

    assert {way: text for way, text in reached.items() if text != f"reached: {NOTHING}"} == {}


@pytest.mark.slow
async def test_a_cell_leaves_no_trace_for_the_next(engine: Channel, nursery: trio.Nursery) -> None:
    """Killed: a main realm left as it was, which a cell can write to through call sites."""
    peer = await open_peer(engine, nursery)
    found: dict[str, list[str]] = {}
    for trace, (plant, look) in TRACES.items():
        await peer.run(plant, enabled_tools=[tool("t")])
        found[trace] = (await peer.run(f"text({look})", enabled_tools=[tool("t")])).texts

    assert {trace: texts for trace, texts in found.items() if texts != ["undefined"]} == {}


@pytest.mark.slow
async def test_no_end_of_a_cell_harms_its_process_or_runs_its_code_later(
    engine: Channel, nursery: trio.Nursery
) -> None:
    peer = await open_peer(engine, nursery)
    await nursery.start(peer.answer_tools, answer)
    ends: dict[str, tuple[list[str], str | None]] = {}
    for ending, source in ENDINGS.items():
        seen = await peer.run(source, enabled_tools=[tool("t")])
        after = await peer.run("text(typeof load('trap'))")
        ends[ending] = (seen.texts + after.texts, seen.error)

    assert {ending: end for ending, end in ends.items() if end != (["end", "undefined"], None)} == {}


@pytest.mark.slow
async def test_a_cell_may_rely_on_the_same_whichever_engine_runs_it(engine: Channel, nursery: trio.Nursery) -> None:
    """Killed: an import that is refused with an error of the engine; a stack with frames of the harness."""
    peer = await open_peer(engine, nursery)
    said: dict[str, tuple[list[str], str | None]] = {}
    for what, (source, _, _) in SAYS.items():
        seen = await peer.run(source, yield_time_ms=20_000)
        said[what] = (seen.texts, seen.error)

    assert {what: seen for what, seen in said.items() if seen != SAYS[what][1:]} == {}


@pytest.mark.slow
async def test_after_its_end_nothing_of_a_cell_is_told_or_called(engine: Channel, nursery: trio.Nursery) -> None:
    """Held by three walls, the prelude's, the harness's and the host's: without any one of them this still holds."""
    peer = await open_peer(engine, nursery)
    await nursery.start(peer.answer_tools, answer)
    await peer.run(ENDINGS["helpers once it is over"], enabled_tools=[tool("t")])
    await peer.until_closed(1)
    after = await peer.run("text(typeof load('trap'))")

    assert (peer.notifications, peer.calls, after.texts) == ([], [], ["undefined"])


WALK = """
const own = Object.prototype, seen = new Set(), queue = [globalThis], foreign = [];
Error.prepareStackTrace = (error, sites) => sites;
queue.push(new Error().stack, import.meta, tools.t(), as_settled([]), (async () => {})(), (function* () {})());
try { null.x } catch (error) { queue.push(error) }
const refused = import('node:fs');
queue.push(refused);
await refused.catch((error) => queue.push(error, error.stack));
while (queue.length > 0) {
  const thing = queue.pop();
  if ((typeof thing !== 'object' && typeof thing !== 'function') || thing === null || seen.has(thing)) continue;
  seen.add(thing);
  let top = thing;
  for (let next; (next = Object.getPrototypeOf(top)) !== null;) top = next;
  // A call site is made anew for each error; what it inherits from is not.
  const site = typeof thing.getLineNumber === 'function' && !Object.hasOwn(thing, 'getLineNumber');
  if (top !== own && thing !== top && !site && !Object.isFrozen(thing)) foreign.push(String(Object.keys(thing)));
  if (thing !== own && thing === top && typeof thing.hasOwnProperty === 'function' && !Object.isFrozen(thing)) {
    foreign.push('a root that can be written');
  }
  queue.push(Object.getPrototypeOf(thing));
  for (const key of Reflect.ownKeys(thing)) {
    const { value, get, set } = Object.getOwnPropertyDescriptor(thing, key);
    queue.push(value, get, set);
  }
  for (const name of ['getThis', 'getFunction']) {
    try { if (typeof thing[name] === 'function') queue.push(thing[name]()) } catch {}
  }
}
text(`${seen.size > 500}`); text(JSON.stringify(foreign));
"""


@pytest.mark.slow
async def test_nothing_that_belongs_to_the_harness_can_be_written_from_a_cell(
    engine: Channel, nursery: trio.Nursery
) -> None:
    """Everything that can be reached from a cell is walked. Killed: a main realm that is not frozen."""
    peer = await open_peer(engine, nursery)
    await nursery.start(peer.answer_tools, answer)
    seen = await peer.run(WALK, enabled_tools=[tool("t")])

    assert seen.error is None
    assert seen.texts == ["true", "[]"]


@pytest.mark.slow
async def test_large_texts_pass_both_ways_and_a_small_heap_is_enough_for_small_cells(
    engine: Channel, nursery: trio.Nursery
) -> None:
    small = await open_peer(
        engine, nursery, cell_execution_limits=wire.SessionCellExecutionLimits(max_heap_size_bytes=16 * 1024 * 1024)
    )
    peer = await open_peer(engine, nursery, output_truncation=wire.OUTPUT_TRUNCATION_SERVER)
    client = await open_peer(engine, nursery)

    async def give(_: wire.ToolCall) -> str:
        return "x" * 4_194_304

    await nursery.start(client.answer_tools, give)
    out = await client.run("text('x'.repeat(8 * 1024 * 1024))", yield_time_ms=60_000)
    back = await client.run("text((await tools.t()).length)", enabled_tools=[tool("t")], yield_time_ms=60_000)
    thrown = await peer.run("throw 'begin:' + 'X'.repeat(65 * 1024 * 1024) + ':end'", yield_time_ms=60_000)
    cell = await small.run("const a = []; for (let i = 0; i < 1e5; i++) a.push(i); text(a.length)")

    assert [len(text) for text in out.texts] == [8 * 1024 * 1024]
    assert (back.texts, cell.texts) == (["4194304"], ["100000"])
    assert thrown.error is not None
    assert (thrown.error[:6], thrown.error[-4:], len(thrown.error.encode())) == ("begin:", ":end", 65_536)
