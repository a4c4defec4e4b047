"""Any conversation, any damage, any order: properties, each seen killing the mutants it names."""

import hashlib
import hmac
import random
from collections.abc import Callable
from typing import ClassVar

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from actors.noise import (
    HandshakeFailed,
    Identity,
    Initiator,
    InvalidMessage,
    InvalidState,
    NoiseError,
    PublicKey,
    RecordLimits,
    Responder,
    SecureChannel,
    TransportFailed,
    stream_prologue,
)
from actors.noise._channel import Agreement
from actors.noise._symmetric import Hash
from actors.noise.testing import SeededKeys
from tests.actors.noise.classical import HASHES
from tests.actors.noise.support import AUTHORIZATION, EXECUTOR, HARNESS, PROLOGUE, agree, ends, flip

records = st.binary(max_size=200)


@given(
    st.lists(st.tuples(st.booleans(), records), max_size=40),
    st.integers(0, 2**32).map(random.Random),
)
def test_what_was_sealed_is_opened_in_order_however_late_the_two_directions_run(
    conversation: list[tuple[bool, bytes]], chance: random.Random
) -> None:
    """Mutants killed: one counter for both directions; a little-endian nonce on one side only."""
    harness, executor = agree()
    channels = {True: (harness, executor), False: (executor, harness)}
    wires: dict[bool, list[bytes]] = {True: [], False: []}
    expected: dict[bool, list[bytes]] = {True: [], False: []}
    for upward, text in conversation:
        wires[upward].append(channels[upward][0].encrypt(text))
        expected[upward].append(text)
        for direction, (_, reader) in channels.items():
            while wires[direction] and chance.random() < 0.4:
                assert reader.decrypt(wires[direction].pop(0)) == expected[direction].pop(0)
    for direction, (_, reader) in channels.items():
        assert [reader.decrypt(record) for record in wires[direction]] == expected[direction]

    assert harness.records_sent == executor.records_received == sum(upward for upward, _ in conversation)


@given(st.binary(max_size=300), st.data())
def test_one_flipped_bit_anywhere_in_a_record_kills_the_channel(text: bytes, data: st.DataObject) -> None:
    """Mutant killed: `_end` that does not close."""
    harness, executor = agree()
    record, following = harness.encrypt(text), harness.encrypt(text)
    bit = data.draw(st.integers(0, len(record) * 8 - 1))

    with pytest.raises(TransportFailed):
        executor.decrypt(flip(record, bit))
    for good in (following, record):
        with pytest.raises(TransportFailed, match="the channel has ended"):
            executor.decrypt(good)


@given(st.integers(0, (3568 + len(AUTHORIZATION)) * 8 - 1), st.booleans())
def test_one_flipped_bit_anywhere_in_a_handshake_kills_it(bit: int, first: bool) -> None:
    """Mutants killed: `ekem` without MixHash; a prologue that is not mixed on one side."""
    initiator, responder = ends()
    request = initiator.write_request(AUTHORIZATION)
    if first:
        with pytest.raises(HandshakeFailed):
            responder.read_request(flip(request, bit))
        with pytest.raises(InvalidState):
            responder.read_request(request)
        return
    responder.read_request(request)
    response, _ = responder.accept()
    with pytest.raises(HandshakeFailed):
        initiator.read_response(flip(response, bit % (3424 * 8)))
    with pytest.raises(InvalidState):
        initiator.read_response(response)


@given(st.lists(st.binary(min_size=16, max_size=100), min_size=1, max_size=5))
def test_bytes_that_were_not_sealed_for_us_are_never_opened(noise: list[bytes]) -> None:
    """Mutant killed: `decrypt` that returns the bytes when they are shorter than a tag and a byte."""
    harness, _ = agree()
    for junk in noise:
        with pytest.raises((TransportFailed, InvalidMessage)):
            harness.decrypt(junk)


@given(st.lists(st.sampled_from(["seal", "close", "too large"]), max_size=30), st.integers(1, 20))
def test_no_nonce_is_drawn_twice_whatever_is_asked_and_none_beyond_the_limit(steps: list[str], limit: int) -> None:
    """Mutants killed: a counter that `encrypt_close` does not advance; `range(max_records + 1)`."""
    drawn = list[bytes]()
    channel = SecureChannel(
        Agreement(send=Spy(drawn), receive=Spy([]), limits=RecordLimits(max_records=limit))  # type: ignore[arg-type]
    )
    calls: dict[str, Callable[[], object]] = {
        "seal": lambda: channel.encrypt(b"x"),
        "close": channel.encrypt_close,
        "too large": lambda: channel.encrypt(bytes(70_000)),
    }
    for step in steps:
        try:
            calls[step]()
        except NoiseError:
            assert not channel.alive

    assert drawn == [bytes(4) + number.to_bytes(8, "big") for number in range(len(drawn))]
    assert len(drawn) <= limit


class Spy:
    """An AEAD object that notes its nonces."""

    def __init__(self, drawn: list[bytes]) -> None:
        self.drawn = drawn

    def encrypt(self, nonce: bytes, data: bytes, associated: bytes | None) -> bytes:
        self.drawn.append(nonce)
        return data + bytes(16)

    decrypt = encrypt


@given(st.binary(min_size=32, max_size=32), st.lists(records, max_size=30))
def test_a_channel_is_the_raw_aead_with_a_counter(key: bytes, texts: list[bytes]) -> None:
    """Mutants killed: associated data of `b"x"`; nonces that start at 1."""
    send, receive = AESGCM(key), AESGCM(hashlib.sha256(key).digest())
    channel = SecureChannel(Agreement(send=send, receive=receive, limits=RecordLimits()))
    for number, text in enumerate(texts):
        nonce = bytes(4) + number.to_bytes(8, "big")

        assert channel.encrypt(text) == AESGCM(key).encrypt(nonce, text, b"")
        assert channel.decrypt(receive.encrypt(nonce, text, b"")) == text


@given(st.sampled_from(sorted(HASHES)), st.data(), st.binary(max_size=100), st.sampled_from([2, 3]))
def test_our_hkdf_is_the_standard_one_for_every_hash(
    name: str, data: st.DataObject, material: bytes, outputs: int
) -> None:
    """Mutants killed: the pads exchanged; the padding of one hash used for all; a third output chained to the first."""
    new = HASHES[name]
    size = new().digest_size
    chaining_key = data.draw(st.binary(min_size=size, max_size=size))
    secret = hmac.digest(chaining_key, material, new)
    expected = [hmac.digest(secret, b"\x01", new)]
    for number in range(2, outputs + 1):
        expected.append(hmac.digest(secret, expected[-1] + bytes([number]), new))

    assert Hash(new).hkdf(chaining_key, material, outputs) == tuple(expected)
    assert Hash(new).hash(material) == new(material).digest()


texts = st.text(max_size=20)


@given(st.tuples(texts, texts, texts), st.tuples(texts, texts, texts))
def test_two_streams_have_one_prologue_only_when_all_their_names_are_equal(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    """Mutant killed: lengths counted in characters."""
    assert (stream_prologue(*one) == stream_prologue(*other)) == (one == other)
    rest = stream_prologue(*one)
    for part in ("codex-exec-server-relay-noise/v1", *one):
        size = int.from_bytes(rest[:8], "big")
        assert rest[8 : 8 + size] == part.encode()
        rest = rest[8 + size :]
    assert rest == b""


@given(st.integers(0, 2**32))
def test_any_identity_has_a_public_key_that_survives_its_json(seed: int) -> None:
    """Mutant killed: the two halves swapped in `to_fields`."""
    key = Identity.generate(keys=SeededKeys(seed)).public_key

    assert PublicKey.from_json(key.to_json()) == key
    assert (key.to_fields()["suite"], len(key.x25519), len(key.mlkem768)) == (key.suite, 32, 1184)


STEPS = ["write_request", "read_request", "accept", "reject_credentials", "read_response"]
damages = st.sampled_from([None, None, 0, 8_704, 18_432, 27_000])


class EveryCallInEveryState(RuleBasedStateMachine):
    """25: two ends and a wire on which anything may happen; the model is the phase in which each end must be.

    Mutants killed: `_take` that leaves the phase; `read_request` alive before it has read; `accept` twice.
    """

    requests: ClassVar[Bundle[bytes]] = Bundle("requests")
    responses: ClassVar[Bundle[bytes]] = Bundle("responses")

    def __init__(self) -> None:
        super().__init__()
        self.begin_initiator()
        self.begin_responder()
        self.answer_to: dict[bytes, bytes | None] = {}

    def begin_initiator(self) -> None:
        self.initiator = Initiator(HARNESS, EXECUTOR.public_key, prologue=PROLOGUE)
        self.initiator_phase = "new"
        self.own_request: bytes | None = None

    def begin_responder(self) -> None:
        self.responder = Responder(EXECUTOR, prologue=PROLOGUE)
        self.responder_phase = "new"
        self.read: bytes | None = None

    @initialize(target=requests, payload=st.binary(max_size=50))
    def another_request(self, payload: bytes) -> bytes:
        return ends()[0].write_request(payload)

    @precondition(lambda self: self.initiator_phase == "new")
    @rule(target=requests, payload=st.binary(max_size=50))
    def write_request(self, payload: bytes) -> bytes:
        self.own_request = self.initiator.write_request(payload)
        self.initiator_phase = "asked"
        return self.own_request

    @precondition(lambda self: self.responder_phase == "new")
    @rule(request=requests, damage=damages)
    def read_request(self, request: bytes, damage: int | None) -> None:
        if damage is None:
            assert self.responder.read_request(request).public_key == HARNESS.public_key
            self.read, self.responder_phase = request, "asked"
            return
        with pytest.raises(HandshakeFailed):
            self.responder.read_request(flip(request, damage % (3568 * 8)))
        self.responder_phase = "over"

    @precondition(lambda self: self.responder_phase == "asked")
    @rule(target=responses, rejects=st.sampled_from([False, False, False, True]))
    def answer(self, rejects: bool) -> bytes:
        self.responder_phase = "over"
        if rejects:
            return self.responder.reject_credentials()
        message, _ = self.responder.accept()
        self.answer_to[message] = self.read
        return message

    @precondition(lambda self: self.initiator_phase == "asked")
    @rule(response=responses, damage=damages)
    def read_response(self, response: bytes, damage: int | None) -> None:
        self.initiator_phase = "over"
        if damage is None and self.answer_to.get(response, b"") == self.own_request:
            assert self.initiator.read_response(response).alive
            return
        with pytest.raises((HandshakeFailed, InvalidMessage)):
            self.initiator.read_response(response if damage is None else flip(response, damage % (3424 * 8)))

    @rule(step=st.sampled_from(["write_request", "read_request", "accept", "reject_credentials", "read_response"]))
    def step_out_of_turn(self, step: str) -> None:
        """Whatever the bytes, the end is dead afterwards."""
        initiates = step in ("write_request", "read_response")
        turn = "new" if step in ("write_request", "read_request") else "asked"
        if (self.initiator_phase if initiates else self.responder_phase) == turn:
            return
        call = getattr(self.initiator if initiates else self.responder, step)
        with pytest.raises(InvalidState):
            call(*([] if step in ("accept", "reject_credentials") else [bytes(3568)]))
        if initiates:
            self.initiator_phase = "over"
        else:
            self.responder_phase = "over"

    @rule(initiator=st.booleans(), responder=st.booleans())
    def close(self, initiator: bool, responder: bool) -> None:
        if initiator:
            self.initiator.close()
            self.initiator_phase = "over"
        if responder:
            self.responder.close()
            self.responder_phase = "over"

    @rule(target=responses)
    def whole_handshake(self) -> bytes:
        self.begin_initiator()
        self.begin_responder()
        self.responder.read_request(self.initiator.write_request(b"in turn"))
        message, executor = self.responder.accept()
        harness = self.initiator.read_response(message)
        self.initiator_phase = self.responder_phase = "over"
        assert executor.decrypt(harness.encrypt(b"agreed")) == b"agreed"
        return message

    # Runs would die young otherwise: of 100, one had a request read before these were added.
    @precondition(lambda self: self.initiator_phase == "over")
    @rule()
    def begin_initiator_again(self) -> None:
        self.begin_initiator()

    @precondition(lambda self: self.responder_phase == "over")
    @rule()
    def begin_responder_again(self) -> None:
        self.begin_responder()

    @invariant()
    def keys_are_held_exactly_while_a_call_may_succeed(self) -> None:
        assert (self.initiator._handshake is None) == (self.initiator_phase == "over")
        assert (self.responder._handshake is None) == (self.responder_phase == "over")


test_25_every_call_in_every_state = EveryCallInEveryState.TestCase
test_25_every_call_in_every_state.settings = settings(stateful_step_count=25)
