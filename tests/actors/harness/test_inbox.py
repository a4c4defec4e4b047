"""What a harness holds of one process."""

from hypothesis import event, given
from hypothesis import strategies as st

from actors.harness._inbox import Inbox, Skipped
from actors.protocol import OutputChunk, OutputGap, ProcessLog, RetainedOutput, Stream


@given(st.lists(st.integers(0, 4)), st.integers(130, 700), st.sampled_from([6, 40, 1000]))
def test_each_position_is_read_once_or_named_in_a_gap(reads: list[int], held_bytes_max: int, retained: int) -> None:
    """Kills: forgetting the cost of small chunks; a skipped range one short; chunks put back in reverse; the rest of a
    range lost when the answer was cut.
    """
    log = ProcessLog("p", output=RetainedOutput(bytes_max=retained))
    inbox = Inbox("p", held_bytes_max=held_bytes_max)
    written: dict[int, bytes] = {}
    read: list[OutputChunk | OutputGap] = []

    def read_on(count: int) -> None:
        for _ in range(count):
            unread = inbox.take()
            if isinstance(unread, Skipped):
                event("skipped")
                inbox.put_back(unread, log.read(unread.first_seq - 1, max_bytes=3))
            elif unread is not None:
                read.append(unread)

    for count in reads:
        for size in (1, 2, 3):
            news = log.add_output(Stream.STDOUT, bytes([len(written) % 256]) * size)
            written[news.seq] = news.chunk
            inbox.accept(news)
        assert inbox.held_bytes <= held_bytes_max + 3 * 130
        read_on(count)
    inbox.accept(log.add_exit(0))
    inbox.accept(log.add_close())
    read_on(10 * len(written) + 10)

    positions: list[int] = []
    for piece in read:
        positions += [piece.seq] if isinstance(piece, OutputChunk) else range(piece.first_seq, piece.last_seq + 1)
    assert positions == list(written)
    assert all(written[piece.seq] == piece.chunk for piece in read if isinstance(piece, OutputChunk))
    gone = {s for piece in read if isinstance(piece, OutputGap) for s in range(piece.first_seq, piece.last_seq + 1)}
    assert all(seq < log.output.first_retained_seq for seq in gone)
    assert inbox.held_bytes == 0
    assert inbox.closed is not None
    assert inbox.position == (max(written) if written else 0)


def test_a_million_empty_chunks_are_not_held() -> None:
    log, inbox = ProcessLog("p"), Inbox("p", held_bytes_max=10_000)

    for _ in range(1_000):
        inbox.accept(log.add_output(Stream.STDOUT, b""))

    taken = [inbox.take() for _ in range(100)]
    assert taken[-1] is None
    assert Skipped(79, 1_000) in taken


def test_exit_and_end_are_never_skipped() -> None:
    log, inbox = ProcessLog("p"), Inbox("p", held_bytes_max=200)
    for _ in range(5):
        inbox.accept(log.add_output(Stream.STDOUT, b"x" * 50))

    inbox.accept(log.add_exit(3))
    inbox.accept(log.add_close())

    assert inbox.exited is not None
    assert inbox.exited.exit_code == 3
    assert inbox.closed is not None
    assert inbox.skipped_bytes == 200
