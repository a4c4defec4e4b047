"""What a rendezvous, its clients and its executors are given of another kind is refused at once, by name."""

from collections.abc import Callable
from typing import Any

import pytest

from actors import InvalidOption
from actors.environments import RegistryConnectProvider
from actors.executor import SettingInvalid, serve_remote_executor
from actors.harness import InvalidArgument, RelayDialer
from actors.noise import Identity
from actors.rendezvous import (
    Grant,
    RegistryClient,
    RendezvousSettingInvalid,
    bearer,
    open_registry_client,
    open_rendezvous,
)

TOKEN = "a-token-of-everybody"
GRANT = Grant(token=TOKEN, name="all")
URL = "http://127.0.0.1:9"
ME = Identity.generate()


class Registry:
    async def register(self, environment_id: str, key: object, /) -> Any:
        raise AssertionError

    async def verdict(self, *given: object) -> Any:
        raise AssertionError

    async def connect(self, environment_id: str, key: object, /) -> Any:
        raise AssertionError


MADE: list[tuple[Callable[[], object], str]] = [
    (lambda: Grant(token=5, name="x"), "token must be of type str, not int"),
    (lambda: Grant(token=TOKEN, name=5), "name must be of type str, not int"),
    (lambda: Grant(token=TOKEN, name="x", tenant=None), "tenant must be of type str, not NoneType"),
    (lambda: Grant(token=TOKEN, name="x", may_connect="no"), "may_connect must be of type bool, not str"),
    (lambda: Grant(token=TOKEN, name="x", environments=["a"]), "environments must be of type frozenset, not list"),
    (lambda: Grant(token=TOKEN, name="x", environments=frozenset({5})), "each of environments must be of type str"),
    (lambda: bearer(5), "token must be of type str, not int"),
    (lambda: bearer("two words"), "token must be one word of printable ASCII"),
    (lambda: bearer("line\n"), "token must be one word of printable ASCII"),
    (lambda: bearer(TOKEN, account_id=5), "account_id must be of type str"),
]


@pytest.mark.parametrize(("make", "said"), MADE, ids=range(len(MADE)))
def test_a_wrong_value_is_refused_when_it_is_made(make: Callable[[], object], said: str) -> None:
    with pytest.raises(RendezvousSettingInvalid) as refused:
        make()

    assert said in str(refused.value)
    assert "two words" not in str(refused.value)


OPENED: list[tuple[Callable[[], Any], str]] = [
    (lambda: open_rendezvous("a-secret-token-of-mine"), "grants must be an iterable of Grant, not str"),
    (lambda: open_rendezvous(GRANT), "grants must be an iterable of Grant: put the one into a list"),
    (lambda: open_rendezvous([]), "grants must hold at least one Grant"),
    (lambda: open_rendezvous([TOKEN]), "grants[0] must be of type Grant, not str"),
    (lambda: open_rendezvous(None), "grants must be an iterable of Grant, not NoneType"),
    (lambda: open_rendezvous([GRANT], port="80"), "port must be of type int, not str"),
    (lambda: open_rendezvous([GRANT], host=5), "host must be of type str, not int"),
    (lambda: open_rendezvous([GRANT], limits={"x": 1}), "limits must be of type RendezvousLimits, not dict"),
    (lambda: open_rendezvous([GRANT], ssl_context="x"), "ssl_context must be of type SSLContext, not str"),
    (lambda: open_registry_client(URL, TOKEN), "authenticate must be a function that gives headers; write bearer("),
    (lambda: open_registry_client(bearer(TOKEN), URL), "base_url must be of type str, not function"),
    (lambda: open_registry_client(URL, bearer(TOKEN), timeout_s="1"), "timeout_s must be a number of seconds"),
]


@pytest.mark.parametrize(("make", "said"), OPENED, ids=range(len(OPENED)))
async def test_a_wrong_argument_is_refused_before_anything_is_opened(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(RendezvousSettingInvalid) as refused:
        async with make():
            raise AssertionError("it was opened")

    assert said in str(refused.value)
    assert TOKEN not in str(refused.value)


async def test_a_question_about_something_of_another_kind_is_not_asked() -> None:
    async with open_registry_client(URL, bearer(TOKEN)) as registry:
        assert isinstance(registry, RegistryClient)
        for ask in (registry.register, registry.connect):
            with pytest.raises(RendezvousSettingInvalid, match="environment_id must be of type str"):
                await ask(5, ME.public_key)  # type: ignore[arg-type]
            with pytest.raises(RendezvousSettingInvalid, match="key must be of type PublicKey, not Identity"):
                await ask("env", ME)  # type: ignore[arg-type]


SERVED: list[tuple[Callable[[], Any], str]] = [
    (lambda: serve_remote_executor("tools", Registry(), ME), "registrar must be an object with a method register()"),
    (lambda: serve_remote_executor(Registry, "tools", ME), "register(), not the class Registry"),
    (lambda: serve_remote_executor(Registry(), ME, "tools"), "environment_id must be of type str, not Identity"),
    (lambda: serve_remote_executor(Registry(), "tools", Identity), "identity must be of type Identity, not type"),
    (lambda: serve_remote_executor(Registry(), "tools", ME, report=5), "report must be callable"),
]


@pytest.mark.parametrize(("serve", "said"), SERVED, ids=range(len(SERVED)))
async def test_an_executor_refuses_what_it_could_not_serve_with(serve: Callable[[], Any], said: str) -> None:
    with pytest.raises(SettingInvalid) as refused:
        await serve()

    assert said in str(refused.value)


def test_providers_and_dialers_refuse_what_was_swapped() -> None:
    with pytest.raises(InvalidOption, match="environment_id"):
        RegistryConnectProvider("tools", Registry())  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"registry.*it must have a method connect\(\)"):
        RegistryConnectProvider("tools", "tools")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="it must be an object, not the class"):
        RegistryConnectProvider(Registry, "tools")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="next_bundle: must be an async function, not Identity"):
        RelayDialer(ME, Registry().register)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="identity: must be"):
        RelayDialer(Registry().register, Identity)  # type: ignore[arg-type]
