"""Environments over a registry in memory: what is asked of whom, and what its refusals mean for an attempt."""

import pytest
import trio

from actors.environments import (
    AttemptRules,
    ConnectBundle,
    ConnectFailed,
    Connectors,
    FixedEndpoint,
    HarnessConnector,
    NoiseConnector,
    NoiseSettings,
    NotSupported,
    PlainEndpoint,
    RegistryConfigurationError,
    RegistryConnectProvider,
    RegistryRefused,
    open_manager,
    open_registry_provider,
)
from actors.noise import Identity, PublicKey
from actors.relay import RegistrarFailed
from actors.rendezvous import HarnessConnection, bearer, open_registry_client
from supervision import Supervisor, open_root
from tests.actors.environments.waiting import start_wait
from tests.actors.through_relay.world import EXECUTOR, HARNESS, World, open_world


class Counting:
    """Makes identities and counts them."""

    def __init__(self) -> None:
        self.made: list[Identity] = []

    def __call__(self) -> Identity:
        self.made.append(HARNESS)
        return HARNESS


def managed(root: Supervisor, world: World, identity: Counting):
    connectors = Connectors(plain=HarnessConnector(), noise=NoiseConnector(dialer=world.dialer), identity=identity)
    return open_manager(root, connectors=connectors)


async def test_an_environment_runs_a_command_and_makes_its_keys_once(autojump_clock) -> None:
    identity = Counting()
    async with open_world() as world, open_root() as root, managed(root, world, identity) as manager:
        environment = manager.upsert("env", RegistryConnectProvider(world.registry, "env"))
        assert (await environment.run(["hello"])).stdout == b"hello\n"
        await world.network.cut()
        await trio.sleep(10)

        assert (await environment.run(["hello"])).stdout == b"hello\n"
        assert len(identity.made) == 1
        assert world.rendezvous.statistics().counters.validations_passed == 2


async def test_a_fixed_address_costs_no_keys(nursery, autojump_clock) -> None:
    identity = Counting()
    async with open_world() as world, open_root() as root, managed(root, world, identity) as manager:
        plain = FixedEndpoint(PlainEndpoint(websocket_url="ws://127.0.0.1:9/"))
        await (await start_wait(nursery, manager.upsert("plain", plain))).error()

        assert identity.made == []


async def test_an_offline_environment_is_asked_for_again_and_then_said_so(nursery, autojump_clock) -> None:
    async with open_world() as world, open_root() as root, managed(root, world, Counting()) as manager:
        environment = manager.upsert("away", RegistryConnectProvider(world.registry, "away"))
        before = world.rendezvous.statistics().counters.requests_refused
        error = await (await start_wait(nursery, environment)).error()

        assert isinstance(error, ConnectFailed)
        assert error.retryable
        assert "environment_offline" in str(error)
        assert world.rendezvous.statistics().counters.requests_refused - before == 5


async def test_p12_a_lost_environment_asks_its_registry_again_when_that_said_so_and_not_before(autojump_clock) -> None:
    """Mutant: `ask_again` forgets when the provider said to come again."""

    class Busy:
        """Says once, when asked a second time, to come again in 7 s."""

        def __init__(self, world: World) -> None:
            self._world = world
            self.asked_s: list[float] = []

        async def connect(self, environment_id: str, key: PublicKey, /) -> HarnessConnection:
            self.asked_s.append(trio.current_time())
            if len(self.asked_s) == 2:
                raise RegistrarFailed("later", retryable=True, retry_after_s=7.0)
            return await self._world.registry.connect(environment_id, key)

    async with open_world() as world, open_root() as root, managed(root, world, Counting()) as manager:
        registry = Busy(world)
        environment = manager.upsert("env", RegistryConnectProvider(registry, "env"))
        await environment.run(["hello"])
        await world.network.cut()
        await environment.run(["hello"])

        _, second, third = registry.asked_s
        assert 7.0 <= third - second <= 10.5


async def test_a_wrong_token_is_asked_with_once(nursery, autojump_clock) -> None:
    async with open_world() as world, open_root() as root, managed(root, world, Counting()) as manager:
        stranger = bearer("a-token-of-nobody-at-all")
        transport = world.network.transport()
        async with open_registry_client(world.network.url, stranger, transport=transport) as registry:
            environment = manager.upsert("env", RegistryConnectProvider(registry, "env"))
            error = await (await start_wait(nursery, environment)).error()

        assert "environment registry authentication failed (401)" in str(error)
        assert isinstance(error, ConnectFailed)
        assert not error.retryable
        assert world.rendezvous.statistics().counters.requests_refused == 1


async def test_a_provider_says_whether_to_ask_again_and_gives_a_bundle_that_shows_nothing(autojump_clock) -> None:
    async with open_world() as world:
        bundle = await RegistryConnectProvider(world.registry, "env").connect_bundle(HARNESS.public_key)
        with pytest.raises(RegistryRefused) as refused:
            await RegistryConnectProvider(world.registry, "away").connect_bundle(HARNESS.public_key)
        with pytest.raises(NotSupported):
            await RegistryConnectProvider(world.registry, "env").connect_bundle(None)

        assert isinstance(bundle, ConnectBundle)
        assert bundle.executor_public_key == EXECUTOR.public_key
        assert bundle.harness_key_authorization not in repr(bundle)
        assert "ticket" not in repr(bundle)
        assert refused.value.retryable


async def test_settings_with_an_address_that_is_no_registrys_are_refused() -> None:
    settings = NoiseSettings(registry_url="ftp://nowhere", environment_id="env", auth_token="secret")

    with pytest.raises(RegistryConfigurationError, match="must be an http or https URL") as refused:
        async with open_registry_provider(settings):
            raise AssertionError("it was taken")
    assert "secret" not in str(refused.value)


def test_a_pause_is_not_shorter_than_asked_for_and_not_longer_than_the_budget() -> None:
    rules = AttemptRules()

    asked = rules.pause_s(1, 0.0, "key", at_least_s=4.0)
    assert asked is not None
    assert 4.0 <= asked <= 4.25
    assert rules.pause_s(1, 0.0, "key", at_least_s=60.0) is None
