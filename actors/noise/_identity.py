"""Identities: an X25519 and an ML-KEM-768 key pair made together, and kept as objects.

Where one is stored is the business of `_identity_file`.
"""

from actors.noise._primitives import KeySource, PrivatePair, SystemKeys, generate_pair, pair_from_seed
from actors.noise._public_key import PublicKey, key_of_pair
from actors.noise._sealed import Sealed
from actors.noise._suite import MLKEM768_SEED_BYTES, X25519_BYTES

IDENTITY_SEED_BYTES = X25519_BYTES + MLKEM768_SEED_BYTES


class Identity(Sealed):
    """One end's long-lived keys. Make it with `generate`, `from_seed` or `load_identity`.

    Keep the object: making one from its seed costs as much as four key exchanges. It cannot be copied or
    pickled, and no text shows more than the redacted public key.
    """

    __slots__ = ("_pair", "_public_key")

    def __init__(self, pair: PrivatePair) -> None:
        if type(pair) is not PrivatePair:
            raise TypeError("an identity is made with Identity.generate(), Identity.from_seed() or load_identity()")
        self._pair = pair
        self._public_key = key_of_pair(pair.public)

    @classmethod
    def generate(cls, *, keys: KeySource | None = None) -> "Identity":
        """Make a new identity.

        Args:
            keys: where fresh keys come from; the primitives' own generators by default.

        Raises:
            KeyGenerationFailed: the backend has no ML-KEM-768. There is no classical fallback.
        """
        return cls(generate_pair(keys or SystemKeys()))

    @classmethod
    def from_seed(cls, seed: bytes) -> "Identity":
        """Rebuild the identity of a seed: X25519 private key (32 bytes), then ML-KEM-768 seed (64 bytes).

        Raises:
            ValueError: `seed` has not 96 bytes.
        """
        if len(seed) == IDENTITY_SEED_BYTES:
            return cls(pair_from_seed(bytes(seed)))
        del seed
        raise ValueError(f"the seed of an identity has exactly {IDENTITY_SEED_BYTES} bytes")

    @property
    def public_key(self) -> PublicKey:
        """What others may know."""
        return self._public_key

    def __repr__(self) -> str:
        return f"Identity(public_key={self._public_key!r})"


def pair_of_identity(identity: Identity) -> PrivatePair:
    """Return the private key objects, for a handshake or the identity file."""
    return identity._pair  # pyright: ignore[reportPrivateUsage]  # The other half of this module's class.
