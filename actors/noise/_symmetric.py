"""The symmetric half of a handshake, on noiseprotocol's state classes. The only file that knows that package.

noiseprotocol's own handshake and names cannot say a KEM token; its `SymmetricState` can be used alone and
needs only a small object to read its suite from. What it leaves behind (keys as bytes, copyable counters,
exceptions with keys in their frames) never leaves this package: see `_ends` and `_channel`.
"""

import hashlib
from collections.abc import Callable
from typing import Final, Protocol

import attrs
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256, HashAlgorithm
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from noise.backends.default.ciphers import AESGCMCipher
from noise.functions.cipher import Cipher
from noise.state import CipherState, SymmetricState

from actors.noise._suite import PROTOCOL_NAME

__all__ = ["HYBRID", "Aead", "Suite", "SymmetricState", "begin", "split"]

Aead = AESGCM
"""A keyed AEAD object: it shows no key and cannot be copied."""


@attrs.frozen(kw_only=True)
class Suite:
    """What a handshake hashes and encrypts with."""

    name: bytes
    """The protocol name, hashed first."""

    cipher: type[Cipher] = AESGCMCipher

    hash: HashAlgorithm = attrs.field(factory=SHA256)


HYBRID: Final = Suite(name=PROTOCOL_NAME)


class _Digest(Protocol):
    def digest(self) -> bytes: ...


class _Hash:
    """A hash as `SymmetricState` wants one: from hashlib it is four times as fast as from noiseprotocol."""

    __slots__ = ("_new", "hashlen")

    def __init__(self, algorithm: HashAlgorithm) -> None:
        self.hashlen = algorithm.digest_size
        self._new: Callable[[bytes], _Digest] = getattr(hashlib, algorithm.name)

    def hash(self, data: bytes) -> bytes:
        return self._new(data).digest()


@attrs.frozen(kw_only=True)
class _Role:
    initiator: bool


class _Protocol:
    """Stands where `SymmetricState` expects a NoiseProtocol; has what it reads and takes what it writes."""

    def __init__(self, suite: Suite, *, initiator: bool) -> None:
        self.name = suite.name
        self.hash_fn = _Hash(suite.hash)
        self.cipher_class = suite.cipher
        self._algorithm = suite.hash
        # Not the handshake itself: that would be a cycle, and keys would wait for the collector.
        self.handshake_state = _Role(initiator=initiator)
        self.cipher_state_handshake: CipherState | None = None
        self.cipher_state_encrypt: CipherState | None = None
        self.cipher_state_decrypt: CipherState | None = None

    def hkdf(self, chaining_key: bytes, input_key_material: bytes, outputs: int) -> list[bytes]:
        """Noise's HKDF is the standard one without info; in one call, it takes half as long as in five."""
        size = self.hash_fn.hashlen
        key = HKDF(self._algorithm, size * outputs, chaining_key, None).derive(input_key_material)
        return [key[start : start + size] for start in range(0, len(key), size)]

    def handshake_done(self) -> None:
        self.cipher_state_handshake = None


def begin(suite: Suite, *, initiator: bool) -> SymmetricState:
    """Return the state after InitializeSymmetric: nothing mixed but the name."""
    return SymmetricState.initialize_symmetric(_Protocol(suite, initiator=initiator))


def split(state: SymmetricState) -> tuple[Aead, Aead]:
    """Return the two keyed AEAD objects, the initiator's direction first; nothing else is kept."""
    first, second = state.split()
    return first.cipher.cipher, second.cipher.cipher
