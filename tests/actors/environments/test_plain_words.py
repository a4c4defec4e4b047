"""What is given wrongly is refused at once, and an error says why and what to do."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from actors import InvalidOption
from actors.environments import (
    Environment,
    EnvironmentClosed,
    EnvironmentFiles,
    EnvironmentHttp,
    EnvironmentProcesses,
    HttpOptions,
    RegistrationInactive,
    RunOptions,
    StartOptions,
)
from actors.environments._options import WalkRules
from actors.environments.testing import FailingProvider, open_manager_in_memory
from actors.harness import Client, Processes
from actors.harness._files import Files
from actors.harness._http import Http


class TakesNothing:
    async def connect_bundle(self) -> None: ...


class TakesTwo:
    async def connect_bundle(self, key: object, more: object) -> None: ...


class TakesOneAndMayMore:
    async def connect_bundle(self, key: object, *more: object, again: int = 0) -> None: ...


class HasOneOfItsOwn:
    def __init__(self, function: object) -> None:
        self.connect_bundle = function


async def test_a_provider_that_cannot_be_called_is_refused_when_it_is_given() -> None:
    """Seen failing, with an error at the first connection only, before the call was looked at."""
    wrong: list[tuple[Any, str]] = [
        (FailingProvider, "it must be an object, not the class: write FailingProvider"),
        (TakesNothing(), "must take one argument, the harness's public key"),
        (TakesTwo(), "must take one argument"),
        (HasOneOfItsOwn(lambda: None), "must take one argument"),
        (HasOneOfItsOwn(3), r"must have a method connect_bundle\(\)"),
    ]
    async with open_manager_in_memory() as manager:
        for provider, words in wrong:
            for give in (manager.register_deferred, manager.upsert, manager.materialize):
                with pytest.raises(InvalidOption, match=words):
                    give("tools", provider)
        assert manager.environment_ids == ()
        for fitting in (TakesOneAndMayMore(), HasOneOfItsOwn(lambda key: None), HasOneOfItsOwn(print)):
            with manager.register_deferred("tools", fitting):  # type: ignore[arg-type]
                pass


async def test_a_url_that_is_no_text_is_refused_by_its_name() -> None:
    nothing: Any = None
    async with open_manager_in_memory() as manager:
        with pytest.raises(InvalidOption, match="url"):
            manager.upsert_url("tools", nothing)


@pytest.mark.parametrize(
    "url", ["ws://", "ws://:80", "ws://127.0.0.1:99999", "ws://127.0.0.1:0", "ws://x:y", "ws://[::1", "http://x"]
)
async def test_a_url_that_nobody_can_dial_is_refused_at_once_and_shown(url: str) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(InvalidOption) as refused:
            manager.upsert_url("tools", url)

        assert manager.get("tools") is None
    assert f"websocket_url='{url}'" in str(refused.value)
    assert "a port from 1 to 65535" in str(refused.value)


async def test_what_is_over_says_what_to_do() -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())
        environment = manager.get("tools")
        assert environment is not None
        await environment.aclose()
        with pytest.raises(EnvironmentClosed) as closed:
            await environment.wait_until_ready()
        with pytest.raises(RegistrationInactive) as inactive:
            registration.fail("too late")

    assert "register it anew: manager.register_deferred()" in closed.value.__notes__[0]
    assert "register the id anew: manager.register_deferred()" in inactive.value.__notes__[0]


async def test_after_the_drain_nobody_is_told_to_register_here() -> None:
    async with open_manager_in_memory() as manager:
        assert "manager.register_deferred()" in manager.why("tools").advice
        await manager.drain()
        why = manager.why("tools")

    assert [reason.code for reason in why.reasons] == ["unknown", "manager_closed"]
    assert why.advice == "register it with another manager: open_manager()"


OPTIONS: list[tuple[type, Callable[..., object], Callable[..., object]]] = [
    (RunOptions, Environment.run, Client.run),
    (StartOptions, EnvironmentProcesses.start, Processes.start),
    (HttpOptions, EnvironmentHttp.request, Http.request),
    (HttpOptions, EnvironmentHttp.stream, Http.stream),
    (WalkRules, EnvironmentFiles.walk, Files.walk),
]


@pytest.mark.parametrize(("options", "user", "real"), OPTIONS)
def test_help_tells_each_option_with_its_real_default(
    options: type, user: Callable[..., object], real: Callable[..., object]
) -> None:
    """Seen failing for a default that was told wrongly, and for one that was not told."""
    told = dict(re.findall(r"^    (\w+) \((.+?)\): ", inspect.cleandoc(options.__doc__ or ""), re.MULTILINE))
    help_of_user = " ".join((user.__doc__ or "").split())

    assert {*told} == {*options.__annotations__}
    for name, parameter in inspect.signature(real).parameters.items():
        if name in told:
            shown = told[name].replace(",", "").replace(" MiB", " * 1024 * 1024")
            value = eval(shown, {"__builtins__": {}})
            assert value == parameter.default
            assert re.search(rf"{name}={re.escape(told[name]).replace(',', '_')}", help_of_user)
