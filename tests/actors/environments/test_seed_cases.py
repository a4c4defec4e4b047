"""The cases of the seed: what must hold word for word. Each test is one numbered case (7.1 and 7.2)."""

import pytest
from trio.testing import wait_all_tasks_blocked

from actors.environments import (
    ConnectFailed,
    ConnectionState,
    Environment,
    EnvironmentManager,
    EnvironmentUnavailable,
    Gate,
    InvalidReadyInfo,
    ProtocolError,
    ReadyInfo,
)
from actors.environments.testing import FailingProvider, open_manager_in_memory
from tests.actors.environments.waiting import Wait, found, info, root, start_wait

P = "test Noise provider called"
RULE = "selected capability roots must have unique non-empty IDs and belong to environment `tools`"
BELONG = f"exec-server protocol error: {RULE}"


async def provider_failed(wait: Wait) -> None:
    """The wait ended with the provider's own words, as one attempt that failed."""
    error = await wait.error()
    assert isinstance(error, ConnectFailed)
    assert str(error) == f"exec-server connection attempt failed: exec-server protocol error: {P}"
    assert isinstance(error.__cause__, ProtocolError)
    assert not error.retryable


async def unavailable(wait: Wait, message: str) -> None:
    error = await wait.error()
    assert isinstance(error, EnvironmentUnavailable)
    assert str(error).endswith(f"environment unavailable: {message}")
    assert str(error) == f"exec-server connection attempt failed: environment unavailable: {message}"


async def test_01_a_deferred_environment_waits_for_its_completion(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        registration = manager.register_deferred("tools", provider)
        environment = found(manager, "tools")
        watch = environment.subscribe_connection_state()
        assert watch is not None
        wait = await start_wait(nursery, environment)

        assert wait.is_pending
        assert provider.calls == 0
        assert environment.selected_capability_roots == ()
        assert environment.gate is Gate.PENDING

        registration.complete(info("selected-root", "tools"))
        assert environment.selected_capability_roots == (root("selected-root", "tools"),)
        assert environment.gate is Gate.READY

        await provider_failed(wait)
        assert provider.calls == 1
        assert not watch.has_changed()
        assert watch.current is ConnectionState.DISCONNECTED


async def test_02_failure_and_drop_are_terminal(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        failing, dropping = FailingProvider(), FailingProvider()
        manager.register_deferred("failed", failing).fail("provisioning failed")
        dropped = manager.register_deferred("dropped", dropping)
        waits = [await start_wait(nursery, found(manager, key)) for key in ("failed", "dropped")]
        with pytest.warns(ResourceWarning, match="'dropped' generation 1 was lost"):
            del dropped

        await unavailable(waits[0], "provisioning failed")
        await unavailable(waits[1], "environment registration ended before completion")
        assert (failing.calls, dropping.calls) == (0, 0)
        assert found(manager, "failed").gate is Gate.FAILED
        assert found(manager, "dropped").gate is Gate.ABANDONED


async def test_03_invalid_information_is_terminal(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        registration = manager.register_deferred("tools", provider)
        environment = found(manager, "tools")
        wait = await start_wait(nursery, environment)

        with pytest.raises(InvalidReadyInfo) as refused:
            registration.complete(info("selected-root", "other"))

        assert str(refused.value) == BELONG
        await unavailable(wait, BELONG)
        assert environment.selected_capability_roots == ()
        assert provider.calls == 0


async def test_04_a_late_completion_touches_only_its_own_environment(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        old_provider, new_provider = FailingProvider(), FailingProvider()
        old_registration = manager.register_deferred("tools", old_provider)
        old = found(manager, "tools")
        new_registration = manager.register_deferred("tools", new_provider)
        new = found(manager, "tools")
        assert new is not old
        old_wait, new_wait = await start_wait(nursery, old), await start_wait(nursery, new)

        old_registration.complete(info("old-root", "tools"))
        assert old.selected_capability_roots == (root("old-root", "tools"),)
        assert new.selected_capability_roots == ()
        await provider_failed(old_wait)
        await wait_all_tasks_blocked()
        assert (old_provider.calls, new_provider.calls) == (1, 0)
        assert new_wait.is_pending

        new_registration.complete(info("current-root", "tools"))
        assert new.selected_capability_roots == (root("current-root", "tools"),)
        await provider_failed(new_wait)
        assert (old_provider.calls, new_provider.calls) == (1, 1)
        assert old_registration.superseded
        assert not new_registration.superseded


async def test_05_an_eager_environment_connects_at_once(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        environment = manager.upsert("tools", provider)

        await provider_failed(await start_wait(nursery, environment))
        assert provider.calls == 1
        assert environment.gate is Gate.READY


async def test_06_a_deferred_registration_over_an_ordinary_environment_is_a_new_one(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        ordinary = manager.upsert("tools", FailingProvider())
        provider = FailingProvider()
        registration = manager.register_deferred("tools", provider)
        environment = found(manager, "tools")
        wait = await start_wait(nursery, environment)
        assert environment is not ordinary
        assert wait.is_pending

        registration.complete(ReadyInfo())
        await provider_failed(wait)
        assert provider.calls == 1


async def test_07_an_ordinary_upsert_over_a_deferred_registration_is_a_new_one(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        old_provider, new_provider = FailingProvider(), FailingProvider()
        registration = manager.register_deferred("tools", old_provider)
        old = found(manager, "tools")
        new = manager.upsert("tools", new_provider)
        assert new is not old

        with pytest.warns(ResourceWarning):
            del registration
        await unavailable(await start_wait(nursery, old), "environment registration ended before completion")
        await provider_failed(await start_wait(nursery, new))
        assert (old_provider.calls, new_provider.calls) == (0, 1)


async def test_08_publishing_keeps_the_object_and_replaces_its_roots(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", FailingProvider())

        manager.publish_ready_info("tools", info("published", "tools"))

        assert manager.get("tools") is environment
        assert environment.selected_capability_roots == (root("published", "tools"),)


async def test_09_publishing_after_a_replacement_touches_only_the_current_one(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        old = manager.upsert("tools", FailingProvider())
        manager.publish_ready_info("tools", info("old", "tools"))
        new = manager.upsert("tools", FailingProvider())

        manager.publish_ready_info("tools", info("new", "tools"))

        assert old.selected_capability_roots == (root("old", "tools"),)
        assert new.selected_capability_roots == (root("new", "tools"),)


async def test_10_publishing_under_an_unknown_id_creates_nothing(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(ProtocolError, match="`tools` is not registered"):
            manager.publish_ready_info("tools", info("r", "tools"))

        assert manager.get("tools") is None


async def test_11_publishing_the_same_twice_succeeds(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", FailingProvider())

        manager.publish_ready_info("tools", info("r", "tools"))
        manager.publish_ready_info("tools", info("r", "tools"))

        assert environment.selected_capability_roots == (root("r", "tools"),)


async def test_12_publishing_overwrites_and_an_empty_one_clears(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", FailingProvider())
        manager.publish_ready_info("tools", info("one", "tools"))
        manager.publish_ready_info("tools", info("two", "tools"))
        assert environment.selected_capability_roots == (root("two", "tools"),)

        manager.publish_ready_info("tools", ReadyInfo())

        assert environment.selected_capability_roots == ()
        assert manager.get("tools") is environment


async def test_13_publishing_before_completion_opens_nothing(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        registration = manager.register_deferred("tools", provider)
        environment = found(manager, "tools")
        wait = await start_wait(nursery, environment)

        manager.publish_ready_info("tools", info("published", "tools"))
        await wait_all_tasks_blocked()
        assert environment.selected_capability_roots == (root("published", "tools"),)
        assert wait.is_pending
        assert provider.calls == 0

        registration.complete(info("completed", "tools"))
        assert environment.selected_capability_roots == (root("completed", "tools"),)
        await provider_failed(wait)
        assert provider.calls == 1


async def test_14_publishing_invalid_information_changes_nothing(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", FailingProvider())

        with pytest.raises(ProtocolError) as refused:
            manager.publish_ready_info("tools", info("r", "other"))

        assert str(refused.value) == BELONG
        assert environment.selected_capability_roots == ()
        assert manager.get("tools") is environment


def reported(manager: EnvironmentManager, report: ReadyInfo | str, provider: FailingProvider) -> Environment:
    environment = manager.report_provisioning("tools", report, provider)
    assert environment is not None
    return environment


async def test_15_a_report_of_readiness_before_materializing_creates_the_environment(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        first, second = FailingProvider(), FailingProvider()
        environment = reported(manager, info("r", "tools"), first)

        assert manager.materialize("tools", second) is environment
        assert environment.selected_capability_roots == (root("r", "tools"),)
        await provider_failed(await start_wait(nursery, environment))
        assert (first.calls, second.calls) == (1, 0)


async def test_16_materializing_before_a_report_of_readiness_gives_the_same_object(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        first, second = FailingProvider(), FailingProvider()
        environment = manager.materialize("tools", first)
        wait = await start_wait(nursery, environment)
        assert wait.is_pending

        assert reported(manager, ReadyInfo(), second) is environment
        await provider_failed(wait)
        assert (first.calls, second.calls) == (1, 0)


async def test_17_a_report_of_failure_before_materializing_is_kept(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        first, second = FailingProvider(), FailingProvider()
        environment = reported(manager, "provisioning failed", first)

        assert manager.materialize("tools", second) is environment
        await unavailable(await start_wait(nursery, environment), "provisioning failed")
        assert (first.calls, second.calls) == (0, 0)


async def test_18_a_report_of_failure_ends_the_waits_of_a_materialized_one(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        first, second = FailingProvider(), FailingProvider()
        environment = manager.materialize("tools", first)
        wait = await start_wait(nursery, environment)

        assert reported(manager, "provisioning failed", second) is environment
        await unavailable(wait, "provisioning failed")
        assert (first.calls, second.calls) == (0, 0)


async def test_19_the_first_failure_stands(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        environment = reported(manager, "first failure", provider)

        assert reported(manager, "second failure", provider) is environment
        for late in (info("r", "other"), info("r", "tools")):
            with pytest.raises(ProtocolError, match="first failure"):
                manager.report_provisioning("tools", late, provider)
        assert environment.selected_capability_roots == ()
        assert environment.gate is Gate.FAILED
        await unavailable(await start_wait(nursery, environment), "first failure")
        assert provider.calls == 0


async def test_20_a_failure_reported_after_readiness_is_refused(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = reported(manager, info("r", "tools"), FailingProvider())

        with pytest.raises(ProtocolError) as refused:
            manager.report_provisioning("tools", "too late", FailingProvider())

        said = "environment `tools` is already ready, but a later provisioning report failed: too late"
        assert str(refused.value) == f"exec-server protocol error: {said}"
        assert environment.selected_capability_roots == (root("r", "tools"),)
        assert environment.gate is Gate.READY
