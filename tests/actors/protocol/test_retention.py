"""What an executor keeps of one process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol import EventRefused, OutputChunk, ProcessLog, RetainedOutput, Stream, Survivor

CHUNKS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 12)), max_size=40)


@given(CHUNKS, st.integers(1, 30), st.integers(1, 10), st.integers(0, 130), st.none() | st.integers(0, 40))
def test_reads_agree_with_a_list_of_everything(
    steps: list[tuple[int, int]], bytes_max: int, chunks_max: int, after: int, max_bytes: int | None
) -> None:
    """Kills: dropping the newest; giving no chunk when the first is over the limit; `>=` for `>` in either bound."""
    kept = RetainedOutput(bytes_max=bytes_max, chunks_max=chunks_max)
    everything: list[OutputChunk] = []
    seq = 0
    for gap, size in steps:
        seq += gap
        chunk = OutputChunk(seq, Stream.STDOUT, bytes(size))
        kept.append(chunk)
        everything.append(chunk)

    held = list(everything)
    while held and (sum(len(c.chunk) for c in held) > bytes_max or len(held) > chunks_max):
        held.pop(0)
    wanted = [c for c in held if c.seq > after]
    given_: list[OutputChunk] = []
    for chunk in wanted:
        if given_ and max_bytes is not None and sum(len(c.chunk) for c in [*given_, chunk]) > max_bytes:
            break
        given_.append(chunk)

    assert kept.after(after, max_bytes=max_bytes) == (tuple(given_), len(given_) < len(wanted))
    assert kept.newer_than(after) == bool(wanted)
    assert kept.held_bytes == sum(len(c.chunk) for c in held)
    assert kept.dropped_bytes == sum(len(c.chunk) for c in everything) - kept.held_bytes
    dropped = everything[: len(everything) - len(held)]
    assert kept.first_retained_seq == (dropped[-1].seq + 1 if dropped else 1)


def test_output_keeps_a_mebibyte_and_fifty_thousand_chunks() -> None:
    by_bytes, by_number = RetainedOutput(), RetainedOutput()
    for seq in range(1, 1026):
        by_bytes.append(OutputChunk(seq, Stream.STDOUT, bytes(1024)))
    for seq in range(1, 50_002):
        by_number.append(OutputChunk(seq, Stream.STDOUT, b"x"))

    assert (by_bytes.held_bytes, by_bytes.first_retained_seq) == (1024 * 1024, 2)
    assert (by_number.held_bytes, by_number.first_retained_seq) == (50_000, 2)


def test_output_out_of_order_is_refused_and_changes_nothing() -> None:
    kept = RetainedOutput()
    kept.append(OutputChunk(3, Stream.STDOUT, b"a"))

    with pytest.raises(EventRefused):
        kept.append(OutputChunk(3, Stream.STDOUT, b"b"))
    assert kept.after(0) == ((OutputChunk(3, Stream.STDOUT, b"a"),), False)


def test_one_sequence_covers_output_exit_and_close() -> None:
    log = ProcessLog("p")

    seqs = [
        log.add_output(Stream.STDOUT, b"a").seq,
        log.add_exit(3).seq,
        log.add_output(Stream.STDERR, b"late").seq,
        log.add_close(drain_limited=True, survivors=(Survivor(pid=7, name="sleep"),)).seq,
    ]

    assert seqs == [1, 2, 3, 4]
    answer = log.read()
    assert (answer.next_seq, answer.exited, answer.exit_code, answer.closed) == (5, True, 3, True)


def test_a_cut_answer_goes_on_behind_its_last_chunk() -> None:
    log = ProcessLog("p")
    for data in (b"o\n", b"e\n", b"o2\n"):
        log.add_output(Stream.STDOUT, data)

    assert [log.read(0, limit).next_seq for limit in (0, 1, 2, 4, 5, 7, None)] == [2, 2, 2, 3, 3, 4, 4]
    assert log.read(99).next_seq == 4


def test_a_reader_that_knows_of_the_exit_waits_for_output_or_the_end() -> None:
    log = ProcessLog("p")
    news = [log.has_news(None)]
    log.add_output(Stream.STDOUT, b"a")
    news += [log.has_news(0), log.has_news(1)]
    log.add_exit(0)
    news += [log.has_news(1), log.has_news(2)]
    log.add_output(Stream.STDOUT, b"late")
    news += [log.has_news(2), log.has_news(3)]
    log.add_close()
    news += [log.has_news(99)]

    assert news == [False, True, False, True, False, True, False, True]


def test_nothing_comes_after_the_end_and_no_end_before_the_exit() -> None:
    log = ProcessLog("p")
    with pytest.raises(EventRefused):
        log.add_close()
    log.add_exit(0)
    with pytest.raises(EventRefused):
        log.add_exit(1)
    log.add_close()
    for add in (lambda: log.add_output(Stream.STDOUT, b"x"), lambda: log.add_close()):
        with pytest.raises(EventRefused):
            add()

    assert (log.next_seq, log.read().exit_code) == (3, 0)


def test_a_failed_process_answers_exited_and_closed_with_the_failure() -> None:
    log = ProcessLog("p")
    log.fail("gone")
    log.fail("again")

    answer = log.read()

    assert (answer.exited, answer.exit_code, answer.closed, answer.failure) == (True, None, True, "gone")


def test_what_was_dropped_is_said() -> None:
    log = ProcessLog("p", output=RetainedOutput(bytes_max=3))
    log.add_output(Stream.STDOUT, b"ab")
    whole = log.read().first_retained_seq
    log.add_output(Stream.STDOUT, b"cd")

    assert (whole, log.read().first_retained_seq) == (None, 2)
