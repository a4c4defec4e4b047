"""Message framing: cut into records and put together again, whatever the cuts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.relay import FramingError, MessageLengthInvalid, MessageTooLarge, RecordTooLarge, RelayLimits, TraceContext
from actors.relay._records import MessageAssembler, RecordPacker

KIB = 1024
LIMITS = RelayLimits()
SMALL = RelayLimits(max_record_bytes=13, max_message_bytes=100, max_messages_per_record=3)
# Whole messages, pieces of lengths, lengths that none may have, and a record that is too large.
PIECES = [b"\0\0\0\1x", b"\0\0\0\2xy", b"\0\0", b"\0\1x", b"\0\0\0\0", b"\0\0\0\x65", b"\0\0\0\x0c" + bytes(9)]
MESSAGES = st.lists(st.binary(min_size=1, max_size=100), max_size=12)


def packed(messages: list[bytes], limits: RelayLimits) -> list[bytes]:
    packer = RecordPacker(limits)
    for message in messages:
        packer.put(message)
    records = []
    while (taken := packer.take()) is not None:
        records.append(taken[0])
    assert packer.queued_bytes == 0
    return records


def test_65_a_message_of_128_kib_is_cut_into_60_kib_records_and_reassembled_equal() -> None:
    message = bytes(range(256)) * 512
    records = packed([message], LIMITS)
    assembler = MessageAssembler(LIMITS)

    assert [len(record) for record in records] == [60 * KIB, 60 * KIB, 8 * KIB + 4]
    assert [assembler.feed(record) for record in records] == [[], [], [message]]


@pytest.mark.parametrize("declared", [0, 64 * KIB * KIB + 1, 2**32 - 1])
def test_66_a_length_that_no_message_can_have_is_refused_at_once(declared: int) -> None:
    with pytest.raises(MessageLengthInvalid, match=r"^Noise relay JSON-RPC message has invalid length$"):
        MessageAssembler(LIMITS).feed(declared.to_bytes(4, "big"))


def test_67_a_record_above_60_kib_is_refused() -> None:
    assert MessageAssembler(LIMITS).feed(b"\0\0\xef\xfc" + bytes(60 * KIB - 4)) == [bytes(60 * KIB - 4)]
    with pytest.raises(RecordTooLarge, match=r"^Noise relay plaintext record exceeds maximum length$"):
        MessageAssembler(LIMITS).feed(bytes(60 * KIB + 1))


def test_68_many_small_messages_that_fill_one_record_all_come_out_in_order() -> None:
    messages = [b"%05d" % number for number in range(60 * KIB // 9)]
    record = b"".join(len(message).to_bytes(4, "big") + message for message in messages)

    assert MessageAssembler(LIMITS).feed(record) == messages


def test_69_a_smaller_limit_refuses_an_oversized_message_also_when_its_length_is_split() -> None:
    small, large = RelayLimits(max_message_bytes=KIB), RelayLimits()
    record = (2 * KIB).to_bytes(4, "big") + bytes(2 * KIB)

    with pytest.raises(MessageLengthInvalid):
        MessageAssembler(small).feed(record)
    split = MessageAssembler(small)
    assert split.feed(record[:3]) == []
    with pytest.raises(MessageLengthInvalid):
        split.feed(record[3:])
    assert MessageAssembler(large).feed(record) == [bytes(2 * KIB)]


def test_an_empty_record_is_ignored() -> None:
    assembler = MessageAssembler(LIMITS)
    assembler.feed(b"\0\0")

    assert assembler.feed(b"") == []
    assert assembler.feed(b"\0\1x") == [b"x"]


@pytest.mark.parametrize("size", [0, 101])
def test_a_message_that_may_not_be_sent_leaves_the_packer_as_it_was(size: int) -> None:
    packer = RecordPacker(SMALL)
    packer.put(b"before")

    with pytest.raises(MessageTooLarge) as caught:
        packer.put(bytes(size))
    assert (caught.value.size_bytes, caught.value.limit_bytes) == (size, 100)
    assert packer.take() == (b"\0\0\0\6before", None)
    assert packer.take() is None


def test_a_message_with_a_trace_context_starts_a_record_of_its_own() -> None:
    packer = RecordPacker(LIMITS)
    trace = TraceContext("00-aa")
    packer.put(b"a")
    packer.put(b"b", trace)
    packer.put(b"c")

    assert packer.take() == (b"\0\0\0\1a", None)
    assert packer.take() == (b"\0\0\0\1b\0\0\0\1c", trace)


def test_only_the_first_record_of_a_long_request_has_its_trace_context() -> None:
    packer = RecordPacker(SMALL)
    packer.put(bytes(30), TraceContext("00-aa"))

    traces = [taken[1] for taken in iter(packer.take, None)]
    assert traces == [TraceContext("00-aa"), None, None]


@given(MESSAGES, st.integers(1, 40), st.integers(1, 4))
def test_what_is_packed_comes_out_as_it_was_and_no_record_is_too_large(
    messages: list[bytes], record_bytes: int, at_once: int
) -> None:
    """Mutant: `_cut_first` writes a length that is split over records from its beginning in each."""
    limits = RelayLimits(max_record_bytes=record_bytes, max_message_bytes=100, max_messages_per_record=at_once)
    records = packed(messages, limits)
    assembler = MessageAssembler(limits)

    assert [message for record in records for message in assembler.feed(record)] == messages
    assert all(0 < len(record) <= record_bytes for record in records)
    assert assembler.held_bytes == 0


@given(MESSAGES, st.lists(st.integers(1, 13), min_size=1, max_size=400))
def test_any_chunking_gives_the_same_messages(messages: list[bytes], cuts: list[int]) -> None:
    """Mutant: `_read_length` drops the part of a length that came before."""
    data = b"".join(len(message).to_bytes(4, "big") + message for message in messages)
    assembler = MessageAssembler(SMALL)
    out: list[bytes] = []
    position = 0
    for cut in [*cuts, *[13] * 1000]:
        out += assembler.feed(data[position : position + cut])
        position += cut

    assert out == messages


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=3).map(b"".join), max_size=30))
def test_any_bytes_are_messages_or_a_framing_error_as_a_plain_reading_finds(records: list[bytes]) -> None:
    """Mutant: a declared length of 0 is accepted."""
    assembler = MessageAssembler(SMALL)
    for count, record in enumerate(records, 1):
        expected = plain_reading(records[:count])
        if expected is None:
            with pytest.raises(FramingError):
                assembler.feed(record)
            return
        assert assembler.feed(record) == expected[len(plain_reading(records[: count - 1]) or []) :]
        assert assembler.held_bytes <= SMALL.max_message_bytes


def plain_reading(records: list[bytes]) -> list[bytes] | None:
    """The messages in all records together, or None where an error must come."""
    data, messages = b"".join(records), []
    while len(data) >= 4:
        length = int.from_bytes(data[:4], "big")
        if not 0 < length <= SMALL.max_message_bytes:
            return None
        if len(data) < 4 + length:
            break
        messages.append(data[4 : 4 + length])
        data = data[4 + length :]
    return None if any(len(record) > SMALL.max_record_bytes for record in records) else messages
