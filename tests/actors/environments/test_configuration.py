"""From settings to a first set of environments (7.4): defaults, this machine, the texts of what is refused."""

import pytest
from trio.testing import wait_all_tasks_blocked

from actors.environments import (
    InvalidEnvironmentId,
    NoiseSettings,
    ProtocolError,
    RegistryConfigurationError,
    Snapshot,
    StatusReady,
    open_manager,
)
from actors.environments.testing import FailingProvider, ScriptedProvider, open_manager_in_memory
from supervision import open_root
from tests.actors.environments.waiting import found

URL_VARIABLE = "CODEX_EXEC_SERVER_NOISE_REGISTRY_URL"
ID_VARIABLE = "CODEX_EXEC_SERVER_NOISE_ENVIRONMENT_ID"
TOKEN_VARIABLE = "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN"
ACCOUNT_VARIABLE = "CODEX_EXEC_SERVER_NOISE_CHATGPT_ACCOUNT_ID"
ALL = {URL_VARIABLE: " https://registry ", ID_VARIABLE: " env_1 ", TOKEN_VARIABLE: " s3cret "}


async def test_29_a_noise_configuration_has_one_remote_default_and_no_local(autojump_clock) -> None:
    async with open_manager_in_memory(snapshot=Snapshot.of_noise(ScriptedProvider())) as manager:
        environment = manager.default_environment

        assert environment is not None
        assert environment is manager.get("remote")
        assert environment.is_remote
        assert manager.try_local_environment() is None
        assert manager.default_environment_ids == ("remote",)


async def test_30_this_machine_is_not_remote_and_is_ready_without_any_connection(autojump_clock) -> None:
    async with open_manager_in_memory(snapshot=Snapshot(include_local=True)) as manager:
        local = found(manager, "local")

        assert not local.is_remote
        assert local.startup_finished
        assert local.subscribe_connection_state() is None
        assert await local.status() == StatusReady()
        await local.wait_until_ready()
        assert await local.info() is not None


@pytest.mark.parametrize("value", [None, "", "  \t"])
async def test_31_an_empty_url_makes_this_machine_the_default(value: str | None, autojump_clock) -> None:
    async with open_manager_in_memory(snapshot=Snapshot.from_url(value)) as manager:
        local = manager.default_environment

        assert local is not None
        assert local is manager.get("local")
        assert local is manager.try_local_environment()
        assert manager.get("remote") is None


@pytest.mark.parametrize("value", ["none", " NONE ", "NoNe"])
async def test_32_a_disabled_manager_has_no_default_and_no_local(value: str, autojump_clock) -> None:
    async with open_manager_in_memory(snapshot=Snapshot.from_url(value)) as manager:
        assert manager.default_environment is None
        assert manager.default_environment_ids == ()
        assert manager.try_local_environment() is None
        assert manager.get("local") is None
        assert manager.get("remote") is None


async def test_33_a_url_makes_one_remote_default_and_no_local(autojump_clock) -> None:
    async with open_manager_in_memory(snapshot=Snapshot.from_url(" ws://127.0.0.1:9/ ")) as manager:
        environment = manager.default_environment

        assert environment is not None
        assert environment is manager.get("remote")
        assert environment.is_remote
        assert manager.get("local") is None


async def test_34_looking_up_the_default_again_gives_the_same_object(autojump_clock) -> None:
    async with open_manager_in_memory(snapshot=Snapshot.from_url("")) as manager:
        assert manager.default_environment is manager.default_environment


@pytest.mark.parametrize(
    ("snapshot", "text"),
    [
        (Snapshot(environments=[("", "ws://a")]), "environment id cannot be empty"),
        (Snapshot(environments=[("local", "ws://a")]), "environment id `local` is reserved for EnvironmentManager"),
        (Snapshot(environments=[("a", "ws://a"), ("a", "ws://b")]), "environment id `a` is duplicated"),
        (Snapshot(environments=[("a", "ws://a")], default="b"), "default environment `b` is not configured"),
        (Snapshot(default="local"), "default environment `local` is not configured"),
        (Snapshot(environments=[("a", " ")]), "remote environment requires an exec-server url"),
        (Snapshot(environments=[("a", "None")]), "remote environment cannot use disabled exec-server url"),
    ],
)
async def test_35_a_snapshot_that_does_not_hold_together_is_refused_before_anything_starts(
    snapshot: Snapshot, text: str, autojump_clock
) -> None:
    async with open_root() as root:
        with pytest.raises(ProtocolError) as refused:
            async with open_manager(root, snapshot=snapshot):
                raise AssertionError("it was opened")

        assert str(refused.value) == f"exec-server protocol error: {text}"


async def test_35_this_machine_needs_a_way_to_run_things_on_it(autojump_clock) -> None:
    from actors.environments import Connectors
    from actors.environments.testing import MemoryConnector

    connectors = Connectors(plain=MemoryConnector())
    async with open_root() as root:
        with pytest.raises(ProtocolError) as refused:
            async with open_manager(root, snapshot=Snapshot(include_local=True), connectors=connectors):
                raise AssertionError("it was opened")

        text = "exec-server protocol error: local environment requires configured runtime paths"
        assert str(refused.value) == text


async def test_36_the_default_comes_first(autojump_clock) -> None:
    snapshot = Snapshot(
        environments=[("other", FailingProvider()), ("devbox", FailingProvider())], default="devbox", include_local=True
    )
    async with open_manager_in_memory(snapshot=snapshot) as manager:
        assert manager.default_environment_ids == ("devbox", "other", "local")
        assert manager.environment_ids == ("other", "devbox", "local")


async def test_37_without_a_default_this_machine_is_still_found(autojump_clock) -> None:
    async with open_manager_in_memory(snapshot=Snapshot(include_local=True)) as manager:
        assert manager.default_environment is None
        assert manager.default_environment_ids == ()
        assert manager.try_local_environment() is manager.get("local")


async def test_38_an_unknown_id_is_absent_and_upserting_twice_makes_two(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        assert manager.get("tools") is None
        assert await manager.status("tools") is None

        first = manager.upsert("tools", FailingProvider())
        assert manager.upsert("tools", FailingProvider()) is not first
        assert manager.default_environment is None


async def test_replacing_the_default_id_changes_the_default_object(autojump_clock) -> None:
    async with open_manager_in_memory(snapshot=Snapshot.from_url("ws://127.0.0.1:9")) as manager:
        replacement = manager.upsert("remote", FailingProvider())

        assert manager.default_environment is replacement


async def test_all_remote_environments_of_a_snapshot_begin_connecting(autojump_clock) -> None:
    providers = [FailingProvider(), FailingProvider()]
    async with open_manager_in_memory(snapshot=Snapshot(environments=enumerate_ids(providers))) as manager:
        await wait_all_tasks_blocked()

        assert [provider.calls for provider in providers] == [1, 1]
        assert all(found(manager, key).startup_finished for key in manager.environment_ids)


def enumerate_ids(providers: list[FailingProvider]) -> list[tuple[str, FailingProvider]]:
    return [(f"env-{number}", provider) for number, provider in enumerate(providers)]


@pytest.mark.parametrize("url", ["", " ", "\t"])
async def test_43_upserting_an_empty_url_is_refused(url: str, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(ProtocolError) as refused:
            manager.upsert_url("tools", url)

        assert str(refused.value) == "exec-server protocol error: remote environment requires an exec-server url"
        assert manager.get("tools") is None


async def test_43_upserting_a_disabled_url_is_refused(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(ProtocolError) as refused:
            manager.upsert_url("tools", " None ")

        assert (
            str(refused.value) == "exec-server protocol error: remote environment cannot use disabled exec-server url"
        )


async def test_an_id_given_at_run_time_may_not_be_that_of_this_machine(autojump_clock) -> None:
    async with open_manager_in_memory(snapshot=Snapshot(include_local=True)) as manager:
        local = manager.get("local")
        for insert in (manager.upsert, manager.register_deferred, manager.materialize):
            if insert == manager.materialize:
                continue
            with pytest.raises(InvalidEnvironmentId, match="`local` is reserved"):
                insert("local", FailingProvider())

        assert manager.get("local") is local


def test_noise_settings_are_all_there_or_all_absent() -> None:
    assert NoiseSettings.from_variables({}) is None
    assert NoiseSettings.from_variables({URL_VARIABLE: " ", ACCOUNT_VARIABLE: "a"}) is None
    settings = NoiseSettings.from_variables({**ALL, ACCOUNT_VARIABLE: " "})

    assert settings == NoiseSettings(registry_url="https://registry", environment_id="env_1", auth_token="s3cret")
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize("missing", [URL_VARIABLE, ID_VARIABLE, TOKEN_VARIABLE])
def test_noise_settings_in_between_are_refused_by_name(missing: str) -> None:
    with pytest.raises(RegistryConfigurationError) as refused:
        NoiseSettings.from_variables({**ALL, missing: "  "})

    needs = f"Noise environment requires {URL_VARIABLE}, {ID_VARIABLE}, and {TOKEN_VARIABLE}"
    assert str(refused.value) == f"environment registry configuration error: {needs}"
