"""In which order a process's exit and close may be told. Case P08, the pure half."""

from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from actors.executor._ending import (
    CutOff,
    Ended,
    Ending,
    EndingOutOfTurn,
    Exited,
    FoundEmpty,
    TellClose,
    TellExit,
)
from actors.executor._ending import Event as EndingEvent
from actors.protocol import Stream

OUT, ERR = Stream.STDOUT, Stream.STDERR
EVENTS: list[EndingEvent] = [Exited(0), *(kind(s) for kind in (Ended, FoundEmpty, CutOff) for s in (OUT, ERR))]


def told(*events: EndingEvent) -> list[object]:
    state, effects = Ending.of((OUT, ERR)), []
    for one in events:
        state, new = state.handle(one)
        effects.extend(new)
    return effects


def test_exit_waits_until_both_pipes_were_found_empty_or_at_their_end() -> None:
    assert told(Exited(3)) == []
    assert told(Exited(3), FoundEmpty(OUT)) == []
    assert told(Exited(3), FoundEmpty(OUT), Ended(ERR)) == [TellExit(3)]


def test_a_pipe_found_empty_before_the_exit_may_still_hold_something() -> None:
    assert told(FoundEmpty(OUT), FoundEmpty(ERR), Exited(0)) == []


def test_exit_is_told_at_once_when_both_pipes_ended_before_it() -> None:
    assert told(Ended(OUT), Ended(ERR), Exited(0)) == [TellExit(0), TellClose(drain_limited=False)]


def test_close_says_when_a_pipe_was_given_up() -> None:
    effects = told(Exited(0), FoundEmpty(OUT), FoundEmpty(ERR), CutOff(OUT), Ended(ERR))

    assert effects == [TellExit(0), TellClose(drain_limited=True)]


@pytest.mark.parametrize(
    "events", [(Ended(OUT), Ended(OUT)), (CutOff(OUT),), (Exited(0), Exited(0)), (Ended(OUT), FoundEmpty(OUT))]
)
def test_an_event_out_of_turn_raises_and_changes_nothing(events: tuple[EndingEvent, ...]) -> None:
    state = Ending.of((OUT, ERR))
    for one in events[:-1]:
        state, _ = state.handle(one)
    before = repr(state)

    with pytest.raises(EndingOutOfTurn):
        state.handle(events[-1])
    assert repr(state) == before


@pytest.mark.parametrize(("first", "second"), [*product(EVENTS, EVENTS)])
def test_each_phase_takes_or_refuses_each_event(first: EndingEvent, second: EndingEvent) -> None:
    try:
        state, _ = Ending.of((OUT, ERR)).handle(first)
        after, _ = state.handle(second)
    except EndingOutOfTurn:
        return

    assert after.owing <= after.open
    assert after.phase in {"running", "draining", "exited", "closed"}


@given(st.lists(st.sampled_from(EVENTS), max_size=30))
def test_exit_is_told_once_after_all_it_owes_and_close_once_and_last(events: list[EndingEvent]) -> None:
    """Killed: `FoundEmpty` before the exit counting; `owing` starting as one pipe; close told without the exit known;
    `Ended` leaving `owing` alone; `cut` not kept when the other pipe ends later."""
    state = Ending.of((OUT, ERR))
    effects: list[object] = []
    at_exit_open: set[Stream] = set()
    paid: set[Stream] = set()
    exited = cut = False
    for one in events:
        open_before = set(state.open)
        try:
            state, new = state.handle(one)
        except EndingOutOfTurn:
            continue
        if isinstance(one, Exited):
            exited, at_exit_open, paid = True, open_before, set()
        elif exited:
            paid.add(one.stream)
            cut = cut or isinstance(one, CutOff)
        assert not (new and TellClose(cut) not in new and effects and isinstance(effects[-1], TellClose))
        effects.extend(new)
        if TellExit(0) in effects:
            assert exited
            assert at_exit_open <= paid
        elif exited:
            assert not at_exit_open <= paid

    event(f"ended {state.phase}")
    assert effects.count(TellExit(0)) <= 1
    closes = [effect for effect in effects if isinstance(effect, TellClose)]
    assert closes == ([TellClose(cut)] if exited and not state.open else [])
    assert not closes or effects == [TellExit(0), closes[0]]
