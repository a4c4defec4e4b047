"""Recorded handshakes with independent implementations, replayed byte for byte through the public door.

One was made with a port of the reference's Noise library, one with the existing executor itself.
"""

import hashlib
from typing import Any

import attrs
import pytest

from actors.noise import (
    HandshakeFailed,
    Identity,
    Initiator,
    NoiseError,
    PublicKey,
    RecordLimits,
    Responder,
    stream_prologue,
)
from actors.noise._handshake import Handshake
from actors.noise._identity import pair_of_identity
from actors.noise._public_key import pair_of_key
from actors.noise._suite import HYBRID_IK, SUITE
from actors.noise._symmetric import HYBRID
from tests.actors.noise.support import ScriptedKeys, recording, vector_file


def hexed(fields: dict[str, Any], *names: str) -> bytes:
    return b"".join(bytes.fromhex(fields[name]) for name in names)


VECTOR = recording("hybrid_ik_25519_mlkem768_aesgcm_sha256.json")
CODEX = recording("noise-hybrid-codex.json")


def vector_ends() -> tuple[Initiator, Responder]:
    harness = Identity.from_seed(hexed(VECTOR, "init_static_dh", "init_static_kem_seed"))
    executor = Identity.from_seed(hexed(VECTOR, "resp_static_dh", "resp_static_kem_seed"))
    prologue = hexed(VECTOR, "prologue")
    return (
        Initiator(harness, executor.public_key, prologue=prologue, keys=vector_keys("init")),
        Responder(executor, prologue=prologue, keys=vector_keys("resp")),
    )


def vector_keys(side: str) -> ScriptedKeys:
    kems = ["msg0_skem"] if side == "init" else ["msg1_ekem", "msg1_skem"]
    return ScriptedKeys(
        x25519=[hexed(VECTOR, f"{side}_ephemeral_dh")],
        mlkem768=[hexed(VECTOR, f"{side}_ephemeral_kem_seed")],
        encapsulations=[(hexed(VECTOR, f"{kem}_shared_secret"), hexed(VECTOR, f"{kem}_ciphertext")) for kem in kems],
    )


def test_both_sides_reproduce_the_hybrid_vector_in_our_suite() -> None:
    initiator, responder = vector_ends()
    request = initiator.write_request(hexed(VECTOR, "msg0_payload"))
    read = responder.read_request(request)
    response, executor = responder.accept()
    harness = initiator.read_response(response)

    assert request == hexed(VECTOR, "msg0")
    assert read.payload == hexed(VECTOR, "msg0_payload")
    assert response == hexed(VECTOR, "msg1")
    for record in VECTOR["records"]:
        sender, reader = (harness, executor) if record["sender"] == "initiator" else (executor, harness)
        plaintext, ciphertext = hexed(record, "plaintext"), hexed(record, "ciphertext")
        assert sender.encrypt(plaintext) == ciphertext
        assert reader.decrypt(ciphertext) == plaintext


def bare(side: str, **changed: Any) -> Handshake:
    """One side of the vector without the door, to look at the hash or to be another suite."""
    statics = {
        name: Identity.from_seed(hexed(VECTOR, f"{name}_static_dh", f"{name}_static_kem_seed"))
        for name in ("init", "resp")
    }
    options: dict[str, Any] = {
        "initiator": side == "init",
        "prologue": hexed(VECTOR, "prologue"),
        "static": pair_of_identity(statics[side]),
        "remote_static": pair_of_key(statics["resp"].public_key) if side == "init" else None,
        "keys": vector_keys(side),
    }
    return Handshake(**(options | changed))


def test_both_handshake_hashes_are_those_of_the_vector() -> None:
    initiator, responder = bare("init"), bare("resp")
    responder.read(initiator.write(hexed(VECTOR, "msg0_payload")))

    assert initiator.hash.hex() == responder.hash.hex() == VECTOR["handshake_hash_after_msg0"]
    initiator.read(responder.write(b""))
    assert initiator.hash.hex() == responder.hash.hex() == VECTOR["handshake_hash"]


def test_the_label_of_the_suite_is_not_the_name_that_is_hashed() -> None:
    mislabelled = bare("init", suite=attrs.evolve(HYBRID, name=SUITE.encode()))

    assert mislabelled.write(hexed(VECTOR, "msg0_payload"))[: 1088 + 1216] == hexed(VECTOR, "msg0")[: 1088 + 1216]
    assert mislabelled.hash.hex() != VECTOR["handshake_hash_after_msg0"]
    with pytest.raises(HandshakeFailed):
        vector_ends()[1].read_request(
            bare("init", suite=attrs.evolve(HYBRID, name=SUITE.encode())).write(b"authorization")
        )


def test_the_older_order_of_message_2_is_refused() -> None:
    older = attrs.evolve(HYBRID_IK, messages=(HYBRID_IK.messages[0], ("e", "ee", "se", "ekem", "skem")))
    initiator, _ = vector_ends()
    responder = bare("resp", pattern=older)
    responder.read(initiator.write_request(b"authorization"))

    with pytest.raises(HandshakeFailed):
        initiator.read_response(responder.write(b""))


def test_the_machine_reproduces_the_published_hybrid_vector_with_sha512() -> None:
    lines = vector_file("clatter-hybrid_ik_x25519_mlkem768_aes_sha512.txt").read_text().splitlines()
    published = dict(line.split(": ", 1) for line in lines if ": " in line)
    suite = attrs.evolve(HYBRID, name=HYBRID.name.replace(b"SHA256", b"SHA512"), digest=hashlib.sha512)
    prologue = bytes.fromhex(published["prologue_hex"])
    initiator, responder = (bare(side, suite=suite, prologue=prologue) for side in ("init", "resp"))
    request = initiator.write(b"")
    responder.read(request)
    response = responder.write(b"")
    initiator.read(response)
    (send, receive), texts = initiator.split(), (b"Scream without a sound", b"Flying off the handle")

    assert request.hex() == published["msg[0] initiator"]
    assert response.hex() == published["msg[1] responder"]
    assert initiator.hash.hex() == responder.hash.hex() == published["handshake_hash"]
    assert send.encrypt(bytes(12), texts[0], b"").hex() == published["transport[0] initiator"]
    assert receive.decrypt(bytes(12), bytes.fromhex(published["transport[1] responder"]), b"") == texts[1]


def codex_initiator() -> Initiator:
    secrets = CODEX["initiator"]
    return Initiator(
        Identity.from_seed(hexed(secrets, "static_x25519_private", "static_mlkem768_seed")),
        PublicKey.from_fields(CODEX["responder_public_key_json"]),
        prologue=stream_prologue(CODEX["environment_id"], CODEX["executor_registration_id"], CODEX["stream_id"]),
        keys=ScriptedKeys(
            x25519=[hexed(secrets, "ephemeral_x25519_private")],
            mlkem768=[hexed(secrets, "ephemeral_mlkem768_seed")],
            encapsulations=[(hexed(CODEX, "skem_shared_secret"), hexed(CODEX, "skem_ciphertext"))],
        ),
    )


def test_the_recorded_handshake_with_the_existing_executor_is_finished_and_its_records_are_read() -> None:
    initiator = codex_initiator()
    request = initiator.write_request(CODEX["authorization"].encode())
    channel = initiator.read_response(hexed(CODEX, "message_2"))

    assert request == hexed(CODEX, "message_1")
    assert {record["from"] for record in CODEX["records"]} == {"harness", "executor"}
    for record in CODEX["records"]:
        if record["from"] == "executor":
            matches(record, "plaintext", channel.decrypt(hexed(record, "ciphertext")))
            assert channel.records_received == record["seq"] + 1
        else:
            matches(record, "ciphertext", channel.encrypt(plaintext_of(record)))
            assert channel.records_sent == record["seq"] + 1


def matches(record: dict[str, Any], name: str, data: bytes) -> None:
    """Large texts are in the recording as their SHA-256 alone."""
    if name in record:
        assert data == hexed(record, name)
    else:
        assert hashlib.sha256(data).hexdigest() == record[f"{name}_sha256"]


def plaintext_of(record: dict[str, Any]) -> bytes:
    if "plaintext" in record:
        return hexed(record, "plaintext")
    message = CODEX["large_message"]["json"].replace("<x repeated 70000 times>", "x" * 70_000).encode()
    stream = len(message).to_bytes(4, "big") + message
    return stream[:61_440] if record["plaintext_length"] == 61_440 else stream[61_440:]


def test_the_recorded_public_keys_have_our_form_and_prologue() -> None:
    identity = Identity.from_seed(hexed(CODEX["initiator"], "static_x25519_private", "static_mlkem768_seed"))

    assert identity.public_key.to_fields() == CODEX["initiator_public_key_json"]
    assert PublicKey.from_fields(CODEX["responder_public_key_json"]).to_fields() == (CODEX["responder_public_key_json"])
    assert (
        stream_prologue(CODEX["environment_id"], CODEX["executor_registration_id"], CODEX["stream_id"]).hex()
        == CODEX["prologue"]
    )


@pytest.mark.parametrize("bit", range(0, 3424 * 8, 997))
def test_a_recorded_answer_with_one_flipped_bit_is_refused(bit: int) -> None:
    initiator = codex_initiator()
    initiator.write_request(CODEX["authorization"].encode())
    changed = bytearray(hexed(CODEX, "message_2"))
    changed[bit // 8] ^= 1 << bit % 8

    with pytest.raises(NoiseError, match=r"^Noise channel handshake failed: the handshake message was refused$"):
        initiator.read_response(bytes(changed))


def test_limits_do_not_change_the_bytes() -> None:
    initiator, responder = vector_ends()
    initiator._limits = RecordLimits(max_plaintext_bytes=65_519)
    responder.read_request(initiator.write_request(hexed(VECTOR, "msg0_payload")))
    response, _ = responder.accept()
    first = VECTOR["records"][0]

    assert initiator.read_response(response).encrypt(hexed(first, "plaintext")) == hexed(first, "ciphertext")
