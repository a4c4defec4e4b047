"""The machine of a cell, without a process: who is told what, and how often."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.sessions.grpc import Abort, StatusCode
from actors.sessions.host._cell import Cell, Observer, Phase
from actors.sessions.host._items import TextItem
from actors.sessions.host._outputs import Ending, Outcome, WholeOutput, effective_yield_ms

MAX = 2**64 - 1


def observer_into(told: list[Outcome]) -> Observer:
    return Observer(5, told.append)


def test_each_event_carries_what_was_put_out_since_the_last() -> None:
    cell, told = Cell("1", WholeOutput), list[Outcome]()
    cell.observe(observer_into(told))
    cell.put([TextItem("a")])
    cell.interrupt()
    cell.put([TextItem("b")])
    cell.observe(observer_into(told))
    cell.finish("boom")

    assert [(one.ending, one.items, one.error) for one in told] == [
        (Ending.YIELDED, [TextItem("a")], None),
        (Ending.COMPLETED, [TextItem("b")], "boom"),
    ]
    assert cell.phase is Phase.OVER


def test_a_yield_without_an_observer_is_ignored() -> None:
    cell, told = Cell("1", WholeOutput), list[Outcome]()
    cell.interrupt()
    cell.observe(observer_into(told))

    assert told == []


def test_a_result_waits_for_the_next_observer_or_for_the_terminator() -> None:
    waited, terminated, told = Cell("1", WholeOutput), Cell("2", WholeOutput), list[Outcome]()
    waited.finish(None)
    terminated.finish(None)
    waited.observe(observer_into(told))
    outcome = terminated.terminate(5)

    assert [one.ending for one in told] == [Ending.COMPLETED]
    assert outcome is not None
    assert outcome.ending is Ending.COMPLETED
    assert terminated.terminate(5) is None


def test_a_termination_is_told_to_observer_and_terminator_and_beats_a_later_result() -> None:
    cell, told = Cell("1", WholeOutput), list[Outcome]()
    cell.observe(observer_into(told))
    cell.put([TextItem("a")])
    outcome = cell.terminate(5)
    cell.finish(None)

    assert told == [outcome]
    assert outcome is not None
    assert (outcome.ending, outcome.items) == (Ending.TERMINATED, [TextItem("a")])


def test_a_retired_observer_makes_room_and_loses_nothing() -> None:
    cell, told = Cell("1", WholeOutput), list[Outcome]()
    gone = observer_into([])
    cell.observe(gone)
    with pytest.raises(Abort) as busy:
        cell.observe(observer_into(told))
    cell.put([TextItem("a")])
    cell.retire(gone)
    cell.observe(observer_into(told))
    cell.interrupt(gone)
    cell.interrupt()

    assert busy.value.status.code is StatusCode.FAILED_PRECONDITION
    assert [one.items for one in told] == [[TextItem("a")]]


def test_a_result_whose_observer_is_gone_waits_for_the_next_one() -> None:
    """Killed: an observer that is told although it was retired; a result that is dropped with it."""
    cell, gone, told = Cell("1", WholeOutput), list[Outcome](), list[Outcome]()
    first = observer_into(gone)
    cell.observe(first)
    cell.put([TextItem("a")])
    cell.retire(first)
    cell.finish("boom")
    cell.observe(observer_into(told))

    assert gone == []
    assert [(one.ending, one.items, one.error) for one in told] == [(Ending.COMPLETED, [TextItem("a")], "boom")]


STEPS = st.lists(st.sampled_from(["put", "observe", "retire", "yield", "finish", "terminate"]), max_size=30)


@given(steps=STEPS)
def test_every_item_is_told_once_in_order_and_the_end_is_told_once(steps: list[str]) -> None:
    # Mutants that this was seen to kill: `interrupt` that keeps the old output; `finish` without the check of the
    # phase; `terminate` of a finished cell that leaves it finished.
    cell, told = Cell("1", WholeOutput), list[Outcome]()
    put, accepted = 0, 0
    watching: Observer | None = None
    for step in steps:
        match step:
            case "put":
                accepted += cell.phase is Phase.RUNNING
                cell.put([TextItem(str(put))])
                put += cell.phase is Phase.RUNNING
            case "observe" if not cell.observed and cell.phase is not Phase.OVER:
                watching = observer_into(told)
                cell.observe(watching)
            case "retire" if watching is not None:
                cell.retire(watching)
            case "yield":
                cell.interrupt()
            case "finish":
                cell.finish(None)
            case "terminate":
                observed = cell.observed
                outcome = cell.terminate(5)
                if outcome is not None and not observed:
                    told.append(outcome)
            case _:
                pass
    texts = [item.text for one in told for item in one.items if isinstance(item, TextItem)]
    ends = [one for one in told if one.ending is not Ending.YIELDED]

    assert texts == [str(number) for number in range(len(texts))]
    assert len(ends) == (cell.phase is Phase.OVER)
    if ends:
        assert len(texts) == accepted
        assert told[-1] is ends[0]


@pytest.mark.parametrize(
    ("limit", "asked", "granted"),
    [
        (None, 0, 0),
        (None, 9_999, 9_999),
        (None, 10_000, 11_000),
        (None, 10_001, 11_001),
        (0, 0, 0),
        (0, 10_000, 0),
        (5_000, 9_999, 5_000),
        (10_000, 10_000, 10_000),
        (10_500, 10_000, 10_500),
        (11_000, 10_000, 11_000),
        (12_000, 10_000, 11_000),
        (10_500, 5_000, 5_000),
        (MAX, MAX, MAX),
    ],
)
def test_an_observation_is_granted_this_long(limit: int | None, asked: int, granted: int) -> None:
    assert effective_yield_ms(asked, limit) == granted
