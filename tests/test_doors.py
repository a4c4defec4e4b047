"""Each public name is exported once, documented, typed, and says its public address."""

import ast
import enum
import importlib
import inspect
import re
import textwrap
import types
from collections.abc import Iterator
from typing import is_typeddict

import attrs
import pytest

from tests.test_layering import MODULES

DOORS = sorted(
    name
    for name, path in MODULES.items()
    if not any(part.startswith("_") for part in name.split("."))
    and (path.name == "__init__.py" or name.endswith(".testing"))
)
# The command line is a program: its door is `main`, and its commands are told by `--help`.
DOORS.remove("actors.cli") if "actors.cli" in DOORS else None


def names_of(door: str) -> list[str]:
    return list(getattr(importlib.import_module(door), "__all__", ()))


def as_ruff_sorts(name: str) -> tuple[int, list[tuple[int, str]]]:
    """Constants, classes, the rest; in each, digits by their number (ruff's RUF022)."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    parts = re.findall(r"\d+|\D+", name)
    return kind, [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


PUBLIC = [(door, name) for door in DOORS for name in names_of(door)]


def is_ours(thing: object) -> bool:
    return str(getattr(thing, "__module__", "")).split(".")[0] in {"actors", "supervision"}


def own_callables(thing: type) -> Iterator[tuple[str, types.FunctionType]]:
    for name, member in vars(thing).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and isinstance(function, types.FunctionType):
            yield name, function


@pytest.mark.parametrize("door", DOORS)
def test_a_door_tells_what_it_is_for_and_what_it_offers(door: str) -> None:
    module = importlib.import_module(door)

    assert (module.__doc__ or "").strip(), f"{door} has no docstring"
    assert names_of(door) == sorted(set(names_of(door)), key=as_ruff_sorts), f"__all__ of {door} is not in order"


@pytest.mark.parametrize(("door", "name"), PUBLIC)
def test_a_public_name_lives_at_its_public_address_and_is_documented(door: str, name: str) -> None:
    thing = getattr(importlib.import_module(door), name)

    if isinstance(thing, type | types.FunctionType):
        assert thing.__module__ == door, f"{name} says it lives in {thing.__module__}"
        documented = thing.__doc__ and not thing.__doc__.startswith(f"{name}(")
        assert documented, f"{door}.{name} has no docstring"


@pytest.mark.parametrize(("door", "name"), PUBLIC)
def test_public_callables_are_documented_and_typed(door: str, name: str) -> None:
    thing = getattr(importlib.import_module(door), name)
    functions = list(own_callables(thing)) if isinstance(thing, type) else [(name, thing)]

    for member, function in functions:
        if not isinstance(function, types.FunctionType) or not is_ours(function) or "<" in function.__qualname__:
            continue
        assert inspect.getdoc(function), f"{door}.{name}: {member} has no docstring"
        assert "return" in function.__annotations__, f"{door}.{name}: {member} does not say what it returns"


# What only a bug of ours, or of the class that should have written the method, raises.
OUR_BUG = re.compile(r"AssertionError|NotImplementedError")
# Neither waits: one makes blocks and one makes headers, and what they make is documented where it is used.
MAKERS = {"actors.blocks.block", "actors.rendezvous.bearer"}
# What `async with`, `async for` and a call await.
AWAITED = {"__aenter__", "__aexit__", "__aiter__", "__anext__", "__call__"}
BLOCK_OR_AWAIT = re.compile(r"\b(?:AbstractAsyncContextManager|Awaitable|Coroutine|StartingProcess)\b")


def awaited_callables(thing: object) -> Iterator[tuple[str, str]]:
    """What a public name has that is awaited or gives a block, with what its help says: its own and its class's."""
    if isinstance(thing, types.FunctionType):
        if is_awaited(thing):
            yield thing.__name__, inspect.getdoc(thing) or ""
        return
    for home in thing.__mro__ if isinstance(thing, type) else ():
        for name, member in vars(home).items():
            function = getattr(member, "__func__", member)
            if (name in AWAITED or not name.startswith("_")) and is_ours(function) and is_awaited(function):
                yield name, "\n".join((inspect.getdoc(function) or "", home.__doc__ or "", thing.__doc__ or ""))


def is_awaited(function: object) -> bool:
    if not isinstance(function, types.FunctionType):
        return False
    made = inspect.unwrap(function)
    if inspect.iscoroutinefunction(made) or inspect.isasyncgenfunction(made):
        return True
    return BLOCK_OR_AWAIT.search(str(made.__annotations__.get("return", ""))) is not None


@pytest.mark.parametrize(("door", "name"), PUBLIC)
def test_the_help_of_what_is_awaited_says_what_a_cancel_leaves_behind(door: str, name: str) -> None:
    """Seen failing for 150 of them, and for `Process.wait` without its own."""
    thing = getattr(importlib.import_module(door), name)
    silent = {part for part, told in awaited_callables(thing) if "Cancelled:" not in told}

    assert not silent or f"{door}.{name}" in MAKERS, f"help({door}.{name}) has no `Cancelled:` for {sorted(silent)}"


def raises_by_itself(function: types.FunctionType) -> bool:
    """Whether its body, without what is defined inside, raises something that its caller may see."""
    waiting: list[ast.AST] = list(ast.parse(textwrap.dedent(inspect.getsource(function))).body)
    waiting = [step for one in waiting if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for step in one.body]
    while waiting:
        step = waiting.pop()
        if isinstance(step, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(step, ast.Raise) and step.exc is not None and not OUR_BUG.match(ast.unparse(step.exc)):
            return True
        waiting += ast.iter_child_nodes(step)
    return False


@pytest.mark.parametrize(("door", "name"), PUBLIC)
def test_the_help_of_what_raises_says_so(door: str, name: str) -> None:
    """Seen failing for 17 names, and for `Monitor` without its own."""
    thing = getattr(importlib.import_module(door), name)
    functions = list(own_callables(thing)) if isinstance(thing, type) else [(name, thing)]
    in_class = "raise" in (thing.__doc__ or "").lower() if isinstance(thing, type) else False

    silent = {
        part
        for part, function in functions
        if isinstance(function, types.FunctionType) and is_ours(function) and "<" not in function.__qualname__
        if not in_class and "Raises:" not in (function.__doc__ or "") and raises_by_itself(inspect.unwrap(function))
    }

    assert not silent, f"help({door}.{name}) does not say what {sorted(silent)} raise"


def test_what_is_awaited_is_found_behind_every_kind_of_name() -> None:
    found = {
        f"{door}.{name}.{part}"
        for door, name in PUBLIC
        for part, _told in awaited_callables(getattr(importlib.import_module(door), name))
    }

    assert found >= {
        "actors.Monitor.__aenter__",
        "actors.Actor.down",
        "actors.environments.open_manager.open_manager",
        "actors.harness.Dialer.dial",
        "actors.harness.Process.wait",
        "actors.harness.OutputLines.__anext__",
    }
    assert len(found) > 250


def is_spoken(value: object) -> bool:
    return isinstance(value, str) and value.count(" ") >= 3


def told_parts(thing: object) -> list[str]:
    """The parts of a value that whoever makes or matches it must know, and that no signature explains."""
    if not isinstance(thing, type):
        return []
    if issubclass(thing, enum.Enum):
        # A member whose value is a sentence says itself what it means.
        return [member.name for member in thing if not is_spoken(member.value)]
    if is_typeddict(thing):
        return sorted(thing.__annotations__)
    if attrs.has(thing):
        return [field.name for field in attrs.fields(thing) if field.init and not field.name.startswith("_")]
    return []


def told_in(docstring: str) -> set[str]:
    """The names that the `Attributes` of a docstring explain: one or several, their default, a colon and a text."""
    section = re.search(r"^Attributes:\n((?:    .*\n?|\n)*)", inspect.cleandoc(docstring), re.MULTILINE)
    lines = section[1] if section else ""
    heads: list[str] = re.findall(r"^    (\w+(?:, \w+)*)(?: \([^()\n]+\))?: \S", lines, re.MULTILINE)
    return {name for head in heads for name in head.split(", ")}


@pytest.mark.parametrize(("door", "name"), PUBLIC)
def test_the_help_of_a_value_says_what_each_of_its_parts_means(door: str, name: str) -> None:
    thing = getattr(importlib.import_module(door), name)
    parts = told_parts(thing)
    told = told_in(thing.__doc__ or "") if parts else set()

    assert not set(parts) - told, f"help({door}.{name}) does not explain {sorted(set(parts) - told)}"
    if attrs.has(thing) or (told and issubclass(thing, enum.Enum)):
        unknown = {part for part in told if not hasattr(thing, part) and part not in parts}
        unknown -= {field.name for field in attrs.fields(thing)} if attrs.has(thing) else set()
        assert not unknown, f"help({door}.{name}) explains {sorted(unknown)}, which it does not have"


def test_no_public_name_is_exported_by_two_doors() -> None:
    homes: dict[int, str] = {}

    for door, name in PUBLIC:
        thing = getattr(importlib.import_module(door), name)
        if isinstance(thing, type | types.FunctionType):
            address = f"{door}.{name}"
            assert homes.setdefault(id(thing), address) == address, f"{address} is also {homes[id(thing)]}"
