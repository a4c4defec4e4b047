"""The bytes both ends hash first, so that a handshake is worth nothing on another stream.

Knows lengths and bytes; what an environment or a stream is, it does not know.
"""

from typing import Final

from actors.noise._errors import InvalidMessage

PROLOGUE_DOMAIN: Final = b"codex-exec-server-relay-noise/v1"


def stream_prologue(environment_id: str, executor_registration_id: str, stream_id: str) -> bytes:
    """Encode what a stream is bound to: domain, environment, registration and stream.

    Each part stands behind its length, 8 bytes big-endian, so ("ab", "c") and ("a", "bc") differ.

    Raises:
        InvalidMessage: an id is not valid Unicode (it holds a lone surrogate).
    """
    try:
        parts = [
            PROLOGUE_DOMAIN,
            *(part.encode() for part in (environment_id, executor_registration_id, stream_id)),
        ]
    except UnicodeEncodeError:
        parts = []
    if not parts:
        raise InvalidMessage("an id of the stream is not valid Unicode")
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
