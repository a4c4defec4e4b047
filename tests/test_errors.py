"""Every public error of every package keeps its type, its sentence and its facts when it is copied or pickled.

Planted and killed: `__reduce__` left out of each root, `args` left out of the state, `kept` left out.
"""

import copy
import importlib
import inspect
import pickle
import threading
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import pytest

import actors
import supervision
from actors.harness import CompletedCommand, HarnessError, ProcessExit, RequestRejected
from actors.relay import RegistrarFailed
from actors.sessions import SessionsError
from tests.test_doors import PUBLIC

Write = Callable[[Any], Any]
WRITES: dict[str, Write] = {
    "copied": copy.copy,
    "copied deep": copy.deepcopy,
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
}


def public_errors() -> list[type[BaseException]]:
    things = (getattr(importlib.import_module(door), name) for door, name in PUBLIC)
    return [thing for thing in things if isinstance(thing, type) and issubclass(thing, BaseException)]


def made_of(hint: Any) -> Any:
    """Some value of a type, for an argument without a default."""
    plain: dict[Any, Any] = {
        str: "some text", int: 3, float: 1.5, bool: True, object: "an object", bytes: b"bytes", Any: "anything",
        type(None): None, Exception: ValueError("bad"), BaseException: ValueError("bad"),
        SessionsError: SessionsError("lost"), HarnessError: HarnessError("lost"),
        RequestRejected: RequestRejected(-32603, "no", {"path": "/x"}),
        RegistrarFailed: RegistrarFailed("no", retryable=True),
    }  # fmt: skip
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Sequence, Iterable) or origin is tuple:
        return (made_of(parts[0]),)
    if origin in (dict, Mapping):
        return {made_of(parts[0]): made_of(parts[1])}
    if parts:
        return made_of(parts[0])
    if hint in plain:
        return plain[hint]
    if isinstance(hint, type) and hasattr(hint, "__members__"):
        return list(hint)[-1]  # type: ignore[call-overload]
    if hint is CompletedCommand:
        return completed()
    if attrs.has(hint):
        hints = typing.get_type_hints(hint)
        return hint(
            **{f.alias: made_of(hints[f.name]) for f in attrs.fields(hint) if f.init and f.default is attrs.NOTHING}
        )
    raise AssertionError(f"no example of {hint}")


def completed() -> CompletedCommand:
    hints = typing.get_type_hints(CompletedCommand)
    needed = [f for f in attrs.fields(CompletedCommand) if f.init and f.default is attrs.NOTHING]
    return CompletedCommand(
        **{f.name: ProcessExit(**exit_facts()) if f.type is ProcessExit else made_of(hints[f.name]) for f in needed}
    )


def exit_facts() -> dict[str, Any]:
    hints = typing.get_type_hints(ProcessExit)
    return {f.name: made_of(hints[f.name]) for f in attrs.fields(ProcessExit) if f.default is attrs.NOTHING}


def example_of(kind: type[BaseException]) -> BaseException:
    if kind is actors.AsksFailed:
        return actors.AsksFailed([1, ValueError("bad")], [ValueError("bad")])
    init: Any = kind.__init__
    if not inspect.isfunction(init):
        return kind("a sentence")
    hints = typing.get_type_hints(init)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(init).parameters.items())[1:]:
        if parameter.default is not parameter.empty and hints[name] is not str:
            continue
        value = made_of(hints[name])
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[name] = value
        else:
            positional.append(value)
    return kind(*positional, **named)


def told(value: Any) -> Any:
    """What two exceptions that say the same have in common; exceptions compare by identity."""
    if isinstance(value, BaseException):
        return type(value), str(value), value.args and str(value.args[0]), told(vars(value))
    if isinstance(value, dict):
        return {key: told(one) for key, one in typing.cast("dict[Any, Any]", value).items()}
    if isinstance(value, tuple | list):
        return [told(one) for one in typing.cast("Iterable[Any]", value)]
    if isinstance(value, supervision.Death):
        return value.child, value.generation, value.at_s, told(value.cause)
    return value


@pytest.mark.parametrize("kind", public_errors(), ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
@pytest.mark.parametrize("how", WRITES)
def test_an_error_says_the_same_and_holds_the_same_facts(how: str, kind: type[BaseException]) -> None:
    error = example_of(kind)
    error.add_note("a note")
    twin = WRITES[how](error)

    assert twin is not error
    assert told(twin) == told(error)
    assert twin.__notes__ == error.__notes__
    assert repr(twin) == repr(error)


class Stubborn(Exception):
    """Cannot be read back: its `__init__` wants more than it gave to its base."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def test_a_fact_that_cannot_be_pickled_is_told_by_what_it_was() -> None:
    lock = threading.Lock()
    error = actors.MailboxFull(lock, "a", 1, "fails")
    death = supervision.Death(child="c", generation=1, at_s=0.0, cause=Stubborn(1, 2))
    gave_up = supervision.RestartIntensityExceeded("root", 0, 5.0, (death,))
    some = actors.AsksFailed([lock, Stubborn(1, 2)], [Stubborn(1, 2)])

    read = WRITES["pickled"](error)
    assert (str(read), read.message) == (str(error), "<lock>")
    assert copy.copy(error).message is lock
    read = WRITES["pickled"](gave_up)
    assert str(read) == str(gave_up)
    assert repr(read.deaths[0].cause) == repr(supervision.SupervisionError("Stubborn('1 and 2')"))
    read = WRITES["pickled"](some)
    assert (str(read), read.outcomes[0]) == (str(some), "<lock>")
    assert [str(one) for one in read.exceptions] == ["Stubborn('1 and 2')"]
    assert copy.copy(some).outcomes == some.outcomes
