"""Random scripts whose outcome does not hang on time, and random rows of calls about them."""

# ruff: noqa: E501 - tables of JavaScript

import json
from typing import Any

import attrs
from hypothesis import strategies as st

letters = st.text(st.sampled_from('ab c\n\u00e9\u20ac\U0001f600"\\'), max_size=8)
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False, width=32), letters),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(letters, inner, max_size=3)),
    max_leaves=6,
).map(lambda value: f"({json.dumps(value)})")
odd = st.sampled_from([
    "undefined", "NaN", "-0", "1e21", "10n", "Symbol('s')", "(() => 1)", "class A {}", "new Map([[1, 2]])", "new Set([1])",
    "new Date(0)", "/a/g", "new Error('e')", "Promise.resolve(1)", "[undefined, () => 1, NaN]", "({a: undefined, b: NaN})",
    "({toJSON() { return 'j' }})", "({toJSON() { return undefined }})", "({toJSON() { throw 'tj' }})", "Object.create(null)",
    "({get a() { throw 'getter' }})", "({toString() { return 'ts' }})", "({toString() { throw 'no' }})", "new Uint8Array(2)",
    "new Proxy({}, {ownKeys() { throw 'trap' }})", "'\\ud800'", "[1,,2]", "JSON.parse('{\"__proto__\": 1}')",
])  # fmt: skip
values = st.one_of(plain, odd)
keys = st.one_of(st.sampled_from(["'a'", "'b'", "1", "null", "Symbol('k')", "undefined", "''"]), values)
images = st.sampled_from([
    "'data:image/png;base64,AAAA'", "'http://x/y.png'", "'file:///x'", "'nothing'", "''", "[]", "({image_url: 'data:x'})",
    "({image_url: 'DATA:x', detail: 'LOW'})", "({image_url: 'data:x', detail: 'huge'})", "({image_url: 'data:x', detail: 3})",
    "({type: 'image', data: 'AAAA', mimeType: 'image/png'})", "({type: 'image', data: ''})", "({type: 'text', text: 'x'})",
    "({type: 'image', data: 'AAAA', _meta: {'codex/imageDetail': 'original'}})", "({output_hint: 'h', image_url: 'data:x'})",
    "({output_hint: 1, image_url: 'data:x'})", "({output_hint: '', image_url: 'data:x'})", "null", "7",
])  # fmt: skip
sounds = st.sampled_from([
    "'data:audio/mpeg;base64,AAAA'", "'http://x'", "''", "({audio_url: 'data:audio/wav;base64,UklGRg=='})",
    "({type: 'audio', data: 'AAAA', mimeType: 'audio/mpeg'})", "({type: 'audio', data: ''})", "({type: 'image', data: 'A'})",
    "({audio_url: 3})", "null",
])  # fmt: skip
blocks = st.sampled_from([
    "({type: 'text', text: 't'})", "({type: 'text'})", "({type: 'resource', resource: {uri: 'u:1', text: 'x'}})",
    "({type: 'resource_link', uri: 'u:1', name: 'n'})", "[{type: 'text', text: 'a'}, 3]", "'text'", "new Set()",
    "({type: 'image', data: 'http', mimeType: 'image/png'})", "({type: 'audio', data: ''})",
])  # fmt: skip
details = st.sampled_from(["", ", 'low'", ", 'ORIGINAL'", ", 'x'", ", null", ", 5", ", ''"])
counts = st.sampled_from([1, 2, 3, 40, 700])

statements: st.SearchStrategy[str] = st.deferred(lambda: st.one_of(simple, simple, simple, compound))
simple: st.SearchStrategy[str] = st.one_of(
    st.builds("text({});".format, values),
    st.builds("text({});".format, letters.map(json.dumps)),
    st.just("text();"),
    st.builds("store({}, {});".format, keys, values),
    st.builds("text(load({}));".format, keys),
    st.builds("notify({});".format, values),
    st.builds("image({}{});".format, images, details),
    st.builds("generatedImage({});".format, images),
    st.builds("audio({});".format, sounds),
    st.builds("content({});".format, blocks),
    st.builds("text(await tools.echo({}));".format, values),
    st.builds("text(await tools.fail({}));".format, plain),
    st.builds("for (let i = 0; i < {}; i++) text({}.repeat({}));".format, counts, letters.map(json.dumps), counts),
    st.builds("throw {};".format, values),
    st.just("exit();"),
    st.just("text(await tools.nobody());"),
    st.just("text(ALL_TOOLS); text(Object.keys(tools));"),
    st.just("await new Promise(r => setTimeout(r, 5)); text('later');"),
    st.just("setTimeout(() => text('never'), 1e6);"),
    st.builds("clearTimeout({});".format, values),
    st.builds("setTimeout({});".format, values),
    st.just("globalThis.left = (globalThis.left ?? 0) + 1; text(globalThis.left);"),
    st.just("for await (const s of as_settled([1, Promise.reject('r'), 2])) text(s);"),
    st.just("await import('x');"),
    st.just("text(typeof process + typeof require + typeof fetch + typeof console);"),
    st.just("Promise.reject('unheard');"),
    st.builds("text(eval({}));".format, st.sampled_from(["'1+1'", "'let x = 1; x'", "'}'"])),
)
compound: st.SearchStrategy[str] = st.one_of(
    st.builds(
        "try {{ {} }} catch (e) {{ text('caught ' + typeof e); text(String(e?.message ?? e).split('\\n')[0]); }}".format,
        statements,
    ),
    st.builds("try {{ {} }} finally {{ text('finally'); }}".format, statements),
    st.builds("{{ {} {} }}".format, statements, statements),
    st.builds("await (async () => {{ {} }})();".format, statements),
    st.builds("await Promise.all([tools.echo({}), tools.echo({})]).then(text);".format, plain, plain),
)


@attrs.frozen
class Script:
    """A script; one that stays has to be terminated."""

    source: str
    stays: bool


# At most one yield, in front of what follows it: a second one would meet an observer or none, as time has it.
scripts = st.builds(
    lambda before, after, yields, stays: Script(
        "\n".join([*before, *(["yield_control();"] if yields else []), *after, *([STAY] if stays else [])]), stays
    ),
    st.lists(statements, max_size=4),
    st.lists(statements, max_size=3),
    st.booleans(),
    st.sampled_from([False] * 5 + [True]),
)
STAY = "yield_control(); await new Promise(() => {});"

bad_ids = st.sampled_from(["", "x" * 257, "nobody", "\u20ac" * 100])
budgets = st.sampled_from([None, 0, 1, 5, 50, 10_000])
call_kinds = ["wait", "terminate", "reuse", "yield", "cancel-wait", "complete", "many-filters", "bad-tool", "revision"]


@attrs.frozen
class Step:
    """One call or row of calls."""

    kind: str
    script: Script
    budget: int | None
    identifier: str
    number: int
    revision: int | None
    tools: bool


steps: st.SearchStrategy[Any] = st.builds(
    Step,
    kind=st.sampled_from(["run"] * 6 + call_kinds),
    script=scripts,
    budget=budgets,
    identifier=bad_ids,
    number=st.integers(0, 4),
    revision=st.sampled_from([None, None, 0, 1, 2, 3]),
    tools=st.booleans(),
)
rows = st.lists(steps, min_size=1, max_size=6)
