"""The pitfalls of records, one test each, numbered as in the list of docs/threat-model.md."""

import copy
import sys
import threading

import pytest
import trio

from actors.noise import (
    MAX_PLAINTEXT_BYTES,
    InvalidMessage,
    NoiseError,
    RecordLimits,
    SecureChannel,
    TransportFailed,
    TransportTruncated,
)
from tests.actors.noise.support import AUTHORIZATION, agree, ends
from tests.support.cancelling import cancel_at_each_step


def drain(channel: SecureChannel, records: list[bytes]) -> None:
    for record in records:
        channel.decrypt(record)


async def test_11_a_hundred_tasks_that_seal_and_send_keep_the_order_of_the_nonces() -> None:
    harness, executor = agree()
    outgoing, incoming = trio.open_memory_channel[bytes](0)
    turn = trio.Lock()

    async def send(text: bytes) -> None:
        await trio.lowlevel.checkpoint()
        async with turn:
            await outgoing.send(harness.encrypt(text))

    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(send, b"%d" % number)
        got = {executor.decrypt(await incoming.receive()) for _ in range(100)}

    assert got == {b"%d" % number for number in range(100)}
    assert harness.records_sent == executor.records_received == 100


async def test_11_a_send_that_is_cancelled_anywhere_never_reuses_its_nonce_and_the_hole_is_fatal() -> None:
    wire = list[bytes]()
    harness, executor = agree()

    async def send() -> None:
        await trio.lowlevel.checkpoint()
        record = harness.encrypt(b"a record")
        await trio.lowlevel.checkpoint()
        wire.append(record)
        await trio.lowlevel.checkpoint()

    runs = await cancel_at_each_step(send)

    assert len(set(wire)) == len(wire) < harness.records_sent <= runs
    with pytest.raises(TransportFailed):
        drain(executor, wire)
    assert not executor.alive


def test_11_not_even_threads_that_share_a_channel_make_it_repeat_a_nonce() -> None:
    harness, executor = agree()
    records = list[bytes]()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work() -> None:
        for _ in range(1000):
            records.append(harness.encrypt(b""))

    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)

    # The same empty plaintext under one nonce would give the same tag twice.
    assert len(set(records)) == len(records) == harness.records_sent == 4000
    assert executor.alive


def test_11_a_refused_plaintext_emits_nothing_uses_no_nonce_and_ends_the_channel() -> None:
    harness, executor = agree()

    with pytest.raises(InvalidMessage, match=r"^invalid Noise channel message: transport plaintext is too large$"):
        harness.encrypt(bytes(MAX_PLAINTEXT_BYTES + 1))
    assert harness.records_sent == 0
    with pytest.raises(TransportFailed, match="the channel has ended"):
        harness.encrypt(b"after a hole in the stream")
    with pytest.raises(TransportFailed, match="the channel has ended"):
        harness.decrypt(executor.encrypt(b"either direction"))


@pytest.mark.parametrize("fault", ["reordered", "lost", "doubled", "replayed"])
def test_12_records_out_of_order_lost_doubled_or_replayed_are_fatal(fault: str) -> None:
    harness, executor = agree()
    sent = [harness.encrypt(b"%d" % number) for number in range(4)]
    arrives = {
        "reordered": [sent[0], sent[2]],
        "lost": [sent[0], sent[1], sent[3]],
        "doubled": [sent[0], sent[0]],
        "replayed": [*sent, sent[0]],
    }[fault]
    for record in arrives[:-1]:
        executor.decrypt(record)

    with pytest.raises(TransportFailed, match=r"^Noise channel transport failed: the record was refused$"):
        executor.decrypt(arrives[-1])
    for record in sent:
        with pytest.raises(TransportFailed, match="the channel has ended"):
            executor.decrypt(record)


def test_13_a_record_sent_back_or_taken_from_another_channel_is_refused() -> None:
    harness, executor = agree()
    own = harness.encrypt(b"mine")
    other, _ = agree()

    with pytest.raises(TransportFailed):
        harness.decrypt(own)
    with pytest.raises(TransportFailed):
        executor.decrypt(other.encrypt(b"of another stream"))


def test_14_the_end_of_the_transport_without_a_close_record_is_an_error() -> None:
    harness, executor = agree()
    executor.decrypt(harness.encrypt(b"the last that came"))

    with pytest.raises(TransportTruncated, match="without an authenticated close record"):
        executor.transport_ended()
    assert not executor.alive


def test_14_a_close_record_makes_the_end_clean_and_nothing_may_follow_it() -> None:
    harness, executor = agree()
    last, closing = harness.encrypt(b"last"), harness.encrypt_close()

    assert executor.decrypt(last) == b"last"
    assert not executor.peer_closed
    assert executor.decrypt(closing) == b""
    assert executor.peer_closed
    assert harness.decrypt(executor.encrypt(b"the other direction goes on")) == b"the other direction goes on"
    executor.transport_ended()
    with pytest.raises(TransportFailed):
        executor.encrypt(b"after the end")


def test_14_bytes_after_the_close_record_are_refused_on_both_sides() -> None:
    harness, executor = agree()
    executor.decrypt(harness.encrypt_close())

    with pytest.raises(TransportFailed, match="the close record must be the last in its direction"):
        harness.encrypt(b"too late")
    with pytest.raises(TransportFailed, match="the close record must be the last in its direction"):
        executor.decrypt(bytes(100))


def test_14_an_empty_record_is_no_close_and_a_close_is_no_empty_record_elsewhere() -> None:
    harness, executor = agree()

    assert executor.decrypt(harness.encrypt(b"")) == b""
    assert not executor.peer_closed
    closing = harness.encrypt_close()
    harness2, executor2 = agree()
    with pytest.raises(TransportFailed):
        executor2.decrypt(closing)
    assert not executor2.peer_closed
    assert harness2.alive


def test_17_a_record_has_between_16_bytes_and_60_kib_with_its_tag() -> None:
    harness, executor = agree()

    assert len(harness.encrypt(bytes(MAX_PLAINTEXT_BYTES))) == 61_456
    for size, text in ((0, "short"), (15, "short"), (61_457, "large"), (65_536, "large")):
        _, channel = agree()
        with pytest.raises(InvalidMessage, match=f"transport ciphertext is too {text}$"):
            channel.decrypt(bytes(size))
        assert not channel.alive
    with pytest.raises(TransportFailed):
        executor.decrypt(bytes(16))


def test_17_sixty_five_thousand_five_hundred_and_thirty_five_bytes_are_the_hard_stop() -> None:
    harness, executor = agree(RecordLimits(max_plaintext_bytes=65_519))

    assert executor.decrypt(harness.encrypt(bytes(65_519))) == bytes(65_519)
    with pytest.raises(InvalidMessage, match="too large"):
        harness.encrypt(bytes(65_520))
    for wrong in (
        {"max_plaintext_bytes": 65_520},
        {"max_plaintext_bytes": 0},
        {"max_records": 2**32},
        {"max_records": 0},
    ):
        with pytest.raises(ValueError, match=r"must lie in 1\.\."):
            RecordLimits(**wrong)


def test_17_a_flood_of_empty_records_is_refused_and_a_few_are_ignored() -> None:
    harness, executor = agree()
    for _ in range(1024):
        assert executor.decrypt(harness.encrypt(b"")) == b""

    with pytest.raises(TransportFailed, match="too many empty records"):
        drain(executor, [harness.encrypt(b"") for _ in range(2048)])


def test_18_both_sides_stop_at_the_set_number_of_records() -> None:
    harness, executor = agree(RecordLimits(max_records=3))
    records = [harness.encrypt(b"%d" % number) for number in range(3)]
    assert [executor.decrypt(record) for record in records] == [b"0", b"1", b"2"]

    with pytest.raises(TransportFailed, match=r"^Noise channel transport failed: transport record nonce exhausted$"):
        harness.encrypt(b"3")
    with pytest.raises(TransportFailed, match="transport record nonce exhausted"):
        executor.decrypt(bytes(20))
    assert harness.records_sent == executor.records_received == 3


def test_18_by_default_the_last_record_is_the_last_sequence_number_of_the_relay() -> None:
    assert RecordLimits().max_records == 2**32 - 1


def test_an_interrupt_in_the_middle_of_a_record_ends_the_channel() -> None:
    harness, _ = agree()

    def interrupted(nonce: bytes, data: bytes, associated: bytes | None) -> bytes:
        raise KeyboardInterrupt

    harness._seal = interrupted
    with pytest.raises(KeyboardInterrupt):
        harness.encrypt(b"x")

    with pytest.raises(TransportFailed, match="the channel has ended"):
        harness.encrypt(b"x")


@pytest.mark.parametrize("wrong", ["a text that is long enough", 7, None])
def test_what_is_no_bytes_is_a_mistake_of_the_caller_and_ends_the_channel(wrong: object) -> None:
    harness, executor = agree()

    with pytest.raises(TypeError, match=r"^a record is a bytes-like object$") as refused:
        harness.encrypt(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^a record is a bytes-like object$"):
        executor.decrypt(wrong)  # type: ignore[arg-type]
    assert refused.value.__context__ is None
    assert not harness.alive


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_like_object_is_taken(kind: type) -> None:
    harness, executor = agree()

    assert executor.decrypt(kind(harness.encrypt(kind(b"a record")))) == b"a record"


def test_a_closed_channel_is_quiet_about_closing_and_loud_about_use() -> None:
    harness, _ = agree()
    harness.close()
    harness.close()

    for use in (lambda: harness.encrypt(b""), lambda: harness.decrypt(bytes(16)), harness.encrypt_close):
        with pytest.raises(NoiseError, match="the channel has ended"):
            use()
    with pytest.raises(TransportTruncated):
        harness.transport_ended()


def test_a_channel_is_not_made_by_hand_and_never_twice() -> None:
    initiator, responder = ends()
    responder.read_request(initiator.write_request(AUTHORIZATION))
    _, channel = responder.accept()

    with pytest.raises(TypeError, match="the result of a handshake"):
        SecureChannel(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(channel)
