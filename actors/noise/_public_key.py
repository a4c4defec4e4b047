"""Public keys: three strings in JSON, refused by length before anything is decoded.

Knows the form in which keys travel and when two are the same; whom a key belongs to, it does not know.
"""

import base64
import hmac
import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from cryptography.exceptions import UnsupportedAlgorithm

from actors.noise._errors import InvalidPublicKey, NoiseError
from actors.noise._primitives import PublicPair, missing_kem
from actors.noise._suite import MLKEM768_PUBLIC_BYTES, SUITE, X25519_BYTES

MAX_JSON_CHARACTERS: Final = 16 * 1024
_FIELDS: Final = frozenset({"suite", "x25519_public_key", "mlkem768_public_key"})


class PublicKey:
    """One end's public key: an X25519 point and an ML-KEM-768 key that belong together.

    Two keys are equal when both halves are, byte for byte, and the comparison takes the same time wherever
    they differ. `str` and `repr` name the suite and nothing else.
    """

    __slots__ = ("_pair",)

    def __init__(self, *, x25519: bytes, mlkem768: bytes) -> None:
        """Take raw keys of 32 and 1,184 bytes.

        Raises:
            InvalidPublicKey: a length is wrong, or the ML-KEM key fails its modulus check.
            KeyGenerationFailed: the backend has no ML-KEM-768.
        """
        # Our own copies, so that a caller's bytearray cannot change a pinned key later.
        pair = _attempt(_import_pair, (bytes(x25519), bytes(mlkem768)))
        del x25519, mlkem768
        self._pair = _pair_or_raise(pair)

    @classmethod
    def from_json(cls, text: str | bytes) -> "PublicKey":
        """Read the JSON object with exactly the members `suite`, `x25519_public_key`, `mlkem768_public_key`.

        Raises:
            InvalidPublicKey: anything else, also a member too many, missing, doubled or not a string.
            KeyGenerationFailed: the backend has no ML-KEM-768.
        """
        pair = _attempt(_pair_from_json, text)
        del text
        return key_of_pair(_pair_or_raise(pair))

    @classmethod
    def from_fields(cls, fields: object) -> "PublicKey":
        """Read the three members from a mapping that was decoded elsewhere; the rules of `from_json` hold."""
        pair = _attempt(_pair_from_fields, fields)
        del fields
        return key_of_pair(_pair_or_raise(pair))

    def to_fields(self) -> dict[str, str]:
        """Return the three members, for a caller that encodes a larger object."""
        return {
            "suite": SUITE,
            "x25519_public_key": base64.b64encode(self.x25519).decode(),
            "mlkem768_public_key": base64.b64encode(self.mlkem768).decode(),
        }

    def to_json(self) -> str:
        """Return the JSON object of `from_json`."""
        return json.dumps(self.to_fields())

    @property
    def suite(self) -> str:
        """The label of the one suite there is."""
        return SUITE

    @property
    def x25519(self) -> bytes:
        """The 32 bytes as they were received; never normalised."""
        return self._pair.x25519_bytes

    @property
    def mlkem768(self) -> bytes:
        """The 1,184 bytes as they were received."""
        raw = self._pair.mlkem768_bytes
        assert raw is not None, "a public key is hybrid"
        return raw

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PublicKey):
            return NotImplemented
        return hmac.compare_digest(self.x25519 + self.mlkem768, other.x25519 + other.mlkem768)

    def __hash__(self) -> int:
        return hash((self.x25519, self.mlkem768))

    def __repr__(self) -> str:
        return f"PublicKey(suite={SUITE!r}, x25519=<redacted>, mlkem768=<redacted>)"

    def __copy__(self) -> "PublicKey":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "PublicKey":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return PublicKey.from_json, (self.to_json(),)


def pair_of_key(key: PublicKey) -> PublicPair:
    """Return the imported key objects of `key`."""
    return key._pair  # pyright: ignore[reportPrivateUsage]  # The other half of this module's class.


def key_of_pair(pair: PublicPair) -> PublicKey:
    """Wrap a pair that a handshake has read, without importing it again."""
    key = PublicKey.__new__(PublicKey)
    key._pair = pair  # pyright: ignore[reportPrivateUsage]  # The other half of this module's class.
    return key


_Failure = Callable[[], NoiseError]
_Value = TypeVar("_Value")


def _attempt(read: Callable[[_Value], PublicPair], value: _Value) -> "PublicPair | _Failure":
    """Return the pair, or what makes the error: no frame of the error that is raised then shows a key."""
    try:
        return read(value)
    except NoiseError as error:
        return partial(type(error), error.what)


def _pair_or_raise(pair: "PublicPair | _Failure") -> PublicPair:
    if isinstance(pair, PublicPair):
        return pair
    raise pair()


def _pair_from_json(text: str | bytes) -> PublicPair:
    if len(text) > MAX_JSON_CHARACTERS:
        raise InvalidPublicKey("the JSON is too long")
    return _pair_from_fields(_parse(text))


def _pair_from_fields(fields: object) -> PublicPair:
    suite, x25519, mlkem768 = _three_strings(fields)
    if suite != SUITE:
        raise InvalidPublicKey("unsupported Noise channel suite")
    return _import_pair(
        (_decode("X25519", x25519, X25519_BYTES), _decode("ML-KEM-768", mlkem768, MLKEM768_PUBLIC_BYTES))
    )


def _three_strings(fields: object) -> tuple[str, str, str]:
    """Return the members in the order of the sizes they may have, or refuse the whole."""
    if isinstance(fields, dict):
        members: dict[Any, Any] = fields  # pyright: ignore[reportUnknownVariableType]  # Looked at next.
        if members.keys() == _FIELDS and all(isinstance(value, str) for value in members.values()):
            return members["suite"], members["x25519_public_key"], members["mlkem768_public_key"]
    raise InvalidPublicKey("expected an object of exactly three strings: suite, x25519_public_key, mlkem768_public_key")


def _parse(text: str | bytes) -> object:
    """Return what the JSON says, or None, which is no object: a parser's error would quote the text."""
    try:
        return json.loads(text, object_pairs_hook=_refuse_doubled)
    except (ValueError, RecursionError):
        return None


def _refuse_doubled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member stands twice")
    return members


def _decode(name: str, encoded: str, size: int) -> bytes:
    """Decode standard padded base64 of exactly `size` bytes, in its one canonical spelling."""
    if len(encoded) > 4 * ((size + 2) // 3):
        raise InvalidPublicKey(f"invalid {name} public key length")
    raw = _from_base64(encoded)
    # Equality of keys is equality of their strings, so one key must not have two spellings (stray bits before
    # padding).
    if raw is None or not hmac.compare_digest(base64.b64encode(raw), encoded.encode()):
        raise InvalidPublicKey(f"invalid {name} public key")
    _check_size(name, raw, size)
    return raw


def _from_base64(encoded: str) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        return None


def _check_size(name: str, raw: bytes, size: int) -> None:
    if len(raw) != size:
        raise InvalidPublicKey(f"invalid {name} public key length")


def _import_pair(halves: tuple[bytes, bytes]) -> PublicPair:
    """Return the pair with its ML-KEM half imported, which checks it and is needed by whoever uses it."""
    x25519, mlkem768 = halves
    _check_size("X25519", x25519, X25519_BYTES)
    _check_size("ML-KEM-768", mlkem768, MLKEM768_PUBLIC_BYTES)
    pair = PublicPair(x25519, mlkem768)
    try:
        _ = pair.mlkem768
    except UnsupportedAlgorithm:
        failure: _Failure = missing_kem
    except ValueError:
        failure = partial(InvalidPublicKey, "invalid ML-KEM-768 public key")
    else:
        return pair
    raise failure()
