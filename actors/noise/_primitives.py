"""Key pairs on `cryptography`'s objects, and where fresh keys come from.

Private keys stay inside those objects: no attribute here holds their bytes. Nothing in this file draws
entropy itself; `SystemKeys` asks the primitive, and a test hands in another `KeySource`.
"""

from typing import Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from actors.noise._errors import KeyGenerationFailed
from actors.noise._sealed import Sealed
from actors.noise._suite import MLKEM768_SEED_BYTES, X25519_BYTES


class PublicPair:
    """The public side of a key: an X25519 point and, in the hybrid, an ML-KEM-768 key.

    The bytes are kept as they came and hashed as they came: one point has several encodings, none is
    normalised. The key objects are made when first asked for, as some are sent and never used; that checks
    the ML-KEM modulus.
    """

    __slots__ = ("_mlkem768", "_x25519", "mlkem768_bytes", "x25519_bytes")

    def __init__(self, x25519_bytes: bytes, mlkem768_bytes: bytes | None) -> None:
        self.x25519_bytes: bytes = x25519_bytes
        self.mlkem768_bytes: bytes | None = mlkem768_bytes
        self._x25519: X25519PublicKey | None = None
        self._mlkem768: MLKEM768PublicKey | None = None

    @property
    def x25519(self) -> X25519PublicKey:
        """The point, ready for an exchange."""
        if self._x25519 is None:
            self._x25519 = X25519PublicKey.from_public_bytes(self.x25519_bytes)
        return self._x25519

    @property
    def mlkem768(self) -> MLKEM768PublicKey:
        """The ML-KEM key, ready to encapsulate to; a ValueError says that its bytes are none."""
        if self._mlkem768 is None:
            assert self.mlkem768_bytes is not None, "a KEM token in a pattern without KEM keys"
            self._mlkem768 = MLKEM768PublicKey.from_public_bytes(self.mlkem768_bytes)
        return self._mlkem768

    @property
    def halves(self) -> tuple[bytes, ...]:
        """The bytes of the one or two keys, in the order in which they are sent and hashed."""
        return (self.x25519_bytes,) if self.mlkem768_bytes is None else (self.x25519_bytes, self.mlkem768_bytes)


class PrivatePair(Sealed):
    """A whole key: the two private objects, and the public side made from them once."""

    __slots__ = ("mlkem768", "public", "x25519")

    def __init__(self, x25519: X25519PrivateKey, mlkem768: MLKEM768PrivateKey | None) -> None:
        self.x25519: X25519PrivateKey = x25519
        self.mlkem768: MLKEM768PrivateKey | None = mlkem768
        self.public: PublicPair = PublicPair(
            x25519.public_key().public_bytes_raw(),
            None if mlkem768 is None else mlkem768.public_key().public_bytes_raw(),
        )


class KeySource(Protocol):
    """Where a handshake takes what must be fresh and unguessable.

    Only tests and simulators pass another one than the default: with known ephemeral keys nothing stays
    secret.
    """

    def new_x25519(self) -> X25519PrivateKey:
        """Return a private key that was never used before."""
        ...

    def new_mlkem768(self) -> MLKEM768PrivateKey:
        """Return a private key that was never used before."""
        ...

    def encapsulate(self, peer: MLKEM768PublicKey) -> tuple[bytes, bytes]:
        """Return a fresh shared secret and the ciphertext that carries it to `peer`, in this order."""
        ...


class SystemKeys:
    """Fresh keys from the primitives, which draw on the operating system."""

    __slots__ = ()

    def new_x25519(self) -> X25519PrivateKey:
        """Return a new private key."""
        return X25519PrivateKey.generate()

    def new_mlkem768(self) -> MLKEM768PrivateKey:
        """Return a new private key."""
        return MLKEM768PrivateKey.generate()

    def encapsulate(self, peer: MLKEM768PublicKey) -> tuple[bytes, bytes]:
        """Return a new shared secret and its ciphertext."""
        return peer.encapsulate()


def generate_pair(keys: KeySource) -> PrivatePair:
    """Make both halves together.

    Raises:
        KeyGenerationFailed: the backend has no ML-KEM-768; there is no classical fallback.
    """
    try:
        return PrivatePair(keys.new_x25519(), keys.new_mlkem768())
    except UnsupportedAlgorithm:
        failure = missing_kem
    raise failure()


def missing_kem() -> KeyGenerationFailed:
    """Say what to do when the backend was built without ML-KEM-768."""
    return KeyGenerationFailed("this build of `cryptography` has no ML-KEM-768; install a wheel of version 48 or newer")


def pair_from_seed(seed: bytes) -> PrivatePair:
    """Rebuild a pair from the X25519 private key (32 bytes) and the ML-KEM-768 seed (64 bytes) behind it."""
    assert len(seed) == X25519_BYTES + MLKEM768_SEED_BYTES, "an identity seed has 96 bytes"
    return PrivatePair(
        X25519PrivateKey.from_private_bytes(seed[:X25519_BYTES]),
        MLKEM768PrivateKey.from_seed_bytes(seed[X25519_BYTES:]),
    )


def seed_of_pair(pair: PrivatePair) -> bytes:
    """Return the 96 bytes of `pair_from_seed`. For the identity file alone."""
    assert pair.mlkem768 is not None, "an identity is hybrid"
    return pair.x25519.private_bytes_raw() + pair.mlkem768.private_bytes_raw()
