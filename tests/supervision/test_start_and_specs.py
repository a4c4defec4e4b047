"""OTP cases 1 to 9 and 14: what starts, what is refused, what a failed start leaves."""

import math
from typing import Any

import attrs
import pytest
import trio

import supervision as sv
from tests.supervision.players import NotYet, Stage, quiet, states


async def test_otp_01_a_supervisor_without_children_starts_and_stops() -> None:
    async with sv.open_root() as root:
        sub = await root.start_supervisor("sub")
        async with root.events() as events:
            await root.stop_child("sub")

        assert sub.path == "root/sub"
        exits = [e for e in iter_now(events) if isinstance(e, sv.ChildExited)]
    assert [(e.path, e.kind) for e in exits] == [("root/sub", sv.ExitKind.SHUTDOWN)]


def iter_now(events: sv.Events) -> list[sv.Event]:
    seen: list[sv.Event] = []
    while True:
        try:
            seen.append(events.receive_nowait())
        except trio.WouldBlock:
            return seen


async def test_otp_03_a_child_that_returns_without_having_started_is_a_failed_start_and_not_kept() -> None:
    async def does_nothing(*, task_status: sv.ChildStatus[None]) -> None:
        pass

    async with sv.open_root() as root:
        with pytest.raises(sv.ReturnedBeforeStarted, match="without calling"):
            await root.start_child(sv.ChildSpec("a", does_nothing))

        assert root.children() == ()


async def test_otp_04_a_static_list_that_fails_is_rolled_back_in_reverse_and_names_the_child() -> None:
    stage = Stage()
    stage.failing["c"] = 1

    with pytest.raises(sv.StartFailed) as caught:
        async with sv.open_root(children=tuple(stage.spec(name) for name in "abcd")):
            raise AssertionError("the block must not be entered")

    assert (caught.value.child, caught.value.path) == ("c", "root/c")
    assert isinstance(caught.value.__cause__, NotYet)
    assert stage.log == [
        "a starts", "b starts", "c fails to start", "b is cancelled", "b ends", "a is cancelled", "a ends",
    ]  # fmt: skip


async def test_otp_04_the_same_below_another_supervisor_names_the_innermost_child() -> None:
    stage = Stage()
    stage.failing["b"] = 1

    async with sv.open_root() as root:
        with pytest.raises(sv.StartFailed) as caught:
            await root.start_supervisor("sub", children=(stage.spec("a"), stage.spec("b")))

        assert (caught.value.child, caught.value.path) == ("sub", "root/sub/b")
        assert isinstance(caught.value.__cause__, NotYet)
        assert root.children() == ()
    assert stage.log[-2:] == ["a is cancelled", "a ends"]


async def test_otp_05_a_failed_start_is_told_to_the_adder_and_a_failed_restart_by_hand_leaves_the_child_stopped() -> (
    None
):
    stage = Stage()
    async with sv.open_root() as root:
        stage.failing["a"] = 1
        with pytest.raises(sv.StartFailed):
            await root.start_child(stage.spec("a"))
        after_add = states(root)
        await root.start_child(stage.spec("a"))
        await root.stop_child("a")
        stage.failing["a"] = 1
        with pytest.raises(sv.StartFailed):
            await root.restart_child("a")

        assert after_add == {}
        assert states(root) == {"a": "stopped"}


def test_otp_06_a_minimal_spec_has_defaults_that_can_be_read_back() -> None:
    async def run(*, task_status: sv.ChildStatus[None]) -> None: ...

    spec = sv.ChildSpec("a", run)
    supervisor = sv.SupervisorSpec(name="s")

    assert (spec.restart, spec.shutdown_s, spec.start_timeout_s) == (sv.Restart.PERMANENT, 5.0, 30.0)
    assert (spec.backoff, spec.significant, spec.args) == (None, False, ())
    assert supervisor.shutdown_s == math.inf
    assert supervisor.intensity == sv.RestartIntensity(restarts=3, period_s=5.0)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": 5}, "name"),
        ({"name": "a" * 257}, "name"),
        ({"run": None}, "run"),
        ({"restart": "always"}, "restart"),
        ({"shutdown_s": -1}, "shutdown_s"),
        ({"shutdown_s": math.nan}, "shutdown_s"),
        ({"start_timeout_s": 0}, "start_timeout_s"),
        ({"significant": True}, "significant"),
        ({"restart": sv.Restart.TEMPORARY, "backoff": sv.Backoff()}, "backoff"),
    ],
)
def test_otp_07_a_bad_spec_is_refused_with_the_field_named(options: dict[str, Any], field: str) -> None:
    async def run(*, task_status: sv.ChildStatus[None]) -> None: ...

    with pytest.raises(sv.InvalidSpec) as caught:
        sv.ChildSpec(**{"name": "a", "run": run, **options})

    assert caught.value.field == f"ChildSpec.{field}"
    assert isinstance(caught.value, ValueError)


def test_otp_07_an_unknown_option_is_refused_not_ignored() -> None:
    with pytest.raises(TypeError):
        sv.ChildSpec("a", Stage()._play, restarts=sv.Restart.PERMANENT)  # type: ignore[call-arg]


def test_otp_07_a_name_that_stands_twice_in_a_list_is_refused() -> None:
    stage = Stage()

    with pytest.raises(sv.InvalidSpec, match="'a' stands twice"):
        sv.open_root(children=(stage.spec("a"), stage.spec("a")))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: sv.RestartIntensity(-1), "restarts"),
        (lambda: sv.RestartIntensity(1.5), "restarts"),
        (lambda: sv.RestartIntensity(True), "restarts"),
        (lambda: sv.RestartIntensity(1, 0), "period_s"),
        (lambda: sv.RestartIntensity(1, math.inf), "period_s"),
        (lambda: sv.Backoff(first_s=0), "first_s"),
        (lambda: sv.Backoff(factor=0.5), "factor"),
        (lambda: sv.Backoff(first_s=2, max_s=1), "max_s"),
        (lambda: sv.Backoff(jitter=1), "jitter"),
        (lambda: sv.Backoff(healthy_s=0), "healthy_s"),
    ],
)
def test_otp_08_bad_flags_are_refused_with_the_field_named(make: Any, field: str) -> None:
    with pytest.raises(sv.InvalidSpec) as caught:
        make()

    assert caught.value.field.endswith(f".{field}")


async def test_otp_09_a_significant_child_needs_an_auto_shutdown_it_can_decide() -> None:
    stage = Stage()
    significant = stage.spec("a", restart=sv.Restart.TRANSIENT, significant=True)

    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        for start in (root.start_child_nowait, pool.start_child_nowait):
            with pytest.raises(sv.InvalidSpec, match=r"AutoShutdown\.NEVER"):
                start(significant)
    with pytest.raises(sv.InvalidSpec):
        sv.open_root(children=(significant,))

    assert stage.log == []


async def test_otp_14_what_the_child_gave_with_started_is_its_value_also_after_a_restart() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        child = await root.start_child(stage.spec("a"))
        first = child.value
        stage.crash("a")
        await quiet()
        second = child.value
        await root.stop_child("a")
        again = await root.restart_child("a")

        assert (first, second, again.value) == (1, 2, 3)
        assert again is child
        assert child.generation == 3


async def test_a_start_is_bounded_in_time_and_the_child_is_stopped(autojump_clock: trio.testing.MockClock) -> None:
    cancelled_at: list[float] = []

    async def slow(*, task_status: sv.ChildStatus[None]) -> None:
        try:
            await trio.sleep_forever()
        finally:
            cancelled_at.append(trio.current_time())

    async with sv.open_root() as root:
        with pytest.raises(sv.StartTimedOut, match="within 2 s") as caught:
            await root.start_child(sv.ChildSpec("a", slow, start_timeout_s=2.0))

        assert trio.current_time() == 2.0
        assert cancelled_at == [2.0]
        assert caught.value.after_s == 2.0
        assert root.children() == ()


async def test_a_child_taken_in_without_waiting_is_visible_at_once_and_can_be_waited_for() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        child = root.start_child_nowait(stage.spec("a"))
        seen = (root.child("a"), child.state, stage.log[:])
        await child.wait_started()

        assert seen == (child, sv.ChildState.STARTING, [])
        assert child.state is sv.ChildState.RUNNING
        with pytest.raises(sv.AlreadyStarted):
            root.start_child_nowait(stage.spec("a"))


async def test_who_waits_for_a_start_that_fails_gets_the_cause() -> None:
    stage = Stage()
    stage.failing["a"] = 1
    async with sv.open_root() as root:
        child = root.start_child_nowait(stage.spec("a"))
        with pytest.raises(sv.StartFailed) as caught:
            await child.wait_started()

        assert isinstance(caught.value.__cause__, NotYet)
        assert child.state is sv.ChildState.GONE


async def test_saying_started_twice_is_the_childs_own_error() -> None:
    async def twice(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        task_status.started()

    async with sv.open_root() as root, root.events() as events:
        await root.start_child(sv.ChildSpec("a", twice, restart=sv.Restart.TEMPORARY))
        await quiet()

        [exited] = [e for e in iter_now(events) if isinstance(e, sv.ChildExited)]
        assert isinstance(exited.cause, RuntimeError)


def test_a_spec_shows_no_arguments_since_they_may_be_secret() -> None:
    spec = sv.ChildSpec("a", Stage()._play, "hunter2", True, 0.0)

    assert "hunter2" not in repr(spec)


async def test_each_generation_starts_from_the_context_in_which_the_child_was_added() -> None:
    import contextvars

    colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour")
    seen: list[str] = []

    async def paints(*, task_status: sv.ChildStatus[None]) -> None:
        seen.append(colour.get())
        colour.set("spoiled")
        task_status.started()
        if len(seen) < 3:
            raise ValueError
        await trio.sleep_forever()

    async with sv.open_root() as root:
        colour.set("green")
        await root.start_child(sv.ChildSpec("a", paints))
        colour.set("red")
        await quiet()

    assert seen == ["green", "green", "green"]


def test_a_frozen_spec_cannot_be_changed() -> None:
    spec = Stage().spec("a")

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        spec.name = "b"  # type: ignore[misc]
