"""Waiting for a file that is not there yet, at a real executor: also over a lost connection."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio

from actors.executor import ExecutorEndpoint, Limits, serve_executor
from actors.harness import Client, Disconnected, NotFound, OutsideRoots, RecoveryPolicy, open_client
from tests.support.settling import until


@attrs.define
class World:
    client: Client
    endpoint: ExecutorEndpoint


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with trio.open_nursery() as nursery:
        serve = partial(serve_executor, limits=Limits(watch_s=0.01), file_roots=[tmp_path])
        endpoint = await nursery.start(serve)
        async with open_client(endpoint.url, recovery=RecoveryPolicy()) as client:
            with trio.fail_after(20):
                yield World(client, endpoint)
        nursery.cancel_scope.cancel()


async def test_a_file_that_is_there_is_not_waited_for(world: World, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")

    await world.client.files.wait_until_exists(tmp_path / "f")


async def test_the_wait_ends_when_the_file_comes_and_holds_up_nobody(world: World, tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.client.files.wait_until_exists, tmp_path / "f")
        assert (await world.client.run(["/bin/echo", "hi"], cwd=tmp_path)).stdout == b"hi\n"
        assert len(nursery.child_tasks) == 1
        (tmp_path / "f").mkdir()


async def test_the_wait_goes_on_after_a_lost_connection(world: World, tmp_path: Path) -> None:
    """Mutant that was seen to fail: a lost connection does not wake who waits."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.client.files.wait_until_exists, tmp_path / "f")
        connection = world.client._core.connection
        assert connection is not None
        await until(lambda: bool(world.client._core._watches) and not connection.statistics().open_calls)
        connection.end(Disconnected("cut"))
        await until(lambda: world.endpoint.executor.statistics().sessions_resumed == 1)
        assert len(nursery.child_tasks) == 1
        (tmp_path / "f").write_text("")


async def test_a_folder_that_is_not_there_or_not_open_is_said(world: World, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await world.client.files.wait_until_exists(tmp_path / "missing" / "f")
    with pytest.raises(OutsideRoots):
        await world.client.files.wait_until_exists("/etc/never-there")
