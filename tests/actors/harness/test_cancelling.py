"""A cancellation at any step leaves nothing behind, here or at the executor."""

from functools import partial

import pytest
import trio

from actors.harness import ConnectionChange, open_client, run_harness
from actors.harness.testing import FakeExecutor, MemoryNetwork
from tests.actors.harness.world import PROGRAMS, URL, World, open_world
from tests.support.cancelling import cancel_at_each_step


async def nothing_is_left(world: World) -> None:
    """No process followed, none alive at the executor, no call open."""
    await trio.testing.wait_all_tasks_blocked()
    link = world.client.connection_statistics()
    assert world.client.statistics().followed_processes == 0
    assert link is not None
    assert link.open_calls == 0
    for session in world.executor.sessions.values():
        assert all(process.log.closed for process in session.processes.values())


@pytest.mark.parametrize("argv", [["echo", "hi"], ["long"]])
async def test_running_a_command(argv: list[str], autojump_clock: object) -> None:
    async with open_world() as world:
        runs = await cancel_at_each_step(lambda: run(world, argv), check=lambda: nothing_is_left(world))

        assert runs > 3


async def run(world: World, argv: list[str]) -> None:
    with trio.move_on_after(1):
        await world.client.run(argv)


async def test_starting_reading_and_leaving_a_process(autojump_clock: object) -> None:
    async with open_world() as world:

        async def use() -> None:
            async with world.client.processes.start(["cat"], pipe_stdin=True) as process:
                await process.stdin.write(b"one\n")
                assert await anext(process.lines()) == "one"
                await process.signal()
                await process.wait()
                await process.terminate()

        await cancel_at_each_step(use, check=lambda: nothing_is_left(world))


async def test_a_command_with_input(autojump_clock: object) -> None:
    async with open_world() as world:
        await cancel_at_each_step(
            lambda: world.client.run(["cat"], stdin=b"x" * 100_000), check=lambda: nothing_is_left(world)
        )


async def test_status_and_info(autojump_clock: object) -> None:
    async with open_world() as world:
        await cancel_at_each_step(world.client.status, check=lambda: nothing_is_left(world))
        await cancel_at_each_step(world.client.info, check=lambda: nothing_is_left(world))


async def test_a_cancelled_read_loses_nothing(autojump_clock: object) -> None:
    async with open_world() as world:
        async with world.client.processes.start(["flood", "50"]) as process:
            await trio.testing.wait_all_tasks_blocked()
            total = 0
            output = process.output()

            async def read() -> None:
                nonlocal total
                total += len(await anext(output))

            for _ in range(10):
                await cancel_at_each_step(read)
            async for data in output:
                total += len(data)

        assert total == 50 * 1024


async def test_connecting(autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, PROGRAMS)
        network = MemoryNetwork(executor.serve)
        changes: list[ConnectionChange] = []

        async def connect() -> None:
            async with open_client(URL, dialer=network, on_change=changes.append) as client:
                await client.status()

        async def all_detached() -> None:
            assert all(session.attached is None for session in executor.sessions.values())

        await cancel_at_each_step(connect, check=all_detached)
        nursery.cancel_scope.cancel()

    assert changes[-1].final


async def test_running_a_harness(autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, PROGRAMS)
        network = MemoryNetwork(executor.serve)

        async def use() -> None:
            async with trio.open_nursery() as inner:
                client = await inner.start(partial(run_harness, URL, dialer=network))
                await client.status()
                inner.cancel_scope.cancel()

        async def all_detached() -> None:
            assert all(session.attached is None for session in executor.sessions.values())

        await cancel_at_each_step(use, check=all_detached)
        nursery.cancel_scope.cancel()


async def test_a_start_answered_in_the_step_in_which_it_is_cancelled(autojump_clock: object) -> None:
    async with open_world() as world:
        for steps in range(30):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel_after, scope, steps)
                    async with world.client.processes.start(["long"]):
                        await trio.sleep(1)
            await nothing_is_left(world)


async def cancel_after(scope: trio.CancelScope, steps: int) -> None:
    for _ in range(steps):
        await trio.lowlevel.checkpoint()
    scope.cancel()
