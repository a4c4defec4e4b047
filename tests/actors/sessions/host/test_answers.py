"""Outcomes written by hand are what the generated classes read and write."""

from hypothesis import given
from hypothesis import strategies as st

from actors.sessions._wire.code_mode_pb2 import ExecuteEvent, WaitResponse
from actors.sessions.host._answers import event_parts, live_cell, missing_cell
from actors.sessions.host._items import AudioItem, ImageItem, TextItem, Written
from actors.sessions.host._outputs import Ending, Outcome
from tests.actors.sessions.host.peer import Seen, read_state

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.integers(0, 40_000).map(lambda size: "x" * size)
ITEMS: st.SearchStrategy[Written] = st.one_of(
    TEXTS.map(TextItem),
    TEXTS.map(str.encode),
    st.builds(ImageItem, TEXTS, st.sampled_from(["auto", "low", "high", "original"])),
    TEXTS.map(AudioItem),
)
OUTCOMES = st.builds(
    Outcome, ending=st.sampled_from(Ending), items=st.lists(ITEMS, max_size=5), error=st.none() | TEXTS
)


@given(OUTCOMES, st.integers(-5, 2**63))
def test_an_outcome_is_read_as_it_was_written(outcome: Outcome, duration_ns: int) -> None:
    """Killed: a length of 128 written in one byte; an error that is empty left out."""
    written = b"".join(event_parts("12", outcome, duration_ns))
    event = ExecuteEvent.FromString(written).outcome
    seen = Seen(event)
    state, waited = read_state(WaitResponse.FromString(live_cell("12", outcome, duration_ns)))

    items = [TextItem(item.decode()) if isinstance(item, bytes) else item for item in outcome.items]

    assert (seen.cell_id, seen.outcome, seen.items) == ("12", outcome.ending.value, items)
    assert seen.error == (outcome.error if outcome.ending is Ending.COMPLETED else None)
    assert seen.duration_ns == max(0, duration_ns)
    assert (state, vars(waited)) == ("live_cell", vars(seen))
    assert ExecuteEvent.FromString(written).ByteSize() <= len(written)


def test_a_missing_cell_is_said_to_be_missing_and_in_server_mode_as_text_too() -> None:
    plain = read_state(WaitResponse.FromString(missing_cell("7", cut_output=False, tokens=9, duration_ns=1)))
    cut = read_state(WaitResponse.FromString(missing_cell("7", cut_output=True, tokens=100, duration_ns=1)))

    assert (plain[0], plain[1].error, plain[1].texts) == ("missing_cell", "exec cell 7 not found", [])
    assert (cut[0], cut[1].texts) == ("missing_cell", ["Script error:\nexec cell 7 not found"])
