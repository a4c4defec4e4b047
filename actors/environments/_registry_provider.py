"""Ask a registry how to reach an environment: the provider behind every real deployment."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any, Protocol, final

import attrs

from actors import ActorsError
from actors.blocks import block
from actors.environments._configuration import NoiseSettings
from actors.environments._demands import must_be_text, must_offer, refuse
from actors.environments._errors import NotSupported, RegistryConfigurationError
from actors.environments._provider import ConnectBundle
from actors.noise import PublicKey
from actors.relay import RegistrarFailed
from actors.rendezvous import HarnessConnection, RegistryConfigInvalid, bearer, open_registry_client


class BundleRegistry(Protocol):
    """What a provider asks of a registry; `actors.rendezvous.RegistryClient` is one."""

    async def connect(self, environment_id: str, key: PublicKey, /) -> HarnessConnection:
        """Give what one connection attempt of the harness with this key needs.

        Raises:
            RegistrarFailed: It did not work; says whether and when asking again makes sense.

        Cancelled:
            The registry may have given out what the attempt needs; nobody uses it.
        """
        ...


class RegistryRefused(ActorsError):
    """The registry gave no bundle; what it said is the text, and the cause."""

    def __init__(self, said: RegistrarFailed) -> None:
        super().__init__(str(said))
        self.retryable: bool = said.retryable
        self.retry_after_s: float | None = said.retry_after_s


@final
@attrs.frozen
class RegistryConnectProvider:
    """The provider of one environment: asks the registry for a fresh bundle each time.

    Attributes:
        registry: Whom to ask; for as long as the environment lives.
        environment_id: How the registry calls the environment.

    Raises:
        InvalidOption: One of them is of another kind.
    """

    registry: BundleRegistry = attrs.field(repr=False)
    environment_id: str

    def __attrs_post_init__(self) -> None:
        must_be_text("environment_id", self.environment_id)
        if isinstance(self.registry, type):
            raise refuse("registry", self.registry, "it must be an object, not the class")
        must_offer("connect", "registry", self.registry)

    async def connect_bundle(self, harness_public_key: Any, /) -> ConnectBundle:
        """Ask for what one connection attempt needs.

        Raises:
            RegistryRefused: There is none; `retryable` and `retry_after_s` say whether and when to ask again.
            NotSupported: The manager has no Noise identities, so no registry can be asked.

        Cancelled:
            The registry may have given out what the attempt needs; nobody uses it.
        """
        if not isinstance(harness_public_key, PublicKey):
            kind = type(harness_public_key).__name__
            raise NotSupported(f"asking a registry with a key of {kind}", "an actors.noise.PublicKey is needed")
        try:
            found = await self.registry.connect(self.environment_id, harness_public_key)
        except RegistrarFailed as failed:
            raise RegistryRefused(failed) from failed
        return ConnectBundle(
            websocket_url=found.websocket_url,
            environment_id=found.environment_id,
            executor_registration_id=found.executor_registration_id,
            executor_public_key=found.executor_public_key,
            harness_key_authorization=found.harness_key_authorization,
        )


@block
async def open_registry_provider(settings: NoiseSettings) -> AsyncGenerator[RegistryConnectProvider, None]:
    """Prepare to ask the registry of these settings, for as long as the context lasts.

    Raises:
        RegistryConfigurationError: The address is no registry's.

    Cancelled:
        Its connections to the registry are closed.
    """
    authenticate = bearer(settings.auth_token, account_id=settings.account_id)
    async with AsyncExitStack() as stack:
        try:
            registry = await stack.enter_async_context(open_registry_client(settings.registry_url, authenticate))
        except RegistryConfigInvalid as error:
            raise RegistryConfigurationError(str(error).partition(": ")[2]) from error
        yield RegistryConnectProvider(registry, settings.environment_id)
