"""Every probe that JavaScript engines were judged by is made, on each engine that a host may find.

The table is `engine_probes.txt`; the studies themselves are not part of the repository.
"""

import ast
from functools import cache

import pytest

from tests.test_environment_cases import TESTS, read_table

TABLE = TESTS / "engine_probes.txt"
PLACE = TESTS / "actors" / "sessions" / "host"
PROBES = {
    "ways out": "helpers bound-helpers promises tool-errors stack-overflow overflow-in-helpers call-sites"
    " call-site-chain import-hook import-promise import-of-made-code toJSON polluted-prototypes species walk"
    " permissions",
    "traces": "globals prototypes iterator-prototypes generator-prototypes stackTraceLimit prepareStackTrace"
    " call-site-prototype regexp-statics intl-prototypes symbol-registry helpers tools import.meta timers"
    " late-microtasks finalization-callbacks finally-after-exit late-answers helpers-after-the-end memory",
    "ends": "endless-loop microtask-loop catastrophic-regexp heap-arrays heap-after-await heap-small-objects heap-split"
    " buffers small-heap crash protocol exit spinning-reader registry registry-by-prototype registry-subclass"
    " registry-reflect unrest-after-exit unrest-in-finally unrest-in-then heap-bomb-after-exit two-million-microtasks"
    " unawaited-rejection proxy-as-rejection hostile-stack hostile-prepareStackTrace thenables hijacked-promises"
    " unawaited-call pending-timer",
    "rejections and values": "top-level-await static-import import-of-a-file import import-from-eval deep-recursion"
    " nested-json absent-globals fr-FR circular-text half-code-points nul shebang clean-stacks no-interceptor"
    " throw-of-65-MiB",
}
ON_BOTH = {"engine", "house", "path"}
"""The fixtures and parameters that stand for one engine after the other."""


@cache
def body_of(file: str) -> dict[str, ast.stmt]:
    named: dict[str, ast.stmt] = {}
    for node in ast.parse((PLACE / file).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            named[node.name] = node
        elif isinstance(node, ast.Assign):
            named |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named[node.target.id] = node
    return named


def is_made(what: str) -> bool:
    test, _, row = what.partition("  ")
    file, _, name = test.partition("::")
    function = body_of(file).get(name)
    if not isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef):
        return False
    on_both = bool(ON_BOTH & {argument.arg for argument in function.args.args})
    if not row:
        return on_both
    table, _, key = row.strip().partition(": ")
    assigned = body_of(file).get(table)
    rows = assigned.value if isinstance(assigned, ast.Assign | ast.AnnAssign) else None
    used = any(isinstance(node, ast.Name) and node.id == table for node in ast.walk(function))
    keys = rows.keys if isinstance(rows, ast.Dict) else []
    return on_both and used and any(isinstance(one, ast.Constant) and one.value == key for one in keys)


@pytest.mark.parametrize("section", PROBES)
def test_every_probe_has_a_line_and_no_other_has(section: str) -> None:
    assert {*read_table(TABLE)[section]} == {*PROBES[section].split()}


@pytest.mark.parametrize("section", PROBES)
def test_every_probe_is_made_on_both_engines(section: str) -> None:
    """Killed: a row that was taken out of its table; a test that takes the engine it finds."""
    missing = {name: told for name, told in read_table(TABLE)[section].items() if not all(map(is_made, told))}

    assert missing == {}
