"""Handles and secrets have no copies; errors and plain values keep their facts when they are copied or pickled."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from actors.environments import (
    AlreadyFailed,
    AlreadyReady,
    AttemptRules,
    ConnectFailed,
    EnvironmentClosed,
    EnvironmentUnavailable,
    InvalidEnvironmentId,
    InvalidReadyInfo,
    ManagerClosed,
    NoiseSettings,
    NotInThisRun,
    NotSupported,
    OutOfPlace,
    PlainEndpoint,
    ProtocolError,
    ProvisioningConflict,
    RegistrationInactive,
    RegistrationUsed,
    RegistryConfigurationError,
    StaleGeneration,
    StatusDisconnected,
    TooManyEnvironments,
    UnknownEnvironment,
    WillNotStop,
)
from actors.environments.testing import FailingProvider, open_manager_in_memory
from tests.actors.environments.waiting import found, info

Write = Callable[[Any], Any]
WRITES: list[Write] = [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]

ERRORS: list[Exception] = [
    AlreadyFailed("e", 1, "m"),
    AlreadyReady("e", "m"),
    ConnectFailed("x", retryable=True, environment_id="e", generation=1, attempt=2),
    EnvironmentClosed("e", 1, "r"),
    EnvironmentUnavailable("e", 1, "m", abandoned=True),
    InvalidEnvironmentId("m", "e"),
    InvalidReadyInfo.bad_root("e", "r"),
    ManagerClosed("draining"),
    NotInThisRun("complete"),
    NotSupported("files", "not yet"),
    OutOfPlace("closed", "Closed"),
    ProtocolError("x"),
    ProvisioningConflict("e"),
    RegistrationInactive("e", 1),
    RegistrationUsed("e", 1, "ready", 1.0),
    RegistryConfigurationError("m"),
    StaleGeneration("e", 1, 2),
    TooManyEnvironments("e", 1),
    UnknownEnvironment("e"),
    WillNotStop("e", 1, 10.0),
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_copy_of_an_error_has_its_kind_its_sentence_its_facts_and_its_notes(error: Exception, write: Write) -> None:
    again = write(error)

    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("write", WRITES)
async def test_handles_have_no_copies(write: Write, autojump_clock) -> None:
    async with open_manager_in_memory() as manager, manager.events() as events:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            environment = found(manager, "tools")
            watch = environment.subscribe_connection_state()
            handles = (
                manager,
                events,
                registration,
                registration.from_thread,
                environment,
                environment.processes,
                watch,
            )
            for handle in handles:
                with pytest.raises(TypeError, match=f"{type(handle).__name__} lives in its run: it is not copied or"):
                    write(handle)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    "value",
    [
        NoiseSettings(registry_url="https://x", environment_id="e", auth_token="s3cret"),
        PlainEndpoint(websocket_url="ws://x/?token=s3cret"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_holds_a_secret_is_written_nowhere(value: object, write: Write) -> None:
    assert "s3cret" not in repr(value)
    with pytest.raises(TypeError, match="holds secrets"):
        write(value)


@pytest.mark.parametrize("write", WRITES)
async def test_plain_values_equal_their_copies(write: Write, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        environment = manager.upsert("tools", FailingProvider())
        for value in (
            info("root", "tools"), environment.why(), manager.statistics(), StatusDisconnected("x"), AttemptRules(),
        ):  # fmt: skip
            assert write(value) == value
