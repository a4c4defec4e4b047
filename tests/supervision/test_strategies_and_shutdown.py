"""OTP cases 27 to 40: whose fate is shared, in which order all stops, and when a supervisor ends by itself."""

import math

import pytest
import trio
import trio.testing

import supervision as sv
from tests.supervision.players import Boom, Stage, quiet, running, states

PERMANENT, TRANSIENT, TEMPORARY = sv.Restart
BIG = sv.RestartIntensity(100, 3600.0)


def iter_now(events: sv.Events) -> list[sv.Event]:
    seen: list[sv.Event] = []
    while True:
        try:
            seen.append(events.receive_nowait())
        except trio.WouldBlock:
            return seen


@pytest.mark.parametrize(
    ("strategy", "generations"),
    [
        (sv.Strategy.ONE_FOR_ONE, [1, 2, 1]),
        (sv.Strategy.ONE_FOR_ALL, [2, 2, 2]),
        (sv.Strategy.REST_FOR_ONE, [1, 2, 2]),
    ],
)
async def test_otp_27_28_29_who_shares_the_fate_of_the_middle_child(
    strategy: sv.Strategy, generations: list[int]
) -> None:
    stage = Stage()
    async with sv.open_root(strategy=strategy) as root:
        children = [await root.start_child(stage.spec(name)) for name in "abc"]
        stage.crash("b")
        await quiet()

        assert [child.generation for child in children] == generations
        assert running(root) == ["a", "b", "c"]


async def test_otp_30_later_children_stop_last_to_first_and_start_first_to_last() -> None:
    stage = Stage()
    async with sv.open_root(strategy=sv.Strategy.REST_FOR_ONE) as root:
        for name in "abcd":
            await root.start_child(stage.spec(name))
        stage.since()
        stage.crash("b")
        await quiet()
        crash = stage.since()

    assert crash == [
        "b ends", "d is cancelled", "d ends", "c is cancelled", "c ends", "b starts", "c starts", "d starts",
    ]  # fmt: skip
    assert [line for line in stage.log if line.endswith("ends")] == ["d ends", "c ends", "b ends", "a ends"]


async def test_otp_31_when_a_later_start_fails_all_begin_anew_or_only_from_the_failing_one_on() -> None:
    logs: dict[sv.Strategy, list[str]] = {}
    for strategy in (sv.Strategy.ONE_FOR_ALL, sv.Strategy.REST_FOR_ONE):
        stage = Stage()
        async with sv.open_root(strategy=strategy) as root:
            for name in "abc":
                await root.start_child(stage.spec(name))
            stage.since()
            stage.failing["c"] = 1
            stage.crash("b")
            await quiet()
            logs[strategy] = [line for line in stage.since() if "cancelled" not in line]

    assert logs[sv.Strategy.ONE_FOR_ALL] == [
        "b ends", "c ends", "a ends", "a starts", "b starts", "c fails to start",
        "b ends", "a ends", "a starts", "b starts", "c starts",
    ]  # fmt: skip
    assert logs[sv.Strategy.REST_FOR_ONE] == ["b ends", "c ends", "b starts", "c fails to start", "c starts"]


async def test_otp_32_a_pool_stops_all_at_once_bounded_by_the_longest(autojump_clock: trio.testing.MockClock) -> None:
    stage = Stage()
    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        for i in range(50):
            await pool.start_child(stage.spec(f"{i}", clean_up_s=float(i % 5)))
        begin = trio.current_time()
        await root.stop_child("pool")

        assert trio.current_time() - begin == 4.0


async def test_otp_33_infinity_waits_and_a_deaf_child_is_killed_after_its_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stage = Stage()
    async with sv.open_root() as root, root.events() as events:
        await root.start_child(stage.spec("patient", clean_up_s=500.0, shutdown_s=math.inf))
        await root.start_child(stage.spec("deaf", deaf=True, shutdown_s=1.0))
        await root.start_child(stage.spec("obedient"))
        for name in ("obedient", "deaf", "patient"):
            await root.stop_child(name)
        seen = iter_now(events)

        assert trio.current_time() == 501.0
        ends = [(e.path, e.kind.value, e.asked) for e in seen if isinstance(e, sv.ChildExited)]
        assert ends == [
            ("root/obedient", "shutdown", True),
            ("root/deaf", "killed", True),
            ("root/patient", "shutdown", True),
        ]
        assert [e.path for e in seen if isinstance(e, sv.ChildKilled)] == ["root/deaf"]
        assert [e.shutdown_s for e in seen if isinstance(e, sv.ChildAsked)] == [5.0, 1.0, math.inf]


async def test_otp_34_a_child_owed_no_time_is_killed_without_being_asked() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        await root.start_child(stage.spec("a", deaf=True, shutdown_s=0))
        await root.stop_child("a")

    assert stage.log == ["a starts", "a is cancelled", "a ends"]


async def test_otp_35_children_that_end_by_themselves_during_the_shutdown_do_not_disturb_it() -> None:
    async def falls_with(other: str, *, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            stage.crash(other)

    stage = Stage()
    async with sv.open_root() as root:
        events = root.events()
        await events.__aenter__()
        await root.start_child(stage.spec("a"))
        await root.start_child(stage.spec("b"))
        await root.start_child(sv.ChildSpec("c", falls_with, "a"))

    kinds = {e.path: (e.kind.value, e.asked) for e in iter_now(events) if isinstance(e, sv.ChildExited)}
    assert kinds["root/a"] == ("crashed", False)
    assert stage.starts["a"] == 1


async def test_otp_36_a_child_that_cannot_be_stopped_is_named_and_hangs_nobody(
    autojump_clock: trio.testing.MockClock,
) -> None:
    let_go = trio.Event()

    async def stubborn(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        with trio.CancelScope(shield=True):
            await let_go.wait()

    stage = Stage()
    async with sv.open_root() as root, root.events() as events:
        await root.start_child(stage.spec("a"))
        child = await root.start_child(sv.ChildSpec("mule", stubborn, shutdown_s=1.0))
        with pytest.raises(sv.ChildWillNotStop) as caught:
            await root.stop_child("mule")
        with pytest.raises(sv.ChildWillNotStop):
            await child.wait_stopped()
        with pytest.raises(sv.ChildWillNotStop):
            await root.restart_child("mule")
        at_s = trio.current_time()
        await root.stop_child("a")
        let_go.set()
        await quiet()
        await child.wait_stopped()

        assert caught.value.path == "root/mule"
        assert at_s == 6.0  # 1 s after it was asked it is killed, 5 s later it is called stuck.
        stuck = [e for e in iter_now(events) if isinstance(e, sv.ChildStuck)]
        assert [(e.path, e.generation) for e in stuck] == [("root/mule", 1)]
        assert states(root) == {"a": "stopped", "mule": "stopped"}


async def test_otp_37_a_killed_supervisor_takes_all_below_with_it_and_their_names_are_free() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        spec = sv.SupervisorSpec(name="sub", children=(stage.spec("a", deaf=True, shutdown_s=math.inf),), shutdown_s=0)
        await root.start_child(spec)
        await root.stop_child("sub")

        assert stage.log == ["a starts", "a is cancelled", "a ends"]
        await root.restart_child("sub")
        assert stage.starts["a"] == 2


async def test_otp_38_a_supervisor_over_its_limit_costs_its_parent_one_restart_and_comes_back_as_first_made() -> None:
    stage = Stage()
    async with sv.open_root(strategy=sv.Strategy.ONE_FOR_ALL) as root:
        tight = sv.RestartIntensity(0, 1.0)
        sub = await root.start_supervisor("sub", intensity=tight, children=(stage.spec("a"),))
        other = await root.start_supervisor("other", children=(stage.spec("b"),))
        await sub.start_child(stage.spec("added"))
        await other.stop_child("b")
        stage.crash("a")
        await quiet()

        assert root.statistics().restarts == 1
        assert running(sub) == ["a"]
        assert running(other) == ["b"], "even one that had been stopped by hand is started anew"
        assert stage.starts == {"a": 2, "b": 2, "added": 1}


@pytest.mark.parametrize(("restart", "state"), [(PERMANENT, "running"), (TRANSIENT, "stopped"), (TEMPORARY, None)])
async def test_otp_38_giving_up_is_a_shutdown_to_the_parent(restart: sv.Restart, state: str | None) -> None:
    stage = Stage()
    async with sv.open_root() as root:
        tight = sv.RestartIntensity(0, 1.0)
        await root.start_supervisor("sub", intensity=tight, children=(stage.spec("a"),), restart=restart)
        stage.crash("a")
        await quiet()

        assert states(root) == ({"sub": state} if state else {})


@pytest.mark.parametrize(
    ("restart", "error", "ends"),
    [
        (TRANSIENT, None, True),
        (TRANSIENT, sv.Shutdown(), True),
        (TRANSIENT, Boom(), False),
        (TEMPORARY, None, True),
        (TEMPORARY, Boom(), True),
    ],
)
async def test_otp_39_any_significant_end_ends_the_supervisor_but_a_restart_does_not(
    restart: sv.Restart, error: Exception | None, ends: bool
) -> None:
    stage = Stage()
    async with sv.open_root() as root:
        sub = await root.start_supervisor(
            "sub", auto_shutdown=sv.AutoShutdown.ANY_SIGNIFICANT, restart=sv.Restart.TEMPORARY
        )
        await sub.start_child(stage.spec("a"))
        await sub.start_child(stage.spec("b", restart=restart, significant=True))
        await sub.start_child(stage.spec("c", restart=TRANSIENT, significant=True))
        stage.since()
        stage.end("b", error)
        await quiet()

        if ends:
            assert root.children() == ()
            assert [line for line in stage.log if line.endswith("ends")] == ["b ends", "c ends", "a ends"]
        else:
            assert stage.log == ["b ends", "b starts"]


async def test_otp_39_all_significant_ends_it_only_with_the_last() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        sub = await root.start_supervisor(
            "sub", auto_shutdown=sv.AutoShutdown.ALL_SIGNIFICANT, restart=sv.Restart.TEMPORARY
        )
        await sub.start_child(stage.spec("a"))
        await sub.start_child(stage.spec("b", restart=TRANSIENT, significant=True))
        await sub.start_child(stage.spec("c", restart=TEMPORARY, significant=True))
        stage.end("b")
        await quiet()
        after_one = running(sub)
        stage.crash("c")
        await quiet()

        assert after_one == ["a", "c"]
        assert root.children() == ()


async def test_otp_40_a_stop_by_command_or_as_a_bystander_or_of_an_insignificant_child_triggers_nothing() -> None:
    stage = Stage()
    async with sv.open_root(strategy=sv.Strategy.ONE_FOR_ALL, auto_shutdown=sv.AutoShutdown.ANY_SIGNIFICANT) as root:
        await root.start_child(stage.spec("plain", restart=TRANSIENT))
        await root.start_child(stage.spec("a", restart=TEMPORARY, significant=True))
        await root.start_child(stage.spec("b", restart=TRANSIENT, significant=True))
        await root.start_child(stage.spec("c"))
        await root.stop_child("b")
        stage.crash("c")  # Takes the temporary bystander `a` down for good.
        await quiet()
        stage.end("plain")
        await quiet()

        assert states(root) == {"plain": "stopped", "b": "running", "c": "running"}


async def test_otp_40_a_supervisor_that_ended_itself_is_a_shutdown_to_its_parent_and_chains_if_significant() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        any_one = sv.AutoShutdown.ANY_SIGNIFICANT
        inner = sv.SupervisorSpec(
            name="inner",
            auto_shutdown=any_one,
            restart=TRANSIENT,
            significant=True,
            children=(stage.spec("a", restart=TRANSIENT, significant=True),),
        )
        await root.start_supervisor(
            "outer", auto_shutdown=any_one, children=(inner, stage.spec("b")), restart=TRANSIENT
        )
        stage.end("a")
        await quiet()

        assert states(root) == {"outer": "stopped"}
        assert stage.log[-1] == "b ends"


async def test_a_root_that_ends_with_its_significant_children_leaves_its_block_without_an_error() -> None:
    stage = Stage()
    reached = False
    async with sv.open_root(auto_shutdown=sv.AutoShutdown.ANY_SIGNIFICANT) as root:
        await root.start_child(stage.spec("main", restart=TEMPORARY, significant=True))
        stage.end("main")
        await trio.sleep_forever()
        reached = True

    assert not reached


async def test_a_stop_callback_that_raises_is_the_childs_crash_and_nobody_elses() -> None:
    async def run(*, task_status: sv.ChildStatus[None]) -> None:
        def refuse() -> None:
            raise Boom("no")

        task_status.on_stop(refuse)
        task_status.started()
        await trio.sleep_forever()

    async with sv.open_root() as root, root.events() as events:
        await root.start_child(sv.ChildSpec("a", run, shutdown_s=math.inf))
        await root.stop_child("a")

        [end] = [e for e in iter_now(events) if isinstance(e, sv.ChildExited)]
        assert (end.kind, end.asked) == (sv.ExitKind.CRASHED, True)
        assert isinstance(end.cause, Boom)


async def test_an_ordered_stop_goes_on_when_the_block_is_cancelled_but_has_a_bound(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stage = Stage()
    with trio.move_on_after(1.0) as scope:
        async with sv.open_root(cancel_grace_s=10.0) as root:
            await root.start_child(stage.spec("a", clean_up_s=2.0))
            await root.start_child(stage.spec("b", clean_up_s=2.0))
            await root.start_child(stage.spec("deaf", deaf=True, shutdown_s=math.inf))
            await trio.sleep_forever()

    assert scope.cancelled_caught
    assert [line for line in stage.log if line.endswith("ends")] == ["deaf ends", "a ends", "b ends"] or (
        [line for line in stage.log if line.endswith("ends")] == ["deaf ends", "b ends", "a ends"]
    )
    assert trio.current_time() == 13.0  # 1 s of work, 10 s of grace, then all that is left at once.
