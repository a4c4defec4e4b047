"""Walk the tokens of one handshake: what is sent, hashed and mixed, in which order.

The whole of hybrid IK is the loop below and the table in `_suite`. It knows no limits, no turns and no errors
of ours: anything may come out of it, with keys in its frames. `_ends` lets none of that through.
"""

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey

from actors.noise._primitives import KeySource, PrivatePair, PublicPair
from actors.noise._sealed import Sealed
from actors.noise._suite import (
    HYBRID_IK,
    MLKEM768_CIPHERTEXT_BYTES,
    MLKEM768_PUBLIC_BYTES,
    TAG_BYTES,
    X25519_BYTES,
    Pattern,
)
from actors.noise._symmetric import HYBRID, Aead, Suite, begin, split


class Handshake(Sealed):
    """One side of one key agreement. Use each of `write`, `read` and `split` once, in the pattern's order."""

    __slots__ = (
        "_ephemeral", "_initiator", "_keys", "_messages", "_pattern",
        "_remote_ephemeral", "_state", "_static", "remote_static",
    )  # fmt: skip

    def __init__(
        self,
        *,
        initiator: bool,
        prologue: bytes,
        static: PrivatePair,
        remote_static: PublicPair | None,
        keys: KeySource,
        pattern: Pattern = HYBRID_IK,
        suite: Suite = HYBRID,
    ) -> None:
        self._initiator = initiator
        self._pattern = pattern
        self._messages = iter(pattern.messages)
        self._keys = keys
        self._static = static
        self._ephemeral: PrivatePair | None = None
        self.remote_static = remote_static
        self._remote_ephemeral: PublicPair | None = None
        self._state = begin(suite, initiator=initiator)
        self._state.mix_hash(prologue)
        responder = remote_static if initiator else static.public
        assert responder is not None, "an initiator knows its responder's key beforehand"
        for half in responder.halves:
            self._state.mix_hash(half)

    @property
    def hash(self) -> bytes:
        """The handshake hash so far; equal on both sides after the last message, and no secret."""
        return self._state.h

    def write(self, payload: bytes) -> bytes:
        """Return the next message, with `payload` in it.

        Raises:
            Exception: What the primitives raise, such as of a key that is none; there may be keys in its frames.
        """
        parts: list[bytes] = []
        for step in next(self._messages):
            match step:
                case "e":
                    self._write_ephemeral(parts)
                case "s":
                    parts.extend(map(self._state.encrypt_and_hash, self._static.public.halves))
                case "ekem" | "skem":
                    self._write_kem(step, parts)
                case _:
                    self._mix_dh(step)
        parts.append(self._state.encrypt_and_hash(payload))
        return b"".join(parts)

    def read(self, message: bytes) -> bytes:
        """Take the next message apart and return its payload.

        Raises:
            ValueError: The message is too short.
            Exception: What the primitives raise, such as of a tag that is wrong; there may be keys in its frames.
        """
        taken = 0

        def take(size: int) -> bytes:
            nonlocal taken
            part = message[taken : taken + size]
            if len(part) != size:
                raise ValueError("the message is too short")
            taken += size
            return part

        for step in next(self._messages):
            match step:
                case "e":
                    self._read_ephemeral(take)
                case "s":
                    self._read_static(take)
                case "ekem" | "skem":
                    self._read_kem(step, take)
                case _:
                    self._mix_dh(step)
        return self._state.decrypt_and_hash(message[taken:])

    def check_remote_keys(self) -> None:
        """Raise what is wrong with the peer's keys now, and not when they are first used.

        Raises:
            Exception: What the primitives raise, such as of a key that is none; there may be keys in its frames.
        """
        for pair in (self.remote_static, self._remote_ephemeral):
            if pair is not None and self._pattern.kem:
                _ = pair.mlkem768

    def split(self) -> tuple[Aead, Aead]:
        """Return the AEAD objects for sending and for receiving, in this order."""
        from_initiator, from_responder = split(self._state)
        return (from_initiator, from_responder) if self._initiator else (from_responder, from_initiator)

    def _write_ephemeral(self, parts: list[bytes]) -> None:
        x25519 = self._keys.new_x25519()
        self._ephemeral = PrivatePair(x25519, self._keys.new_mlkem768() if self._pattern.kem else None)
        for half in self._ephemeral.public.halves:
            parts.append(half)
            self._state.mix_hash(half)

    def _read_ephemeral(self, take: Callable[[int], bytes]) -> None:
        x25519 = take(X25519_BYTES)
        self._state.mix_hash(x25519)
        mlkem768 = None
        if self._pattern.kem:
            mlkem768 = take(MLKEM768_PUBLIC_BYTES)
            self._state.mix_hash(mlkem768)
        self._remote_ephemeral = PublicPair(x25519, mlkem768)

    def _read_static(self, take: Callable[[int], bytes]) -> None:
        x25519 = self._state.decrypt_and_hash(take(X25519_BYTES + TAG_BYTES))
        mlkem768 = None
        if self._pattern.kem:
            mlkem768 = self._state.decrypt_and_hash(take(MLKEM768_PUBLIC_BYTES + TAG_BYTES))
        self.remote_static = PublicPair(x25519, mlkem768)

    def _write_kem(self, step: str, parts: list[bytes]) -> None:
        secret, ciphertext = self._keys.encapsulate(self._kem_public(step))
        if step == "ekem":
            # Clear although a key exists: hashed, not encrypted.
            parts.append(ciphertext)
            self._state.mix_hash(ciphertext)
            self._state.mix_key(secret)
        else:
            parts.append(self._state.encrypt_and_hash(ciphertext))
            self._state.mix_key_and_hash(secret)

    def _read_kem(self, step: str, take: Callable[[int], bytes]) -> None:
        if step == "ekem":
            ciphertext = take(MLKEM768_CIPHERTEXT_BYTES)
            self._state.mix_hash(ciphertext)
            self._state.mix_key(self._kem_private(step).decapsulate(ciphertext))
        else:
            # The first token of message 1 has no key yet, so no tag; every later one has.
            tag = 0 if self._remote_ephemeral is None and not self._initiator else TAG_BYTES
            ciphertext = self._state.decrypt_and_hash(take(MLKEM768_CIPHERTEXT_BYTES + tag))
            self._state.mix_key_and_hash(self._kem_private(step).decapsulate(ciphertext))

    def _kem_public(self, step: str) -> MLKEM768PublicKey:
        pair = self._remote_ephemeral if step == "ekem" else self.remote_static
        assert pair is not None, "the pattern names a key before it has arrived"
        return pair.mlkem768

    def _kem_private(self, step: str) -> MLKEM768PrivateKey:
        pair = self._ephemeral if step == "ekem" else self._static
        assert pair is not None, "the pattern names a key before it was made"
        assert pair.mlkem768 is not None, "a KEM token in a pattern without KEM keys"
        return pair.mlkem768

    def _mix_dh(self, step: str) -> None:
        """Mix one X25519 result; the first letter names the initiator's key, the second the responder's."""
        mine, theirs = (step[0], step[1]) if self._initiator else (step[1], step[0])
        own = self._static if mine == "s" else self._ephemeral
        remote = self.remote_static if theirs == "s" else self._remote_ephemeral
        assert own is not None, "the pattern names a key before it was made"
        assert remote is not None, "the pattern names a key before it has arrived"
        # An all-zero result, from a low-order point, is refused by the primitive itself.
        self._state.mix_key(own.x25519.exchange(remote.x25519))
