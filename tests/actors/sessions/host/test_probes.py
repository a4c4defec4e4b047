"""Ways out of a cell, traces it might leave for the next, and ends it might bring to its process; on both engines.

What a probe reaches, it says itself: `reached` is a text with what it found of the world around the cell.
"""

# ruff: noqa: E501  # Probes are easier to read on one line.
import functools
import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import Channel, open_channel
from actors.sessions.host import HostOptions, serve_host
from tests.actors.sessions.host.peer import open_peer, tool

ENGINES = [
    pytest.param(None, id="found"),
    pytest.param("node", id="node", marks=pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")),
]
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
}


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
