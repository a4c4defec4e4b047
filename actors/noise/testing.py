"""Known keys in place of fresh ones: recordings can be replayed and a simulation repeated.

Never outside tests: who knows the ephemeral keys reads the channel.
"""

import hashlib
from collections.abc import Iterable

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

__all__ = ["ScriptedKeys", "SeededKeys"]


class ScriptedKeys:
    """Hand out written-down keys and encapsulations in their order, and fail when they are used up."""

    def __init__(
        self,
        *,
        x25519: Iterable[bytes] = (),
        mlkem768: Iterable[bytes] = (),
        encapsulations: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Take raw material.

        Args:
            x25519: private keys of 32 bytes.
            mlkem768: seeds of 64 bytes.
            encapsulations: pairs of shared secret (32 bytes) and ciphertext (1,088 bytes); whose key they
                belong to is not checked here, but a peer with another key fails.
        """
        self._x25519 = iter(x25519)
        self._mlkem768 = iter(mlkem768)
        self._encapsulations = iter(encapsulations)

    def new_x25519(self) -> X25519PrivateKey:
        """Return the next X25519 key."""
        return X25519PrivateKey.from_private_bytes(next(self._x25519))

    def new_mlkem768(self) -> MLKEM768PrivateKey:
        """Return the next ML-KEM-768 key."""
        return MLKEM768PrivateKey.from_seed_bytes(next(self._mlkem768))

    def encapsulate(self, peer: MLKEM768PublicKey) -> tuple[bytes, bytes]:
        """Return the next encapsulation, whoever the peer is."""
        return next(self._encapsulations)


class SeededKeys:
    """Derive each key from a seed and a count: the same seed gives the same identities and ephemeral keys.

    Encapsulation stays the primitive's own, as no backend offers a deterministic one: sizes and outcomes
    repeat, the bytes on the wire do not.
    """

    def __init__(self, seed: int | str) -> None:
        self._seed = str(seed)
        self._count = 0

    def new_x25519(self) -> X25519PrivateKey:
        """Return the next X25519 key."""
        return X25519PrivateKey.from_private_bytes(self._draw(32))

    def new_mlkem768(self) -> MLKEM768PrivateKey:
        """Return the next ML-KEM-768 key."""
        return MLKEM768PrivateKey.from_seed_bytes(self._draw(64))

    def encapsulate(self, peer: MLKEM768PublicKey) -> tuple[bytes, bytes]:
        """Return a fresh encapsulation from the primitive."""
        return peer.encapsulate()

    def _draw(self, size: int) -> bytes:
        self._count += 1
        return hashlib.shake_256(f"{self._seed}:{self._count}".encode()).digest(size)
