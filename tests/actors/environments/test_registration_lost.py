"""A registration that is lost abandons its environment exactly once, by whatever road, and disturbs nobody (P21)."""

import contextlib
import gc
import subprocess
import sys
import textwrap
import threading
import warnings
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.environments import (
    Environment,
    EnvironmentManager,
    EnvironmentUnavailable,
    Gate,
    GateMoved,
    Registration,
)
from actors.environments.testing import FailingProvider, open_manager_in_memory
from tests.actors.environments.waiting import Wait, found, start_wait

ENDED = "environment unavailable: environment registration ended before completion"


async def a_waiter_of(manager: EnvironmentManager, nursery: trio.Nursery) -> tuple[list[Registration], Wait]:
    held = [manager.register_deferred("tools", FailingProvider())]
    return held, await start_wait(nursery, found(manager, "tools"))


async def abandoned_once(manager: EnvironmentManager, wait: Wait, events: Any) -> None:
    with trio.fail_after(1):
        error = await wait.error()
    assert str(error).endswith(ENDED)
    assert found(manager, "tools").gate is Gate.ABANDONED
    moved = []
    while True:
        try:
            event = events.receive_nowait()
        except trio.WouldBlock:
            break
        if isinstance(event, GateMoved):
            moved.append(event.gate)
    assert moved == [Gate.ABANDONED]


async def test_a_lost_last_reference_abandons_and_warns(nursery) -> None:
    async with open_manager_in_memory() as manager, manager.events() as events:
        held, wait = await a_waiter_of(manager, nursery)
        with pytest.warns(ResourceWarning, match="registration of environment 'tools' generation 1 was lost"):
            held.clear()

        await abandoned_once(manager, wait, events)


async def test_a_registration_lost_in_a_cycle_is_noticed_when_the_cycle_is_collected(nursery) -> None:
    async with open_manager_in_memory() as manager, manager.events() as events:
        held, wait = await a_waiter_of(manager, nursery)
        ring: list[Any] = [held.pop()]
        ring.append(ring)
        del ring
        await wait_all_tasks_blocked()
        assert wait.is_pending

        with pytest.warns(ResourceWarning):
            gc.collect()
        await abandoned_once(manager, wait, events)


@pytest.mark.parametrize("in_a_cycle", [False, True])
async def test_a_registration_lost_in_a_foreign_thread_wakes_the_idle_run(in_a_cycle: bool, nursery) -> None:
    async with open_manager_in_memory() as manager, manager.events() as events:
        held, wait = await a_waiter_of(manager, nursery)
        ring: list[Any] = [held, threading.get_ident()]
        if in_a_cycle:
            ring.append(ring)
        box = [ring]
        del held, ring

        def lose() -> None:
            box.clear()
            gc.collect()

        def wait_for_it_without_a_word_to_the_run() -> None:
            thread = threading.Thread(target=lose)
            thread.start()
            thread.join()

        with pytest.warns(ResourceWarning):
            await trio.to_thread.run_sync(wait_for_it_without_a_word_to_the_run)
        await abandoned_once(manager, wait, events)


async def test_an_explicit_end_makes_the_later_loss_silent(nursery) -> None:
    async with open_manager_in_memory() as manager, manager.events() as events:
        held, wait = await a_waiter_of(manager, nursery)
        held[0].abandon()
        held.clear()

        await abandoned_once(manager, wait, events)


async def test_a_loss_that_comes_while_the_right_is_being_used_changes_nothing(nursery) -> None:
    async with open_manager_in_memory() as manager:
        held, wait = await a_waiter_of(manager, nursery)
        held[0].fail("no machine")
        held.clear()

        assert str(await wait.error()).endswith("no machine")
        assert manager.statistics().abandoned == 0


async def test_a_registration_brought_back_by_the_warning_cannot_act_any_more(nursery) -> None:
    async with open_manager_in_memory() as manager:
        held, wait = await a_waiter_of(manager, nursery)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            held.clear()
        await wait.error()
        risen: Any = caught[0].source
        del caught

        assert not risen.is_pending
        del risen
        await wait_all_tasks_blocked()
        assert manager.statistics().abandoned == 1


async def test_a_collection_at_every_allocation_neither_blocks_nor_loses_anything() -> None:
    before = gc.get_threshold()
    environments: list[Environment] = []
    async with open_manager_in_memory() as manager:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                gc.set_threshold(1, 1, 1)
                for number in range(30):
                    ring: list[Any] = [manager.register_deferred(f"env-{number}", FailingProvider())]
                    ring.append(ring)
                    environments.append(found(manager, f"env-{number}"))
                    del ring
            finally:
                gc.set_threshold(*before)
            gc.collect()
            with trio.fail_after(5):
                await wait_all_tasks_blocked()

        assert {environment.gate for environment in environments} == {Gate.ABANDONED}
        assert manager.statistics().abandoned == 30


async def test_an_environment_lost_in_a_foreign_thread_is_stopped_in_the_run() -> None:
    async with open_manager_in_memory() as manager:
        held = [manager.upsert("tools", FailingProvider())]
        await manager.remove("tools")
        assert manager.statistics().alive == 1

        await trio.to_thread.run_sync(held.clear)
        await wait_all_tasks_blocked()
        assert manager.statistics().alive == 0


PROLOGUE = """
import gc, sys, threading, warnings
import trio, trio.testing
from actors.environments import *
from actors.environments.testing import *
"""


def run_program(body: str, *options: str) -> "subprocess.CompletedProcess[str]":
    program = PROLOGUE + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-X", "dev", *options, "-c", program], capture_output=True, text=True, timeout=60
    )


def test_the_warning_says_where_the_registration_was_made_when_allocations_are_traced() -> None:
    ran = run_program(
        """
        import tracemalloc

        async def main():
            async with open_manager_in_memory() as manager:
                registration = manager.register_deferred("tools", FailingProvider())
                del registration
                await trio.testing.wait_all_tasks_blocked()
                print(manager.get("tools").gate)

        tracemalloc.start(10)
        trio.run(main)
        """,
    )

    assert ran.stdout == "Gate.ABANDONED\n"
    assert "ResourceWarning: the registration of environment 'tools' generation 1 was lost before it was" in ran.stderr
    assert "Object allocated at (most recent call last)" in ran.stderr
    assert "register_deferred" in ran.stderr


def test_a_warning_that_is_an_error_never_reaches_the_run() -> None:
    ran = run_program(
        """
        async def main():
            async with open_manager_in_memory() as manager:
                registration = manager.register_deferred("tools", FailingProvider())
                del registration
                await trio.testing.wait_all_tasks_blocked()
                print(manager.get("tools").gate)

        trio.run(main)
        """,
        "-W",
        "error",
    )

    assert (ran.returncode, ran.stdout) == (0, "Gate.ABANDONED\n")
    assert "Exception ignored in" in ran.stderr


def test_a_registration_lost_after_the_run_has_ended_is_silent() -> None:
    ran = run_program(
        """
        async def main():
            async with open_manager_in_memory() as manager:
                return manager.register_deferred("tools", FailingProvider())

        registration = trio.run(main)
        del registration
        gc.collect()
        print("done")
        """,
        "-W",
        "error",
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("options", [(), ("-W", "error")], ids=["warnings shown", "warnings are errors"])
def test_registrations_lost_at_interpreter_exit_are_silent(options: tuple[str, ...]) -> None:
    ran = run_program(
        """
        async def main():
            async with open_manager_in_memory() as manager:
                return [manager.register_deferred(f"env-{n}", FailingProvider()) for n in range(3)]

        kept, in_a_cycle, in_a_module = trio.run(main)
        in_a_cycle = [in_a_cycle]
        in_a_cycle.append(in_a_cycle)
        sys.modules["kept"] = in_a_module
        sys.exit(3)
        """,
        *options,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "", "")


def test_an_interpreter_that_exits_under_a_running_manager_is_silent() -> None:
    ran = run_program(
        """
        up = threading.Event()

        async def main():
            global registration
            async with open_manager_in_memory() as manager:
                registration = manager.register_deferred("tools", FailingProvider())
                up.set()
                await trio.sleep_forever()

        threading.Thread(target=trio.run, args=(main,), daemon=True).start()
        up.wait()
        sys.exit(4)
        """,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (4, "", "")


def test_a_run_that_dies_of_an_error_is_silent_about_its_registrations() -> None:
    ran = run_program(
        """
        async def main():
            global registration
            async with open_manager_in_memory() as manager:
                registration = manager.register_deferred("tools", FailingProvider())
                raise SystemExit(5)

        trio.run(main)
        """,
        "-W",
        "error",
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (5, "", "")


async def test_why_says_that_a_registration_was_lost_before_the_run_has_heard_of_it() -> None:
    """Killed the mutant that asks the gate alone: it advised to complete what nobody could."""
    async with open_manager_in_memory() as manager:
        held = [manager.register_deferred("tools", FailingProvider())]
        environment = found(manager, "tools")
        assert environment.why().reasons[1].code == "waiting_for_completion"
        with pytest.warns(ResourceWarning):
            held.clear()

        why = environment.why()

        assert [reason.code for reason in why.reasons] == ["pending", "registration_lost", "registered"]
        assert why.reasons[1].text == "its registration was lost, so it is about to be abandoned"
        with_it = "with manager.register_deferred('tools', provider) as registration"
        assert why.advice == f"register it anew, and keep the registration: {with_it}"
        await wait_all_tasks_blocked()
        assert environment.why().reasons[0].code == "abandoned"


@pytest.mark.parametrize("by_name", [False, True])
async def test_the_error_of_a_registration_that_was_let_go_notes_whose_it_was_and_what_to_write(by_name: bool) -> None:
    """Killed the mutant without the note."""
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            if by_name:
                registration.abandon()

        with pytest.raises(EnvironmentUnavailable) as raised:
            await found(manager, "tools").wait_until_ready()

        assert str(raised.value).endswith(ENDED)
        (note,) = raised.value.__notes__
        assert note.startswith(
            "The registration of environment `tools` generation 1 was let go before it was completed"
        )
        assert "Write `with manager.register_deferred('tools', provider) as registration:`" in note


async def test_what_was_raised_in_the_block_of_a_registration_needs_no_such_note() -> None:
    async with open_manager_in_memory() as manager:
        with contextlib.suppress(KeyError), manager.register_deferred("tools", FailingProvider()):
            raise KeyError("disk")

        with pytest.raises(EnvironmentUnavailable) as raised:
            await found(manager, "tools").wait_until_ready()

        assert not hasattr(raised.value, "__notes__")
