"""The right to complete: once, for its own generation, from this run or through its thread-safe path."""

import contextlib
import copy
import gc
import pickle
import threading

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors import ActorsError, InvalidOption
from actors.environments import (
    AlreadyReady,
    Environment,
    EnvironmentManager,
    EnvironmentUnavailable,
    Gate,
    InvalidReadyInfo,
    NotInThisRun,
    ReadyInfo,
    Registration,
    RegistrationInactive,
    RegistrationUsed,
)
from actors.environments.testing import FailingProvider, ScriptedProvider, open_manager_in_memory
from tests.actors.environments.waiting import found, info, root, start, start_wait


async def test_completing_twice_keeps_the_first_outcome_and_tells_the_second_caller(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())
        registration.complete(info("r", "tools"))
        await trio.sleep(3)

        with pytest.raises(RegistrationUsed) as refused:
            registration.complete(info("other", "tools"))

        said = "the registration of environment `tools` generation 1 was already completed: ready, 3 s ago"
        assert str(refused.value) == f"{said}; the first outcome stands"
        assert found(manager, "tools").selected_capability_roots == (root("r", "tools"),)
        assert manager.statistics().refused_completions == 1


async def test_a_deadline_that_came_first_is_told_as_the_end_it_was(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider(), deadline_s=2)
        await trio.sleep(3)

        with pytest.raises(RegistrationUsed) as refused:
            registration.complete(info("r", "tools"))

        said = "has already ended: failed (provisioning did not finish within 2 s), 1 s ago"
        assert said in str(refused.value)


class NoDisk(Exception):
    def __init__(self, size: int, where: str) -> None:
        super().__init__(f"no {size} GB on {where}")


async def test_what_ends_the_block_of_a_registration_is_told_to_who_waits_and_is_the_cause(
    nursery, autojump_clock
) -> None:
    error = NoDisk(3, "machine-7")
    async with open_manager_in_memory() as manager:
        with contextlib.suppress(NoDisk), manager.register_deferred("tools", FailingProvider()):
            waits = [await start_wait(nursery, found(manager, "tools")) for _ in range(2)]
            raise error

        for wait in waits:
            raised = await wait.error()
            text = "environment unavailable: environment registration ended before completion"
            assert str(raised) == f"exec-server connection attempt failed: {text}: NoDisk: no 3 GB on machine-7"
            assert isinstance(raised, EnvironmentUnavailable)
            assert raised.abandoned
            assert raised.__cause__ is error
        assert "before completion: NoDisk: no 3 GB on machine-7, " in str(manager.why("tools"))
        assert manager.report_provisioning("tools", info("r", "tools"), FailingProvider(), recover=True)


async def test_a_cancelled_block_of_a_registration_is_told_and_is_nobodys_cause(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with trio.move_on_after(1), manager.register_deferred("tools", FailingProvider()):
            wait = await start_wait(nursery, found(manager, "tools"))
            await trio.sleep_forever()

        raised = await wait.error()
        assert str(raised).endswith("registration ended before completion: Cancelled")
        assert raised.__cause__ is None


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError(), "ValueError"),
        (ValueError("a\nb\x1b[2J"), r"ValueError: a\nb\x1b[2J"),
        (ValueError("x" * 10_000), f"ValueError: {'x' * 388} and 9612 more characters"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
    ],
)
async def test_the_words_of_an_error_are_one_line_within_bounds(error: Exception, told: str, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(type(error)) as caught, manager.register_deferred("tools", FailingProvider()):
            raise error

        with pytest.raises(EnvironmentUnavailable) as raised:
            await found(manager, "tools").wait_until_ready()
        assert caught.value is error, "it comes out as it is"
        assert raised.value.message == f"environment registration ended before completion: {told}"


async def test_an_error_that_is_told_keeps_no_superseded_environment_alive(nursery, autojump_clock) -> None:
    """Its frames hold the handle; killed the mutant that keeps the error itself when the id is lost."""

    async def provision(manager: EnvironmentManager) -> None:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            environment = registration.environment
            assert environment is not None
            raise NoDisk(3, "machine-7")

    async with open_manager_in_memory() as manager:
        with contextlib.suppress(NoDisk):
            await provision(manager)
        wait = await start_wait(nursery, found(manager, "tools"))
        assert isinstance((await wait.error()).__cause__, NoDisk)
        del wait

        manager.upsert("tools", ScriptedProvider())
        gc.collect()
        await wait_all_tasks_blocked()

        assert manager.statistics().alive == 1


async def test_who_waits_for_a_generation_that_is_replaced_at_once_gets_the_cause_as_it_was_and_keeps_nothing_else(
    nursery, autojump_clock
) -> None:
    async with open_manager_in_memory() as manager:
        with contextlib.suppress(NoDisk), manager.register_deferred("tools", FailingProvider()):
            wait = await start_wait(nursery, found(manager, "tools"))
            raise NoDisk(3, "machine-7")
        manager.upsert("tools", ScriptedProvider())

        cause = (await wait.error()).__cause__
        assert isinstance(cause, NoDisk)
        assert str(cause) == "no 3 GB on machine-7"
        assert cause.__traceback__ is not None
        del wait, cause
        gc.collect()
        await wait_all_tasks_blocked()

        assert manager.statistics().alive == 1


@pytest.mark.parametrize("first", ["complete", "fail", "abandon"])
@pytest.mark.parametrize("second", ["complete", "fail"])
async def test_whatever_comes_first_stands(first: str, second: str, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())
        act(registration, first)
        gate = found(manager, "tools").gate

        with pytest.raises(RegistrationUsed, match=gate.value):
            act(registration, second)
        registration.abandon()
        assert found(manager, "tools").gate is gate


def act(registration: Registration, operation: str) -> None:
    match operation:
        case "complete":
            registration.complete(ReadyInfo())
        case "fail":
            registration.fail("no machine")
        case _:
            registration.abandon()


async def test_two_tasks_in_the_same_step_cannot_both_complete(nursery, autojump_clock) -> None:
    async def complete(root_id: str) -> None:
        try:
            registration.complete(info(root_id, "tools"))
        except RegistrationUsed:
            outcomes.append("used")
        else:
            outcomes.append("done")

    async with open_manager_in_memory() as manager:
        outcomes: list[str] = []
        registration = manager.register_deferred("tools", FailingProvider())
        async with trio.open_nursery() as both:
            both.start_soon(complete, "a")
            both.start_soon(complete, "b")

        assert sorted(outcomes) == ["done", "used"]


async def test_after_invalid_information_the_right_is_spent(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())
        with pytest.raises(InvalidReadyInfo):
            registration.complete(info("r", "other"))

        with pytest.raises(RegistrationUsed, match="failed"):
            registration.complete(info("r", "tools"))


@pytest.mark.parametrize("bad", [None, "ready", [], {"selected_capability_roots": []}])
async def test_what_is_no_information_is_refused_and_the_right_is_kept(bad: object, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            with pytest.raises(InvalidOption, match="info"):
                registration.complete(bad)  # type: ignore[arg-type]  # That is the point.
            with pytest.raises(InvalidOption, match="message"):
                registration.fail(7)  # type: ignore[arg-type]  # That is the point.

            assert registration.is_pending


async def test_leaving_the_block_abandons_without_a_warning(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()):
            wait = await start_wait(nursery, found(manager, "tools"))
        error = await wait.error()

        assert isinstance(error, EnvironmentUnavailable)
        assert error.abandoned
        assert found(manager, "tools").gate is Gate.ABANDONED


async def test_a_block_that_raises_abandons_and_lets_the_error_through(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(KeyError), manager.register_deferred("tools", FailingProvider()):
            raise KeyError("no machine")

        assert found(manager, "tools").gate is Gate.ABANDONED


async def test_a_block_that_completed_changes_nothing_on_leaving(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            registration.complete(ReadyInfo())

        assert found(manager, "tools").gate is Gate.READY


async def test_a_registration_whose_environment_nobody_can_reach_is_inactive(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        registration = manager.register_deferred("tools", provider)
        manager.upsert("tools", ScriptedProvider())

        for operation in ("complete", "fail"):
            with pytest.raises(RegistrationInactive) as refused:
                act(registration, operation)
            assert str(refused.value) == "deferred environment registration is inactive"
        registration.abandon()
        await wait_all_tasks_blocked()
        assert provider.calls == 0
        assert manager.statistics().alive == 1


async def test_a_registration_of_a_closed_environment_is_inactive(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())
        environment = found(manager, "tools")
        await environment.aclose()

        with pytest.raises(RegistrationInactive):
            registration.complete(ReadyInfo())
        assert environment.gate is Gate.ABANDONED
        assert manager.get("tools") is None


async def test_after_the_manager_has_closed_the_registration_is_inactive_and_quiet(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())

    with pytest.raises(RegistrationInactive):
        registration.complete(ReadyInfo())
    registration.abandon()
    del registration


async def test_it_knows_its_environment_and_does_not_keep_it(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            assert registration.environment is manager.get("tools")
            assert (registration.environment_id, registration.generation) == ("tools", 1)
            manager.upsert("tools", ScriptedProvider())

            assert registration.environment is None
            assert registration.superseded


def test_handles_have_no_public_constructor() -> None:
    for handle in (Registration, Environment, EnvironmentManager):
        with pytest.raises(TypeError, match="has no public constructor"):
            handle()


async def test_handles_are_neither_copied_nor_pickled(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            for handle in (registration, found(manager, "tools")):
                for write in (copy.copy, copy.deepcopy, pickle.dumps):
                    with pytest.raises(TypeError, match="not copied or pickled"):
                        write(handle)


async def test_the_text_of_a_registration_is_one_printable_line(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            assert repr(registration) == "<Registration of 'tools' generation 1, pending>"
            assert repr(found(manager, "tools")).isprintable()


async def test_a_thread_completes_through_the_thread_safe_path_and_sees_it_done(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())
        environment = found(manager, "tools")
        wait = await start_wait(nursery, environment)

        def complete() -> Gate:
            registration.from_thread.complete(info("r", "tools"))
            return environment.gate

        assert await trio.to_thread.run_sync(complete) is Gate.READY
        await wait.error()


async def test_a_thread_learns_what_the_operation_raises(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())
        with pytest.raises(InvalidReadyInfo):
            await trio.to_thread.run_sync(registration.from_thread.complete, info("r", "other"))
        with pytest.raises(RegistrationUsed):
            await trio.to_thread.run_sync(registration.from_thread.fail, "too late")

        await trio.to_thread.run_sync(registration.from_thread.abandon)


async def test_the_thread_safe_path_also_works_in_the_run_itself(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        registration = manager.register_deferred("tools", FailingProvider())
        registration.from_thread.complete(ReadyInfo())

        assert found(manager, "tools").gate is Gate.READY


async def test_the_plain_path_refuses_a_foreign_thread_and_changes_nothing(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        with manager.register_deferred("tools", FailingProvider()) as registration:
            for operation in ("complete", "fail", "abandon"):
                with pytest.raises(NotInThisRun, match=f"registration.from_thread.{operation}"):
                    await trio.to_thread.run_sync(act, registration, operation)

            assert registration.is_pending


def test_a_thread_that_comes_after_the_end_of_the_run_is_told_so() -> None:
    async def main() -> Registration:
        async with open_manager_in_memory() as manager:
            return manager.register_deferred("tools", FailingProvider())

    registration = trio.run(main)
    told: list[type[BaseException]] = []

    def act_late(operation: str) -> None:
        try:
            match operation:
                case "complete":
                    registration.from_thread.complete(ReadyInfo())
                case "fail":
                    registration.from_thread.fail("x")
                case _:
                    registration.from_thread.abandon()
        except ActorsError as error:
            told.append(type(error))

    for operation in ("complete", "fail", "abandon"):
        thread = threading.Thread(target=act_late, args=(operation,))
        thread.start()
        thread.join()

    assert told == [RegistrationInactive, RegistrationInactive]
    gc.collect()


async def test_a_deadline_fails_what_is_still_pending(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        registration = manager.register_deferred("tools", provider, deadline_s=30)
        wait = await start_wait(nursery, found(manager, "tools"))
        began_s = trio.current_time()
        error = await wait.error()

        said = "environment unavailable: provisioning did not finish within 30 s"
        assert str(error).endswith(said)
        assert trio.current_time() - began_s == 30
        with pytest.raises(RegistrationUsed, match="did not finish within 30 s"):
            registration.complete(ReadyInfo())
        assert provider.calls == 0


async def test_deadlines_fall_in_their_order_whatever_the_order_of_registration(nursery, autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        kept = [manager.register_deferred(f"env-{s}", FailingProvider(), deadline_s=s) for s in (50, 10, 30, 20, 40)]
        for number in range(1, 6):
            await trio.sleep(10)
            await wait_all_tasks_blocked()
            failed = [key for key in manager.environment_ids if found(manager, key).gate is Gate.FAILED]
            assert len(failed) == number
        assert not any(registration.is_pending for registration in kept)


async def test_what_was_completed_in_time_is_not_failed_by_its_deadline(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        manager.register_deferred("tools", ScriptedProvider(), deadline_s=30).complete(ReadyInfo())
        await trio.sleep(60)

        assert found(manager, "tools").gate is Gate.READY


@pytest.mark.parametrize("deadline_s", [0, -1, float("inf"), float("nan")])
async def test_a_deadline_that_cannot_be_kept_is_refused_and_nothing_is_registered(
    deadline_s: float, autojump_clock
) -> None:
    async with open_manager_in_memory() as manager:
        with pytest.raises(InvalidOption, match="deadline_s"):
            manager.register_deferred("tools", FailingProvider(), deadline_s=deadline_s)

        assert manager.get("tools") is None


async def test_synchronous_operations_never_run_another_task(nursery, autojump_clock) -> None:
    async def count() -> None:
        while True:
            steps.append(1)
            await trio.lowlevel.checkpoint()

    steps: list[int] = []
    async with open_manager_in_memory() as manager, trio.open_nursery() as counting:
        counting.start_soon(count)
        await trio.lowlevel.checkpoint()
        before = len(steps)
        registration = manager.register_deferred("a", FailingProvider())
        manager.publish_ready_info("a", info("r", "a"))
        registration.complete(info("r", "a"))
        manager.register_deferred("b", FailingProvider()).fail("x")
        manager.register_deferred("c", FailingProvider()).abandon()
        manager.upsert("d", FailingProvider())
        manager.report_provisioning("e", "x", FailingProvider())

        assert len(steps) == before
        counting.cancel_scope.cancel()


async def test_completing_is_not_a_checkpoint_and_the_provider_is_not_called_by_it(autojump_clock) -> None:
    async with open_manager_in_memory() as manager:
        provider = FailingProvider()
        registration = manager.register_deferred("tools", provider)
        with trio.testing.assert_no_checkpoints():
            registration.complete(ReadyInfo())

        assert provider.calls == 0
        await start_nothing()
        await wait_all_tasks_blocked()
        assert provider.calls == 1


async def start_nothing() -> None:
    async with trio.open_nursery() as nursery:
        await start(nursery, trio.lowlevel.checkpoint)


@pytest.mark.parametrize("said", ["", " \n"])
@pytest.mark.parametrize("by_id", [False, True])
async def test_a_failure_without_words_says_that_no_reason_was_given(said: str, by_id: bool) -> None:
    """It is no error of whoever says it: that one is mostly in the middle of handling another. Seen failing without."""
    async with open_manager_in_memory() as manager:
        if by_id:
            manager.report_provisioning("tools", said, FailingProvider())
        else:
            manager.register_deferred("tools", FailingProvider()).fail(said)

        with pytest.raises(EnvironmentUnavailable) as raised:
            await found(manager, "tools").wait_until_ready()

        text = "exec-server connection attempt failed: environment unavailable: no reason was given"
        assert str(raised.value) == text


async def test_a_failure_without_words_of_one_that_is_ready_says_so_too() -> None:
    async with open_manager_in_memory() as manager:
        manager.report_provisioning("tools", info("r", "tools"), FailingProvider())

        with pytest.raises(AlreadyReady, match=r"later provisioning report failed: no reason was given$"):
            manager.report_provisioning("tools", "", FailingProvider())
