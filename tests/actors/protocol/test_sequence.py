"""One process's events in order, from notifications and from read answers (spec 7.13, cases 96 to 100)."""

import attrs
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from actors.protocol import (
    EventOrder,
    EventRefused,
    OrderedEvent,
    OutputChunk,
    OutputGap,
    ProcessClosed,
    ProcessEvent,
    ProcessExited,
    ProcessLog,
    ProcessOutput,
    ReadResult,
    RecoveryRefused,
    RetainedOutput,
    Stream,
)


def output(seq: int, size: int = 1) -> ProcessOutput:
    return ProcessOutput(process_id="p", seq=seq, stream=Stream.STDOUT, chunk=bytes(size))


def exited(seq: int) -> ProcessExited:
    return ProcessExited(process_id="p", seq=seq, exit_code=3)


def closed(seq: int) -> ProcessClosed:
    return ProcessClosed(process_id="p", seq=seq)


def answer(
    *seqs: int, next_seq: int, code: int | None = None, closed: bool = False, denied: bool = False
) -> ReadResult:
    return ReadResult(
        chunks=tuple(OutputChunk(seq, Stream.STDOUT, b"x") for seq in seqs),
        next_seq=next_seq,
        exited=code is not None,
        exit_code=code,
        closed=closed,
        failure=None,
        sandbox_denied=denied,
    )


@st.composite
def lives(draw: st.DrawFn) -> tuple[ProcessLog, list[ProcessEvent]]:
    """A process that has written, maybe exited, maybe written more, maybe closed; keeps little."""
    log = ProcessLog("p", output=RetainedOutput(bytes_max=draw(st.sampled_from([8, 40, 1000]))))
    events: list[ProcessEvent] = []

    def write() -> None:
        for size in draw(st.lists(st.integers(1, 9), max_size=8)):
            events.append(log.add_output(draw(st.sampled_from(Stream)), bytes([len(events)]) * size))

    write()
    if draw(st.booleans()):
        events.append(log.add_exit(draw(st.integers(0, 255))))
        write()
        if draw(st.booleans()):
            events.append(log.add_close())
    return log, events


@given(lives(), st.data())
def test_any_order_with_repetitions_leaves_in_order_each_once(
    life: tuple[ProcessLog, list[ProcessEvent]], data: st.DataObject
) -> None:
    """Kills: not draining behind a filled hole; giving a repeated event again; dropping what waits when full."""
    _, events = life
    coming = data.draw(
        st.permutations(events + data.draw(st.lists(st.sampled_from(events)) if events else st.just([])))
    )
    order = EventOrder("p")

    left = [out for each in coming for out in order.accept(each)]

    assert left == events
    assert order.waiting == 0
    assert order.delivered_seq == len(events)
    assert order.duplicates == len(coming) - len(events)


@given(lives(), st.data())
def test_after_a_loss_every_event_leaves_once_or_is_named_in_a_gap(
    life: tuple[ProcessLog, list[ProcessEvent]], data: st.DataObject
) -> None:
    """Kills: the exit in the oldest hole; a gap one too short; the answer's close replacing a richer one; output
    that came live and in the answer given twice; output from before the loss kept waiting; an exit given twice.
    """
    log, events = life
    seen = data.draw(st.integers(0, len(events)))
    order = EventOrder("p")
    left: list[OrderedEvent] = [out for each in events[:seen] for out in order.accept(each)]
    later = data.draw(
        st.lists(st.sampled_from(events[seen:]), unique_by=lambda e: e.seq) if events[seen:] else st.just([])
    )
    left += [out for each in later for out in order.accept(each)]

    left += order.recover(log.read(data.draw(st.integers(0, order.delivered_seq))))

    covered: list[int] = []
    for each in left:
        covered += range(each.first_seq, each.last_seq + 1) if isinstance(each, OutputGap) else [each.seq]
    assert covered == list(range(1, len(events) + 1))
    assert [e for e in left if isinstance(e, ProcessOutput)] == [
        e for e in events if e in left and isinstance(e, ProcessOutput)
    ]
    gone = {e.seq for e in events} - {e.seq for e in left if not isinstance(e, OutputGap)}
    assert all(seq < log.output.first_retained_seq or isinstance(events[seq - 1], ProcessExited) for seq in gone)
    assert [e.exit_code for e in left if isinstance(e, ProcessExited)] == [
        e.exit_code for e in events if isinstance(e, ProcessExited)
    ]
    told = {e.seq for e in left if isinstance(e, ProcessExited)}
    assert all(e.seq in told or e.seq < log.output.first_retained_seq for e in events if isinstance(e, ProcessExited))
    assert order.waiting == 0
    assert order.closed == log.closed
    event(f"gaps: {sum(isinstance(e, OutputGap) for e in left)}")


@given(st.lists(st.integers(0, 2**63)), st.integers(0, 2**63), st.booleans(), st.none() | st.integers(0, 255))
def test_an_answer_that_lies_is_refused_or_taken_and_never_hangs(
    seqs: list[int], next_seq: int, closed: bool, code: int | None
) -> None:
    """Kills: counting up to the answer's end one by one; a `KeyError` for a close at a position below the last."""
    order = EventOrder("p")
    order.accept(output(1))
    order.accept(output(5))
    before = order.delivered_seq, order.waiting

    try:
        order.recover(answer(*seqs, next_seq=next_seq, code=code, closed=closed))
    except RecoveryRefused:
        assert (order.delivered_seq, order.waiting) == before


def test_96_a_single_event_over_a_mebibyte_is_refused() -> None:
    order = EventOrder("p")

    with pytest.raises(EventRefused, match="exceeds 1048576 bytes"):
        order.accept(output(1, 1024 * 1024 + 1))
    assert order.accept(output(1, 1024 * 1024)) == (output(1, 1024 * 1024),)


@pytest.mark.parametrize("size", [1, 4096])
def test_97_a_full_buffer_takes_the_event_that_closes_the_hole_and_drains_to_empty(size: int) -> None:
    order = EventOrder("p")
    for seq in range(2, 258):
        assert order.accept(output(seq, size)) == ()

    with pytest.raises(EventRefused, match="process event reorder buffer exceeds"):
        order.accept(output(258, size))
    left = order.accept(output(1, 1024 * 1024))

    assert len(left) == 257
    assert order.waiting == 0
    assert order.accept(output(258, size)) == (output(258, size),)


def test_a_buffer_full_in_bytes_refuses_the_next_byte() -> None:
    order = EventOrder("p")
    order.accept(output(2, 1024 * 1024))

    with pytest.raises(EventRefused, match="reorder buffer exceeds 1048576 bytes"):
        order.accept(output(3, 1))
    assert order.accept(exited(3)) == ()


def test_98_recovery_gives_a_dense_tail_an_inferred_exit_and_newer_news_in_order() -> None:
    order = EventOrder("p")
    order.accept(output(1))
    order.accept(output(305))

    left = order.recover(answer(*range(2, 304), next_seq=305, code=3))

    assert [e.seq for e in left if not isinstance(e, OutputGap)] == list(range(2, 306))
    assert left[302] == exited(304)


def test_99_output_at_the_place_of_the_close_is_a_conflict() -> None:
    order = EventOrder("p")

    with pytest.raises(RecoveryRefused, match="process close sequence 2 conflicts with recovered output"):
        order.recover(answer(1, 2, next_seq=3, code=0, closed=True))
    assert order.delivered_seq == 0


def test_99_live_output_at_the_place_of_the_close_is_a_conflict() -> None:
    order = EventOrder("p")
    order.accept(output(3))

    with pytest.raises(RecoveryRefused, match="process close sequence 3 conflicts with recovered output"):
        order.recover(answer(1, next_seq=4, code=0, closed=True))


def test_100_a_denied_sandbox_is_merged_into_an_exit_that_waits() -> None:
    order = EventOrder("p")
    order.accept(exited(2))

    left = order.recover(answer(1, next_seq=3, code=3, denied=True))

    assert left[1] == attrs.evolve(exited(2), sandbox_denied=True)


def test_a_hole_is_a_gap_or_a_refusal_as_asked() -> None:
    strict, lenient = EventOrder("p"), EventOrder("p")

    with pytest.raises(RecoveryRefused, match="no longer retained while recovering through sequence 4"):
        strict.recover(answer(3, 4, next_seq=5), allow_gaps=False)
    left = lenient.recover(answer(3, 4, next_seq=5))

    assert strict.delivered_seq == 0
    assert left[0] == OutputGap(process_id="p", first_seq=1, last_seq=2)
    assert [e.seq for e in left[1:] if not isinstance(e, OutputGap)] == [3, 4]


def test_a_failed_process_cannot_be_recovered() -> None:
    order = EventOrder("p")

    with pytest.raises(RecoveryRefused, match="process failed while recovering: gone"):
        order.recover(attrs.evolve(answer(next_seq=1), failure="gone"))


def test_an_exit_without_a_code_is_refused() -> None:
    order = EventOrder("p")

    with pytest.raises(RecoveryRefused, match="no exit code"):
        order.recover(attrs.evolve(answer(1, next_seq=3), exited=True))


def test_what_comes_after_the_end_is_dropped_and_counted() -> None:
    order = EventOrder("p")
    order.accept(output(4))
    for each in (output(1), exited(2), closed(3), output(5)):
        order.accept(each)

    assert order.closed
    assert (order.delivered_seq, order.waiting, order.duplicates) == (3, 0, 2)
