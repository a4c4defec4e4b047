"""The receiving half of a stream with a real channel under it: any cuts, any order, any loss, one flipped bit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.noise import Initiator, NoiseError, Responder, SecureChannel
from actors.relay import OrderingError, RelayLimits
from actors.relay._inbound import InboundRecords
from actors.relay._records import RecordPacker
from tests.actors.relay.ends import EXECUTOR, HARNESS

LIMITS = RelayLimits(max_record_bytes=50, max_message_bytes=300, max_messages_per_record=4)
MESSAGES = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=12)


def channels() -> tuple[SecureChannel, SecureChannel]:
    initiator = Initiator(HARNESS, EXECUTOR.public_key, prologue=b"p")
    responder = Responder(EXECUTOR, prologue=b"p")
    responder.read_request(initiator.write_request(b""))
    reply, ours = responder.accept()
    return ours, initiator.read_response(reply)


def sealed(messages: list[bytes]) -> tuple[list[bytes], InboundRecords]:
    ours, theirs = channels()
    packer = RecordPacker(LIMITS)
    for message in messages:
        packer.put(message)
    records = [ours.encrypt(taken[0]) for taken in iter(packer.take, None)]
    return records, InboundRecords(theirs.decrypt, LIMITS)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[list[bytes], list[int]]:
    messages = draw(MESSAGES)
    return messages, draw(st.permutations(range(200)).map(list))


def in_window(order: list[int], count: int) -> list[int]:
    """Take the order as far as the window allows it."""
    waiting = [seq for seq in order if seq < count]
    out: list[int] = []
    expected = 0
    while waiting:
        seq = next(seq for seq in waiting if seq - expected < 60)
        waiting.remove(seq)
        out.append(seq)
        while expected in out:
            expected += 1
    return out


@given(shuffled())
def test_any_cuts_and_any_order_within_the_window_give_the_messages_as_they_were(
    case: tuple[list[bytes], list[int]],
) -> None:
    """Mutant: `OrderedCiphertext._release` gives what was held before the record that filled the gap."""
    messages, order = case
    records, inbound = sealed(messages)

    out = [m for seq in in_window(order, len(records)) for m in inbound.push(seq, records[seq], 0.0)]
    assert out == messages
    assert inbound.held_bytes == 0
    assert inbound.window.received == len(records)


@given(MESSAGES, st.data())
def test_a_lost_record_ends_the_stream_by_its_gap_and_nothing_behind_it_is_given(
    messages: list[bytes], data: st.DataObject
) -> None:
    """Mutant: `InboundRecords.check_gap` does nothing."""
    records, inbound = sealed([*messages, b"end"])
    lost = data.draw(st.integers(0, len(records) - 1))
    out: list[bytes] = []
    for seq, record in enumerate(records):
        if seq != lost and seq - lost <= 60:
            out += inbound.push(seq, record, 1.0)

    assert out == [*messages, b"end"][: len(out)]
    if lost < len(records) - 1:
        with pytest.raises(OrderingError):
            inbound.check_gap(1.0 + LIMITS.gap_s)
    else:
        assert inbound.gap_deadline_s is None


@given(MESSAGES, st.data())
def test_one_flipped_bit_anywhere_ends_the_stream_before_anything_false_is_given(
    messages: list[bytes], data: st.DataObject
) -> None:
    """Mutant: `InboundRecords.push` gives the ciphertext to the assembler when it cannot be opened."""
    records, inbound = sealed(messages)
    victim = data.draw(st.integers(0, len(records) - 1))
    bit = data.draw(st.integers(0, 8 * len(records[victim]) - 1))
    changed = bytearray(records[victim])
    changed[bit // 8] ^= 1 << bit % 8
    out: list[bytes] = []
    for seq in range(victim):
        out += inbound.push(seq, records[seq], 0.0)

    with pytest.raises(NoiseError):
        inbound.push(victim, bytes(changed), 0.0)
    assert out == messages[: len(out)]


@given(MESSAGES, st.data())
def test_a_replayed_record_changes_nothing(messages: list[bytes], data: st.DataObject) -> None:
    """Mutant: `OrderedCiphertext.push` takes any number that is not held, old ones too."""
    records, inbound = sealed(messages)
    out: list[bytes] = []
    for seq, record in enumerate(records):
        out += inbound.push(seq, record, 0.0)
        again = data.draw(st.integers(0, seq))
        assert inbound.push(again, records[again], 0.0) == []

    assert out == messages
