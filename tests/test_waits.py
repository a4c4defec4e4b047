"""Tests wait for what happens. None lets real time pass instead, but for what is listed here with its reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

HERE = Path(__file__).parent

SLEEPS = {("trio", "sleep"), ("trio", "sleep_until"), ("time", "sleep")}
CLOCKS = {"autojump_clock", "mock_clock", "MockClock"}

# What may sleep although a test with a real clock reaches it.
MAY_SLEEP = {
    "support.settling.eventually": "what nobody announces can only be asked for again and again",
    # Parts that are played: a table or a parameter holds them, and only tests with a virtual clock make them sleep.
    "supervision.players.Stage": "a child cleans up for 0 s unless a test with a virtual clock asks for more",
    "actors.executor.test_sessions.ticker": "in a table of programs",
    "actors.harness.world.sleep": "in a table of programs",
    "actors.harness.world.tick": "in a table of programs",
    # What was recorded took its time.
    "actors.sessions.host.test_runtime_recorded.answer": "the recordings were made with a tool that takes 50 ms",
    "actors.sessions.host.test_truncation_recorded.test_recorded_observations_are_cut_as_they_were":
        "the recordings were made with these pauses",
    # What passes is what is tested.
    "actors.sessions.client.test_seed_scripts.test_a_duration_leaves_out_how_long_the_answer_lay_unread":
        "an answer of another program lies unread for a while",
    "interop.codex.test_hostile_world.test_a_paused_executor_does_not_take_its_own_pause_for_the_silence_of_its_peers":
        "another program stands still for a while",
}  # fmt: skip


@attrs.frozen
class Definition:
    """What stands at the top of a module under one name."""

    address: str
    has_clock: bool
    is_async: bool
    arguments: frozenset[str]
    needs: frozenset[str]
    """Addresses of what it names: functions it calls, fixtures it asks for, base classes."""
    sleeps: bool

    @property
    def name(self) -> str:
        return self.address.rpartition(".")[2]

    @property
    def is_test(self) -> bool:
        return self.name.startswith(("test_", "Test"))


Definitions = dict[str, Definition]


def definition(address: str, node: ast.AST, known: dict[str, str]) -> Definition:
    arguments, names, sleeps = set[str](), set[str](), False
    for part in ast.walk(node):
        match part:
            case ast.arg(arg=name):
                arguments.add(name)
            case ast.Name(id=name):
                names.add(name)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                sleeps = sleeps or (owner, name) in SLEEPS
                names.add(name)
            case ast.Attribute(attr=name):
                names.add(name)
            case _:
                pass
    return Definition(
        address,
        has_clock=not CLOCKS.isdisjoint(names | arguments),
        is_async=isinstance(node, ast.AsyncFunctionDef),
        arguments=frozenset(arguments),
        needs=frozenset(known[name] for name in names | arguments if name in known) - {address},
        sleeps=sleeps,
    )


def names_of(node: ast.stmt) -> list[str]:
    """What a statement at the top of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def read(module: str, source: str, fixtures: dict[str, str]) -> Iterator[Definition]:
    """The definitions of a module; ``fixtures`` are known in it without an import."""
    known, nodes = dict(fixtures), dict[str, ast.stmt]()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom):
            assert not any((node.module, alias.name) in SLEEPS for alias in node.names), f"{module}:{node.lineno}"
            from_tests = str(node.module).removeprefix("tests.")
            known |= {alias.asname or alias.name: f"{from_tests}.{alias.name}" for alias in node.names}
        else:
            here = {name: f"{module}.{name}" for name in names_of(node)}
            known |= here
            nodes |= dict.fromkeys(here.values(), node)
    for address, node in nodes.items():
        yield definition(address, node, known)


def read_all() -> Definitions:
    """Every definition of the tests. A `conftest.py` is read before what stands below it."""
    found: Definitions = {}
    fixtures: dict[Path, dict[str, str]] = {}
    for path in sorted(HERE.rglob("*.py"), key=lambda path: (len(path.parts), path.name != "conftest.py", path)):
        module = ".".join(path.relative_to(HERE).with_suffix("").parts)
        above = {
            name: address for folder in reversed(path.parents) for name, address in fixtures.get(folder, {}).items()
        }
        here = {one.address: one for one in read(module, path.read_text(), above)}
        if path.name == "conftest.py":
            fixtures[path.parent] = {one.name: one.address for one in here.values()}
        found |= here
    return found


def is_virtual(test: Definition, found: Definitions) -> bool:
    """Whether it asks for a virtual clock, by itself or through a fixture, or is plain and calls what runs on one."""
    needs = [found[need] for need in test.needs if need in found]
    return (
        test.has_clock
        or (not test.is_async and any(need.has_clock for need in needs))
        or any(is_virtual(need, found) for need in needs if need.name in test.arguments)
    )


def real_sleeps(found: Definitions) -> dict[str, str]:
    """What sleeps and is reached from a test with a real clock, and the first such test."""
    offences: dict[str, str] = {}
    for test in found.values():
        if not test.is_test or is_virtual(test, found):
            continue
        seen, left = set[str](), [test.address]
        while left:
            one = found.get(left.pop())
            if one is None or one.address in seen or one.has_clock or (one.is_test and one is not test):
                continue
            seen.add(one.address)
            left += one.needs
            if one.sleeps:
                offences.setdefault(one.address, test.address)
    return offences


def test_no_test_lets_real_time_pass() -> None:
    offences = real_sleeps(read_all())

    assert {address: test for address, test in offences.items() if address not in MAY_SLEEP} == {}
    assert MAY_SLEEP.keys() - offences.keys() == set(), "nothing is listed that need not be"


SLEEPER = "async def nap():\n    await trio.sleep(1)\n"


@pytest.mark.parametrize(
    ("source", "who"),
    [
        ("async def test_it():\n    await trio.sleep(1)\n", "m.test_it"),
        ("async def test_it(nursery):\n    nursery.start_soon(trio.sleep, 1)\n", "m.test_it"),
        ("def test_it():\n    time.sleep(1)\n", "m.test_it"),
        (SLEEPER + "async def test_it():\n    await nap()\n", "m.nap"),
        (SLEEPER + "TABLE = {'a': nap}\nasync def test_it():\n    await TABLE['a']()\n", "m.nap"),
        (SLEEPER + "@pytest.fixture\nasync def rested():\n    await nap()\nasync def test_it(rested): ...\n", "m.nap"),
        ("class Bed:\n    async def nap(self):\n        await trio.sleep(1)\nasync def test_it(): Bed()\n", "m.Bed"),
        ("async def test_it(autojump_clock):\n    await trio.sleep(1)\n", None),
        (SLEEPER + "async def test_it(mock_clock):\n    await nap()\n", None),
        (SLEEPER + "def test_it():\n    trio.run(nap, clock=MockClock())\n", None),
        (SLEEPER + "def run():\n    trio.run(nap, clock=MockClock())\ndef test_it():\n    run()\n", None),
        (
            SLEEPER + "@pytest.fixture\nasync def still(mock_clock): ...\nasync def test_it(still):\n    await nap()\n",
            None,
        ),
        ("async def test_it():\n    await trio.sleep_forever()\n", None),
    ],
)
def test_a_sleep_is_found_wherever_a_test_with_a_real_clock_comes_by(source: str, who: str | None) -> None:
    found = {one.address: one for one in read("m", source, {})}

    assert [*real_sleeps(found)] == ([] if who is None else [who])


@pytest.mark.parametrize("line", ["from trio import sleep", "from time import sleep as nap"])
def test_nobody_gives_a_sleep_another_name(line: str) -> None:
    with pytest.raises(AssertionError):
        list(read("m", line, {}))
