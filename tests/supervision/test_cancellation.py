"""Each public async function, cancelled at each of its steps: nothing is left that nobody owns."""

from itertools import count

import trio
import trio.testing

import supervision as sv
from tests.supervision.players import Stage, quiet, states
from tests.support.cancelling import cancel_at_each_step


async def test_open_root_leaves_nothing_behind() -> None:
    stage = Stage()

    async def operation() -> None:
        async with sv.open_root(children=(stage.spec("a"), stage.spec("b"))) as root:
            await root.start_child(stage.spec("c"))

    async def check() -> None:
        starts = sum(line.endswith("starts") for line in stage.log)
        ends = sum(line.endswith("ends") for line in stage.log)
        assert starts == ends

    assert await cancel_at_each_step(operation, check=check) > 5


async def test_start_child_either_starts_it_or_leaves_nothing() -> None:
    stage, serial = Stage(), count()
    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        for supervisor in (root, pool):
            made = 0
            known = len(supervisor.children())

            async def operation() -> None:
                nonlocal made
                await supervisor.start_child(stage.spec(f"{next(serial)}", restart=sv.Restart.TEMPORARY))  # noqa: B023
                made += 1

            async def check() -> None:
                left = supervisor.children()[known:]  # noqa: B023
                assert len(left) == made  # noqa: B023
                assert all(child.state is sv.ChildState.RUNNING for child in left)

            await cancel_at_each_step(operation, check=check)


async def test_start_supervisor_and_start_pool_either_start_it_or_leave_nothing() -> None:
    stage, serial = Stage(), count()
    async with sv.open_root() as root:
        done: list[str] = []

        async def supervisor() -> None:
            name = f"{next(serial)}"
            await root.start_supervisor(name, children=(stage.spec("a"), stage.spec("b")))
            done.append(name)

        async def pool() -> None:
            name = f"{next(serial)}"
            await root.start_pool(name)
            done.append(name)

        async def check() -> None:
            assert [child.name for child in root.children()] == done

        await cancel_at_each_step(supervisor, check=check)
        await cancel_at_each_step(pool, check=check)


async def test_stop_child_goes_on_when_its_wait_is_cancelled() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        await root.start_child(stage.spec("a"))

        async def operation() -> None:
            if states(root) == {"a": "stopped"}:
                await root.restart_child("a")
            await root.stop_child("a")

        async def check() -> None:
            assert states(root) == {"a": "stopped"} or stage.log[-1] == "a starts"

        await cancel_at_each_step(operation, check=check)
        assert states(root) == {"a": "stopped"}


async def test_restart_child_either_restarts_it_or_leaves_it_stopped() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        await root.start_child(stage.spec("a"))
        await root.stop_child("a")

        async def operation() -> None:
            await root.restart_child("a")
            await root.stop_child("a")

        async def check() -> None:
            assert states(root) == {"a": "stopped"}

        await cancel_at_each_step(operation, check=check)


async def test_waits_of_a_handle_can_be_cancelled_and_repeated() -> None:
    stage = Stage()
    async with sv.open_root() as root:

        async def started() -> None:
            child = root.child("a") or root.start_child_nowait(stage.spec("a"))
            await child.wait_started()

        async def check() -> None:
            assert states(root) in ({}, {"a": "running"})

        await cancel_at_each_step(started, check=check)
        child = root.child("a")
        assert child is not None

        async def stopped() -> None:
            child.request_stop()
            await child.wait_stopped()

        await cancel_at_each_step(stopped)
        assert states(root) == {"a": "stopped"}
        assert child._waiters is None or child._waiters == []


async def test_reading_events_loses_none_when_cancelled() -> None:
    stage = Stage()
    async with sv.open_root() as root, root.events() as events:
        seen: list[sv.Event] = []
        await root.start_child(stage.spec("a"))

        async def operation() -> None:
            seen.append(await anext(events))

        await cancel_at_each_step(operation)
        await root.stop_child("a")
        await cancel_at_each_step(operation)
        await cancel_at_each_step(operation)

        assert [type(event) for event in seen] == [sv.ChildStarted, sv.ChildAsked, sv.ChildExited]


async def test_waiting_functions_are_checkpoints_also_when_they_need_not_wait() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        child = await root.start_child(stage.spec("a"))
        with trio.testing.assert_checkpoints():
            await child.wait_started()
        await root.stop_child("a")
        with trio.testing.assert_checkpoints():
            await root.stop_child("a")
        with trio.testing.assert_checkpoints():
            await child.wait_stopped()
        with trio.testing.assert_no_checkpoints():
            root.tree()
            root.delete_child("a")
            root.start_child_nowait(stage.spec("a")).request_stop()
        await quiet()
