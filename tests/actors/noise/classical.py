"""Classical Noise on the same machine: IK, any cipher and hash, X25519 alone. Only ever a test subject."""

import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from noise.backends.default.ciphers import AESGCMCipher, ChaCha20Cipher

from actors.noise._handshake import Handshake
from actors.noise._primitives import KeySource, PrivatePair, PublicPair, SystemKeys
from actors.noise._suite import Pattern
from actors.noise._symmetric import Suite

IK = Pattern(messages=(("e", "es", "s", "ss"), ("e", "ee", "se")), kem=False)

CIPHERS: dict[str, Any] = {"AESGCM": AESGCMCipher, "ChaChaPoly": ChaCha20Cipher}
HASHES: dict[str, Any] = {
    "SHA256": hashlib.sha256,
    "SHA512": hashlib.sha512,
    "BLAKE2s": hashlib.blake2s,
    "BLAKE2b": hashlib.blake2b,
}


def private(raw: bytes) -> PrivatePair:
    return PrivatePair(X25519PrivateKey.from_private_bytes(raw), None)


def ik(
    name: str,
    *,
    initiator: bool,
    prologue: bytes,
    static: PrivatePair,
    remote: bytes | None = None,
    keys: KeySource | None = None,
) -> Handshake:
    """One side of the handshake that `name` names, such as Noise_IK_25519_ChaChaPoly_BLAKE2s."""
    _, pattern, dh, cipher, digest = name.split("_")
    assert (pattern, dh) == ("IK", "25519")
    return Handshake(
        initiator=initiator,
        prologue=prologue,
        static=static,
        remote_static=None if remote is None else PublicPair(remote, None),
        keys=keys or SystemKeys(),
        pattern=IK,
        suite=Suite(name=name.encode(), cipher=CIPHERS[cipher], digest=HASHES[digest]),
    )


class Records:
    """Seal and open with raw AEAD objects: ChaChaPoly counts little-endian, which our channel cannot."""

    def __init__(self, handshake: Handshake, cipher: str) -> None:
        self._send, self._receive = handshake.split()
        self._order: Any = "big" if cipher == "AESGCM" else "little"
        self._sent = self._received = 0

    def seal(self, plaintext: bytes) -> bytes:
        self._sent += 1
        return self._send.encrypt(self._nonce(self._sent - 1), plaintext, b"")

    def open(self, ciphertext: bytes) -> bytes:
        self._received += 1
        return self._receive.decrypt(self._nonce(self._received - 1), ciphertext, b"")

    def _nonce(self, n: int) -> bytes:
        return bytes(4) + n.to_bytes(8, self._order)
