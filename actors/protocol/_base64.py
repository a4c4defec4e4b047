"""Byte strings as they travel: standard base64, padded, canonical."""

import binascii

from actors.protocol._faults import InvalidParams

_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def encode_bytes(data: bytes) -> str:
    """Write bytes as base64."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def decode_bytes(text: str) -> bytes:
    """Read base64, refusing what has another spelling of the same bytes.

    Raises:
        InvalidParams: "Invalid symbol 33, offset 0.", "Invalid padding", and their kin.
    """
    try:
        raw = text.encode("ascii")
        data = binascii.a2b_base64(raw, strict_mode=True)
    except (UnicodeEncodeError, binascii.Error):
        raise _fault(text.encode("utf-8", "replace")) from None
    # The decoder lets unused bits of the last symbol pass: see test_each_byte_string_has_one_spelling.
    if raw[-1:] == b"=" and binascii.b2a_base64(data[-(len(data) % 3 or 3) :], newline=False) != raw[-4:]:
        offset = len(raw.rstrip(b"=")) - 1
        raise InvalidParams(f"Invalid last symbol {raw[offset]}, offset {offset}.")
    return data


def _fault(raw: bytes) -> InvalidParams:
    body = raw.rstrip(b"=") if len(raw) - len(raw.rstrip(b"=")) <= 2 else raw
    for offset, symbol in enumerate(body):
        if symbol not in _ALPHABET:
            return InvalidParams(f"Invalid symbol {symbol}, offset {offset}.")
    if len(body) % 4 == 1:
        return InvalidParams(f"Invalid input length: {len(raw)}")
    return InvalidParams("Invalid padding")
