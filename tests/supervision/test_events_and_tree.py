"""What can be seen of supervision: events, the tree and its drawings, statistics, the table of states."""

import re
from itertools import product

import pytest
import trio
import trio.testing

import supervision as sv
from supervision._errors import OutOfTurn
from supervision._states import Entry
from supervision._wording import span_text
from tests.supervision.players import Boom, Stage, quiet


def now(events: sv.Events) -> list[sv.Event]:
    seen: list[sv.Event] = []
    while True:
        try:
            seen.append(events.receive_nowait())
        except trio.WouldBlock:
            return seen


async def test_each_step_is_an_event_with_path_generation_and_grounds(autojump_clock: trio.testing.MockClock) -> None:
    stage = Stage()
    backoff = sv.Backoff(first_s=1.0, max_s=1.0, jitter=0.0)
    async with sv.open_root() as root, root.events() as events:
        await root.start_child(stage.spec("a", backoff=backoff, deaf=True, shutdown_s=2.0))
        boom = stage.crash("a")
        await trio.sleep(1.5)
        await root.stop_child("a")
        seen = now(events)

    assert [type(event) for event in seen] == [
        sv.ChildStarted, sv.ChildExited, sv.ChildRestarting, sv.ChildStarted,
        sv.ChildAsked, sv.ChildKilled, sv.ChildExited,
    ]  # fmt: skip
    assert {event.path for event in seen} == {"root/a"}
    assert [event.position for event in seen] == list(range(1, 8))
    assert [event.at_s for event in seen] == [0.0, 0.0, 0.0, 1.0, 1.5, 3.5, 3.5]
    exited, restarting, killed = seen[1], seen[2], seen[6]
    assert isinstance(exited, sv.ChildExited)
    assert (exited.kind, exited.asked, exited.cause, exited.generation) == (sv.ExitKind.CRASHED, False, boom, 1)
    assert isinstance(restarting, sv.ChildRestarting)
    assert (restarting.delay_s, restarting.restarts_in_window, restarting.cause) == (1.0, 1, boom)
    assert isinstance(killed, sv.ChildExited)
    assert (killed.kind, killed.asked, killed.generation) == (sv.ExitKind.KILLED, True, 2)


async def test_a_reader_sees_what_is_below_it_and_nothing_else() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        left, right = await root.start_supervisor("left"), await root.start_supervisor("left2")
        async with left.events() as events:
            await left.start_child(stage.spec("a"))
            await right.start_child(stage.spec("b"))

            assert [event.path for event in now(events)] == ["root/left/a"]


async def test_a_slow_reader_loses_the_oldest_and_is_told_how_many_and_where() -> None:
    stage = Stage()
    async with sv.open_root() as root, root.events(capacity=2) as events:
        for name in "abcde":
            await root.start_child(stage.spec(name))
        gap, *rest = now(events)

        assert gap == sv.EventsDropped(path="root", at_s=gap.at_s, position=1, dropped=3)
        assert [(event.path, event.position) for event in rest] == [("root/d", 4), ("root/e", 5)]
        assert events.statistics() == sv.EventsStatistics(waiting=0, waiting_peak=2, received=5, dropped=3)


async def test_a_stream_of_events_ends_with_its_supervisor() -> None:
    stage = Stage()
    seen: list[str] = []
    async with sv.open_root() as root, trio.open_nursery() as nursery:
        sub = await root.start_supervisor("sub", children=(stage.spec("a"),))

        async def read() -> None:
            async with sub.events() as events:
                seen.extend([type(event).__name__ async for event in events])

        nursery.start_soon(read)
        await quiet()
        await root.stop_child("sub")

    assert seen == ["ChildAsked", "SupervisorStopping", "ChildAsked", "ChildExited", "SupervisorStopped"]
    # The first of these is about the supervisor itself; that it has ended is for those who listen above it.


async def test_events_are_not_even_made_while_nobody_listens() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        engine = root._engine
        assert engine is not None
        made: list[sv.Event] = []
        engine.hub.emit = made.append  # type: ignore[method-assign]
        await root.start_child(stage.spec("a"))
        await root.stop_child("a")

        assert made == []
        assert not engine.plan.reporting
        async with root.events():
            assert engine.plan.reporting
        assert not engine.plan.reporting


async def test_a_supervisor_that_begins_while_somebody_listens_reports_too() -> None:
    stage = Stage()
    async with sv.open_root() as root, root.events() as events:
        await root.start_supervisor("sub", children=(stage.spec("a"),))

        assert [event.path for event in now(events)] == ["root/sub/a", "root/sub"]


async def test_a_capacity_of_nothing_is_refused() -> None:
    async with sv.open_root() as root:
        with pytest.raises(sv.InvalidSpec, match="at least 1"):
            root.events(capacity=0)


async def test_the_tree_is_a_frozen_picture_of_everything_below(autojump_clock: trio.testing.MockClock) -> None:
    stage = Stage()
    async with sv.open_root(strategy=sv.Strategy.REST_FOR_ONE) as root:
        await root.start_child(stage.spec("a"))
        sub = await root.start_supervisor("sub", strategy=sv.Strategy.ONE_FOR_ALL)
        await sub.start_child(stage.spec("b"))
        pool = await root.start_pool("pool")
        for i in range(5):
            await pool.start_child(stage.spec(f"{i}"))
        boom = Boom()
        await trio.sleep(3.0)
        stage.end("b", boom)
        await trio.sleep(2.0)
        tree = root.tree(pool_children_max=2)
        await root.stop_child("a")

        a, b = tree.find("root/a"), tree.find("root/sub/b")
        assert a is not None
        assert (a.state, a.generation, a.uptime_s, a.last_cause) == (sv.ChildState.RUNNING, 1, 5.0, None)
        assert b is not None
        assert (b.generation, b.restarts, b.uptime_s, b.last_cause) == (2, 1, 2.0, boom)
        assert tree.find("root/nobody") is None
        assert tree.render_text() == (
            "root [rest_for_one, 0/3 restarts in 5 s]\n"
            "|- a: running, generation 1, up 5 s\n"
            "|- sub: running, generation 1, up 5 s [one_for_all, 1/3 restarts in 5 s]\n"
            "|  `- b: running, generation 2, up 2 s, 1 restart, last cause Boom\n"
            "`- pool: running, generation 1, up 5 s [pool, 0/3 restarts in 5 s]\n"
            "   |- 0: running, generation 1, up 5 s\n"
            "   |- 1: running, generation 1, up 5 s\n"
            "   `- ... and 3 more"
        )


async def test_a_mermaid_drawing_has_one_box_and_one_arrow_a_child_and_no_name_can_break_it() -> None:
    stage = Stage()
    async with sv.open_root('ro"ot') as root:
        await root.start_child(stage.spec('a"]; click x'))
        sub = await root.start_supervisor("<sub>")
        await sub.start_child(stage.spec("b"))
        lines = root.tree().render_mermaid().splitlines()

    boxes = [line for line in lines if re.fullmatch(r'    n\d+[\[(]"[^"]*"[\])]', line)]
    arrows = [line for line in lines if re.fullmatch(r"    n\d+ --> n\d+", line)]
    assert lines[0] == "flowchart TD"
    assert (len(boxes), len(arrows)) == (4, 3)
    assert len(lines) == 8
    assert arrows == ["    n1 --> n2", "    n3 --> n4", "    n1 --> n3"]


async def test_statistics_count_restarts_and_keep_the_peak() -> None:
    stage = Stage()
    async with sv.open_root() as root:
        for name in "abc":
            await root.start_child(stage.spec(name))
        stage.crash("a")
        await quiet()
        await root.stop_child("b")

        assert root.statistics() == sv.SupervisorStatistics(
            children=3, active=2, active_peak=3, restarts=1, restarts_in_window=1
        )


@pytest.mark.parametrize(("state", "change"), list(product(sv.ChildState, sv.Change)))
def test_each_state_takes_each_change_or_refuses_it_and_stays(state: sv.ChildState, change: sv.Change) -> None:
    entry = Entry(Stage().spec("a"))
    entry.state = state

    after = sv.CHILD_TRANSITIONS.get((state, change))

    if after is None:
        with pytest.raises(OutOfTurn):
            entry.change(change)
        assert entry.state is state
    else:
        entry.change(change)
        assert entry.state is after


def test_from_every_state_a_child_can_be_forgotten_and_nothing_leads_back_from_there() -> None:
    reach: dict[sv.ChildState, set[sv.ChildState]] = {state: {state} for state in sv.ChildState}
    for _ in sv.ChildState:
        for (before, _change), after in sv.CHILD_TRANSITIONS.items():
            reach[before] |= reach[after]

    assert all(sv.ChildState.GONE in states for states in reach.values())
    assert reach[sv.ChildState.GONE] == {sv.ChildState.GONE}
    assert sv.ChildState.RUNNING not in {
        after for (before, _), after in sv.CHILD_TRANSITIONS.items() if before is sv.ChildState.STOPPING
    }


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-1, "0 s"),
        (0.00001, "0 s"),
        (0.000364, "0.0004 s"),
        (0.04123, "0.0412 s"),
        (27352.027, "456 min"),
        (9e5, "10 d"),
    ],
)
def test_a_span_is_told_in_at_most_three_digits_that_count(seconds: float, told: str) -> None:
    assert span_text(seconds) == told
