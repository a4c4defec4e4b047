"""The cases of the later API, where a failed environment may be brought back by name (7.3)."""

import pytest

from actors.environments import (
    AlreadyFailed,
    ConnectFailed,
    EnvironmentUnavailable,
    Gate,
    InvalidReadyInfo,
    ProvisioningConflict,
    ReadyInfo,
    StatusDisconnected,
)
from actors.environments.testing import FailingProvider, open_manager_in_memory
from tests.actors.environments.waiting import found, info, root, start_wait

P = "test Noise provider called"


async def test_21_a_report_on_an_ordinary_environment_says_none_and_changes_nothing(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", FailingProvider())

        for report in (info("r", "tools"), info("r", "other"), "failed"):
            assert manager.report_provisioning("tools", report, FailingProvider()) is None
        assert manager.get("tools") is environment
        assert environment.selected_capability_roots == ()
        assert environment.last_ready_info is None


async def test_22_materializing_over_an_ordinary_environment_is_a_conflict(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", FailingProvider())
        provider = FailingProvider()

        with pytest.raises(ProvisioningConflict) as refused:
            manager.materialize("tools", provider)

        assert str(refused.value) == "environment `tools` is already registered with a different provisioning mode"
        assert manager.get("tools") is environment
        assert provider.calls == 0


async def test_23_materializing_twice_gives_the_same_object_and_asks_nobody(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        first, second = FailingProvider(), FailingProvider()
        environment = manager.materialize("tools", first)

        assert manager.materialize("tools", second) is environment
        wait = await start_wait(nursery, environment)
        assert wait.is_pending
        assert (first.calls, second.calls) == (0, 0)


async def test_24_an_invalid_report_fails_a_pending_one_and_a_corrected_one_recovers_it(
    nursery, autojump_clock
) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        environment = manager.materialize("tools", provider)
        wait = await start_wait(nursery, environment)

        with pytest.raises(InvalidReadyInfo) as refused:
            manager.report_provisioning("tools", info("r", "other"), provider)

        assert str(refused.value) in str(await wait.error())
        assert environment.selected_capability_roots == ()
        assert provider.calls == 0
        recovered = manager.report_provisioning("tools", info("r", "tools"), provider, recover=True)
        assert recovered is environment
        assert environment.gate is Gate.READY
        assert provider.calls == 0


async def test_25_readiness_may_be_reported_again_and_replaces_the_roots(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        environment = manager.report_provisioning("tools", info("one", "tools"), provider)
        assert environment is not None

        assert manager.report_provisioning("tools", info("one", "tools"), provider) is environment
        assert environment.selected_capability_roots == (root("one", "tools"),)
        assert manager.report_provisioning("tools", info("two", "tools"), provider) is environment
        assert environment.selected_capability_roots == (root("two", "tools"),)


async def test_26_snapshots_of_the_last_information_never_change(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        environment = manager.materialize("tools", provider)
        assert environment.last_ready_info is None
        manager.report_provisioning("tools", info("one", "tools"), provider)
        one = environment.last_ready_info
        manager.report_provisioning("tools", info("two", "tools"), provider)
        two = environment.last_ready_info
        with pytest.raises(InvalidReadyInfo):
            manager.report_provisioning("tools", info("three", "other"), provider)
        kept = environment.last_ready_info
        manager.report_provisioning("tools", ReadyInfo(), provider)

        assert (one, two, kept) == (info("one", "tools"), info("two", "tools"), info("two", "tools"))
        assert environment.last_ready_info == ReadyInfo()
        assert environment.selected_capability_roots == ()
        assert provider.calls == 0


async def test_27_a_failure_before_materializing_shows_in_status_and_ends_the_start(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.report_provisioning("tools", "provisioning failed", FailingProvider())
        assert environment is not None

        said = StatusDisconnected("environment unavailable: provisioning failed")
        assert await environment.status() == said
        assert await manager.status("tools") == said
        assert isinstance(await (await start_wait(nursery, environment)).error(), EnvironmentUnavailable)
        assert environment.startup_finished


async def test_28_a_failed_environment_recovers_only_by_name_and_then_really_connects(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        environment = manager.report_provisioning("tools", "first failure", provider)
        assert environment is not None
        manager.report_provisioning("tools", "second failure", provider)

        with pytest.raises(AlreadyFailed, match="first failure"):
            manager.report_provisioning("tools", info("r", "tools"), provider)
        with pytest.raises(InvalidReadyInfo, match="belong to environment `tools`"):
            manager.report_provisioning("tools", info("r", "other"), provider, recover=True)
        assert environment.why().reasons[-1].text == "environment unavailable: first failure"

        assert manager.report_provisioning("tools", info("r", "tools"), provider, recover=True) is environment
        assert environment.gate is Gate.READY
        error = await (await start_wait(nursery, environment)).error()
        assert isinstance(error, ConnectFailed)
        assert P in str(error)
        assert provider.calls == 1


async def test_a_report_on_a_deferred_environment_is_a_conflict_while_its_registration_counts(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            environment = found(manager, "tools")
            for report in (info("r", "tools"), "failed"):
                with pytest.raises(ProvisioningConflict):
                    manager.report_provisioning("tools", report, FailingProvider(), recover=True)
            with pytest.raises(ProvisioningConflict):
                manager.materialize("tools", FailingProvider())
            assert registration.is_pending

        assert environment.gate is Gate.ABANDONED
        with pytest.raises(ProvisioningConflict):
            manager.report_provisioning("tools", info("r", "tools"), FailingProvider())
        assert manager.report_provisioning("tools", info("r", "tools"), FailingProvider(), recover=True) is environment
        assert environment.gate is Gate.READY


async def test_a_provisioned_environment_whose_id_is_given_away_ends_its_waits(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.materialize("tools", FailingProvider())
        wait = await start_wait(nursery, environment)

        manager.upsert("tools", FailingProvider())

        said = "environment unavailable: environment provisioning ended before completion"
        assert str(await wait.error()).endswith(said)
        assert environment.gate is Gate.ABANDONED


async def test_an_invalid_report_for_an_absent_id_creates_nothing(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(InvalidReadyInfo):
            manager.report_provisioning("tools", info("r", "other"), FailingProvider())

        assert manager.get("tools") is None
        assert manager.statistics().registered == 0
