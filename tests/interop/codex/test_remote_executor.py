"""Cases 45 and 46 with either executor behind our registry and rendezvous, reached by our manager."""

import os
from pathlib import Path

import pytest
import trio

from actors.environments import ConnectionState, Connectors, HarnessConnector, NoiseConnector, open_manager
from actors.noise import Identity
from actors.relay import Data, decode
from supervision import open_root
from tests.actors.environments.waiting import found, info, start_wait
from tests.interop.codex.bodies import BODIES, open_world

pytestmark = pytest.mark.slow

# What only the two ends may read.
PLAINTEXT = (b"initialize", b"process/", b"environment/", b"clientName", b"sessionId", b"params", b"the-secret-word")


@pytest.mark.parametrize("body", BODIES)
async def test_45_46_an_executor_serves_our_manager_through_our_rendezvous_and_survives_a_cut(
    body: str, tmp_path: Path
) -> None:
    content = b"the-secret-word" + os.urandom(2 * 1024 * 1024)
    file = tmp_path / "file"
    file.write_bytes(content)
    home = tmp_path / "home"
    home.mkdir()
    with trio.fail_after(90):
        async with open_world(body, home) as world, open_root() as root:
            noise = NoiseConnector(dialer=world.dialer)
            connectors = Connectors(plain=HarnessConnector(), noise=noise, identity=Identity.generate)
            async with open_manager(root, connectors=connectors) as manager, trio.open_nursery() as nursery:
                provider = world.provider()
                registration = manager.register_deferred("env", provider)
                environment = found(manager, "env")
                wait = await start_wait(nursery, environment)
                assert wait.is_pending
                assert provider.keys == []
                registration.complete(info("tools-root", "env"))
                await wait.well()
                watch = environment.subscribe_connection_state()
                assert watch is not None
                first_info = await environment.info()
                read = await environment.run(["/bin/cat", str(file)])
                assert read.stdout == content
                ended = await environment.run(["/bin/sh", "-c", "echo the-secret-word; exit 3"])
                assert (ended.exit_code, ended.stdout) == (3, b"the-secret-word\n")

                await world.road.cut()
                for state in (ConnectionState.DISCONNECTED, ConnectionState.CONNECTED):
                    while watch.current is not state:
                        await watch.changed()

                assert await environment.info() == first_info
                assert [root.id for root in environment.selected_capability_roots] == ["tools-root"]
                again = await environment.run(["/bin/echo", "again"])
                assert again.stdout == b"again\n"
                one, two = provider.bundles
                assert one.harness_key_authorization != two.harness_key_authorization
                assert one.executor_registration_id == two.executor_registration_id
                assert len(set(provider.keys)) == 1
                assert world.rendezvous.statistics().counters.validations_passed == 2
    bodies = [decode(frame).body for frame in world.dialer.frames]
    seen = [body.payload for body in bodies if isinstance(body, Data)]
    assert seen
    assert not [word for word in PLAINTEXT for payload in seen if word in payload]
