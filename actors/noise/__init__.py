"""Encrypted channels between two ends that know each other's keys, with no word about how bytes travel.

A harness (`Initiator`) knows the executor's `PublicKey` and sends one message; the executor (`Responder`)
reads who asks and with what authorization, has that checked, and answers with one message; both then hold a
`SecureChannel`. Bytes go in and bytes come out: nothing here waits, reads a clock or opens a socket. Only the
identity file touches the disk.

The suite is hybrid: X25519 and ML-KEM-768 must both be broken to read a record. There is no other suite and
no fallback.
"""

from actors.noise._channel import RecordLimits as RecordLimits
from actors.noise._channel import SecureChannel as SecureChannel
from actors.noise._ends import HandshakeRequest as HandshakeRequest
from actors.noise._ends import Initiator as Initiator
from actors.noise._ends import Responder as Responder
from actors.noise._errors import ExecutorCredentialsRejected as ExecutorCredentialsRejected
from actors.noise._errors import HandshakeFailed as HandshakeFailed
from actors.noise._errors import IdentityFileRefused as IdentityFileRefused
from actors.noise._errors import InvalidMessage as InvalidMessage
from actors.noise._errors import InvalidPublicKey as InvalidPublicKey
from actors.noise._errors import InvalidState as InvalidState
from actors.noise._errors import KeyGenerationFailed as KeyGenerationFailed
from actors.noise._errors import NoiseError as NoiseError
from actors.noise._errors import TransportFailed as TransportFailed
from actors.noise._errors import TransportTruncated as TransportTruncated
from actors.noise._identity import Identity as Identity
from actors.noise._identity_file import load_identity as load_identity
from actors.noise._identity_file import load_or_generate_identity as load_or_generate_identity
from actors.noise._identity_file import store_identity as store_identity
from actors.noise._primitives import KeySource as KeySource
from actors.noise._prologue import stream_prologue as stream_prologue
from actors.noise._public_key import PublicKey as PublicKey
from actors.noise._suite import MAX_AUTHORIZATION_BYTES as MAX_AUTHORIZATION_BYTES
from actors.noise._suite import MAX_PLAINTEXT_BYTES as MAX_PLAINTEXT_BYTES
from actors.noise._suite import SUITE as SUITE

__all__ = [
    "MAX_AUTHORIZATION_BYTES",
    "MAX_PLAINTEXT_BYTES",
    "SUITE",
    "ExecutorCredentialsRejected",
    "HandshakeFailed",
    "HandshakeRequest",
    "Identity",
    "IdentityFileRefused",
    "Initiator",
    "InvalidMessage",
    "InvalidPublicKey",
    "InvalidState",
    "KeyGenerationFailed",
    "KeySource",
    "NoiseError",
    "PublicKey",
    "RecordLimits",
    "Responder",
    "SecureChannel",
    "TransportFailed",
    "TransportTruncated",
    "load_identity",
    "load_or_generate_identity",
    "store_identity",
    "stream_prologue",
]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
