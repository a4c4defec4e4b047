"""A call from outside of the run is refused before it changes anything."""

from collections.abc import Awaitable, Callable
from threading import Event
from typing import Any

import pytest
import trio

import supervision as sv

STATUSES: list[sv.ChildStatus[Any]] = []


async def child(*, task_status: sv.ChildStatus[None]) -> None:
    STATUSES[:] = [task_status]
    task_status.started()
    await trio.sleep_forever()


async def starting(*, task_status: sv.ChildStatus[None]) -> None:
    STATUSES[:] = [task_status]
    await trio.sleep_forever()


CALLS: dict[str, Callable[[sv.Supervisor, sv.Pool, sv.Child[Any], sv.Events], object]] = {
    "start_child_nowait": lambda root, pool, one, events: root.start_child_nowait(sv.ChildSpec("b", child)),
    "start_child_nowait of a pool": lambda root, pool, one, events: pool.start_child_nowait(sv.ChildSpec("b", child)),
    "delete_child": lambda root, pool, one, events: root.delete_child("stopped"),
    "request_stop": lambda root, pool, one, events: one.request_stop(),
    "tree": lambda root, pool, one, events: root.tree(),
    "statistics": lambda root, pool, one, events: root.statistics(),
    "receive_nowait": lambda root, pool, one, events: events.receive_nowait(),
    "started": lambda root, pool, one, events: STATUSES[0].started(),
    "on_stop": lambda root, pool, one, events: STATUSES[0].on_stop(lambda: None),
}


def seen(root: sv.Supervisor) -> list[tuple[str, object, int]]:
    return [(node.name, node.state, node.generation) for node in root.tree().children]


async def from_a_thread(call: Callable[[], object]) -> None:
    await trio.to_thread.run_sync(call)


async def from_another_run(call: Callable[[], object]) -> None:
    async def other() -> None:
        call()

    await trio.to_thread.run_sync(trio.run, other)


@pytest.mark.parametrize("outside", [from_a_thread, from_another_run])
@pytest.mark.parametrize("name", CALLS)
async def test_a_call_from_outside_of_the_run_is_refused_and_changes_nothing(
    name: str, outside: Callable[[Callable[[], object]], Any]
) -> None:
    """Mutants: any one check left out of what is called here.

    Without that of `start_child_nowait`, of a supervisor or a pool, the test never ends.
    """
    async with sv.open_root() as root, root.events() as events:
        pool = await root.start_pool("pool")
        await root.start_child(sv.ChildSpec("stopped", child))
        await root.stop_child("stopped")
        one = root.start_child_nowait(sv.ChildSpec("one", starting))
        await trio.testing.wait_all_tasks_blocked()
        before = seen(root), root.statistics(), events.statistics()

        with pytest.raises(sv.NotInThisRun, match=r"trio\.from_thread\.run_sync\("):
            await outside(lambda: CALLS[name](root, pool, one, events))

        await trio.testing.wait_all_tasks_blocked()
        assert (seen(root), root.statistics(), events.statistics()) == before


COMMANDS: dict[str, Callable[[sv.Supervisor, sv.Pool, sv.Child[Any]], Awaitable[object]]] = {
    "start_child": lambda root, pool, member: root.start_child(sv.ChildSpec("b", child)),
    "start_child of a pool": lambda root, pool, member: pool.start_child(sv.ChildSpec("b", child)),
    "start_supervisor": lambda root, pool, member: root.start_supervisor("b"),
    "start_pool": lambda root, pool, member: root.start_pool("b"),
    "stop_child": lambda root, pool, member: root.stop_child("one"),
    "stop_child of a pool": lambda root, pool, member: pool.stop_child(member),
    "restart_child": lambda root, pool, member: root.restart_child("stopped"),
}


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_command_that_waits_is_refused_from_another_run_and_changes_nothing(name: str) -> None:
    """The other run waits in its own thread until this one has come to rest, and this one until that one has ended.

    Mutant: `_Overseer._here` does not look.
    """
    at_rest, refused = Event(), list[BaseException]()

    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        await root.start_child(sv.ChildSpec("stopped", child))
        await root.stop_child("stopped")
        await root.start_child(sv.ChildSpec("one", child))
        member = await pool.start_child(sv.ChildSpec("member", child))

        async def other() -> None:
            await trio.to_thread.run_sync(at_rest.wait)
            with pytest.raises(sv.NotInThisRun, match=r"trio\.from_thread\.run_sync\(") as caught:
                await COMMANDS[name](root, pool, member)
            refused.append(caught.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(from_a_thread, lambda: trio.run(other))
            await trio.testing.wait_all_tasks_blocked()
            before = seen(root), root.statistics(), pool.statistics()
            at_rest.set()

        await trio.testing.wait_all_tasks_blocked()
        assert (seen(root), root.statistics(), pool.statistics()) == before
        assert len(refused) == 1
