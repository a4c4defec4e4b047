"""The pitfalls of a handshake, one test each, numbered as in the list of docs/threat-model.md."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from cryptography.hazmat.backends.openssl.backend import backend

from actors.noise import (
    MAX_AUTHORIZATION_BYTES,
    HandshakeFailed,
    Identity,
    Initiator,
    InvalidMessage,
    InvalidPublicKey,
    InvalidState,
    KeyGenerationFailed,
    NoiseError,
    PublicKey,
    Responder,
    TransportFailed,
    stream_prologue,
)
from actors.noise._handshake import Handshake
from actors.noise._identity import pair_of_identity
from actors.noise._primitives import PrivatePair, PublicPair, SystemKeys
from actors.noise._public_key import pair_of_key
from actors.noise._suite import Pattern
from tests.actors.noise.classical import ik, private
from tests.actors.noise.support import (
    AUTHORIZATION,
    EXECUTOR,
    HARNESS,
    LOW_ORDER_POINTS,
    PROLOGUE,
    STRANGER,
    ends,
    everything_said_by,
    flip,
)

REFUSED = "^Noise channel handshake failed: the handshake message was refused$"
# Where the fields of each message begin.
REQUEST_BORDERS = [0, 1088, 1120, 2304, 2352, 3552]
RESPONSE_BORDERS = [0, 1088, 2192, 2224, 3408]


def handshake(side: str, **changed: Any) -> Handshake:
    """A handshake without the door in front of it, for an attacker to bend."""
    options: dict[str, Any] = {
        "initiator": side == "harness",
        "prologue": PROLOGUE,
        "static": pair_of_identity(HARNESS if side == "harness" else EXECUTOR),
        "remote_static": pair_of_key(EXECUTOR.public_key) if side == "harness" else None,
        "keys": SystemKeys(),
    }
    return Handshake(**(options | changed))


class BentEphemeral(SystemKeys):
    """Sends a chosen X25519 point as its ephemeral key."""

    def __init__(self, point: bytes) -> None:
        self.point = point

    def new_x25519(self) -> Any:
        real = super().new_x25519()
        public = SimpleNamespace(public_bytes_raw=lambda: self.point)
        return SimpleNamespace(public_key=lambda: public, exchange=lambda peer: bytes(32), real=real)


class MalformedKem(SystemKeys):
    """Sends an ML-KEM-768 ephemeral key whose numbers are not below the modulus."""

    def new_mlkem768(self) -> Any:
        return SimpleNamespace(public_key=lambda: SimpleNamespace(public_bytes_raw=lambda: b"\xff" * 1184))


@pytest.mark.parametrize("point", LOW_ORDER_POINTS)
def test_01_a_low_order_point_is_refused_wherever_it_comes_from(point: bytes) -> None:
    pinned = PublicKey(x25519=point, mlkem768=EXECUTOR.public_key.mlkem768)
    initiator = Initiator(HARNESS, pinned, prologue=PROLOGUE)
    asking, responder = ends()
    bent = handshake("harness", keys=BentEphemeral(point)).write(AUTHORIZATION)
    answering = handshake("executor", keys=BentEphemeral(point))
    answering.read(asking.write_request(AUTHORIZATION))

    with pytest.raises(HandshakeFailed, match=REFUSED):
        initiator.write_request(AUTHORIZATION)
    with pytest.raises(HandshakeFailed, match=REFUSED):
        responder.read_request(bent)
    with pytest.raises(HandshakeFailed, match=REFUSED):
        asking.read_response(answering.write(b""))
    for dead in (initiator.write_request, responder.read_request, asking.read_response):
        with pytest.raises(InvalidState):
            dead(b"")


@pytest.mark.parametrize("point", LOW_ORDER_POINTS)
def test_02_an_all_zero_shared_secret_is_never_mixed(point: bytes) -> None:
    """All of Wycheproof's X25519 cases stand in test_wycheproof."""
    with pytest.raises(ValueError, match="shared key"):
        pair_of_identity(HARNESS).x25519.exchange(PublicPair(point, None).x25519)


def test_03_malformed_mlkem_keys_and_ciphertexts_are_refused_without_an_oracle() -> None:
    key = EXECUTOR.public_key
    request = ends()[0].write_request(AUTHORIZATION)

    for bad in (b"\xff" * 1184, bytes(1183), bytes(1185), b""):
        with pytest.raises(InvalidPublicKey):
            PublicKey(x25519=key.x25519, mlkem768=bad)
    # A wrong ciphertext gives a wrong secret, not an error of its own: it fails like a wrong tag.
    for changed in (flip(request, 0), flip(request, 500 * 8), flip(request, 3567 * 8)):
        with pytest.raises(HandshakeFailed, match=REFUSED):
            ends()[1].read_request(changed)


@pytest.mark.parametrize("half", ["static", "ephemeral"])
def test_03_an_mlkem_key_in_message_1_that_fails_its_modulus_check_gets_no_answer(half: str) -> None:
    bad = PublicPair(HARNESS.public_key.x25519, b"\xff" * 1184)
    real = pair_of_identity(HARNESS)
    static: Any = SimpleNamespace(public=bad, x25519=real.x25519) if half == "static" else real
    keys = SystemKeys() if half == "static" else MalformedKem()
    request = handshake("harness", static=static, keys=keys).write(AUTHORIZATION)

    with pytest.raises(HandshakeFailed, match=REFUSED):
        ends()[1].read_request(request)


@pytest.mark.parametrize("bit", [*range(0, 3568 * 8, 1009), *(border * 8 for border in REQUEST_BORDERS)])
def test_04_every_bit_of_message_1_matters(bit: int) -> None:
    initiator, responder = ends()

    with pytest.raises(HandshakeFailed, match=REFUSED):
        responder.read_request(flip(initiator.write_request(b""), bit))


@pytest.mark.parametrize("bit", [*range(0, 3424 * 8, 1009), *(border * 8 for border in RESPONSE_BORDERS)])
def test_04_every_bit_of_message_2_matters(bit: int) -> None:
    initiator, responder = ends()
    responder.read_request(initiator.write_request(b""))

    with pytest.raises(HandshakeFailed, match=REFUSED):
        initiator.read_response(flip(responder.accept()[0], bit))


def test_04_cut_grown_swapped_and_mirrored_messages_are_refused() -> None:
    request = ends()[0].write_request(AUTHORIZATION)
    answering = ends()[1]
    answering.read_request(request)
    response, _ = answering.accept()
    sizes = {cut + more for cut in (*REQUEST_BORDERS, 3568, len(request)) for more in (-1, 0, 1)} - {
        -1,
        len(request),
    }

    for size in sizes:
        with pytest.raises(HandshakeFailed, match=REFUSED):
            ends()[1].read_request((request + b"x")[:size])
    for size in [*RESPONSE_BORDERS, 3423, 0]:
        asking = ends()[0]
        asking.write_request(AUTHORIZATION)
        with pytest.raises(HandshakeFailed, match=REFUSED):
            asking.read_response(response[:size])
    for swapped in (response, response + bytes(144), bytes(3568)):
        with pytest.raises(HandshakeFailed, match=REFUSED):
            ends()[1].read_request(swapped)
    asking = ends()[0]
    mirrored = asking.write_request(AUTHORIZATION)[:3424]
    with pytest.raises(HandshakeFailed, match=REFUSED):
        asking.read_response(mirrored)
    # The roles swapped: the harness's own request, brought to the harness.
    with pytest.raises(HandshakeFailed, match=REFUSED):
        Responder(HARNESS, prologue=PROLOGUE).read_request(request)


def test_05_a_failure_that_the_caller_swallows_leaves_nothing_to_use() -> None:
    initiator, responder = ends()
    request = initiator.write_request(AUTHORIZATION)
    with pytest.raises(HandshakeFailed):
        responder.read_request(flip(request, 99))

    for call in (responder.accept, responder.reject_credentials, lambda: responder.read_request(request)):
        with pytest.raises(InvalidState):
            call()
    with pytest.raises(HandshakeFailed):
        initiator.read_response(bytes(3424))
    for call in (lambda: initiator.read_response(bytes(3424)), lambda: initiator.write_request(b"")):
        with pytest.raises(InvalidState):
            call()
    assert responder._handshake is initiator._handshake is None


def test_05_an_interrupt_in_the_middle_leaves_a_dead_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    initiator, responder = ends()
    request = initiator.write_request(AUTHORIZATION)

    def interrupted(self: Handshake, message: bytes) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Handshake, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            responder.read_request(request)

    with pytest.raises(InvalidState):
        responder.read_request(request)


def test_06_a_transcript_shows_neither_the_harness_nor_its_authorization() -> None:
    initiator, responder = ends()
    request = initiator.write_request(AUTHORIZATION)
    responder.read_request(request)
    response, executor = responder.accept()
    transcript = request + response + executor.encrypt(b"hello")
    key = HARNESS.public_key

    for hidden in (
        key.x25519,
        key.mlkem768[:32],
        key.mlkem768[-32:],
        AUTHORIZATION,
        EXECUTOR.public_key.x25519,
    ):
        assert hidden not in transcript
    # Visible all the same: every size, and with it the length of the authorization.
    assert len(request) - 3568 == len(AUTHORIZATION)


def test_07_a_replayed_message_1_is_read_but_cannot_be_finished() -> None:
    initiator, first = ends()
    request = initiator.write_request(AUTHORIZATION)
    first.read_request(request)
    response, _ = first.accept()
    harness = initiator.read_response(response)
    record = harness.encrypt(b"transfer everything")
    again = ends()[1]
    replayed = again.read_request(request)
    _, channel = again.accept()

    assert replayed.payload == AUTHORIZATION, "accepted by design of IK: the authorization must be single-use"
    with pytest.raises(TransportFailed):
        channel.decrypt(record)
    with pytest.raises(InvalidState):
        again.read_request(request)


def impersonation(**private_halves: Any) -> Handshake:
    """Message 1 in the name of the harness, by someone who holds only what is given."""
    claimed = pair_of_key(HARNESS.public_key)
    forged = SimpleNamespace(public=claimed, **private_halves)
    return handshake("harness", static=cast("PrivatePair", forged))


def test_08_with_the_executors_keys_one_can_claim_to_be_any_harness_but_not_finish() -> None:
    stolen = pair_of_identity(EXECUTOR)
    harness_point = pair_of_key(HARNESS.public_key).x25519
    # DH(harness, executor) can be had from the executor's side too.
    thief = impersonation(
        x25519=SimpleNamespace(exchange=lambda peer: stolen.x25519.exchange(harness_point)),
        mlkem768=pair_of_identity(STRANGER).mlkem768,
    )
    responder = ends()[1]
    request = responder.read_request(thief.write(b"forged"))
    response, channel = responder.accept()

    assert request.public_key == HARNESS.public_key, "so far it is only a claim"
    with pytest.raises(Exception, match=r"^$"):  # The primitive's InvalidTag has no text.
        thief.read(response)
    assert channel.records_received == 0


def test_09_the_mlkem_half_of_a_harness_is_a_claim_that_authorization_must_check_with_the_other() -> None:
    own, other = pair_of_identity(HARNESS), pair_of_identity(STRANGER)
    mixed = handshake("harness", static=PrivatePair(own.x25519, other.mlkem768))
    responder = ends()[1]
    request = responder.read_request(mixed.write(AUTHORIZATION))

    assert request.public_key.x25519 == HARNESS.public_key.x25519
    assert request.public_key != HARNESS.public_key, "the pair is compared, and refused"


def test_09_who_claims_an_mlkem_key_without_holding_it_cannot_read_the_answer() -> None:
    claimant = impersonation(x25519=pair_of_identity(HARNESS).x25519, mlkem768=pair_of_identity(STRANGER).mlkem768)
    responder = ends()[1]
    request = responder.read_request(claimant.write(AUTHORIZATION))

    assert request.public_key == HARNESS.public_key
    with pytest.raises(Exception, match=r"^$"):
        claimant.read(responder.accept()[0])


def test_10_message_1_is_readable_to_who_gets_the_executors_keys_later_and_records_are_not() -> None:
    initiator, responder = ends()
    request = initiator.write_request(AUTHORIZATION)
    responder.read_request(request)
    response, _ = responder.accept()
    record = initiator.read_response(response).encrypt(b"a record")
    thief = Responder(EXECUTOR, prologue=PROLOGUE)

    assert thief.read_request(request).payload == AUTHORIZATION, "so it must be worthless by then"
    with pytest.raises(TransportFailed):
        thief.accept()[1].decrypt(record)


@pytest.mark.parametrize(
    "names",
    [
        ("env-2", "registration-1", "stream-1"),
        ("env-1", "registration-2", "stream-1"),
        ("env-1", "registration-1", "stream-2"),
        ("env-1registration-1", "", "stream-1"),
        ("env-1", "", ""),
        ("env-1\0", "registration-1", "stream-1"),
        ("", "", ""),
    ],
)
def test_15_each_part_of_the_prologue_alone_is_bound(names: tuple[str, str, str]) -> None:
    initiator, responder = ends(prologue=stream_prologue(*names))

    with pytest.raises(HandshakeFailed, match=REFUSED):
        responder.read_request(initiator.write_request(AUTHORIZATION))


def test_15_parts_that_join_to_the_same_text_have_other_prologues() -> None:
    assert stream_prologue("ab", "c", "") != stream_prologue("a", "bc", "")
    assert stream_prologue("", "ab", "c") != stream_prologue("ab", "", "c")
    assert stream_prologue("é", "", "").endswith(b"\0\0\0\0\0\0\0\x02\xc3\xa9" + bytes(16))
    assert stream_prologue("a\0b", "", "").count(b"a\0b") == 1


def test_16_another_suite_a_classical_message_or_a_backend_without_mlkem_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other labels and extra members stand in test_public_key, the older token order in test_recordings."""
    static = private(bytes(range(32)))
    classical = ik(
        "Noise_IK_25519_AESGCM_SHA256",
        initiator=True,
        prologue=PROLOGUE,
        static=static,
        remote=EXECUTOR.public_key.x25519,
    )

    with pytest.raises(HandshakeFailed, match=REFUSED):
        ends()[1].read_request(classical.write(bytes(4000)))
    monkeypatch.setattr(type(backend), "mlkem_supported", lambda self: False)
    with pytest.raises(KeyGenerationFailed, match="has no ML-KEM-768; install a wheel of version 48 or newer"):
        Identity.generate()
    with pytest.raises(KeyGenerationFailed):
        PublicKey.from_fields(EXECUTOR.public_key.to_fields())
    with pytest.raises(HandshakeFailed):
        ends()[0].write_request(b"")


def test_17_every_size_is_checked_before_any_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, _ = ends()
    largest = ends()[0].write_request(bytes(MAX_AUTHORIZATION_BYTES))
    asking.write_request(b"")
    ends()[1].read_request(largest)

    def worked(self: Handshake, message: bytes) -> bytes:
        raise AssertionError("a message of a wrong size was worked on")

    monkeypatch.setattr(Handshake, "read", worked)
    monkeypatch.setattr(Handshake, "write", worked)
    refusals: list[tuple[Any, str]] = [
        (lambda: ends()[1].read_request(largest + b"x"), "handshake request is too large"),
        (lambda: ends()[1].read_request(bytes(65_536)), "handshake request is too large"),
        (lambda: ends()[1].read_request(bytes(3567)), "the handshake message was refused"),
        (lambda: ends()[0].write_request(bytes(61_968)), "handshake payload is too large"),
        (lambda: asking.read_response(bytes(65_536)), "handshake response is too large"),
    ]
    for call, text in refusals:
        with pytest.raises((InvalidMessage, HandshakeFailed), match=text):
            call()
    for size in (3425, 3464, 3466, 65_535):
        answered = ends()[0]
        answered._phase = type(answered._phase).ASKED
        with pytest.raises(InvalidMessage, match="handshake response payload must be empty"):
            answered.read_response(bytes(size))


def test_24_every_handshake_failure_says_the_same_and_sends_nothing() -> None:
    request = ends()[0].write_request(AUTHORIZATION)
    bent = handshake("harness", keys=BentEphemeral(LOW_ORDER_POINTS[0])).write(AUTHORIZATION)
    failures = set[tuple[type, str]]()
    for message in (*(flip(request, border * 8) for border in REQUEST_BORDERS), bent, request[:-1], b""):
        responder = ends()[1]
        with pytest.raises(NoiseError) as refused:
            responder.read_request(message)
        failures.add((type(refused.value), str(refused.value)))
        with pytest.raises(InvalidState):
            responder.accept()

    assert failures == {(HandshakeFailed, "Noise channel handshake failed: the handshake message was refused")}


class NoKem(SystemKeys):
    """A source of keys whose encapsulation fails, as a broken backend's would."""

    def encapsulate(self, peer: Any) -> tuple[bytes, bytes]:
        raise RuntimeError(AUTHORIZATION)


@pytest.mark.parametrize("answer", ["accept", "reject_credentials"])
def test_24_a_failure_while_answering_is_as_opaque_and_as_final(answer: str) -> None:
    responder = Responder(EXECUTOR, prologue=PROLOGUE, keys=NoKem())
    responder.read_request(ends()[0].write_request(AUTHORIZATION))

    with pytest.raises(HandshakeFailed, match=REFUSED) as failed:
        getattr(responder, answer)()
    assert AUTHORIZATION.decode() not in everything_said_by(failed.value)
    with pytest.raises(InvalidState):
        getattr(responder, answer)()


def test_24_a_request_that_names_nobody_is_refused_in_the_words_of_the_reference() -> None:
    nameless = Pattern(messages=(("skem", "e", "es"), ()), kem=True)
    responder = ends()[1]
    responder._handshake = handshake("executor", pattern=nameless)
    request = handshake("harness", pattern=nameless).write(bytes(MAX_AUTHORIZATION_BYTES))

    with pytest.raises(HandshakeFailed, match=r"handshake request is missing initiator static key$"):
        responder.read_request(request)


def test_a_message_that_ends_within_a_field_is_refused_by_the_machine_itself() -> None:
    for size in (0, 1087, 1100, 2303):
        with pytest.raises(ValueError, match="the message is too short"):
            handshake("executor").read(bytes(size))
