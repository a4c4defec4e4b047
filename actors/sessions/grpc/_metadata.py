"""Write metadata as headers and read it back: ASCII text, or bytes under a key that ends in `-bin`."""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Final

from hpack.struct import NeverIndexedHeaderTuple

from actors.sessions.grpc._errors import InvalidMetadata, MalformedCall
from actors.sessions.grpc._pairs import NO_METADATA, Metadata, MetadataLike

Headers = list[tuple[bytes, bytes]]
Fields = tuple[tuple[bytes, bytes], ...]

_KEY: Final = re.compile(r"[0-9a-z_.-]+")
_TEXT: Final = re.compile(r"[\x20-\x7e]*")
_CONNECTION_KEYS: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "host",
        "te",
        "content-type",
    }
)
_PROTOCOL_HEADERS: Final = frozenset(
    {
        b"content-type", b"te", b"grpc-timeout", b"grpc-encoding", b"grpc-accept-encoding",
        b"grpc-message-type", b"grpc-status", b"grpc-message", b"grpc-status-details-bin",
    }
)  # fmt: skip


def metadata_to_headers(metadata: MetadataLike) -> Headers:
    """Write metadata as header fields.

    Raises:
        InvalidMetadata: A key or value has no place in a header, or the key belongs to the protocol.
    """
    # Never indexed: metadata carries credentials, and a shared table tells an attacker whether a guess was
    # right.
    return [NeverIndexedHeaderTuple(key.encode(), _encode_value(key, value)) for key, value in metadata]


def _encode_value(key: str, value: str | bytes) -> bytes:
    if _KEY.fullmatch(key) is None:
        raise InvalidMetadata(key, "has a key with other letters than 0-9 a-z _ . -")
    if key in _CONNECTION_KEYS or key.startswith("grpc-"):
        raise InvalidMetadata(key, "has a key that belongs to the protocol")
    if key.endswith("-bin"):
        if isinstance(value, str):
            raise InvalidMetadata(key, "is text under a binary key; give bytes")
        return b64encode(value).rstrip(b"=")
    if isinstance(value, bytes):
        raise InvalidMetadata(key, "is bytes under a text key; let the key end in -bin")
    if _TEXT.fullmatch(value) is None or value != value.strip():
        raise InvalidMetadata(key, "is not printable ASCII without spaces at its ends; let the key end in -bin")
    return value.encode()


def metadata_from_headers(headers: Iterable[tuple[bytes, bytes]]) -> Metadata:
    """Read metadata from header fields; what belongs to the protocol is left out.

    Raises:
        MalformedCall: A binary value is no base64.
    """
    pairs: list[tuple[str, str | bytes]] = []
    for name, value in headers:
        if name in _PROTOCOL_HEADERS or name.startswith(b":"):
            continue
        key = name.decode("latin-1")
        if key.endswith("-bin"):
            # A sender may join several binary values with commas; base64 has none of its own.
            pairs += [(key, _decode_binary(key, part)) for part in value.split(b",")]
        else:
            pairs.append((key, value.decode("latin-1").strip(" \t")))
    return Metadata(tuple(pairs)) if pairs else NO_METADATA


def _decode_binary(key: str, value: bytes) -> bytes:
    return decode_base64(value, f"the binary metadata {key!r}")


def decode_base64(value: bytes, what: str) -> bytes:
    """Decode base64 with or without padding.

    Raises:
        MalformedCall: It is neither; `what` names it.
    """
    bare = value.strip().rstrip(b"=")
    try:
        return b64decode(bare + b"=" * (-len(bare) % 4), validate=True)
    except binascii.Error as broken:
        raise MalformedCall(f"{what} is not base64") from broken
