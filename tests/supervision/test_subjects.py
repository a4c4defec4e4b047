"""Many children of one spec, each with a subject of its own."""

import contextvars
import gc
import weakref
from typing import Any

import pytest
import trio
import trio.testing

import supervision as sv

BIG = sv.RestartIntensity(1_000, 3600.0)


async def says(subject: object, *rest: object, task_status: sv.ChildStatus[Any]) -> None:
    task_status.started((subject, *rest))
    if isinstance(subject, Exception):
        raise subject


async def test_the_subject_comes_before_the_arguments_of_the_spec() -> None:
    spec = sv.ChildSpec("child", says, "shared", restart=sv.Restart.TEMPORARY)
    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        first = await pool.start_child(spec, 1)
        second = pool.start_child_nowait(spec, 2)
        alone = await pool.start_child(spec)
        await second.wait_stopped()
        named = await root.start_child(spec, 3)

        assert first.value == (1, "shared")
        assert second.value == (2, "shared")
        assert alone.value == ("shared",)
        assert named.value == (3, "shared")
        assert first.spec is second.spec is alone.spec


async def test_none_is_a_subject() -> None:
    async with sv.open_root() as root:
        child = await root.start_child(sv.ChildSpec("child", says, 1, restart=sv.Restart.TEMPORARY), None)

        assert child.value == (None, 1)


async def test_on_gone_is_told_whom_it_is_about() -> None:
    gone: list[tuple[object, ...]] = []
    crash = ValueError("on purpose")
    spec = sv.ChildSpec("child", says, restart=sv.Restart.TEMPORARY, on_gone=lambda *told: gone.append(told))
    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        await (await pool.start_child(spec, "well")).wait_stopped()
        await (await pool.start_child(spec, crash)).wait_stopped()

    assert gone == [("well", None), (crash, crash)]


async def test_every_generation_has_the_same_subject() -> None:
    seen: list[object] = []

    async def crashes_twice(subject: list[object], *, task_status: sv.ChildStatus[None]) -> None:
        subject.append(task_status.generation)
        task_status.started()
        if len(subject) < 3:
            raise ValueError

    async with sv.open_root(intensity=BIG) as root:
        child = await root.start_child(sv.ChildSpec("child", crashes_twice, restart=sv.Restart.TRANSIENT), seen)
        await child.wait_stopped()

    assert seen == [1, 2, 3]


@pytest.mark.parametrize("restart", [sv.Restart.TEMPORARY, sv.Restart.TRANSIENT])
async def test_a_child_of_a_pool_starts_in_the_adders_context_and_changes_only_its_own(restart: sv.Restart) -> None:
    colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour")
    seen: list[str] = []

    async def paints(*, task_status: sv.ChildStatus[None]) -> None:
        seen.append(colour.get())
        colour.set("changed by the child")
        task_status.started()

    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        spec = sv.ChildSpec("child", paints, restart=restart)
        for shade in ("red", "green"):
            colour.set(shade)
            await pool.start_child(spec)
        colour.set("blue")
        child = pool.start_child_nowait(spec)
        colour.set("set after the child was added")
        await child.wait_stopped()

        assert colour.get() == "set after the child was added"
    assert seen == ["red", "green", "blue"]


async def test_a_child_that_is_added_by_an_on_stop_function_starts_in_that_functions_context(
    autojump_clock: trio.testing.MockClock,
) -> None:
    # Ordered at once, but begun after the function has returned (mutant: `not self._obeying` left out).
    colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")
    seen: list[str] = []

    async def late(*, task_status: sv.ChildStatus[None]) -> None:
        seen.append(colour.get())
        task_status.started()

    async with sv.open_root() as root:
        pool = await root.start_pool("pool")

        async def adds(*, task_status: sv.ChildStatus[None]) -> None:
            def add() -> None:
                colour.set("asked")
                pool.start_child_nowait(sv.ChildSpec("late", late, restart=sv.Restart.TEMPORARY))
                colour.set("set after")
                task_status.child.request_stop()

            task_status.on_stop(add)
            task_status.started()
            await trio.sleep_forever()

        child = await pool.start_child(sv.ChildSpec("adds", adds, restart=sv.Restart.TEMPORARY))
        child.request_stop()
        await child.wait_stopped()

    assert seen == ["asked"]


class Thing:
    pass


async def test_a_child_that_is_gone_keeps_nothing_of_its_subject() -> None:
    spec = sv.ChildSpec("child", says, restart=sv.Restart.TEMPORARY, on_gone=lambda *_: None)
    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        thing = Thing()
        kept = weakref.ref(thing)
        child = await pool.start_child(spec, thing)
        await child.wait_stopped()
        del thing, child
        gc.collect()

        assert kept() is None
