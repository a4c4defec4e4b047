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
from noise.backends.default.ciphers import AESGCMCipher
from noise.functions.cipher import Cipher
from noise.state import CipherState, SymmetricState

from actors.noise._suite import PROTOCOL_NAME

__all__ = ["HYBRID", "Aead", "Hash", "Suite", "SymmetricState", "begin", "split"]

Aead = AESGCM
"""A keyed AEAD object: it shows no key and cannot be copied."""


class _Digest(Protocol):
    @property
    def digest_size(self) -> int: ...
    @property
    def block_size(self) -> int: ...
    def digest(self) -> bytes: ...


NewDigest = Callable[[bytes], _Digest]


@attrs.frozen(kw_only=True)
class Suite:
    """What a handshake hashes and encrypts with."""

    name: bytes
    """The protocol name, hashed first."""

    cipher: type[Cipher] = AESGCMCipher

    digest: NewDigest = hashlib.sha256


HYBRID: Final = Suite(name=PROTOCOL_NAME)

_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))


class Hash:
    """HASH, HMAC-HASH and HKDF as Noise defines them, on hashlib.

    noiseprotocol's own, and every HMAC object of OpenSSL, cost more in setting up than in hashing: of a
    handshake's sixteen HKDFs, 8.7 us each there, 4.6 on `cryptography`'s HKDF, 3.7 here (benchmarks/noise.py
    shows the whole).
    """

    __slots__ = ("_new", "_padding", "hashlen")

    def __init__(self, new: NewDigest) -> None:
        sample = new(b"")
        self._new = new
        self.hashlen = sample.digest_size
        self._padding = bytes(sample.block_size - sample.digest_size)

    def hash(self, data: bytes) -> bytes:
        """Return HASH(data)."""
        return self._new(data).digest()

    def hkdf(self, chaining_key: bytes, input_key_material: bytes, outputs: int) -> tuple[bytes, ...]:
        """Return two or three keys. Both HMAC keys have the length of a hash, so none is ever hashed or cut."""
        padded = chaining_key + self._padding
        padded = self._mac(padded, input_key_material) + self._padding
        first = self._mac(padded, b"\x01")
        second = self._mac(padded, first + b"\x02")
        return (first, second) if outputs == 2 else (first, second, self._mac(padded, second + b"\x03"))

    def _mac(self, padded: bytes, data: bytes) -> bytes:
        """HMAC with a key that is padded to a block already."""
        new = self._new
        return new(padded.translate(_OUTER) + new(padded.translate(_INNER) + data).digest()).digest()


@attrs.frozen(kw_only=True)
class _Role:
    initiator: bool


class _Protocol:
    """Stands where `SymmetricState` expects a NoiseProtocol; has what it reads and takes what it writes."""

    def __init__(self, suite: Suite, *, initiator: bool) -> None:
        self.name = suite.name
        self.hash_fn = Hash(suite.digest)
        self.hkdf = self.hash_fn.hkdf
        self.cipher_class = suite.cipher
        # Not the handshake itself: that would be a cycle, and keys would wait for the collector.
        self.handshake_state = _Role(initiator=initiator)
        self.cipher_state_handshake: CipherState | None = None
        self.cipher_state_encrypt: CipherState | None = None
        self.cipher_state_decrypt: CipherState | None = None

    def handshake_done(self) -> None:
        """Called by `split`; nothing of ours waits for it."""
        self.cipher_state_handshake = None


def begin(suite: Suite, *, initiator: bool) -> SymmetricState:
    """Return the state after InitializeSymmetric: nothing mixed but the name."""
    return SymmetricState.initialize_symmetric(_Protocol(suite, initiator=initiator))


def split(state: SymmetricState) -> tuple[Aead, Aead]:
    """Return the two keyed AEAD objects, the initiator's direction first; nothing else is kept."""
    first, second = state.split()
    return first.cipher.cipher, second.cipher.cipher
