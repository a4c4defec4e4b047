"""The handshake as the reference's own tests see it: cases 48 to 58, and the answers an executor may give."""

import pytest

from actors.noise import (
    SUITE,
    ExecutorCredentialsRejected,
    HandshakeFailed,
    Identity,
    Initiator,
    InvalidMessage,
    InvalidPublicKey,
    InvalidState,
    PublicKey,
    Responder,
    TransportFailed,
    stream_prologue,
)
from tests.actors.noise.support import (
    AUTHORIZATION,
    EXECUTOR,
    HARNESS,
    PROLOGUE,
    STRANGER,
    agree,
    ends,
    flip,
)


def test_case_48_a_round_trip_shows_the_exact_key_and_payload_and_carries_records_both_ways() -> None:
    initiator, responder = ends()
    request = responder.read_request(initiator.write_request(AUTHORIZATION))
    response, executor = responder.accept()
    harness = initiator.read_response(response)
    asked, answered = harness.encrypt(b"question"), executor.encrypt(b"answer")

    assert request.public_key == HARNESS.public_key
    assert request.payload == AUTHORIZATION
    assert request.authorization == AUTHORIZATION.decode()
    assert executor.decrypt(asked) == b"question"
    assert harness.decrypt(answered) == b"answer"
    assert b"question" not in asked
    assert b"answer" not in answered


def test_case_49_a_wrong_x25519_half_of_the_pinned_key_makes_message_1_unreadable() -> None:
    pinned = PublicKey(x25519=STRANGER.public_key.x25519, mlkem768=EXECUTOR.public_key.mlkem768)
    message = Initiator(HARNESS, pinned, prologue=PROLOGUE).write_request(AUTHORIZATION)

    with pytest.raises(HandshakeFailed):
        Responder(EXECUTOR, prologue=PROLOGUE).read_request(message)


def test_case_50_a_wrong_mlkem_half_of_the_pinned_key_makes_message_1_unreadable() -> None:
    pinned = PublicKey(x25519=EXECUTOR.public_key.x25519, mlkem768=STRANGER.public_key.mlkem768)
    message = Initiator(HARNESS, pinned, prologue=PROLOGUE).write_request(AUTHORIZATION)

    with pytest.raises(HandshakeFailed):
        Responder(EXECUTOR, prologue=PROLOGUE).read_request(message)


def test_case_51_a_prologue_that_differs_in_the_stream_id_alone_fails_at_the_responder() -> None:
    initiator, responder = ends(prologue=stream_prologue("env-1", "registration-1", "stream-2"))

    with pytest.raises(HandshakeFailed):
        responder.read_request(initiator.write_request(AUTHORIZATION))


def test_case_52_the_prologue_is_four_parts_each_behind_eight_bytes_of_length() -> None:
    assert stream_prologue("env-1", "registration-1", "stream-1") == (
        b"\x00\x00\x00\x00\x00\x00\x00\x20codex-exec-server-relay-noise/v1"
        b"\x00\x00\x00\x00\x00\x00\x00\x05env-1"
        b"\x00\x00\x00\x00\x00\x00\x00\x0eregistration-1"
        b"\x00\x00\x00\x00\x00\x00\x00\x08stream-1"
    )


def test_case_53_one_flipped_bit_of_a_ciphertext_makes_it_unreadable() -> None:
    harness, executor = agree()

    with pytest.raises(TransportFailed, match=r"^Noise channel transport failed: "):
        executor.decrypt(flip(harness.encrypt(b"a record"), 11))


def test_case_54_a_record_is_read_once_and_its_replay_fails_as_a_transport_failure() -> None:
    harness, executor = agree()
    record = harness.encrypt(b"once")

    assert executor.decrypt(record) == b"once"
    with pytest.raises(TransportFailed):
        executor.decrypt(record)


def test_case_55_a_key_of_an_unknown_suite_never_becomes_a_key() -> None:
    fields = EXECUTOR.public_key.to_fields() | {"suite": "Noise_IK_25519_AESGCM_SHA256"}

    with pytest.raises(InvalidPublicKey, match=r"^invalid Noise channel public key: unsupported Noise channel suite$"):
        PublicKey.from_fields(fields)


def test_case_56_a_serialized_key_carries_the_suite_label() -> None:
    assert SUITE == "Noise_hybridIK_X25519+MLKEM768_AESGCM_SHA256"
    assert EXECUTOR.public_key.to_fields()["suite"] == SUITE
    assert f'"suite": "{SUITE}"' in EXECUTOR.public_key.to_json()


@pytest.mark.parametrize(("member", "name"), [("x25519_public_key", "X25519"), ("mlkem768_public_key", "ML-KEM-768")])
def test_case_57_an_absurdly_long_key_is_refused_by_length_before_it_is_decoded(member: str, name: str) -> None:
    fields = EXECUTOR.public_key.to_fields() | {member: "!" * 4096}

    with pytest.raises(InvalidPublicKey, match=f"^invalid Noise channel public key: invalid {name} public key length$"):
        PublicKey.from_fields(fields)


def test_case_58_a_payload_of_65535_bytes_is_too_large_and_61967_bytes_are_not() -> None:
    too_large, _ = ends()
    fits, _ = ends()

    with pytest.raises(InvalidMessage, match="handshake payload is too large"):
        too_large.write_request(bytes(65_535))
    assert len(fits.write_request(bytes(61_967))) == 65_535


def test_both_messages_have_the_sizes_of_the_wire() -> None:
    initiator, responder = ends()
    request = initiator.write_request(b"")
    responder.read_request(request)
    response, _ = responder.accept()

    assert len(request) == 3568
    assert len(response) == 3424


def test_an_executor_whose_credentials_the_registry_refused_says_so_inside_the_channel() -> None:
    initiator, responder = ends()
    responder.read_request(initiator.write_request(AUTHORIZATION))
    response = responder.reject_credentials()

    assert len(response) == 3465
    assert b"codex-registry" not in response
    with pytest.raises(ExecutorCredentialsRejected, match="environment registry rejected executor credentials"):
        initiator.read_response(response)
    with pytest.raises(InvalidState):
        responder.accept()


@pytest.mark.parametrize("payload", [b"x", b"codex-registry-authentication-rejected/v2", bytes(100)])
def test_any_other_payload_in_message_2_is_refused(payload: bytes) -> None:
    initiator, responder = ends()
    responder.read_request(initiator.write_request(AUTHORIZATION))
    handshake = responder._handshake
    assert handshake is not None

    with pytest.raises(InvalidMessage, match="handshake response payload must be empty"):
        initiator.read_response(handshake.write(payload))


def test_an_authorization_that_is_no_text_is_refused_without_quoting_it() -> None:
    initiator, responder = ends()
    request = responder.read_request(initiator.write_request(b"\xff\xfesecret"))

    with pytest.raises(InvalidMessage, match=r"not valid UTF-8$"):
        _ = request.authorization


def test_an_empty_authorization_is_passed_on() -> None:
    initiator, responder = ends()

    assert responder.read_request(initiator.write_request(b"")).authorization == ""


def test_closing_a_handshake_drops_it_and_leaves_its_channel_alive() -> None:
    initiator, responder = ends()
    responder.read_request(initiator.write_request(AUTHORIZATION))
    response, executor = responder.accept()
    harness = initiator.read_response(response)
    initiator.close()
    responder.close()

    assert executor.decrypt(harness.encrypt(b"still here")) == b"still here"


@pytest.mark.parametrize("part", ["\ud800", "a\udfffb"])
def test_an_id_that_is_no_text_makes_no_prologue(part: str) -> None:
    with pytest.raises(InvalidMessage, match="not valid Unicode"):
        stream_prologue("env-1", part, "stream-1")


@pytest.mark.parametrize("limit", [-1, 61_968])
def test_a_responder_refuses_a_payload_limit_that_no_message_can_have(limit: int) -> None:
    with pytest.raises(ValueError, match="max_payload_bytes must lie in"):
        Responder(EXECUTOR, prologue=PROLOGUE, max_payload_bytes=limit)


def test_identities_and_channels_are_not_made_by_hand() -> None:
    with pytest.raises(TypeError, match="generate"):
        Identity(b"")  # type: ignore[arg-type]
