"""What is of the wrong kind is refused by a typed error that names the field and the rule, and changes nothing."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from actors import InvalidOption
from actors.environments import (
    AttemptRules,
    ConnectBundle,
    ConnectFailed,
    Connectors,
    FixedEndpoint,
    HarnessConnector,
    InvalidEnvironmentId,
    LocalConnector,
    NoiseSettings,
    PlainEndpoint,
    ReadyInfo,
    SelectedCapabilityRoot,
    Snapshot,
    TooManyEnvironments,
    is_retryable_answer,
    open_manager,
)
from actors.environments.testing import FailingProvider, MemoryConnector, ScriptedProvider, open_manager_in_memory
from supervision import open_root
from tests.actors.environments.waiting import found, info

BUNDLE: dict[str, Any] = {
    "websocket_url": "wss://x",
    "environment_id": "a",
    "executor_registration_id": "r",
    "executor_public_key": b"key",
    "harness_key_authorization": "proof",
}
SETTINGS: dict[str, Any] = {"registry_url": "https://x", "environment_id": "a", "auth_token": "t", "account_id": "c"}
ROOT: dict[str, Any] = {"id": "r", "environment_id": "a", "path": "file:///x"}

VALUES: list[tuple[type, dict[str, Any], str, Any]] = [
    *[(ConnectBundle, BUNDLE, field, 3) for field in BUNDLE if field != "executor_public_key"],
    *[(NoiseSettings, SETTINGS, field, b"x") for field in SETTINGS],
    *[(SelectedCapabilityRoot, ROOT, field, None) for field in ("id", "environment_id", "path")],
    *[(ReadyInfo, {}, "selected_capability_roots", bad) for bad in (3, None, "root", [ROOT])],
    *[(PlainEndpoint, {}, "websocket_url", bad) for bad in (object(), None, b"ws://x", "http://x")],
    (FixedEndpoint, {}, "endpoint", "ws://x"),
    *[(Connectors, {"plain": MemoryConnector()}, field, 3) for field in ("plain", "noise", "local", "identity")],
    (HarnessConnector, {}, "dialer", "ws://x"),
    (HarnessConnector, {}, "recovery", 3),
    (HarnessConnector, {}, "limits", None),
    (LocalConnector, {}, "launcher", 3),
    (LocalConnector, {}, "limits", 3),
    *[(Snapshot, {}, "environments", bad) for bad in (3, [3], ["ab"], {"a": "ws://x"}, [("a",)])],
    (Snapshot, {}, "default", 3),
    (Snapshot, {}, "include_local", "no"),
    *[(AttemptRules, {}, "budget_s", bad) for bad in ("5", None, True, math.nan, math.inf, -1, 0)],
    *[(AttemptRules, {}, "retries", bad) for bad in ("5", None, True, 1.5, -1)],
]


@pytest.mark.parametrize(("kind", "good", "field", "bad"), VALUES)
def test_a_value_with_a_wrong_field_is_never_born(kind: type, good: dict[str, Any], field: str, bad: Any) -> None:
    with pytest.raises(InvalidOption, match=f"^{field}=.* is refused: it must ") as refused:
        kind(**{**good, field: bad})

    assert refused.value.field == field


CALLS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("provider", lambda manager, bad: manager.upsert("new", bad)),
    ("provider", lambda manager, bad: manager.register_deferred("new", bad)),
    ("provider", lambda manager, bad: manager.materialize("new", bad)),
    ("provider", lambda manager, bad: manager.report_provisioning("new", ReadyInfo(), bad)),
    ("deadline_s", lambda manager, bad: manager.register_deferred("new", FailingProvider(), deadline_s=bad)),
    ("bundle_environment_id", lambda manager, bad: manager.upsert("new", FailingProvider(), bundle_environment_id=bad)),
    ("url", lambda manager, bad: manager.upsert_url("new", bad)),
    ("info", lambda manager, bad: manager.publish_ready_info("old", bad)),
    ("generation", lambda manager, bad: manager.publish_ready_info("old", ReadyInfo(), generation=bad)),
    ("info_or_failure", lambda manager, bad: manager.report_provisioning("new", bad, FailingProvider())),
    ("capacity", lambda manager, bad: manager.events(capacity=bad)),
    ("status", lambda _manager, bad: is_retryable_answer(bad)),
    ("url", lambda _manager, bad: Snapshot.from_url(bad)),
]


@pytest.mark.parametrize("bad", [b"x", ValueError("no disk"), [1], True])
@pytest.mark.parametrize(("field", "call"), CALLS)
async def test_a_wrong_argument_is_refused_and_nothing_has_changed(
    field: str, call: Callable[[Any, Any], Any], bad: Any, autojump_clock
) -> None:
    async with open_manager_in_memory() as manager:
        manager.materialize("old", FailingProvider())
        before = manager.statistics()
        with pytest.raises(InvalidOption) as refused:
            call(manager, bad)

        assert refused.value.field == field
        assert refused.value.rule.startswith("it must ")
        assert manager.statistics() == before
        assert manager.environment_ids == ("old",)


@pytest.mark.parametrize("bad", [None, 3, b"x", ("a",), ["a"]])
async def test_an_id_that_is_no_text_is_refused_everywhere(bad: Any, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        ways: list[Callable[[], Any]] = [
            lambda: manager.upsert(bad, FailingProvider()),
            lambda: manager.upsert_url(bad, "ws://x"),
            lambda: manager.register_deferred(bad, FailingProvider()),
            lambda: manager.materialize(bad, FailingProvider()),
            lambda: manager.report_provisioning(bad, ReadyInfo(), FailingProvider()),
            lambda: manager.publish_ready_info(bad, ReadyInfo()),
            lambda: manager.get(bad),
            lambda: manager.why(bad),
        ]
        for way in ways:
            with pytest.raises(InvalidEnvironmentId, match="environment id must be a text, got "):
                way()
        for wait in (manager.remove, manager.status):
            with pytest.raises(InvalidEnvironmentId, match="environment id must be a text, got "):
                await wait(bad)

        assert manager.statistics().registered == 0


@pytest.mark.parametrize("bad", ["5", None, -1, math.nan])
async def test_a_grace_that_is_no_time_is_refused_before_anything_drains(bad: Any, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(InvalidOption, match="grace_s"):
            await manager.drain(grace_s=bad)

        assert manager.upsert("a", FailingProvider()).generation == 1


@pytest.mark.parametrize("field", ["snapshot", "connectors", "rules", "max_environments"])
@pytest.mark.parametrize("bad", [0, "x", False])
async def test_a_manager_is_not_opened_with_wrong_options(field: str, bad: Any) -> None:
    async with open_root() as root:
        with pytest.raises(InvalidOption, match=f"^{field}="):
            async with open_manager(root, **{field: bad}):
                raise AssertionError("never opened")

        assert root.tree().children == ()


@pytest.mark.parametrize(
    ("wrong", "most", "error"),
    [(("b", 3), 10, InvalidOption), (("b", "http://x"), 10, InvalidOption), (("b", "ws://x"), 1, TooManyEnvironments)],
)
async def test_nothing_of_a_snapshot_connects_when_a_later_part_is_wrong(
    wrong: Any, most: int, error: type[Exception]
) -> None:
    provider = ScriptedProvider()
    snapshot = Snapshot(environments=[("a", provider), wrong])
    with pytest.raises(error):
        async with open_manager_in_memory(snapshot=snapshot, max_environments=most):
            raise AssertionError("never opened")

    assert provider.calls == 0


async def test_a_refused_value_is_shown_by_its_type_since_it_may_be_a_secret_or_huge(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(InvalidOption) as refused:
            manager.upsert_url("a", b"ws://x/?token=s3cret")  # type: ignore[arg-type]

        assert str(refused.value) == "url=<bytes> is refused: it must be a text"


async def test_a_registration_survives_a_call_with_a_wrong_argument(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            with pytest.raises(InvalidOption, match="info"):
                registration.complete(None)  # type: ignore[arg-type]
            with pytest.raises(InvalidOption, match="message"):
                registration.fail(ValueError("no disk"))  # type: ignore[arg-type]
            registration.complete(info("root", "tools"))

        assert found(manager, "tools").selected_capability_roots[0].id == "root"


async def test_an_option_of_a_command_that_is_not_there_is_refused_before_anything_is_connected() -> None:
    provider: Any = ScriptedProvider()
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", provider)
        environment = found(manager, "tools")
        wrong: Any = {"timeout": 3}
        deep: Any = {"max_depth": 3}

        with pytest.raises(
            InvalidOption, match=r"timeout=3 is refused: run\(\) has no such .*did you mean timeout_s\?"
        ):
            await environment.run(["true"], **wrong)
        with pytest.raises(InvalidOption, match=r"start\(\) has no such option; there are env, cwd, "):
            await environment.processes.start(["true"], **wrong).__aenter__()
        with pytest.raises(InvalidOption, match=r"walk\(\) has no such option; did you mean depth_max\?"):
            await environment.files.walk("/", **deep)

        registration.abandon()
        assert provider.calls == 0


class PlainFunction:
    def connect_bundle(self, _key: object, /) -> PlainEndpoint:
        return PlainEndpoint(websocket_url="ws://127.0.0.1:1")


async def test_a_provider_that_cannot_be_awaited_fails_the_attempt_and_says_what_to_do() -> None:
    async with open_manager_in_memory() as manager:
        provider: Any = PlainFunction()
        environment = manager.upsert("tools", provider)

        with pytest.raises(ConnectFailed) as failed:
            await environment.wait_until_ready()

        told = "connect_bundle() of the provider PlainFunction gave a PlainEndpoint where it has to be awaited"
        assert failed.value.inner == f"{told}: make it `async def`"
        assert not failed.value.retryable
