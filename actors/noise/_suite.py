"""The one suite of the channel, its sizes and its patterns. Values only.

Two spellings of one suite exist and both matter: the label that travels with keys says `X25519`; the protocol
name that is hashed says `25519`, as Noise names its curves. With the label in the hash, message 1 already
differs (test_the_label_of_the_suite_is_not_the_name_that_is_hashed).
"""

from typing import Final

import attrs

SUITE: Final = "Noise_hybridIK_X25519+MLKEM768_AESGCM_SHA256"
PROTOCOL_NAME: Final = b"Noise_hybridIK_25519+MLKEM768_AESGCM_SHA256"

X25519_BYTES: Final = 32
MLKEM768_PUBLIC_BYTES: Final = 1184
MLKEM768_CIPHERTEXT_BYTES: Final = 1088
MLKEM768_SEED_BYTES: Final = 64
TAG_BYTES: Final = 16

MAX_MESSAGE_BYTES: Final = 65_535
"""The Noise limit on a handshake message, and the hard stop for a record."""

MAX_PLAINTEXT_BYTES: Final = 60 * 1024
"""What one record may carry on the relay's wire; `MAX_RECORD_PLAINTEXT_BYTES` is what Noise itself allows."""

MAX_RECORD_PLAINTEXT_BYTES: Final = MAX_MESSAGE_BYTES - TAG_BYTES

MAX_RECORDS: Final = 2**32 - 1
"""Records per direction: the relay's sequence numbers end there, and a nonce is its sequence number."""

MAX_AUTHORIZATION_BYTES: Final = 4096
"""The largest payload of message 1 that a responder reads."""

CREDENTIALS_REJECTED: Final = b"codex-registry-authentication-rejected/v1"
"""The payload of message 2 with which an executor reports that the registry answered it with HTTP 401."""


@attrs.frozen(kw_only=True)
class Pattern:
    """A handshake in which the initiator knows the responder's static keys beforehand."""

    messages: tuple[tuple[str, ...], tuple[str, ...]]
    """The tokens of message 1 and message 2, in the order in which they are processed."""

    kem: bool
    """Whether each key is a pair, X25519 and ML-KEM-768, or X25519 alone."""


# The order within message 2 is that of clatter 2.2.0, which the reference requires: older releases and a
# proposed newer one use other orders under the same name. Frozen by the vectors in
# tests/actors/noise/recordings.
HYBRID_IK: Final = Pattern(
    messages=(("skem", "e", "es", "s", "ss"), ("ekem", "skem", "e", "ee", "se")),
    kem=True,
)

REQUEST_OVERHEAD_BYTES: Final = (
    MLKEM768_CIPHERTEXT_BYTES
    + (X25519_BYTES + MLKEM768_PUBLIC_BYTES)
    + (X25519_BYTES + TAG_BYTES + MLKEM768_PUBLIC_BYTES + TAG_BYTES)
    + TAG_BYTES
)
"""Message 1 without its payload: 3,568 bytes."""

RESPONSE_BYTES: Final = (
    MLKEM768_CIPHERTEXT_BYTES
    + (MLKEM768_CIPHERTEXT_BYTES + TAG_BYTES)
    + (X25519_BYTES + MLKEM768_PUBLIC_BYTES)
    + TAG_BYTES
)
"""Message 2 with the empty payload: 3,424 bytes."""
