"""Known keys: the same seed gives the same keys, and a script ends."""

import pytest

from actors.noise import HandshakeFailed, Identity, Initiator, Responder
from actors.noise.testing import ScriptedKeys, SeededKeys
from tests.actors.noise.support import EXECUTOR, HARNESS, PROLOGUE


def test_the_same_seed_gives_the_same_identities_in_the_same_order() -> None:
    one, two = SeededKeys(7), SeededKeys(7)
    first, second = Identity.generate(keys=one), Identity.generate(keys=one)

    assert first.public_key != second.public_key
    assert first.public_key == Identity.generate(keys=two).public_key
    assert second.public_key == Identity.generate(keys=two).public_key
    assert first.public_key != Identity.generate(keys=SeededKeys(8)).public_key


def test_seeded_keys_carry_a_whole_handshake() -> None:
    initiator = Initiator(HARNESS, EXECUTOR.public_key, prologue=PROLOGUE, keys=SeededKeys("a"))
    responder = Responder(EXECUTOR, prologue=PROLOGUE, keys=SeededKeys("b"))
    responder.read_request(initiator.write_request(b""))
    response, executor = responder.accept()

    assert executor.decrypt(initiator.read_response(response).encrypt(b"x")) == b"x"


def test_a_script_that_is_used_up_fails_the_handshake() -> None:
    initiator = Initiator(HARNESS, EXECUTOR.public_key, prologue=PROLOGUE, keys=ScriptedKeys())

    with pytest.raises(HandshakeFailed):
        initiator.write_request(b"")
