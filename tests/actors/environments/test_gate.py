"""The gate: every event meets every state, terminal stays terminal, the first failure is kept."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.environments import GATE_TRANSITIONS, Gate, OutOfPlace, ReadyInfo, SelectedCapabilityRoot
from actors.environments._gate import (
    DeadlinePassed,
    FailureReported,
    GateEvent,
    InfoPublished,
    Provisioning,
    ProvisioningAbandoned,
    ReadyReported,
    Recovered,
)

ONE = ReadyInfo(selected_capability_roots=[SelectedCapabilityRoot(id="r", environment_id="e", path="file:///r")])
NONE = ReadyInfo()
KINDS = [ReadyReported, InfoPublished, FailureReported, ProvisioningAbandoned, DeadlinePassed, Recovered]


def event_of(kind: type[GateEvent], now_s: float = 1.0) -> GateEvent:
    told = ONE if kind in (ReadyReported, InfoPublished, Recovered) else f"said by {kind.__name__}"
    return kind(told, now_s)  # type: ignore[arg-type]  # Each kind takes the one that was chosen for it.


def at(gate: Gate) -> Provisioning:
    return Provisioning(gate, 0.0, None if gate in (Gate.PENDING, Gate.READY) else "first")


@pytest.mark.parametrize(("gate", "kind"), [*product(Gate, KINDS)])
def test_each_gate_takes_or_refuses_each_event(gate: Gate, kind: type[GateEvent]) -> None:
    before = at(gate)
    target = GATE_TRANSITIONS.get((gate, kind))

    if target is None:
        with pytest.raises(OutOfPlace) as refused:
            before.handle(event_of(kind))
        assert (refused.value.state, refused.value.event) == (gate.value, kind.__name__)
        assert before == at(gate)
    else:
        assert before.handle(event_of(kind)).gate is target


def test_nothing_but_a_named_recovery_leads_out_of_a_terminal_gate() -> None:
    for (gate, kind), target in GATE_TRANSITIONS.items():
        if gate is not Gate.PENDING and target is not gate:
            assert kind is Recovered


def test_the_tables_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        GATE_TRANSITIONS[Gate.READY, FailureReported] = Gate.FAILED  # type: ignore[index]  # That is the point.


def test_information_is_stored_with_the_opening_and_replaces_what_was_published() -> None:
    published = Provisioning(Gate.PENDING, 0.0).handle(InfoPublished(ONE, 1.0))
    opened = published.handle(ReadyReported(NONE, 2.0))

    assert (published.gate, published.info, published.accepted) == (Gate.PENDING, ONE, None)
    assert (opened.gate, opened.info, opened.accepted) == (Gate.READY, NONE, NONE)
    assert (opened.since_s, opened.position) == (2.0, 2)


def test_a_gate_that_stays_keeps_its_time() -> None:
    ready = Provisioning(Gate.READY, 1.0)

    assert ready.handle(ReadyReported(ONE, 5.0)).since_s == 1.0


def test_a_recovery_forgets_the_failure() -> None:
    recovered = at(Gate.FAILED).handle(Recovered(ONE, 3.0))

    assert (recovered.gate, recovered.message, recovered.info, recovered.since_s) == (Gate.READY, None, ONE, 3.0)


@given(st.lists(st.sampled_from(KINDS), max_size=20))
def test_the_first_terminal_word_stands_until_a_recovery(kinds: list[type[GateEvent]]) -> None:
    """Mutants seen killed: a second failure replaces the message; publishing sets `accepted`; READY takes a failure."""
    gate, message, accepted, info = Gate.PENDING, None, None, NONE
    value = Provisioning(Gate.PENDING, 0.0)

    for now_s, kind in enumerate(kinds, 1):
        try:
            value = value.handle(event_of(kind, now_s))
        except OutOfPlace:
            continue
        if kind in (ReadyReported, Recovered):
            gate, message, accepted, info = Gate.READY, None, ONE, ONE
        elif kind is InfoPublished:
            info = ONE
        elif gate is Gate.PENDING:
            gate = Gate.ABANDONED if kind is ProvisioningAbandoned else Gate.FAILED
            message = f"said by {kind.__name__}"
        assert (value.gate, value.message, value.accepted, value.info) == (gate, message, accepted, info)
