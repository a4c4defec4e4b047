"""A planned replacement of an executor behind our registry and rendezvous on loopback, with real processes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest
import trio

from actors.environments import (
    ConnectBundle,
    ConnectionState,
    Connectors,
    HarnessConnector,
    NoiseConnector,
    RegistryConnectProvider,
    RegistryRefused,
    open_manager,
)
from actors.executor import serve_remote_executor
from actors.harness import ProcessStateUnknown, RecoveryPolicy
from actors.noise import Identity
from actors.relay import Redial
from actors.rendezvous import RegistryClient, bearer, open_registry_client
from supervision import open_root
from tests.actors.through_relay.loopback import EXECUTOR_TOKEN, open_loopback

pytestmark = pytest.mark.slow


async def test_a_refresh_keeps_the_session_and_the_processes_of_the_same_executor() -> None:
    async with open_loopback() as world, open_root() as root, world.open_manager(root) as manager:
        provider = world.provider()
        environment = manager.upsert("env", provider)
        async with environment.processes.start(["/bin/sh", "-c", "read line; echo $line"], pipe_stdin=True) as process:
            await environment.refresh_connection()
            await process.stdin.write(b"still the same process\n")

            assert b"".join([piece async for piece in process.output()]) == b"still the same process\n"
        assert len(provider.bundles) == 2
        assert world.rendezvous.statistics().counters.validations_passed == 1, "no second stream"


async def test_after_a_planned_replacement_a_refresh_turns_to_the_new_executor() -> None:
    """The old one has gone and the session is being recovered: it is given up as soon as its successor is found."""
    # One try at once, when nobody is there, and no other before the refresh.
    recovery = RecoveryPolicy(first_delay_s=20, delay_max_s=20)
    async with (
        open_loopback() as world,
        open_registry_client(world.rendezvous.url, bearer(EXECUTOR_TOKEN), transport=world.transport) as registry,
        open_root() as root,
        trio.open_nursery() as nursery,
    ):
        noise = NoiseConnector(dialer=world.dialer, recovery=recovery)
        connectors = Connectors(plain=HarnessConnector(), noise=noise, identity=Identity.generate)
        async with open_manager(root, connectors=connectors) as manager:
            serve = partial(serve_remote_executor, dialer=world.dialer, redial=Redial(first_s=0.02, cap_s=0.1))
            old = await nursery.start(scoped, partial(serve, registry, "shop", Identity.generate()))
            provider = Telling(world.registry)
            environment = manager.upsert("shop", provider)
            watch = environment.subscribe_connection_state()
            assert watch is not None
            async with environment.processes.start(["/bin/cat"], pipe_stdin=True) as process:
                old.cancel()
                await provider.refused.wait()
                assert watch.current is ConnectionState.DISCONNECTED
                await nursery.start(scoped, partial(serve, registry, "shop", Identity.generate()))
                await environment.refresh_connection()
                with pytest.raises(ProcessStateUnknown, match="exec-server executor was replaced"):
                    await process.wait()

            assert watch.current is ConnectionState.CONNECTED
            assert (await environment.run(["/bin/echo", "on the new one"])).stdout == b"on the new one\n"
            assert world.transport.count("connect") == 2, "the bundle of the look-up was the one that was used"
            await environment.refresh_connection()
            counted = manager.statistics()
            assert (counted.look_ups, counted.replaced, counted.attempts) == (2, 1, 2)
        nursery.cancel_scope.cancel()


class Telling:
    """Asks the registry, and says when it was refused."""

    def __init__(self, registry: RegistryClient) -> None:
        self._real = RegistryConnectProvider(registry, "shop")
        self.refused = trio.Event()

    async def connect_bundle(self, key: Any, /) -> ConnectBundle:
        try:
            return await self._real.connect_bundle(key)
        except RegistryRefused:
            self.refused.set()
            raise


async def scoped(serve: Any, *, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    """Serve under a scope of its own, which is given once it serves."""
    with trio.CancelScope() as scope:
        await serve(task_status=Says(lambda: task_status.started(scope)))


@attrs.frozen
class Says:
    say: Callable[[], None]

    def started(self, _value: object = None, /) -> None:
        self.say()
