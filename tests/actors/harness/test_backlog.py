"""What a harness holds of one process."""

from hypothesis import event, given
from hypothesis import strategies as st

from actors.harness._backlog import Backlog, Skipped
from actors.protocol import OutputChunk, OutputGap, ProcessExited, ProcessLog, RetainedOutput, Stream


@given(st.lists(st.integers(0, 4)), st.integers(130, 700), st.sampled_from([6, 40, 1000]))
def test_each_position_is_read_once_or_named_in_a_gap(reads: list[int], held_bytes_max: int, retained: int) -> None:
    """Kills: forgetting the cost of small chunks; a skipped range one short; chunks put back in reverse; the rest of a
    range lost when the answer was cut.
    """
    log = ProcessLog("p", output=RetainedOutput(bytes_max=retained))
    backlog = Backlog("p", held_bytes_max=held_bytes_max)
    written: dict[int, bytes] = {}
    read: list[OutputChunk | OutputGap] = []

    def read_on(count: int) -> None:
        for _ in range(count):
            unread = backlog.take()
            if isinstance(unread, Skipped):
                event("skipped")
                backlog.put_back(unread, log.read(unread.first_seq - 1, max_bytes=3))
            elif unread is not None:
                read.append(unread)

    for count in reads:
        for size in (1, 2, 3):
            news = log.add_output(Stream.STDOUT, bytes([len(written) % 256]) * size)
            written[news.seq] = news.chunk
            backlog.accept(news)
        assert backlog.held_bytes <= held_bytes_max + 3 * 130
        read_on(count)
    backlog.accept(log.add_exit(0))
    backlog.accept(log.add_close())
    read_on(10 * len(written) + 10)

    positions: list[int] = []
    for piece in read:
        positions += [piece.seq] if isinstance(piece, OutputChunk) else range(piece.first_seq, piece.last_seq + 1)
    assert positions == list(written)
    assert all(written[piece.seq] == piece.chunk for piece in read if isinstance(piece, OutputChunk))
    gone = {s for piece in read if isinstance(piece, OutputGap) for s in range(piece.first_seq, piece.last_seq + 1)}
    assert all(seq < log.output.first_retained_seq for seq in gone)
    assert backlog.held_bytes == 0
    assert backlog.closed is not None
    assert backlog.position == (max(written) if written else 0)


def test_a_million_empty_chunks_are_not_held() -> None:
    log, backlog = ProcessLog("p"), Backlog("p", held_bytes_max=10_000)

    for _ in range(1_000):
        backlog.accept(log.add_output(Stream.STDOUT, b""))

    taken = [backlog.take() for _ in range(100)]
    assert taken[-1] is None
    assert Skipped(79, 1_000) in taken


def test_exit_and_end_are_never_skipped() -> None:
    log, backlog = ProcessLog("p"), Backlog("p", held_bytes_max=200)
    for _ in range(5):
        backlog.accept(log.add_output(Stream.STDOUT, b"x" * 50))

    backlog.accept(log.add_exit(3))
    backlog.accept(log.add_close())

    assert backlog.exited is not None
    assert backlog.exited.exit_code == 3
    assert backlog.closed is not None
    assert backlog.skipped_bytes == 200


def test_the_first_exit_counts_whatever_the_executor_says_later() -> None:
    backlog = Backlog("p", held_bytes_max=1000)
    for seq, code in ((1, 7), (2, 0)):
        backlog.accept(ProcessExited(process_id="p", seq=seq, exit_code=code))

    assert backlog.exited is not None
    assert backlog.exited.exit_code == 7


def test_102_a_chunk_beyond_the_whole_budget_is_passed_over_and_what_follows_is_kept() -> None:
    """Passed over, not lost: the executor still has it, and whoever reads on gets it from there."""
    log = ProcessLog("p", output=RetainedOutput(bytes_max=10_000))
    backlog = Backlog("p", held_bytes_max=1000)
    news = [log.add_output(Stream.STDOUT, data) for data in (b"a", bytes(2000), b"b", b"c")]
    for each in news:
        backlog.accept(each)

    assert backlog.held_bytes <= 1000
    assert backlog.skipped_bytes == 2000
    assert [backlog.take() for _ in range(4)] == [
        OutputChunk(1, Stream.STDOUT, b"a"),
        Skipped(2, 2),
        OutputChunk(3, Stream.STDOUT, b"b"),
        OutputChunk(4, Stream.STDOUT, b"c"),
    ]
