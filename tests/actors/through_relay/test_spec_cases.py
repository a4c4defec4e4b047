"""The cases of the whole path (7.5), over our own registry and rendezvous on loopback, with real processes."""

import random
from pathlib import Path

import pytest
import trio

from actors.environments import ConnectionState, Environment, EnvironmentManager, Gate, ReadyInfo, Watch
from actors.harness import RelayDialer, open_client
from actors.noise import Identity
from actors.relay import Data, decode
from supervision import open_root
from tests.actors.environments.waiting import found, info, start_wait
from tests.actors.through_relay.loopback import (
    EXECUTOR_TOKEN,
    HARNESS_TOKEN,
    CountingProvider,
    Loopback,
    open_loopback,
)

pytestmark = pytest.mark.slow

# What only the two ends may read: methods, members of messages, what a command prints.
PLAINTEXT = (b"initialize", b"process/", b"environment/", b"clientName", b"sessionId", b"params", b"the-secret-word")


def payloads(world: Loopback) -> list[bytes]:
    bodies = (decode(frame).body for frame in world.dialer.frames)
    return [body.payload for body in bodies if isinstance(body, Data)]


async def until(watch: Watch[ConnectionState], state: ConnectionState) -> None:
    with trio.fail_after(20):
        while watch.current is not state:
            await watch.changed()


async def see_it_cut_and_resumed(world: Loopback, environment: Environment, provider: CountingProvider) -> None:
    """What follows readiness in 45 and 47.

    One thing is asked of the registry that its fake in the case never saw: while its executor is away ours says so,
    and the harness asks again. Bundles are given twice.
    """
    watch = environment.subscribe_connection_state()
    assert watch is not None
    roots = environment.selected_capability_roots
    first_info = await environment.info()
    ran = await environment.run(["/bin/sh", "-c", "echo the-secret-word; exit 3"])
    assert (ran.exit_code, ran.stdout) == (3, b"the-secret-word\n")
    assert (len(provider.bundles), len(provider.keys)) == (1, 1)
    assert watch.current is ConnectionState.CONNECTED
    async with environment.processes.start(["/bin/sh", "-c", "read line; echo $line"], pipe_stdin=True) as process:
        await world.dialer.cut()
        await until(watch, ConnectionState.DISCONNECTED)
        await until(watch, ConnectionState.CONNECTED)
        await process.stdin.write(b"still the same process\n")
        assert b"".join([piece async for piece in process.output()]) == b"still the same process\n"
        assert await process.wait() == 0

    assert await environment.info() == first_info
    assert environment.selected_capability_roots == roots
    assert roots[0].id == "tools-root"
    one, two = provider.bundles
    assert one.harness_key_authorization != two.harness_key_authorization
    assert one.executor_registration_id == two.executor_registration_id
    assert len(set(provider.keys)) == 1
    assert world.transport.count("register") == 1
    assert world.transport.count("connect") == 2
    assert world.transport.count("validate") == 2
    assert [event.what for event in world.events] == ["registered", "connected", "disconnected", "connected"]
    assert_opaque(world)


def assert_opaque(world: Loopback) -> None:
    seen = payloads(world)
    assert seen
    assert not [word for word in PLAINTEXT for payload in seen if word in payload]


async def test_45_a_deferred_environment_connects_when_completed_and_survives_a_cut_of_the_relay() -> None:
    async with open_loopback() as world, open_root() as root, world.open_manager(root) as manager:
        provider = world.provider()
        registration = manager.register_deferred("env", provider)
        environment = found(manager, "env")
        async with trio.open_nursery() as nursery:
            wait = await start_wait(nursery, environment)
            assert wait.is_pending
            assert environment.gate is Gate.PENDING
            assert provider.keys == []

            registration.complete(info("tools-root", "env"))
            assert environment.selected_capability_roots[0].id == "tools-root"
            await wait.well()
        await see_it_cut_and_resumed(world, environment, provider)


async def test_46_a_direct_client_starts_a_process_and_reads_a_file_intact_and_nothing_shows(tmp_path: Path) -> None:
    content = random.Random(46).randbytes(100_000) + b"the-secret-word" + random.Random(47).randbytes(31_057)
    file = tmp_path / "file"
    file.write_bytes(content)
    identity = Identity.generate()
    async with open_loopback() as world:

        async def next_bundle():
            return await world.connect(identity)

        async with open_client("env", dialer=RelayDialer(next_bundle, identity, dialer=world.dialer)) as client:
            read = await client.run(["/bin/cat", str(file)])

        assert len(content) == 128 * 1024
        assert read.stdout == content
        assert_opaque(world)
        authorizations = {action: header for action, header, _ in world.transport.asked}
        assert authorizations == {
            "register": f"Bearer {EXECUTOR_TOKEN}",
            "validate": f"Bearer {EXECUTOR_TOKEN}",
            "connect": f"Bearer {HARNESS_TOKEN}",
        }


async def test_47_the_same_through_materialize_and_a_report_that_asks_nobody() -> None:
    async with open_loopback() as world, open_root() as root, world.open_manager(root) as manager:
        provider = world.provider()
        environment = manager.materialize("env", provider)
        async with trio.open_nursery() as nursery:
            wait = await start_wait(nursery, environment)
            assert wait.is_pending

            assert report(manager, info("tools-root", "env"), provider) is environment
            assert provider.keys == [], "reporting asks nobody by itself"
            await wait.well()
        await see_it_cut_and_resumed(world, environment, provider)


def report(manager: EnvironmentManager, ready: ReadyInfo, provider: CountingProvider) -> Environment | None:
    return manager.report_provisioning("env", ready, provider)
