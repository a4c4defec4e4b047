"""Each public name is exported once, documented, typed, and says its public address."""

import importlib
import inspect
import types
from collections.abc import Iterator

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
    assert names_of(door) == sorted(set(names_of(door))), f"__all__ of {door} is not sorted, or names a thing twice"


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


def test_no_public_name_is_exported_by_two_doors() -> None:
    homes: dict[int, str] = {}

    for door, name in PUBLIC:
        thing = getattr(importlib.import_module(door), name)
        if isinstance(thing, type | types.FunctionType):
            address = f"{door}.{name}"
            assert homes.setdefault(id(thing), address) == address, f"{address} is also {homes[id(thing)]}"
